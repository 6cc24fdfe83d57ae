"""What bodies end with is committed in time, whoever leads, and nothing that is ready waits for ever."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from stepwell import Builder, Context, Engine, StoreError, Workflow, step, task
from stepwell.core.model import Create
from stepwell.engine.bodies import threads
from stepwell.engine.bodies.threads import FEW, BodyThreads
from stepwell.engine.worker import group_commit
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually, housekeeping_stopped


class Nothing(Workflow):
    @step
    def nothing(self) -> None: ...


class Leading:
    """The lock of who commits, with a hand on what happens before somebody lets go of it, or does not get it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.before_release: Callable[[], None] | None = None
        self.refused: Callable[[], None] = lambda: None

    def acquire(self, *, blocking: bool = True) -> bool:
        got = self._lock.acquire(blocking=blocking)
        if not got:
            self.refused()
        return got

    def release(self) -> None:
        if threading.current_thread() is threading.main_thread() and (act := self.before_release) is not None:
            self.before_release = None
            act()
        self._lock.release()

    def locked(self) -> bool:
        return self._lock.locked()


@pytest.fixture
def no_housekeeping(engine: Engine) -> Iterator[Engine]:
    engine.run(Nothing())
    with housekeeping_stopped(engine):
        yield engine


def lead_while_it_ends(engine: Engine, workflow: Workflow, go: threading.Event) -> Any:
    """Lead a commit of nothing; while it is still led but has looked, let the body end and its thread be refused."""
    runner = engine.parts.work.runner
    assert runner is not None
    refused, leading = threading.Event(), Leading()
    runner._commits._leading = cast(Any, leading)
    run = engine.start(workflow)
    eventually(lambda: any(held.begun for held in runner.scheduler.held.values()))
    eventually(lambda: not leading.locked())
    time.sleep(0.05)
    leading.refused = refused.set

    def let_it_end() -> None:
        go.set()
        assert refused.wait(30)
        time.sleep(0.05)

    leading.before_release = let_it_end
    runner.pump()
    return run


def test_a_body_with_a_timeout_that_ends_while_somebody_stops_leading(no_housekeeping: Engine) -> None:
    go = threading.Event()

    class Timed(Workflow):
        @step(timeout=60)
        def wait(self) -> None:
            go.wait(30)

    assert lead_while_it_ends(no_housekeeping, Timed(), go).wait(5).status == "COMPLETED"


def test_a_body_that_ends_while_somebody_asks_for_metrics(no_housekeeping: Engine) -> None:
    go = threading.Event()
    runner = no_housekeeping.parts.work.runner
    assert runner is not None

    class Plain(Workflow):
        @step
        def wait(self) -> None:
            go.wait(30)

    bodies = runner._bodies
    ended = bodies.ended

    def ended_and_looked_at(*given: Any) -> bool:
        lost = ended(*given)
        runner.metrics()
        return lost

    bodies.ended = ended_and_looked_at  # type: ignore[method-assign]
    assert lead_while_it_ends(no_housekeeping, Plain(), go).wait(5).status == "COMPLETED"


def test_a_run_that_is_started_when_a_commit_has_just_failed(no_housekeeping: Engine) -> None:
    engine, runner = no_housekeeping, no_housekeeping.parts.work.runner
    assert runner is not None
    refused, leading = threading.Event(), Leading()
    runner._commits._leading = cast(Any, leading)
    leading.refused = refused.set
    commit, failed, started = engine.store.commit, runner._commits._failed, threading.Event()

    def start() -> None:
        engine.start(Nothing())
        started.set()

    starting = threading.Thread(target=start, daemon=True)

    def fails_once(batch: Any) -> Any:
        engine.store.commit = commit  # type: ignore[method-assign]
        raise StoreError("away for a moment")

    def fails_and_asks(*given: Any) -> None:
        failed(*given)
        starting.start()
        assert refused.wait(30)

    runner._commits._failed = fails_and_asks  # type: ignore[method-assign]
    engine.store.commit = fails_once  # type: ignore[method-assign]
    with pytest.raises(StoreError):
        engine.start(Nothing())
    assert started.wait(5)


def test_who_starts_a_run_does_not_go_on_to_commit_what_others_start(no_housekeeping: Engine) -> None:
    engine, runner = no_housekeeping, no_housekeeping.parts.work.runner
    assert runner is not None
    refused, leading = threading.Event(), Leading()
    runner._commits._leading = cast(Any, leading)
    leading.refused = refused.set
    commit, other = engine.store.commit, threading.Thread(target=lambda: engine.start(Nothing()), daemon=True)
    committed_by: list[threading.Thread] = []

    def commit_while_another_starts(batch: Any) -> Any:
        if any(isinstance(op, Create) for op in batch):
            committed_by.append(threading.current_thread())
            if len(committed_by) == 1:
                other.start()
                assert refused.wait(30)
        return commit(batch)

    engine.store.commit = commit_while_another_starts  # type: ignore[method-assign]
    engine.start(Nothing())
    other.join(30)
    assert not other.is_alive()
    assert committed_by[0] is threading.main_thread()
    assert committed_by[1] not in (threading.main_thread(), other)


def test_what_runs_at_most_once_is_committed_before_its_thread_runs_another_body(open_sqlite: OpenEngine) -> None:
    engine = open_sqlite(max_concurrent_nodes=1)
    seen: list[str] = []

    class Careful(Workflow):
        @step
        def one(self) -> None: ...

        @step
        def two(self) -> None: ...

        @step(on_lost="interrupt")
        def charge(self) -> None: ...

        @step(depends_on="two")
        def look(self, ctx: Context) -> None:
            seen.append(engine.get(ctx.run_id).node("charge").status)
            time.sleep(0.02)

    for _ in range(5):
        engine.run(Careful(), wait=30)
    assert seen == ["COMPLETED"] * 5


