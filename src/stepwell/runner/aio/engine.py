"""`AsyncEngine`: an engine for coroutines. It is a view of an `Engine`, which does all the work."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...ids import RunId
from ...kernel.comparing import Comparison
from ...model import RunStatus
from ...store import public
from ...words import offered
from ..blocking import BlockingEngine, EventName
from ..checking import checked_limit
from ..runs.run import Run
from ..worker.metrics import EngineMetrics
from .awaited import awaited, awaited_as
from .pool import Pool
from .run import AsyncRun, behind
from .runs import AsyncRuns, async_runs, starting_and_waiting

if TYPE_CHECKING:
    from ...clock import Duration
    from .triggers import AsyncTriggers

THREADS = 8
"""Calls at once; their commits are grouped."""
CANCELLED_SECONDS = 5.0
"""How long closing waits for cancelled async bodies, which may ignore that."""


class AsyncEngine:
    """An engine for coroutines: what `async with Engine(...)` gives.

        async with Engine("sqlite:///orders.db") as engine:
            run = await engine.run(OrderWorkflow(order_id=7))
            print(await run.output("ship"))

    Every call of `Engine` is there under its name, and is awaited: it is made in a thread, so it never blocks the loop.
    `async def` bodies run on this loop, beside the rest of the application. `engine.sync` is the engine for threads.
    """

    def __init__(self, engine: BlockingEngine) -> None:
        """To be called on the loop that async bodies are to run on."""
        self.sync = engine
        self._bodies = engine.use_loop(asyncio.get_running_loop())
        self._pool = Pool(THREADS, "stepwell-async")
        engine.waiting.use_loop()
        self._closing: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"<AsyncEngine {public(self.sync.store.url)}>"

    def __dir__(self) -> list[str]:
        return offered(AsyncEngine, ("shut",), "sync")

    run = starting_and_waiting(BlockingEngine.run)
    start = awaited_as(BlockingEngine.start, AsyncRun)
    get = awaited_as(BlockingEngine.get, AsyncRun)
    adopt = awaited_as(BlockingEngine.adopt, AsyncRun)
    serve = awaited(BlockingEngine.serve)
    save = awaited(BlockingEngine.save)
    workflows = awaited(BlockingEngine.workflows)

    start_many = awaited_as(BlockingEngine.start_many, async_runs)
    runs = awaited_as(BlockingEngine.runs, AsyncRuns)

    def on(
        self,
        event: EventName,
        callback: Callable[[Any], None] | Callable[[Any], Coroutine[Any, Any, None]],
        *,
        every: Duration | None = None,
    ) -> None:
        """Call back when something happens; see `Engine.on`. An `async def` listener runs on this loop, one event after
        another; any other in a thread of the engine. Nothing is awaited here."""
        listener: Any = callback
        if inspect.iscoroutinefunction(callback):
            listener = functools.partial(_tell_on, asyncio.get_running_loop(), callback)
        self.sync.on(event, listener, every=every)

    @cached_property
    def triggers(self) -> AsyncTriggers:
        """What starts runs by itself, as in `Engine.triggers`; its verbs are awaited."""
        from .triggers import AsyncTriggers

        return AsyncTriggers(self.sync.triggers, self._pool)

    async def wait(self, run_id: RunId, timeout: Duration | None = None) -> RunStatus:
        """Wait until a run has ended, or has paused because somebody must decide, and give its status."""
        return (await self.sync.waiting.wait_on_loop(run_id, timeout)).status

    async def compare(self, first: AsyncRun | Run | str, second: AsyncRun | Run | str) -> Comparison:
        """Two runs side by side; see `Run.diff`."""
        return await self._pool.call(self.sync.compare, behind(first), behind(second))

    @property
    def metrics(self) -> EngineMetrics:
        """What this engine holds now and has done since it was opened. It is in memory, so nothing is awaited."""
        return self.sync.metrics

    def shut(self) -> None:
        """Refuse all further calls: the engine is closed."""
        self._pool.close()

    async def close(self, timeout: Duration | None = None) -> None:
        """Let running bodies end for up to `timeout` seconds, then give back the rest. `async with` does it at its end.

        The loop is not blocked, and bodies may end on it. Cancelling this call does not keep the engine open.
        """
        limit = checked_limit("timeout", timeout)
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._pool.call(self.sync.close, limit))
        await asyncio.shield(self._closing)
        self.sync.tell_unfinished()
        if self._bodies is not None:
            await self._bodies.ended(CANCELLED_SECONDS)


def _tell_on(
    loop: asyncio.AbstractEventLoop, listener: Callable[[Any], Coroutine[Any, Any, None]], event: object
) -> None:
    """Called in the events thread, which waits, so that listeners get one event after another."""
    if not loop.is_closed():
        asyncio.run_coroutine_threadsafe(listener(event), loop).result()
