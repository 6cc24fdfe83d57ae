"""A worker is killed, or stopped for too long, while a body logs: what was said a second before is there, once."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from stepwell import Builder, Engine
from tests.chaos import work
from tests.chaos.conftest import StartChild
from tests.chaos.test_stopped_worker import stop_between_commits
from tests.conformance.audit import audit
from tests.engine import speakers
from tests.engine.ledger import noted
from tests.engine.waiting import eventually


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_lines_older_than_a_second_survive_a_kill(
    url: str, ledger: str, start_child: StartChild, isolation: str
) -> None:
    options = {"isolation": "process"} if isolation == "process" else {}
    w = Builder("speaks")
    w.node("body", job=speakers.speak_for_ever, args={"ledger": ledger}, **options)
    with Engine(url, runner=None) as engine:
        run = engine.start(w)
        child = start_child(work.serve, url)
        eventually(lambda: noted(ledger), seconds=30)
        eventually(run.logs, seconds=30)
        # On a busy machine everything may be late for a while, so not every moment will do.
        eventually(lambda: len(lines := run.logs()) > 50 and time.time() - lines[-1].time < 1, seconds=60)
        seen = run.logs()
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        lines = run.logs()
        assert lines[: len(seen)] == seen
        numbers = [int(line.message.split()[1]) for line in lines]
        assert numbers == list(range(len(numbers)))
        audit(engine.store)


def test_what_a_stopped_worker_says_late_is_refused(
    tmp_path: Path, url: str, ledger: str, start_child: StartChild
) -> None:
    go_on = tmp_path / "go-on"
    w = Builder("held")
    w.node("hold", job=work.hold_and_speak, args={"ledger": ledger, "go_on": str(go_on)})
    with Engine(url, runner=None) as starter:
        run = starter.start(w)
        child = start_child(work.serve, url, lease_seconds=1)
        eventually(run.logs, seconds=20)
        assert child.pid is not None
        stop_between_commits(child.pid, url)
        with Engine(url, lease_seconds=1) as engine:
            engine.adopt(run.id).wait(20)
            os.kill(child.pid, signal.SIGCONT)
            go_on.touch()
            eventually(lambda: f"ended 1 {child.pid}" in noted(ledger), seconds=20)

            # It has committed since, so what its late body said has been offered to the store.
            later = Builder("later")
            later.node("small", job=work.small, args={"ledger": ledger})
            assert starter.start(later).wait(20).status == "COMPLETED"
        assert [(line.attempt, line.message) for line in run.logs()] == [
            (1, "attempt 1 begins"),
            (2, "attempt 2 begins"),
            (2, "attempt 2 ends"),
        ]
        audit(starter.store)