def test_an_async_body_that_ends_in_time_has_not_timed_out_because_the_store_is_slow(open_engine: OpenEngine) -> None:
    engine = open_engine()
    go = threading.Event()

    class Timed(Workflow):
        @step(timeout=0.6)
        async def quick(self) -> None:
            while not go.is_set():
                await asyncio.sleep(0.01)

    engine.run(Nothing())
    run = engine.start(Timed())
    eventually(lambda: run.node("quick").status == "RUNNING")
    commit = engine.store.commit

    def slow(batch: Any) -> Any:
        go.set()
        time.sleep(1)
        return commit(batch)

    engine.store.commit = slow  # type: ignore[method-assign]
    engine.start(Nothing())
    engine.store.commit = commit  # type: ignore[method-assign]
    run.wait(30)
    assert [attempt.status for attempt in run.node("quick").attempts] == ["COMPLETED"]


def test_a_thread_is_started_for_what_becomes_ready_while_a_lost_one_is_found_again() -> None:
    begun = threading.Event()

    class Runner:
        def attempt(self, held: Any) -> Any:
            return held

        def count(self, kind: str) -> int:
            return 1

        def begins_owned(self, held: Any) -> bool:
            begun.set()
            return False

        def pump(self, *, keep: bool = False) -> None: ...

        def commit_soon(self) -> None: ...

        def read_much(self) -> bool:
            return False

    class Spec:
        on_lost = "rerun"

    class Held:
        spec = Spec
        interrupt = None

    class Watched(BodyThreads):
        """Something becomes ready in the middle of `came_back`."""

        @property
        def lost(self) -> int:
            return self.__dict__.get("_lost", 0)

        @lost.setter
        def lost(self, value: int) -> None:
            before, self.__dict__["_lost"] = self.lost, value
            if value < before:
                self._ready.append(cast(Any, Held()))
                thread = threading.Thread(target=self.call, args=(1,))
                thread.start()
                thread.join(0.2)

    watched = Watched(cast(Any, Runner()), 1)
    watched._count = 1
    assert watched.overran(cast(Any, Held()))
    watched.came_back()
    try:
        assert begun.wait(5)
    finally:
        watched.close()


async def forever() -> None:
    await asyncio.sleep(60)


def test_a_coroutine_that_is_stopped_before_the_loop_has_it_is_cancelled(engine: Engine) -> None:
    returning, busy, free = threading.Event(), threading.Event(), threading.Event()

    class Blocking(Workflow):
        @step
        async def block(self) -> None:
            busy.set()
            free.wait(30)

    class Coroutine(Workflow):
        @step
        def work(self) -> Any:
            returning.set()
            return forever()

    engine.start(Blocking())
    assert busy.wait(30)
    run = engine.start(Coroutine())
    assert returning.wait(30)
    time.sleep(0.05)
    run.cancel(grace_seconds=25)
    before = time.monotonic()
    free.set()
    assert run.wait(30).status == "CANCELLED"
    assert time.monotonic() - before < 20  # and not when the time to obey is up


MEETINGS: list[threading.Barrier] = []


def short() -> None: ...


def meet(item: int) -> None:
    MEETINGS[-1].wait(30)


@pytest.mark.parametrize("width", range(2, FEW + 3))
def test_bodies_that_wait_for_each_other_begin_all_after_short_ones_too(
    open_sqlite: OpenEngine, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """After a short body its thread means to run the next ones by itself; one that takes long must not hold up the others."""
    monkeypatch.setattr(threads, "SHORT_SECONDS", 10.0)  # also on a busy machine
    MEETINGS.append(threading.Barrier(width))
    builder = Builder("meeting")
    for place in range(10):
        builder.node(f"short{place}", job=short)
    builder.fan_out(range(width), job=meet)
    with open_sqlite(max_concurrent_nodes=width) as engine:
        engine.run(Nothing())
        began = time.monotonic()
        assert engine.run(builder, wait=60).status == "COMPLETED"
        assert time.monotonic() - began < 10


def test_after_a_short_body_its_thread_runs_the_next_ones_by_itself(
    open_sqlite: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "SHORT_SECONDS", 10.0)  # also on a busy machine
    used: list[int] = []

    class Short(Workflow):
        @step
        def first(self) -> None:
            used.append(threading.get_ident())

        @task(depends_on=first)
        def left(self) -> None:
            used.append(threading.get_ident())

        @task(depends_on=first)
        def right(self) -> None:
            used.append(threading.get_ident())

    with open_sqlite() as engine:
        alone = 0
        for _ in range(20):
            used.clear()
            engine.run(Short())
            alone += len(set(used)) == 1
    assert alone >= 10, "other threads were called although the bodies are short"


def test_the_end_of_the_only_body_is_committed_at_once(
    open_sqlite: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only beside others that are about to begin it waits a moment, for theirs."""
    monkeypatch.setattr(group_commit, "SOON_SECONDS", 20.0)
    chain = Builder("chain")
    for number in range(3):
        chain.node(f"n{number}", job=do_nothing, depends_on=[f"n{number - 1}"] if number else [])
    engine = open_sqlite()
    engine.run(Nothing())
    with housekeeping_stopped(engine):
        began = time.monotonic()
        assert engine.run(chain).status == "COMPLETED"
        assert time.monotonic() - began < 20


def do_nothing() -> None: ...
