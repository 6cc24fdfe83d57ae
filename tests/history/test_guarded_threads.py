"""What a guarded body has other threads do is guarded too, and no profiler is left anywhere."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from stepwell import Context, Engine, Run, Workflow, step
from stepwell.errors import ReplayMismatch, UnrecordedCall
from stepwell.history import guard
from tests.engine.conftest import OpenEngine
from tests.history import escapes
from tests.history.escapes import EVERYWHERE, GO_ON, LEFT, LEFT_TASKS, LIVE, WAYS
from tests.history.test_effects import ISOLATIONS, run_one


@pytest.fixture(autouse=True, scope="module")
def threads_that_were_there() -> Iterator[None]:
    escapes.service()
    with escapes.shared_executor(), escapes.shared_pool():
        yield
    escapes.shared_executor.cache_clear()
    escapes.shared_pool.cache_clear()


@pytest.fixture(autouse=True)
def nobody_got_through() -> Iterator[None]:
    for each in (LIVE, LEFT, LEFT_TASKS):
        each.clear()
    GO_ON.clear()
    yield
    GO_ON.set()
    for thread in LEFT:
        thread.join()


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def recorded(engine: Engine, job: Callable[..., Any], port: int) -> Run:
    return run_one(engine, job, side_effects="recordable", port=port).check()


@pytest.mark.parametrize("job", WAYS)
def test_a_guarded_body_does_not_get_through_by_another_thread(
    open_engine: OpenEngine, port: int, job: Callable[..., Any]
) -> None:
    run = run_one(open_engine(guard=True), job, port=port)
    error = run.node("body").error
    assert error is not None
    assert error.type == "UnrecordedCall"
    assert "node 'body' called " in error.message
    if job is not escapes.by_a_task_of_the_standard_library:
        assert f"{escapes.__file__}:" in error.message, "the line of the body"
    assert LIVE == []


@pytest.mark.parametrize("job", [escapes.by_to_thread, escapes.by_an_executor, escapes.by_a_thread_with_its_context])
def test_nor_does_one_in_a_process_of_its_own(open_engine: OpenEngine, port: int, job: Callable[..., Any]) -> None:
    error = run_one(open_engine(guard=True), job, "process", port=port).node("body").error
    assert error is not None
    assert error.type == "UnrecordedCall"


@pytest.mark.parametrize("job", [*WAYS, *EVERYWHERE])
def test_a_replay_does_not_get_through_by_another_thread(engine: Engine, port: int, job: Callable[..., Any]) -> None:
    run = recorded(engine, job, port)
    assert len(LIVE) == 1
    with pytest.raises(ReplayMismatch, match=r"node 'body'"):
        run.replay()
    assert len(LIVE) == 1


@pytest.mark.parametrize("job", [escapes.leave_a_thread_behind, escapes.leave_a_task_behind])
def test_a_replay_refuses_also_what_a_body_leaves_behind(engine: Engine, port: int, job: Callable[..., Any]) -> None:
    run = recorded(engine, job, port)
    left_by_the_run = LEFT[:]
    run.replay()
    for thread in left_by_the_run:  # that of the run may do what it likes
        LEFT.remove(thread)
    GO_ON.set()
    for thread in (*LEFT, *left_by_the_run):
        thread.join()
    assert len(LIVE) == len(left_by_the_run)


def test_a_thread_that_outlives_its_guarded_body_is_not_watched_any_more(port: int) -> None:
    with guard():
        escapes.leave_a_thread_behind(port)
    GO_ON.set()
    LEFT[0].join()
    assert len(LIVE) == 1


def test_a_task_that_outlives_its_guarded_body_is_not_refused_whoever_is_guarded_then(port: int) -> None:
    async def both() -> None:
        with guard("first"):
            await escapes.leave_a_task_behind(port)
        with guard("second"):
            LEFT_TASKS[0].cancel()
            await asyncio.wait(LEFT_TASKS)

    asyncio.run(both())
    assert len(LIVE) == 1


def test_a_thread_without_the_context_is_left_alone_outside_of_replays(open_engine: OpenEngine, port: int) -> None:
    for job in EVERYWHERE:
        recorded(open_engine(guard=True), job, port)
    assert len(LIVE) == len(EVERYWHERE)


class Leftover:
    """Garbage that only the collector finds, and whose end asks the network."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._itself = self

    def __del__(self) -> None:
        escapes.connect(self._port)


def test_what_the_garbage_collector_finalizes_during_a_guarded_body_is_not_the_doing_of_that_body(port: int) -> None:
    gc.disable()
    try:
        Leftover(port)
        with guard():
            gc.collect()
        assert len(LIVE) == 1
        with pytest.raises(UnrecordedCall), guard():
            escapes.connect(port)
    finally:
        gc.enable()
    assert len(LIVE) == 1, "it is watched again when the collector is done"


def test_a_thread_of_others_that_is_handed_work_in_its_own_way_is_not_seen(engine: Engine, port: int) -> None:
    assert recorded(engine, escapes.by_a_service_that_was_there, port).replay().executed
    assert len(LIVE) == 2


def test_calls_that_c_makes_are_not_seen() -> None:
    with guard():
        assert next(iter(map(time.localtime, [None])))
        assert contextvars.copy_context().run(time.time)


