"""Who starts, cancels, retries or deletes a run may die at any commit: another process finishes what was begun."""

from __future__ import annotations

import itertools
import shutil
import signal
from pathlib import Path

import apsw
import pytest

from stepwell import Builder, Engine, RunNotFound
from stepwell.base.clock import SECOND
from tests.chaos import work
from tests.chaos.conftest import StartChild
from tests.conformance.audit import audit
from tests.conformance.ops import CHUNK
from tests.engine import jobs
from tests.engine.waiting import eventually


def let_the_lease_of_the_loader_pass(database: Path) -> None:
    """Half a minute, which nobody wants to wait for."""
    connection = apsw.Connection(str(database))
    connection.execute("UPDATE run SET expires_at = 0 WHERE purpose = 'load'")
    connection.close()


def wide(nodes: int) -> Builder:
    w = Builder("wide")
    w.fan_out(range(nodes), job=jobs.same, depends_on=None)
    return w


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("verb", ["cancel", "retry"])
def test_what_was_asked_for_is_done_or_was_never_begun(
    verb: str, when: str, tmp_path: Path, start_child: StartChild
) -> None:
    for number in itertools.count(1):
        url = f"sqlite:///{tmp_path}/{number}.db"
        with Engine(url, runner=None) as starter:
            run = starter.start(wide(3), run_id="r")
            if verb == "retry":
                run.cancel()
        child = start_child(work.ask_and_die, url, verb, number, when)
        child.join(30)
        with Engine(url) as engine:
            run = engine.get("r")
            begun = run.row.purpose == verb
            if verb == "cancel" and begun:
                assert run.wait(10).status == "CANCELLED"
            elif begun:
                engine.run(wide(1))  # whoever works also looks after what others left
                eventually(lambda run=run: run.row.purpose is None)
            if not run.status.terminal:
                assert engine.adopt("r").wait(10).status == "COMPLETED"
            audit(engine.store)
        if child.exitcode == 0:
            break
        assert child.exitcode == -signal.SIGKILL
    assert number > 2


def test_a_large_run_whose_starter_died_half_way_is_loaded_by_others(tmp_path: Path, start_child: StartChild) -> None:
    for number in range(1, 5):
        url = f"sqlite:///{tmp_path}/{number}.db"
        start_child(work.start_large_and_die, url, CHUNK + 10, number, "after").join(30)
        let_the_lease_of_the_loader_pass(tmp_path / f"{number}.db")
        with Engine(url) as engine:
            try:
                run = engine.adopt("r")
            except RunNotFound:
                continue
            assert run.wait(30).status == "COMPLETED"
            assert len(run.outputs) == CHUNK + 10
            audit(engine.store)


def test_a_large_fork_whose_maker_died_is_loaded_and_shared_by_others(tmp_path: Path, start_child: StartChild) -> None:
    made = 0
    w = wide(CHUNK + 10)
    w.node("last", job=jobs.same, args={"item": "last"})
    origin = tmp_path / "origin.db"
    with Engine(f"sqlite:///{origin}") as engine:
        engine.run(w, run_id="r")
    for number in itertools.count(1):
        database = tmp_path / f"{number}.db"
        shutil.copy(origin, database)
        child = start_child(work.fork_and_die, f"sqlite:///{database}", number, "after" if number % 2 else "before")
        child.join(60)
        let_the_lease_of_the_loader_pass(database)
        with Engine(f"sqlite:///{database}") as engine:
            try:
                fork = engine.adopt("fork").wait(60)
            except RunNotFound:
                continue
            made += 1
            assert fork.status == "COMPLETED"
            assert fork.diff("r").same_outputs
            shared = [node for node in fork.nodes() if node.attempts[0].started_at < fork.row.created_at / SECOND]
            assert len(shared) == CHUNK + 10
            audit(engine.store)
        if child.exitcode == 0:
            break
        assert child.exitcode == -signal.SIGKILL
    assert made > 4


def test_a_run_whose_deletion_was_interrupted_is_deleted_by_others(
    tmp_path: Path, url: str, start_child: StartChild
) -> None:
    with Engine(url, runner=None) as starter:
        starter.start(wide(CHUNK + 10), run_id="r").cancel()
    start_child(work.ask_and_die, url, "delete", 1, "after").join(30)

    def gone() -> bool:
        try:
            engine.get("r")
        except RunNotFound:
            return True
        return False

    with Engine(url) as engine:
        engine.run(wide(1))
        eventually(gone)


def test_a_run_whose_worker_died_can_be_cancelled_by_an_engine_that_does_nothing_else(
    url: str, ledger: str, start_child: StartChild
) -> None:
    w = Builder("dies")
    w.node("dies", job=work.always_die, args={"ledger": ledger})
    with Engine(url, runner=None) as starter:
        run_id = starter.start(w).id
    start_child(work.serve, url).join(30)
    with Engine(url) as engine:
        assert engine.get(run_id).cancel().wait(10).status == "CANCELLED"
