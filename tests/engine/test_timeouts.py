"""A body that takes too long is ended within 100 ms, and what it does afterwards is not recorded."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from stepwell import Builder, Context, Engine, Retry, Workflow, step, task
from stepwell.base import clock
from stepwell.engine import AttemptView
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.ledger import noted
from tests.engine.waiting import eventually, in_time

LIMIT = 0.3
IN_TIME = LIMIT + 0.1


def seconds_until_timed_out(attempt: AttemptView) -> float:
    assert attempt.status == "TIMED_OUT"
    assert attempt.error is not None
    assert str(attempt.error) == "TimeoutError: the body did not end within 0.3 s"
    assert attempt.seconds is not None
    assert attempt.seconds >= LIMIT
    return attempt.seconds


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Lets bodies that hang go, in the end."""
    event = threading.Event()
    yield event
    event.set()


def test_a_thread_that_hangs_is_fenced_in_time_and_its_late_result_is_not_recorded(
    engine: Engine, release: threading.Event
) -> None:
    ended = threading.Event()

    class Slow(Workflow):
        @step(timeout=LIMIT)
        def hang(self, ctx: Context) -> str:
            release.wait(60)
            assert ctx.stopping
            ended.set()
            return "late"

    run = engine.run(Slow(), check=False)
    node = run.node("hang")
    assert (run.status, node.status) == ("FAILED", "FAILED")
    in_time(IN_TIME, lambda: seconds_until_timed_out(engine.run(Slow(), check=False).node("hang").attempts[0]))
    release.set()
    ended.wait(30)
    assert run.outputs == {}
    assert len(run.node("hang").attempts) == 1


def test_an_async_body_is_cancelled_in_time(engine: Engine) -> None:
    cleaned_up = threading.Event()

    class Slow(Workflow):
        @step(timeout=LIMIT)
        async def hang(self) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                cleaned_up.set()

    in_time(IN_TIME, lambda: seconds_until_timed_out(engine.run(Slow(), check=False).node("hang").attempts[0]))
    assert cleaned_up.wait(30)


def test_a_process_is_killed_in_time(sqlite_engine: Engine, tmp_path: Path) -> None:
    w = Builder("slow")
    w.node("warm", job=jobs.whoami, isolation="process")
    w.node("hang", job=jobs.hang, args={"ledger": f"{tmp_path}/pid"}, isolation="process", timeout=LIMIT)
    in_time(IN_TIME, lambda: seconds_until_timed_out(sqlite_engine.run(w, check=False).node("hang").attempts[0]))
    for pid in noted(tmp_path / "pid"):
        eventually(lambda pid=pid: not psutil.pid_exists(int(pid)))


def test_starting_a_process_does_not_count(sqlite_engine: Engine) -> None:
    """A new process takes longer than this body may, and after each timeout it is a new one."""
    w = Builder("quick")
    again = Retry(8, base_delay=0.001, retry_on=TimeoutError)  # a busy machine may make the body itself late
    w.node("quick", job=jobs.whoami, isolation="process", timeout=0.1, retry=again)
    assert sqlite_engine.run(w).output("quick") != os.getpid()


def test_a_body_that_ends_in_time_is_left_alone(engine: Engine) -> None:
    class Quick(Workflow):
        @step(timeout=1)
        def thread(self) -> int:
            return 1

        @step(timeout=1)
        async def loop(self) -> int:
            return 2

        @step
        def wait(self) -> None:
            threading.Event().wait(1.1)

    run = engine.run(Quick())
    assert (run.output("thread"), run.output("loop")) == (1, 2)


def test_a_timeout_is_retried_like_an_error(engine: Engine) -> None:
    class Flaky(Workflow):
        @step(timeout=0.5, retry=Retry(2, base_delay=0.001, retry_on=TimeoutError))
        async def ask(self, ctx: Context) -> int:
            if ctx.attempt == 1:
                await asyncio.sleep(60)
            return ctx.attempt

    node = engine.run(Flaky()).node("ask")
    assert [attempt.status for attempt in node.attempts] == ["TIMED_OUT", "COMPLETED"]


def test_what_was_claimed_ahead_does_not_wait_behind_a_thread_that_hangs(
    open_engine: OpenEngine, release: threading.Event
) -> None:
    """One thread, many quick bodies and one that never ends: the others go on as soon as its time is up."""
    w = Builder("behind", on_failure="finish")
    w.fan_out(range(60), job=jobs.same, name="before", depends_on=None)
    w.node("hang", job=wait_for_release, timeout=0.2, depends_on=None)
    w.fan_out(range(60), job=jobs.same, name="after", depends_on=None)
    releases.append(release)
    run = open_engine(max_concurrent_nodes=1).start(w)
    run.wait(30)
    done = [node for node in run.nodes() if node.status == "COMPLETED"]
    assert len(done) == 120