def test_work_of_others_in_a_shared_thread_is_not_refused(port: int) -> None:
    executor = escapes.shared_executor()
    with pytest.raises(UnrecordedCall), guard("one"):
        executor.submit(escapes.connect, port).result()
    assert executor.submit(escapes.connect, port).result() == "connected"
    with guard("another"):
        assert contextvars.Context().run(executor.submit, escapes.connect, port).result() == "connected"


def test_an_effect_may_use_threads(open_engine: OpenEngine, port: int) -> None:
    class Asking(Workflow):
        @step(depends_on=None, side_effects="recordable")
        async def later(self, ctx: Context) -> str:
            found: str = await ctx.effect("ask", escapes.by_to_thread, port)
            return found

        @step(depends_on=None, side_effects="recordable")
        async def elsewhere(self, ctx: Context) -> str:
            return await asyncio.to_thread(ctx.effect, "ask", escapes.by_an_executor, port)

        @step(depends_on=None, side_effects="recordable")
        async def durably(self, ctx: Context) -> str:
            found: str = await ctx.effect("ask", escapes.by_an_executor_of_the_loop, port, durable=True)
            return found

    run = open_engine(guard=True).run(Asking()).check()
    assert len(LIVE) == 3
    assert run.replay().effects == 3
    assert len(LIVE) == 3


def test_what_a_thread_is_refused_names_the_line_that_gave_it_away(port: int) -> None:
    async def give_away() -> None:
        await asyncio.to_thread(socket.gethostbyname, "localhost")

    with pytest.raises(UnrecordedCall) as caught, guard("charge"):
        asyncio.run(give_away())
    assert caught.value.function == "socket.gethostbyname"
    assert caught.value.where == f"{__file__}:{give_away.__code__.co_firstlineno + 1}"


def test_a_thread_below_threading_cannot_be_watched_and_is_refused() -> None:
    import _thread

    with pytest.raises(UnrecordedCall, match=r"called _thread\.start_new_thread .* threading\.Thread"), guard():
        _thread.start_new_thread(int, ())


# Nothing is left


def profilers(executor: ThreadPoolExecutor) -> list[Any]:
    """Of this thread, and of one that had worked for a body."""
    return [sys.getprofile(), sys.gettrace(), *executor.submit(lambda: (sys.getprofile(), sys.gettrace())).result()]


def fail() -> None:
    raise ValueError("no")


@pytest.mark.parametrize("function", [int, fail, time.time, lambda: escapes.by_trying_again(9)])
def test_no_profiler_is_left_in_any_thread(function: Callable[[], Any]) -> None:
    executor = escapes.shared_executor()
    with contextlib.suppress(ValueError, UnrecordedCall), guard():
        executor.submit(function).result()
    assert profilers(executor) == [None] * 4
    with contextlib.suppress(ValueError, UnrecordedCall), guard():
        function()
    assert profilers(executor) == [None] * 4


def test_no_profiler_is_left_by_a_body_that_is_cancelled_or_whose_time_is_up(open_engine: OpenEngine) -> None:
    engine = open_engine(guard=True)
    release = threading.Event()
    executor = escapes.shared_executor()

    class Late(Workflow, on_failure="finish"):
        @step(depends_on=None, timeout=0.1)
        async def on_the_loop(self) -> None:
            executor.submit(release.wait)
            await asyncio.sleep(60)

        @step(depends_on=None, timeout=0.1)
        def in_a_thread(self) -> None:
            release.wait()

    run = engine.run(Late(), check=False)
    assert {node.error.type for node in run.nodes() if node.error is not None} == {"TimeoutError"}
    release.set()

    assert profilers(executor) == [None] * 4


def test_no_profiler_is_left_on_the_loop_of_an_engine(open_engine: OpenEngine, port: int) -> None:
    """A task that a guarded body leaves behind looks at its thread when the body has ended."""
    seen: list[Any] = []
    looked = threading.Event()
    ended = threading.Event()

    class Leaving(Workflow):
        @step
        async def leave(self) -> None:
            async def look() -> None:
                while not ended.is_set():
                    await asyncio.sleep(0.001)
                seen.append(sys.getprofile())
                looked.set()

            LEFT_TASKS.append(asyncio.create_task(look()))  # type: ignore[arg-type]

    open_engine(guard=True).run(Leaving()).check()
    ended.set()
    assert looked.wait(60)
    assert seen == [None]


def test_a_replay_leaves_no_profiler(engine: Engine, port: int) -> None:
    run = recorded(engine, escapes.by_an_executor_that_was_there, port)
    for _ in range(2):
        with pytest.raises(ReplayMismatch):
            run.replay()
        assert profilers(escapes.shared_executor()) == [None] * 4


def test_a_tracer_that_was_there_is_there_again() -> None:
    def tracer(*_: object) -> None: ...

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with contextlib.suppress(UnrecordedCall), guard():
            time.time()
        found = sys.gettrace()
    finally:
        sys.settrace(before)
    assert found is tracer


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_body_that_goes_on_after_a_refusal_is_still_watched(
    open_engine: OpenEngine, port: int, isolation: Any
) -> None:
    error = run_one(open_engine(guard=True), escapes.by_trying_again, isolation, port=port).node("body").error
    assert error is not None
    assert error.type == "UnrecordedCall"
    assert LIVE == []
