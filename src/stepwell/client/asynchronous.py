"""`async with Client(...)`: the client for coroutines. Calls run in threads; waiting and events run on the loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cached_property
from typing import Literal

from ..clock import Duration
from ..ids import RunId
from ..kernel.comparing import Comparison
from ..model import RunStatus
from ..runner import Run
from ..runner.aio.awaited import awaited, awaited_as
from ..runner.aio.engine import THREADS
from ..runner.aio.pool import Pool
from ..runner.aio.run import AsyncRun, behind
from ..runner.aio.runs import AsyncRuns, async_runs, starting_and_waiting
from ..runner.aio.triggers import AsyncTriggers
from ..words import offered
from .blocking import BlockingClient
from .events import Event, follow_on_loop, path_of_events


class AsyncClient:
    """A client for coroutines: what `async with Client(...)` gives.

        async with Client("https://stepwell.example.com", token="sw_...") as client:
            run = await client.run("summarise", input={"url": "https://example.com"})
            print(await run.output("sum"))

    Every call of `Client` is there under its name, and is awaited; `client.sync` is the client for threads.
    """

    def __init__(self, client: BlockingClient) -> None:
        self.sync = client
        self._pool = Pool(THREADS, "stepwell-client")

    def __repr__(self) -> str:
        return repr(self.sync).replace("<Client", "<AsyncClient", 1)

    def __dir__(self) -> list[str]:
        return offered(AsyncClient, (), "sync")

    run = starting_and_waiting(BlockingClient.run)
    start = awaited_as(BlockingClient.start, AsyncRun)
    start_many = awaited_as(BlockingClient.start_many, async_runs)
    get = awaited_as(BlockingClient.get, AsyncRun)
    adopt = awaited_as(BlockingClient.adopt, AsyncRun)
    runs = awaited_as(BlockingClient.runs, AsyncRuns)
    save = awaited(BlockingClient.save)
    workflows = awaited(BlockingClient.workflows)

    @cached_property
    def triggers(self) -> AsyncTriggers:
        """The triggers of the server; its methods are awaited."""
        return AsyncTriggers(self.sync.triggers, self._pool)

    async def wait(self, run_id: RunId, timeout: Duration | None = None) -> RunStatus:
        """Wait until a run has ended, or is paused for a decision, and return its status."""
        return (await self.sync.waiting.wait_on_loop(run_id, timeout)).status

    async def compare(self, first: AsyncRun | Run | str, second: AsyncRun | Run | str) -> Comparison:
        """Two runs side by side; see `Run.diff`."""
        return await self._pool.call(self.sync.compare, behind(first), behind(second))

    def events(
        self, run: AsyncRun | str | None = None, last: str | None = None, *, until: Literal["ended"] | None = None
    ) -> AsyncIterator[Event]:
        """What happens, as it happens: `async for event in client.events(): ...`; see `Client.events`."""
        path, asked = path_of_events(run.id if isinstance(run, AsyncRun) else run, until)
        return follow_on_loop(self.sync.transport, path, last, asked)

    async def close(self, timeout: Duration | None = None) -> None:
        self._pool.close()
        self.sync.close()
