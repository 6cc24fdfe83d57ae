"""What waits in memory is bounded; the rest stays READY in the store, and nothing can deadlock."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stepwell import Builder, Engine, InputError, Workflow, task
from stepwell.engine.scheduling.pressure import BackpressureEvent
from stepwell.engine.scheduling.scheduler import Scheduler
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually


def watch_the_most(engine: Engine) -> list[int]:
    """The most attempts that were ever held at once, of each kind of body."""
    assert engine.parts.work.runner is not None
    most = [0, 0]
    scheduler: Any = engine.parts.work.runner.scheduler
    hold = Scheduler._hold

    def counted(*args: Any, **options: Any) -> Any:
        held = hold(scheduler, *args, **options)
        most[0] = max(most[0], scheduler.count("thread"))
        most[1] = max(most[1], scheduler.count("loop"))
        return held

    scheduler._hold = counted
    return most


@pytest.mark.parametrize("depth", [0, 16])
def test_a_wide_fan_never_holds_more_than_its_threads_and_the_queue(open_sqlite: OpenEngine, depth: int) -> None:
    engine = open_sqlite(queue_depth=depth, max_concurrent_nodes=4)
    most = watch_the_most(engine)
    w = Builder("wide")
    w.fan_out(range(5_000 if depth else 500), job=jobs.double)
    w.node("total", job=jobs.total)
    run = engine.run(w, wait=60)
    assert run.output("total") == sum(2 * item for item in range(5_000 if depth else 500))
    assert most[0] <= 4 + depth


def test_async_bodies_have_a_limit_of_their_own(open_engine: OpenEngine) -> None:
    engine = open_engine(queue_depth=8, max_concurrent_nodes=2, max_async_nodes=20)
    most = watch_the_most(engine)
    w = Builder("mixed")
    w.fan_out(range(300), job=jobs.double_later, name="async", depends_on=None)
    w.fan_out(range(300), job=jobs.double, name="sync", depends_on=None)
    w.node("total", job=jobs.total, depends_on=list(w.graph().nodes))
    assert engine.run(w, wait=60).output("total") == 2 * sum(2 * item for item in range(300))
    assert most[0] <= 2 + 8
    assert most[1] <= 20 + 8


def test_a_kind_of_body_without_room_does_not_keep_the_others_from_working(open_sqlite: OpenEngine) -> None:
    """More runs than one claim names wait for a process; runs that need a thread go on meanwhile."""
    engine = open_sqlite(max_processes=1)
    process = Builder("process")
    process.node("nap", job=jobs.nap, args={"seconds": 120}, isolation="process")
    waiting = engine.start_many([process] * 300)
    thread = Builder("thread")
    thread.node("same", job=jobs.same, args={"item": 1})
    assert engine.start(thread).wait(60).output("same") == 1
    for run in waiting:
        run.cancel(grace_seconds=0)


def test_a_fan_of_runs_that_wait_for_a_retry_does_not_hide_others(open_engine: OpenEngine) -> None:
    engine = open_engine(max_concurrent_nodes=2)
    later = Builder("later")
    later.node("later", job=jobs.later, args={"seconds": 30})
    for run in engine.start_many([later] * 300):
        assert not run.status.terminal
    w = Builder("now")
    w.node("same", job=jobs.same, args={"item": 1})
    assert engine.run(w, wait=20).output("same") == 1


def pressures(engine: Engine) -> list[BackpressureEvent]:
    heard: list[BackpressureEvent] = []
    engine.on("backpressure", heard.append)
    return heard


@pytest.mark.parametrize(("threads", "width"), [(1, 500), (8, 5_000)])
def test_a_fan_far_above_the_depth_ends_and_is_told_twice(open_sqlite: OpenEngine, threads: int, width: int) -> None:
    engine = open_sqlite(queue_depth=1, max_concurrent_nodes=threads)
    most, heard = watch_the_most(engine), pressures(engine)
    w = Builder("wide")
    w.fan_out(range(width), job=jobs.same)
    w.node("last", job=jobs.same, args={"item": "end"})
    assert engine.run(w, wait=110).output("last") == "end"
    assert most[0] <= threads + 1
    assert engine.metrics.most_queued.thread <= 1
    eventually(lambda: len(heard) == 2)
    began, ended = heard
    assert (began.kind, began.state, began.held, began.limit) == ("thread", "began", threads, threads)
    assert (ended.kind, ended.state, ended.waiting, ended.blocks) == ("thread", "ended", 0, 1)
    assert (began.waiting, began.seconds) == (width - threads, 0.0)
    assert ended.seconds > 0


@pytest.mark.parametrize("depth", [0, 1])
def test_fans_within_fans_end_with_one_slot_of_each_kind(open_engine: OpenEngine, depth: int) -> None:
    engine = open_engine(queue_depth=depth, max_concurrent_nodes=1, max_async_nodes=1)
    most = watch_the_most(engine)
    w = Builder("nested")
    for turn, job in enumerate((jobs.double, jobs.double_later, jobs.double)):
        w.fan_out(range(60), job=job, name=f"turn {turn}")
        w.node(f"join {turn}", job=jobs.same, args={"item": turn})
    assert engine.run(w, wait=60).output("join 2") == 2
    assert max(most) <= 1 + depth


def test_bodies_that_await_other_runs_leave_them_room(open_engine: OpenEngine) -> None:
    """An `async def` body that waits holds no thread, so that the run it waits for has one."""
    engine = open_engine(queue_depth=1, max_concurrent_nodes=1)
    inner = Builder("inner")
    inner.node("same", job=jobs.same, args={"item": 7})

    class Outer(Workflow):
        @task(depends_on=None)
        async def one(self) -> Any:
            return (await engine.start(inner)).output("same")

        @task(depends_on=None)
        async def two(self) -> Any:
            return (await engine.start(inner)).output("same")

    runs = engine.start_many([Outer()] * 20)
    assert [run.wait(60).outputs for run in runs] == [{"one": 7, "two": 7}] * 20


def test_what_fits_presses_nobody(open_engine: OpenEngine) -> None:
    engine = open_engine(max_concurrent_nodes=4)
    heard = pressures(engine)
    w = Builder("fits")
    w.fan_out(range(4), job=jobs.nap, args=lambda _: {"seconds": 0.05})
    w.node("last", job=jobs.nothing)
    engine.run(w, wait=60)
    assert heard == []
    assert engine.metrics.blocks.total == 0


def test_a_listener_may_start_runs_while_there_is_no_room(open_engine: OpenEngine) -> None:
    engine = open_engine(max_concurrent_nodes=1, queue_depth=0)
    w = Builder("now")
    w.node("same", job=jobs.same, args={"item": 1})
    started: list[Any] = []
    engine.on("backpressure", lambda event: started.append(engine.start(w)))
    wide = Builder("wide")
    wide.fan_out(range(50), job=jobs.double)
    engine.run(wide, wait=60)
    eventually(lambda: started)
    assert all(run.wait(60).output("same") == 1 for run in list(started))


def test_closing_ends_it(open_engine: OpenEngine) -> None:
    engine = open_engine(max_concurrent_nodes=1, queue_depth=0)
    heard, release = pressures(engine), threading.Event()

    class Long(Workflow):
        @task(depends_on=None)
        def one(self) -> None:
            release.wait(30)

        @task(depends_on=None)
        def two(self) -> None:
            release.wait(30)

    engine.start(Long())
    eventually(lambda: heard)
    closing = threading.Thread(target=engine.close)
    closing.start()
    eventually(lambda: len(heard) == 2)
    release.set()
    closing.join(30)
    assert [event.state for event in heard] == ["began", "ended"]


def test_a_depth_below_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="queue_depth=-1: expected a whole number from 0"):
        Engine("memory://", queue_depth=-1)
