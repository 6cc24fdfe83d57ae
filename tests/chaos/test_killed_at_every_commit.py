"""A worker killed right before or after any commit: another process finishes the run, and every promise holds."""

from __future__ import annotations

import itertools
import signal
from pathlib import Path
from typing import Any

import pytest

from stepwell import Engine, RunNotFound
from tests.chaos import work
from tests.chaos.conftest import StartChild
from tests.conformance.audit import audit
from tests.engine.ledger import counted

BODIES = {"Diamond": ["top", "left", "right", "bottom"], "Chain": ["one", "two", "three"], "Failing": ["one", "breaks"]}


def finish(url: str, shape: str, ledger: str, **options: Any) -> None:
    """A fresh engine takes the run up, and everything that was promised is so."""
    with Engine(url, **options) as engine:
        try:
            run = engine.adopt("r")
        except RunNotFound:  # it died before the run was durable, so nobody was told that there is one
            assert not counted(ledger)
            run = engine.start(work.SHAPES[shape](ledger=ledger), run_id="r")
        run.wait(20)
        interrupted = [node.name for node in run.nodes() if node.status == "INTERRUPTED"]
        if interrupted:
            assert (interrupted, run.status) == (["right"], "FAILED")
            assert counted(ledger)["right"] <= 1, "it promised to run at most once, and nobody has asked again"
            run.retry().wait(20)
        assert run.status == ("FAILED" if shape == "Failing" else "COMPLETED")
        entries = counted(ledger)
        for node in run.nodes():
            if node.name in BODIES[shape]:
                assert entries[node.name] >= 1, f"{node.name} never ran"
            if node.status == "COMPLETED":
                assert [attempt.status for attempt in node.attempts].count("COMPLETED") == 1
                assert run.output(node.name) == node.name
        assert entries["right"] <= 1 + len(interrupted)
        assert entries["never"] == 0
        audit(engine.store)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("shape", list(BODIES))
def test_a_run_survives_a_worker_killed_at_any_of_its_commits(
    shape: str, when: str, tmp_path: Path, start_child: StartChild
) -> None:
    died = 0
    for number in itertools.count(1):
        url, ledger = f"sqlite:///{tmp_path}/{number}.db", f"{tmp_path}/ledger-{number}"
        child = start_child(work.run_and_die, url, shape, ledger, number, when)
        child.join(30)
        died += child.exitcode == -signal.SIGKILL
        finish(url, shape, ledger)
        if child.exitcode == 0:
            break
        assert child.exitcode == -signal.SIGKILL, f"commit {number}: the child ended with {child.exitcode}"
    assert died >= 4, "it made so few commits that this proves little"


def test_a_run_survives_two_workers_killed_one_after_another(tmp_path: Path, start_child: StartChild) -> None:
    """Whatever the first left, the second goes on with, and dies at any of its commits too."""
    for first, second in itertools.product(range(2, 7), range(1, 6)):
        url, ledger = f"sqlite:///{tmp_path}/{first}-{second}.db", f"{tmp_path}/ledger-{first}-{second}"
        start_child(work.run_and_die, url, "Chain", ledger, first, "after").join(30)
        start_child(work.adopt_and_die, url, second, "before" if second % 2 else "after").join(30)
        finish(url, "Chain", ledger)


@pytest.mark.parametrize("on_lost", ["rerun", "interrupt"])
def test_a_worker_killed_in_a_body_loses_only_that_attempt(
    on_lost: str, url: str, ledger: str, start_child: StartChild
) -> None:
    from stepwell import Builder

    w = Builder("dies")
    w.node("before", job=work.small, args={"ledger": ledger})
    w.node("dies", job=work.die_in_the_body, args={"ledger": ledger}, on_lost=on_lost)  # type: ignore[arg-type]
    w.node("after", job=work.small, args={"ledger": ledger})
    with Engine(url, runner=None) as starter:
        run_id = starter.start(w).id
    start_child(work.serve, url).join(30)
    with Engine(url) as engine:
        run = engine.adopt(run_id).wait(20)
        dies = run.node("dies")
        if on_lost == "rerun":
            assert run.status == "COMPLETED"
            assert [attempt.status for attempt in dies.attempts] == ["LOST", "COMPLETED"]
        else:
            assert (run.status, dies.status, dies.reason) == ("FAILED", "INTERRUPTED", "worker_lost")
            assert counted(ledger)["dies"] == 1
        error = dies.attempts[0].error
        assert error is not None
        assert error.type == "WorkerLost"
        assert len(run.node("before").attempts) == 1
