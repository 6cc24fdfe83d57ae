"""`AsyncEngine`: an engine for coroutines. It is a view of an `Engine`, which does all the work."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ...store import public
from ...words import offered
from .. import checking
from ..engine import Engine
from ..listing import Runs
from ..run import Run
from ..worker.metrics import EngineMetrics
from .doors import Awaited, Pool, door
from .run import AsyncRun

if TYPE_CHECKING:
    from ...clock import Duration

P = ParamSpec("P")
T = TypeVar("T")
CANCELLED_SECONDS = 5.0
"""How long closing waits for async bodies that were cancelled: one may do what it likes with that."""


def giving_a_run(
    method: Callable[Concatenate[Engine, P], Run],
) -> Callable[Concatenate[AsyncEngine, P], Awaited[AsyncRun]]:
    @functools.wraps(method)
    async def awaited(self: AsyncEngine, /, *args: P.args, **keywords: P.kwargs) -> AsyncRun:
        return AsyncRun(await self._pool.call(method, self.sync, *args, **keywords), self._pool)

    return awaited


def starting_and_waiting(
    method: Callable[Concatenate[Engine, P], Run],
) -> Callable[Concatenate[AsyncEngine, P], Awaited[AsyncRun]]:
    """`engine.run` holds a thread while it waits; this one holds none."""

    @functools.wraps(method)
    async def awaited(self: AsyncEngine, /, *args: P.args, **keywords: P.kwargs) -> AsyncRun:
        given: tuple[Any, ...] = args
        options: dict[str, Any] = dict(keywords)
        check, wait = options.pop("check", True), options.pop("wait", None)
        limit = checking.checked_limit("wait", wait)  # before anything is started
        run = await self._pool.call(self.sync.start, *given, **options)
        row = await self.sync.waiting.wait_on_loop(run.id, limit)
        if check:
            await self._pool.call(run._checked, row)
        return AsyncRun(run, self._pool)

    return awaited


def giving_runs(
    method: Callable[Concatenate[Engine, P], list[Run]],
) -> Callable[Concatenate[AsyncEngine, P], Awaited[list[AsyncRun]]]:
    @functools.wraps(method)
    async def awaited(self: AsyncEngine, /, *args: P.args, **keywords: P.kwargs) -> list[AsyncRun]:
        return [AsyncRun(run, self._pool) for run in await self._pool.call(method, self.sync, *args, **keywords)]

    return awaited


def giving_a_page(
    method: Callable[Concatenate[Engine, P], Runs],
) -> Callable[Concatenate[AsyncEngine, P], Awaited[AsyncRuns]]:
    @functools.wraps(method)
    async def awaited(self: AsyncEngine, /, *args: P.args, **keywords: P.kwargs) -> AsyncRuns:
        return AsyncRuns(await self._pool.call(method, self.sync, *args, **keywords), self._pool)

    return awaited


def at_once(method: Callable[Concatenate[Engine, P], T]) -> Callable[Concatenate[AsyncEngine, P], T]:
    """What never waits is called where it is asked for."""

    @functools.wraps(method)
    def called(self: AsyncEngine, /, *args: P.args, **keywords: P.kwargs) -> T:
        return method(self.sync, *args, **keywords)

    return called


class AsyncEngine:
    """An engine for coroutines: what `async with Engine(...)` gives.

        async with Engine("sqlite:///orders.db") as engine:
            run = await engine.run(OrderWorkflow(order_id=7))
            print(await run.output("ship"))

    Every call of `Engine` is there under its name, and is awaited: it is made in a thread, so it never blocks the loop.
    `async def` bodies run on this loop, beside the rest of the application. `engine.sync` is the engine for threads.
    """

    def __init__(self, engine: Engine) -> None:
        """On the loop that async bodies are to run on."""
        self.sync = engine
        self._bodies = engine.use_loop(asyncio.get_running_loop())
        self._pool = Pool()
        self._closing: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"<AsyncEngine {public(self.sync.store.url)}>"

    def __dir__(self) -> list[str]:
        return offered(AsyncEngine, ("shut",), "sync")

    run = starting_and_waiting(Engine.run)
    start = giving_a_run(Engine.start)
    get = giving_a_run(Engine.get)
    adopt = giving_a_run(Engine.adopt)
    serve = door(Engine.serve)
    save = door(Engine.save)
    workflows = door(Engine.workflows)

    start_many = giving_runs(Engine.start_many)
    runs = giving_a_page(Engine.runs)
    on = at_once(Engine.on)

    @property
    def metrics(self) -> EngineMetrics:
        """What this engine holds now and has done since it was opened, in numbers. It is in memory, so nothing is awaited."""
        return self.sync.metrics

    def shut(self) -> None:
        """The engine is closed: whoever calls is told so."""
        self._pool.close()

    async def close(self, timeout: Duration | None = None) -> None:
        """Let running bodies end for up to `timeout` seconds, then give back the rest. `async with` does it at its end.

        The loop is not blocked, and bodies may end on it. When whoever waits is cancelled, it is closed all the same.
        """
        limit = checking.checked_limit("timeout", timeout)
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._pool.call(self.sync.close, limit))
        await asyncio.shield(self._closing)
        self.sync.tell_unfinished()
        if self._bodies is not None:
            await self._bodies.ended(CANCELLED_SECONDS)


class AsyncRuns(list[AsyncRun]):
    """One page of runs, the newest first."""

    def __init__(self, page: Runs, pool: Pool) -> None:
        super().__init__(AsyncRun(run, pool) for run in page)
        self._page, self._pool = page, pool

    async def next(self) -> AsyncRuns:
        """The page after this one; empty at the end."""
        return AsyncRuns(await self._pool.call(self._page.next), self._pool)

    async def all(self) -> AsyncIterator[AsyncRun]:
        """These and all others after them, read page by page: `async for run in (await engine.runs()).all(): ...`"""
        page = self
        while page:
            for run in page:
                yield run
            page = await page.next()
