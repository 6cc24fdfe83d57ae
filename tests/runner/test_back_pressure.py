"""What waits in memory is bounded; the rest stays READY in the store, and nothing can deadlock."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell import Builder, Engine
from stepwell.runner.desk import Desk
from tests.runner import jobs
from tests.runner.conftest import OpenEngine


def watch_the_most(engine: Engine) -> list[int]:
    """The most attempts that were ever held at once, of each kind of body."""
    assert engine._runner is not None
    most = [0, 0]
    desk: Any = engine._runner.desk
    hold = Desk._hold

    def counted(*args: Any, **options: Any) -> Any:
        held = hold(desk, *args, **options)
        most[0] = max(most[0], desk.count("thread"))
        most[1] = max(most[1], desk.count("loop"))
        return held

    desk._hold = counted
    return most


@pytest.mark.parametrize("depth", [0, 16])
def test_a_wide_fan_never_holds_more_than_its_threads_and_the_queue(open_sqlite: OpenEngine, depth: int) -> None:
    engine = open_sqlite(queue_depth=depth, max_concurrent_nodes=4)
    most = watch_the_most(engine)
    w = Builder("wide")
    w.fan_out(range(5_000 if depth else 500), job=jobs.double)
    w.node("total", job=jobs.total)
    run = engine.run(w, timeout=60)
    assert run.output("total") == sum(2 * item for item in range(5_000 if depth else 500))
    assert most[0] <= 4 + depth


def test_async_bodies_have_a_limit_of_their_own(open_engine: OpenEngine) -> None:
    engine = open_engine(queue_depth=8, max_concurrent_nodes=2, max_async_nodes=20)
    most = watch_the_most(engine)
    w = Builder("mixed")
    w.fan_out(range(300), job=jobs.double_later, name="async", depends_on=None)
    w.fan_out(range(300), job=jobs.double, name="sync", depends_on=None)
    w.node("total", job=jobs.total, depends_on=list(w.graph().nodes))
    assert engine.run(w, timeout=60).output("total") == 2 * sum(2 * item for item in range(300))
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
    assert engine.run(w, timeout=20).output("same") == 1