releases: list[threading.Event] = []


def wait_for_release() -> None:
    releases[-1].wait(60)


def then_give_a_coroutine() -> Awaitable[None]:
    wait_for_release()
    return asyncio.sleep(0)


@pytest.mark.parametrize("job", [wait_for_release, then_give_a_coroutine])
def test_a_limit_on_threads_that_hang_stops_claiming_and_ends_with_them(
    open_engine: OpenEngine, release: threading.Event, monkeypatch: pytest.MonkeyPatch, job: Any
) -> None:
    monkeypatch.setattr("stepwell.engine.worker.time_limits.MAX_RUNAWAYS", 3)
    releases.append(release)
    w = Builder("runaways", on_failure="finish")
    w.fan_out(range(3), job=job, args=lambda _: {}, timeout=0.1, depends_on=None)
    engine = open_engine()
    engine.run(w, check=False)
    quick = Builder("quick")
    quick.node("same", job=jobs.same, args={"item": 1})
    run = engine.start(quick)
    assert engine.parts.work.runner is not None
    assert engine.parts.work.runner.scheduler.stalled
    assert run.node("same").status == "READY"
    release.set()
    assert run.wait(30).output("same") == 1
    runner = engine.parts.work.runner
    eventually(lambda: runner.runaways == 0, "a thread did not come back")  # or it would after the test


def test_timeouts_hold_while_thousands_of_bodies_end(open_sqlite: OpenEngine) -> None:
    w = Builder("busy", on_failure="finish")
    w.node("hang", job=jobs.nap_on_the_loop, args={"seconds": 20}, timeout=LIMIT, depends_on=None)
    w.fan_out(range(6_000), job=jobs.same, depends_on=None)
    engine = open_sqlite()
    in_time(LIMIT + 0.2, lambda: seconds_until_timed_out(engine.run(w, check=False).node("hang").attempts[0]), tries=4)


class Both(Workflow, on_failure="finish"):
    @step(timeout=0.2, isolation="process")
    def killed(self) -> None:
        threading.Event().wait(20)

    @task(depends_on=None, isolation="process")
    def spared(self) -> int:
        threading.Event().wait(0.5)
        return os.getpid()


def test_only_the_process_whose_time_is_up_is_killed(sqlite_engine: Engine) -> None:
    run = sqlite_engine.run(Both(), check=False)
    assert {node.name: node.status for node in run.nodes()} == {"killed": "FAILED", "spared": "COMPLETED"}


def test_the_memory_of_ended_bodies_is_not_kept_until_their_time_would_be_up() -> None:
    from stepwell.engine.worker.timetable import Timetable

    class Ended:
        over = True

    timetable = Timetable()
    ended: Any = Ended()
    for at in range(10_000):
        timetable.time_limit(ended, 1_000_000 + at)
    assert len(timetable._timeouts) < 3_000


def test_the_time_of_others_is_kept_whatever_limit_one_of_them_has(
    engine: Engine, release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph that was stored by code which allowed more than a thread can wait for."""
    monkeypatch.setattr(clock, "MAX_SECONDS", 10**12)
    endless = Builder("endless")
    endless.node("wait", job=jobs.nap, args={"seconds": 0.2}, timeout=10**11)
    running = engine.start(endless)
    eventually(lambda: running.node("wait").status == "RUNNING")

    class Slow(Workflow):
        @step(timeout=LIMIT)
        def hang(self) -> None:
            release.wait(60)

    assert engine.run(Slow(), check=False, wait=20).node("hang").attempts[0].status == "TIMED_OUT"
    assert running.wait(20).status == "COMPLETED"


def test_a_body_that_overruns_on_the_loop_costs_no_thread(open_sqlite: OpenEngine, tmp_path: Path) -> None:
    """A `def` job that returns a coroutine: the thread it began in is free already."""
    engine = open_sqlite(max_concurrent_nodes=1)
    w = Builder("slow")
    w.node("slow", job=returns_a_coroutine, timeout=LIMIT)
    run = engine.run(w, check=False)
    assert run.node("slow").attempts[0].status == "TIMED_OUT"
    runner = engine.parts.work.runner
    assert runner is not None
    assert runner.runaways == 0


def returns_a_coroutine() -> Any:
    return asyncio.sleep(60)
