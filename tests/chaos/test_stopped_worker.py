"""A worker that is stopped for longer than its lease: others take over, and when it comes back it can write nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import apsw

from stepwell import Builder, Engine
from tests.chaos import work
from tests.chaos.conftest import StartChild
from tests.conformance.audit import audit
from tests.engine.ledger import noted
from tests.engine.waiting import eventually


def stop_between_commits(pid: int, url: str) -> None:
    """Stopped inside a commit, a process would keep SQLite's write lock, and nobody could go on before it does."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        db = apsw.Connection(url.removeprefix("sqlite:///"))
        try:
            db.execute("BEGIN IMMEDIATE; ROLLBACK")
        except apsw.BusyError:
            os.kill(pid, signal.SIGCONT)
        else:
            return
        finally:
            db.close()


def test_a_worker_that_was_stopped_is_fenced_when_it_comes_back(
    tmp_path: Path, url: str, ledger: str, start_child: StartChild
) -> None:
    go_on = tmp_path / "go-on"
    w = Builder("held")
    w.node("hold", job=work.hold, args={"ledger": ledger, "go_on": str(go_on)})
    w.node("after", job=work.small, args={"ledger": ledger})
    with Engine(url, runner=None) as starter:
        run_id = starter.start(w).id
    child = start_child(work.serve, url, lease_seconds=1)
    eventually(lambda: noted(ledger), seconds=20)
    assert child.pid is not None
    stop_between_commits(child.pid, url)
    with Engine(url, lease_seconds=1) as engine:
        run = engine.adopt(run_id).wait(20)
        assert run.output("hold") == "attempt 2"
        os.kill(child.pid, signal.SIGCONT)
        go_on.touch()
        eventually(lambda: f"ended 1 {child.pid}" in noted(ledger))
        mine = os.getpid()
        assert f"hold 1 {child.pid}" in noted(ledger)
        assert f"hold 2 {mine}" in noted(ledger)

        # It lives and works again: what it did meanwhile was refused, not what it does now.
        later = Builder("later")
        later.node("small", job=work.small, args={"ledger": ledger})
        with Engine(url, runner=None) as starter:
            assert starter.start(later).wait(20).status == "COMPLETED"

        assert [attempt.status for attempt in run.node("hold").attempts] == ["LOST", "COMPLETED"]
        assert run.output("hold") == "attempt 2"
        assert len(run.node("after").attempts) == 1
        audit(engine.store)
