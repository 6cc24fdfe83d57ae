"""`async with Client(...)`: the same client for coroutines. Calls are made in threads; waiting and events are on the loop."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from typing import Any

from ..runner.aio.doors import Pool, door
from ..runner.aio.engine import AsyncRuns
from ..runner.aio.run import AsyncRun
from ..runner.checking import checked_limit
from .client import Client
from .events import Event, follow_on_loop
from .transport import path_of


class AsyncClient:
    """A client for coroutines: what `async with Client(...)` gives.

        async with Client("https://stepwell.example.com", token="sw_...") as client:
            run = await client.run("summarise", input={"url": "https://example.com"})
            print(await run.output("sum"))

    Every call of `Client` is there under its name, and is awaited; `client.sync` is the client for threads.
    """

    def __init__(self, client: Client) -> None:
        self.sync = client
        self._pool = Pool()

    def __repr__(self) -> str:
        return repr(self.sync).replace("<Client", "<AsyncClient", 1)

    save = door(Client.save)
    workflows = door(Client.workflows)

    @functools.wraps(Client.start)
    async def start(self, *args: Any, **options: Any) -> AsyncRun:
        return AsyncRun(await self._pool.call(self.sync.start, *args, **options), self._pool)

    @functools.wraps(Client.get)
    async def get(self, run_id: str) -> AsyncRun:
        return AsyncRun(await self._pool.call(self.sync.get, run_id), self._pool)

    adopt = get

    @functools.wraps(Client.run)
    async def run(self, *args: Any, check: bool = True, wait: Any = None, **options: Any) -> AsyncRun:
        limit = checked_limit("wait", wait)  # before anything is started
        run = await self.start(*args, **options)
        await run.wait(limit)
        return await run.check() if check else run

    @functools.wraps(Client.start_many)
    async def start_many(self, *args: Any, **options: Any) -> list[AsyncRun]:
        return [AsyncRun(run, self._pool) for run in await self._pool.call(self.sync.start_many, *args, **options)]

    @functools.wraps(Client.runs)
    async def runs(self, **wanted: Any) -> AsyncRuns:
        return AsyncRuns(await self._pool.call(self.sync.runs, **wanted), self._pool)

    def events(self, run: AsyncRun | str | None = None, last: str | None = None) -> AsyncIterator[Event]:
        """What happens, as it happens: `async for event in client.events(): ...`"""
        named = run if isinstance(run, str) or run is None else run.id
        path = path_of("events") if named is None else path_of("runs", named, "events")
        return follow_on_loop(self.sync.transport, path, last)

    async def close(self) -> None:
        self._pool.close()
        self.sync.close()
