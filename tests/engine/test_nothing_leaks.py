"""An engine that is closed leaves no files open, and one that works does not grow."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
from pathlib import Path

from stepwell import Builder, Context, Engine, Workflow, step
from tests.engine import jobs
from tests.engine.waiting import eventually, in_time


def mixed(number: int) -> Builder:
    w = Builder("mixed", on_failure="finish")
    w.node("thread", job=jobs.same, args={"item": number}, timeout=60)
    w.node("loop", job=jobs.double_later, args={"item": number}, timeout=60)
    w.node("fails", job=jobs.fail, depends_on=None)
    return w


def test_engines_that_come_and_go_leave_no_files_open(tmp_path: Path) -> None:
    def use(number: int) -> None:
        with Engine(f"sqlite:///{tmp_path}/s.db") as engine:
            engine.run(mixed(number), check=False)

    use(0)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for number in range(10):
        use(number)
    gc.collect()
    eventually(lambda: len(os.listdir("/proc/self/fd")) <= before)
    assert list(tmp_path.glob("**/*.lock")) == []


def test_processes_leave_no_files_open(tmp_path: Path) -> None:
    def use() -> None:
        with Engine(f"sqlite:///{tmp_path}/s.db") as engine:
            w = Builder("process")
            w.node("whoami", job=jobs.whoami, isolation="process")
            engine.run(w)

    use()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        use()
    gc.collect()
    eventually(lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_an_engine_remembers_nothing_of_what_has_ended(engine: Engine) -> None:
    for run in [engine.start(mixed(number)) for number in range(40)]:
        run.wait(20)
    runner = engine.parts.work.runner
    assert runner is not None
    eventually(lambda: runner.idle and not runner.scheduler.facts)
    assert runner.scheduler.held == {}
    assert runner._bodies.time._attempts == {}
    assert not any(runner.scheduler.claims.ready.by_pool.values())
    assert engine.parts.waiting._watch.runs() == ()


def test_threads_that_an_async_body_used_end_with_the_engine(sqlite_url: str) -> None:
    class Blocking(Workflow):
        @step
        async def work(self) -> int:
            return await asyncio.to_thread(len, "seven..")

    with Engine(sqlite_url) as engine:
        assert engine.run(Blocking()).output("work") == 7
    eventually(lambda: not [each for each in threading.enumerate() if each.name.startswith("asyncio")])


def test_tasks_that_an_async_body_left_behind_end_with_the_engine(sqlite_url: str) -> None:
    left: list[asyncio.Task[None]] = []

    class Leaving(Workflow):
        @step(side_effects="recordable")
        async def work(self, ctx: Context) -> int:
            left.append(asyncio.create_task(asyncio.sleep(3_600)))
            left.append(asyncio.ensure_future(ctx.effect("slow", asyncio.sleep, 3_600)))
            await asyncio.sleep(0)
            return 7

    with Engine(sqlite_url) as engine:
        run = engine.run(Leaving())
        assert run.output("work") == 7
        assert not any(task.done() for task in left)
        assert [effect.open for effect in run.effects()] == [True]
    eventually(lambda: all(task.cancelled() for task in left))


def test_an_engine_that_starts_many_runs_does_not_grow(sqlite_url: str) -> None:
    """Counted in blocks of Python's allocator: what SQLite keeps of the file, up to 32 MB, is not among them."""
    runs = 0

    class Small(Workflow):
        @step
        def only(self) -> int:
            return 1

    def start(many: int) -> None:
        nonlocal runs
        for run in engine.start_many([Small() for _ in range(many)]):
            run.wait(30)
        runs += many

    def grown() -> float:
        """Blocks for each of a few hundred runs."""
        gc.collect()
        before, first = sys.getallocatedblocks(), runs
        for _ in range(8):
            start(50)
        gc.collect()
        return (sys.getallocatedblocks() - before) / (runs - first)

    with Engine(sqlite_url) as engine:
        start(1_000)  # as many are remembered for `engine.metrics.blocked_runs`
        in_time(0.5, grown)
