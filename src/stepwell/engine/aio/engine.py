"""`AsyncEngine`: an engine for coroutines. It is a view of an `Engine`, which does all the work."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, Literal

from ...base.clock import Duration
from ...define import Workflow
from ...stores import public
from ..bodies.loop import LoopBodies
from ..checking import checked_limit
from ..engine import LOOK_SECONDS, Engine, EventName
from ..following import Event, check_until, events_of, follow_on_loop
from ..scheduling.metrics import EngineMetrics
from .calls import AsyncCalls
from .run import AsyncRun

CANCELLED_SECONDS = 5.0
"""How long closing waits for cancelled async bodies, which may ignore that."""


class AsyncEngine(AsyncCalls):
    """An engine for coroutines: what `async with Engine(...)` gives.

        async with Engine("sqlite:///orders.db") as engine:
            run = await engine.run(OrderWorkflow(order_id=7))
            print(await run.output("ship"))

    Every call of `Engine` is there under its name, and is awaited: it is made in a thread, so it never blocks the loop.
    `async def` bodies run on this loop, beside the rest of the application. `engine.sync` is the engine for threads.
    """

    sync: Engine

    def __init__(self, engine: Engine, bodies: LoopBodies | None) -> None:
        """To be called on the loop that async bodies are to run on."""
        super().__init__(engine, "stepwell-async")
        self._bodies = bodies
        self._ended = asyncio.Event()
        self._closing: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"<AsyncEngine {public(self.sync.store.url)}>"

    async def work(self, workflows: Iterable[type[Workflow]] = (), *, wait: Duration | None = None) -> None:
        """Work on every unfinished run whose code can be found here, until the engine is closed; see `Engine.work`."""
        limit = checked_limit("wait", wait)
        await self._pool.call(self.sync.work, workflows, wait=0)
        clock = asyncio.get_running_loop().time
        until = math.inf if limit is None else clock() + limit
        while not self._ended.is_set() and clock() < until:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), min(LOOK_SECONDS, until - clock()))
            self.sync.parts.work.check_works()

    def events(
        self, run: AsyncRun | str | None = None, last: str | None = None, *, until: Literal["ended"] | None = None
    ) -> AsyncIterator[Event]:
        """What happens, as it happens: `async for event in engine.events(): ...`; see `Engine.events`."""
        run_id = run.id if isinstance(run, AsyncRun) else run
        check_until(run_id, until)
        return follow_on_loop(functools.partial(events_of, self.sync.parts, run_id, last, until), self._pool.read)

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

    @property
    def metrics(self) -> EngineMetrics:
        """What this engine holds now and has done since it was opened. It is in memory, so nothing is awaited."""
        return self.sync.metrics

    def _shut(self) -> None:
        """Refuse all further calls: the engine is closed."""
        self._pool.close()

    async def close(self, timeout: Duration | None = None) -> None:
        """Let running bodies end for up to `timeout` seconds, then give back the rest. `async with` does it at its end.

        The loop is not blocked, and bodies may end on it. Cancelling this call does not keep the engine open.
        """
        limit = checked_limit("timeout", timeout)
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._pool.call(self.sync.close, limit))
        self._ended.set()
        await asyncio.shield(self._closing)
        self.sync.parts.work.warn_unfinished()
        if self._bodies is not None:
            await self._bodies.ended(CANCELLED_SECONDS)


def _tell_on(
    loop: asyncio.AbstractEventLoop, listener: Callable[[Any], Coroutine[Any, Any, None]], event: object
) -> None:
    """Called in the events thread, which waits, so that listeners get one event after another."""
    if not loop.is_closed():
        asyncio.run_coroutine_threadsafe(listener(event), loop).result()
