"""`Client`: what users open, for threads and for coroutines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

from ..base.clock import Duration
from ..base.words import offered
from ..engine.aio.calls import AwaitedCalls
from ..engine.aio.run import AsyncRun
from .blocking import BlockingClient
from .events import Event, follow_on_loop, path_of_events


class AsyncClient(AwaitedCalls):
    """A client for coroutines: what `async with Client(...)` gives.

        async with Client("https://stepwell.example.com", token="sw_...") as client:
            run = await client.run("summarise", input={"url": "https://example.com"})
            print(await run.output("sum"))

    Every call of `Client` is there under its name, and is awaited; `client.sync` is the client for threads.
    """

    sync: BlockingClient

    def __init__(self, client: BlockingClient) -> None:
        super().__init__(client, "stepwell-client")

    def __repr__(self) -> str:
        return repr(self.sync).replace("<Client", "<AsyncClient", 1)

    def __dir__(self) -> list[str]:
        return offered(AsyncClient, (), "sync")

    def events(
        self, run: AsyncRun | str | None = None, last: str | None = None, *, until: Literal["ended"] | None = None
    ) -> AsyncIterator[Event]:
        """What happens, as it happens: `async for event in client.events(): ...`; see `Client.events`."""
        path, asked = path_of_events(run.id if isinstance(run, AsyncRun) else run, until)
        return follow_on_loop(self.sync.transport, path, last, asked)

    async def close(self, timeout: Duration | None = None) -> None:
        self._pool.close()
        self.sync.close()


class Client(BlockingClient):
    """A server's engine.

        with Client("https://stepwell.example.com", token="sw_...") as client:
            run = client.run("summarise", input={"url": "https://example.com"})
            print(run.output("sum"))

    It has the verbs of `Engine`, and its runs are read as those of an engine are. Bodies run where the workers are; what needs
    code here (`run.state`, `run.replay()`) imports what `jobs` allows.
    """

    _async: AsyncClient | None = None

    async def __aenter__(self) -> AsyncClient:
        """The same client for coroutines."""
        self._async = AsyncClient(self)
        return self._async

    async def __aexit__(self, *raised: object) -> None:
        if self._async is not None:
            await self._async.close()
