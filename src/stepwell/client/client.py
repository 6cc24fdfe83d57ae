"""`Client`: what users open, for threads and for coroutines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .blocking import BlockingClient

if TYPE_CHECKING:
    from .asynchronous import AsyncClient


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
        from .asynchronous import AsyncClient

        self._async = AsyncClient(self)
        return self._async

    async def __aexit__(self, *raised: object) -> None:
        if self._async is not None:
            await self._async.close()
