"""`run.cancel()`: nothing new starts, what runs is told within half a second and fenced after the grace."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import psutil
import pytest

from stepwell import Builder, Context, Engine, RunCancelled, RunConflict, Workflow, step, task
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.ledger import note, noted
from tests.engine.waiting import eventually, in_time


class Loops(Workflow):
    @step
    def loop(self, ctx: Context) -> None:
        while True:
            ctx.check()
            time.sleep(0.005)

    @step
    def after(self) -> None: ...


def running(run: object, node: str = "loop") -> None:
    eventually(lambda: run.node(node).status == "RUNNING")  # type: ignore[attr-defined]


def test_a_cancelled_run_ends_and_waiting_for_it_says_so(engine: Engine) -> None:
    run = engine.start(Loops())
    running(run)
    run.cancel().wait(30)
    assert run.status == "CANCELLED"
    assert [(node.status, node.reason) for node in run.nodes()] == [
        ("CANCELLED", None),
        ("CANCELLED", "run_cancelled"),
    ]
    assert run.node("loop").attempts[0].status == "CANCELLED"
    with pytest.raises(RunCancelled):
        run.check()


def test_a_cancelled_run_ends_within_half_a_second(engine: Engine) -> None:
    def seconds() -> float:
        run = engine.start(Loops())
        running(run)
        before = time.monotonic()
        run.cancel().wait(30)
        return time.monotonic() - before

    in_time(0.5, seconds)


def test_bodies_of_every_kind_are_reached_within_half_a_second(sqlite_engine: Engine, tmp_path: Path) -> None:
    pid, began, stopped = tmp_path / "pid", tmp_path / "began", dict[str, float]()

    class Three(Workflow):
        @task(depends_on=None)
        def thread(self, ctx: Context) -> None:
            note(began, "thread")
            eventually(lambda: ctx.stopping)
            stopped["thread"] = time.monotonic()
            ctx.check()

        @task(depends_on=None)
        async def loop(self) -> None:
            note(began, "loop")
            try:
                await asyncio.sleep(60)
            finally:
                stopped["loop"] = time.monotonic()

    process = Builder("process")
    process.node("hang", job=jobs.hang, args={"ledger": str(pid)}, isolation="process")

    def seconds() -> float:
        stopped.clear()
        for ledger in (pid, began):
            ledger.unlink(missing_ok=True)
        first, second = sqlite_engine.start(Three()), sqlite_engine.start(process)
        eventually(lambda: noted(pid) and len(noted(began)) == 2)
        before = time.monotonic()
        first.cancel()
        second.cancel()
        assert first.wait(30).status == second.wait(30).status == "CANCELLED"
        eventually(lambda: not psutil.pid_exists(int(noted(pid)[0])))
        stopped["process"] = time.monotonic()
        return max(stopped.values()) - before

    in_time(0.5, seconds)


def test_an_engine_elsewhere_is_reached_within_half_a_second(open_sqlite: OpenEngine) -> None:
    works, asks = open_sqlite(), open_sqlite(runner=None)

    def seconds() -> float:
        run = works.start(Loops())
        running(run)
        before = time.monotonic()
        asks.get(run.id).cancel()
        eventually(lambda: run.status == "CANCELLED")
        return time.monotonic() - before

    in_time(0.6, seconds)


def test_a_body_that_does_not_listen_is_fenced_after_the_grace(engine: Engine) -> None:
    def seconds() -> float:
        began, release, ended = threading.Event(), threading.Event(), threading.Event()

        class IgnoresStops(Workflow):
            @step
            def work(self) -> str:
                began.set()
                release.wait(60)
                ended.set()
                return "late"

        run = engine.start(IgnoresStops())
        began.wait(30)
        before = time.monotonic()
        run.cancel(grace_seconds=0.3)
        run.wait(30)
        taken = time.monotonic() - before
        release.set()
        ended.wait(30)
        assert engine.parts.work.runner is not None
        eventually(lambda: engine.parts.work.runner.idle)  # type: ignore[union-attr]
        assert (run.status, run.node("work").status, run.outputs) == ("CANCELLED", "CANCELLED", {})
        assert taken >= 0.3
        return taken

    in_time(0.8, seconds)


def test_until_the_grace_is_over_a_run_is_being_cancelled(engine: Engine) -> None:
    began, release = threading.Event(), threading.Event()

    class IgnoresStops(Workflow):
        @step
        def work(self) -> None:
            began.set()
            release.wait(60)

    run = engine.start(IgnoresStops())
    began.wait(30)
    run.cancel(grace_seconds=60)
    assert run.status == "CANCELLING"
    release.set()
    assert run.wait(30).status == "CANCELLED"


def test_a_body_that_ends_within_the_grace_is_recorded(engine: Engine) -> None:
    began, release = threading.Event(), threading.Event()

    class IgnoresStops(Workflow):
        @step
        def work(self) -> str:
            began.set()
            release.wait(10)
            return "in time"

        @step
        def after(self) -> None: ...

    run = engine.start(IgnoresStops())
    began.wait(30)
    run.cancel(grace_seconds=60)
    release.set()
    assert run.wait(30).status == "CANCELLED"
    assert run.output("work") == "in time"
    assert run.node("after").status == "CANCELLED"


def test_cancelling_twice_is_cancelling_once(engine: Engine) -> None:
    run = engine.start(Loops())
    running(run)
    assert run.cancel().cancel().wait(30).status == "CANCELLED"
    assert run.cancel().status == "CANCELLED"


def test_a_run_that_has_ended_cannot_be_cancelled(engine: Engine) -> None:
    w = Builder("done")
    w.node("nothing", job=jobs.nothing)
    run = engine.run(w)
    with pytest.raises(RunConflict, match="is COMPLETED; it has ended and cannot be cancelled"):
        run.cancel()


def test_a_run_that_nobody_works_on_is_cancelled_at_once(open_engine: OpenEngine) -> None:
    run = open_engine(runner=None).start(Loops())
    assert run.cancel().status == "CANCELLED"


def test_a_cancelled_run_can_be_retried_and_keeps_what_completed(engine: Engine) -> None:
    entries: list[str] = []
    go_on = threading.Event()

    class Half(Workflow):
        @step
        def first(self) -> None:
            entries.append("first")

        @step
        def second(self, ctx: Context) -> None:
            entries.append("second")
            while not go_on.is_set():
                ctx.check()
                time.sleep(0.005)

    run = engine.start(Half())
    running(run, "second")
    run.cancel().wait(30)
    go_on.set()
    assert run.retry().wait(30).status == "COMPLETED"
    assert entries == ["first", "second", "second"]


def test_a_run_that_waits_for_a_retry_is_cancelled_at_once(engine: Engine) -> None:
    w = Builder("later")
    w.node("later", job=jobs.later, args={"seconds": 60})
    run = engine.start(w)
    eventually(lambda: run.node("later").status == "WAITING")
    assert run.cancel().wait(30).node("later").status == "CANCELLED"


def test_cancelling_while_nodes_start_and_end_always_comes_to_an_end(engine: Engine) -> None:
    for pause in range(30):
        w = Builder("busy")
        w.fan_out(range(60), job=jobs.nap, args=lambda _: {"seconds": 0.001}, depends_on=None)
        run = engine.start(w)
        time.sleep(pause / 4_000)
        try:
            run.cancel(grace_seconds=1)
        except RunConflict:
            assert run.status == "COMPLETED"
        assert run.wait(30).status.terminal
