"""`Engine`: what users open, for threads and for coroutines."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from .blocking import BlockingEngine

if TYPE_CHECKING:
    from .aio.engine import AsyncEngine


class Engine(BlockingEngine):
    """Runs workflows on a store.

        with Engine("sqlite:///orders.db") as engine:
            run = engine.run(OrderWorkflow(order_id=7))
            print(run.output("ship"))

    It works on the runs it started or adopted, and on every run of `workflows`, also those that another process left. With
    `runner=None` it only starts and reads runs. With `runner="celery"` it does the same and sends hints to Celery workers:
    `broker` is the URL of their broker, or a Celery application; such an engine may be used on both sides of a fork. With
    `queues` it takes only nodes of these queues. With `guard=True` a body fails that uses the clock, randomness, the network or
    a program without recording it; the error shows the line. `node_timeout` is the time limit of every node that has none.
    Durations are numbers of seconds, or timedeltas.

    `jobs` names modules whose functions may run for what came from elsewhere: an imported graph, or what is stored on a server.
    What programs put into an embedded store needs none. `handlers` are functions with `@handler(...)` that documents may name
    besides the built-in ones, or names of modules that hold some.
    """

    _async: AsyncEngine | None = None

    async def __aenter__(self) -> AsyncEngine:
        """The same engine for coroutines. `async def` bodies that begin from now on run on this loop."""
        from .aio.engine import AsyncEngine

        self._async = AsyncEngine(self)
        self.when_closed = self._async.shut
        return self._async

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._async is not None
        await self._async.close()
