"""A body in a process of its own is ended with everything it started, and dies with its worker."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from stepwell import Builder, Engine
from stepwell.engine.bodies import process
from stepwell.engine.bodies.process import _Child
from tests.engine import jobs
from tests.engine.ledger import noted
from tests.engine.waiting import eventually


def one(job: Any, **options: Any) -> Builder:
    w = Builder("one")
    w.node("body", job=job, isolation="process", **options)
    return w


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_what_a_body_started_is_killed_with_it(sqlite_engine: Engine, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    run = sqlite_engine.run(one(jobs.start_a_sleeper, args={"ledger": str(ledger)}, timeout=0.3), check=False)
    assert run.node("body").attempts[0].status == "TIMED_OUT"
    (pid,) = noted(ledger)
    eventually(lambda: gone(int(pid)), "the program that the body had started goes on")


def test_a_body_that_dies_is_noticed_though_its_child_lives_on(sqlite_engine: Engine, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    run = sqlite_engine.run(one(jobs.fork_and_vanish, args={"ledger": str(ledger)}), check=False, wait=10)
    assert "ended with exit code 7" in str(run.node("body").error)
    psutil.Process(int(noted(ledger)[0])).kill()


def test_a_body_may_use_processes_itself(sqlite_engine: Engine) -> None:
    assert sqlite_engine.run(one(jobs.use_processes)).output("body") == 1


def test_closing_ends_a_body_that_hangs_and_its_node_runs_again_elsewhere(open_sqlite: Any, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    first = open_sqlite(close_seconds=0.1)
    run = first.start(one(jobs.hang, args={"ledger": str(ledger)}))
    eventually(lambda: noted(ledger))
    first.close()
    eventually(lambda: gone(int(noted(ledger)[0])))
    second = open_sqlite(close_seconds=0.1)
    second.adopt(run.id)
    eventually(lambda: len(noted(ledger)) == 2)
    assert [attempt.status for attempt in second.get(run.id).node("body").attempts] == ["LOST", "RUNNING"]
    second.get(run.id).cancel(grace_seconds=0)


WORKER = """
import sys
import threading
from stepwell import Builder, Engine
from tests.engine import jobs

if __name__ == "__main__":
    w = Builder("one")
    w.node("body", job=jobs.start_a_sleeper, args={"ledger": sys.argv[2]}, isolation="process")
    with Engine(sys.argv[1]) as engine:
        engine.run(w)
"""


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_a_body_does_not_outlive_its_worker(tmp_path: Path, sqlite_url: str, signal_number: int) -> None:
    script, ledger = tmp_path / "worker.py", tmp_path / "ledger"
    script.write_text(WORKER)
    root = str(Path(__file__).parents[2])
    worker = subprocess.Popen([sys.executable, script, sqlite_url, ledger], env={"PYTHONPATH": root})
    try:
        eventually(lambda: noted(ledger), seconds=20)
        pid = int(noted(ledger)[0])
        worker.send_signal(signal_number)
        worker.wait(10)
        eventually(lambda: gone(pid), "a body, or what it started, outlived its worker")
    finally:
        worker.kill()
        worker.wait()


def test_processes_start_one_after_another_as_they_are_needed(sqlite_engine: Engine) -> None:
    sqlite_engine.run(one(jobs.whoami))
    workers = [each for each in psutil.Process().children() if "spawn_main" in " ".join(each.cmdline())]
    assert len(workers) == 1


def test_a_process_that_has_turned_to_the_next_body_is_not_killed_for_the_last() -> None:
    """The time of a body is up at the moment it ends: the kill comes too late, and must not hit another."""
    last: Any = object()
    following: Any = object()
    child = _Child()
    try:
        child.receive()
        child.ready = True
        child.busy_with(following)
        child.kill(last)
        child._process.join(0.2)
        assert child.is_alive()
        child.kill(following)
        assert child.how_it_died() == "the process of the body was killed by signal 9"
    finally:
        child.kill()
        child.join()


UNGUARDED = """
import sys
import threading
from stepwell import Builder, Engine
from tests.engine import jobs

w = Builder("one")
w.node("body", job=jobs.whoami, isolation="process")
with Engine(sys.argv[1]) as engine:
    print(engine.run(w, check=False).node("body").error)
    print(len(engine.runs()), "run")
"""


def test_a_script_that_a_process_would_run_again_is_refused_there_and_told(tmp_path: Path, sqlite_url: str) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(UNGUARDED)
    root = str(Path(__file__).parents[2])
    command = [sys.executable, script, sqlite_url]
    done = subprocess.run(command, env={"PYTHONPATH": root}, capture_output=True, text=True, timeout=60, check=True)
    assert 'Is the code that the main module runs below `if __name__ == "__main__":`?' in done.stdout
    assert "which opens an engine: put what it does when it is run below" in done.stderr
    assert "1 run" in done.stdout


def test_what_a_child_said_last_is_heard_although_it_is_gone() -> None:
    """It speaks and ends between a look at the pipe and the question whether it lives."""
    child: Any = _Child.__new__(_Child)
    looks = iter([False, True, True])
    child._pipe = SimpleNamespace(poll=lambda *seconds: next(looks), recv=lambda: "the last")
    child.is_alive = lambda: False
    assert child.receive() == "the last"


def test_an_error_here_while_a_body_asks_fails_its_node_and_no_other(
    open_sqlite: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process waits for an answer that does not come: it is replaced, and its place serves the next body."""
    engine = open_sqlite(max_processes=1)
    before = {thread for thread in threading.enumerate() if thread.name == "stepwell-process"}

    def broken(attempt: Any, value: Any) -> Any:
        raise RuntimeError("this process has a problem")

    w = Builder("asks")
    w.node("aside", job=jobs.whoami)
    w.node("asks", job=jobs.peek, isolation="process", depends_on=["aside"])
    with monkeypatch.context() as patched:
        patched.setitem(process._ASKED, "output", broken)  # type: ignore[index]
        failed = engine.run(w, check=False, wait=30)
    assert failed.status == "FAILED"
    assert "this process has a problem" in str(failed.node("asks").error)
    assert engine.run(w, wait=30).status == "COMPLETED"
    engine.close()

    def left() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "stepwell-process"} - before

    eventually(lambda: not left(), "its thread outlives the engine")
    spawned = [each for each in psutil.Process().children() if "spawn_main" in " ".join(each.cmdline())]
    assert not spawned, "its process outlives the engine"


@pytest.mark.parametrize(
    ("ready", "exitcode", "told"),
    [
        (False, 1, "ended with exit code 1 before it was ready"),
        (False, -9, "ended with exit code -9 before it was ready"),
        (True, -11, "was killed by signal 11"),
        (True, 0, "ended with exit code 0 before the body returned"),
        (True, 3, "ended with exit code 3 before the body returned"),
        (True, None, "ended with exit code None before the body returned"),  # it has closed the pipe, and goes on
    ],
)
def test_how_a_process_died_is_told(ready: bool, exitcode: int | None, told: str) -> None:
    child: Any = _Child.__new__(_Child)
    child.ready = ready
    child._process = SimpleNamespace(join=lambda seconds: None, exitcode=exitcode)
    assert told in child.how_it_died()


def test_an_engine_that_used_only_some_of_its_processes_closes_all(open_sqlite: Any) -> None:
    before = {thread for thread in threading.enumerate() if thread.name == "stepwell-process"}
    engine = open_sqlite(max_processes=3)
    engine.run(one(jobs.whoami))
    engine.close()
    eventually(
        lambda: {thread for thread in threading.enumerate() if thread.name == "stepwell-process"} <= before,
        "a thread outlives the engine",
    )
