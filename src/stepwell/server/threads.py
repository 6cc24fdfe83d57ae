"""The threads in which requests are served.

Each kind of work has its own, so that none waits for another. The threads are daemons: what still goes on when the server ends
does not keep its process.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar

from ..engine.aio.pool import Pool
from .problems import HttpProblem

ThreadKind: TypeAlias = Literal["caller", "read", "view", "check", "commit", "stream"]
THREADS: dict[ThreadKind, int] = {
    "caller": 4,  # tokens, which every request waits for; readiness
    "read": 16,  # short questions to the store
    "view": 4,  # what takes time in proportion to a run or a graph: more threads of Python would only hold up the loop
    "check": 2,  # documents, graphs and triggers that clients write
    "commit": 16,  # each may wait half a minute for a busy store
    "stream": 8,  # what streams read
}
"""How many of each kind work at once; the others wait."""
LONG_SECONDS = 2.0
"""After which a check gets another thread beside it, so that the others do not wait for it."""
CHECK_SECONDS = 120.0
"""After which a check is given up. A document of 32 MiB takes half a minute."""
MAX_LONG_CHECKS = 8
"""How many checks may take longer than `LONG_SECONDS` at once, with those that were given up and have not ended."""
P = ParamSpec("P")
T = TypeVar("T")


class RequestThreads:
    """Used on one loop. The threads of a kind are started when they are first needed."""

    def __init__(self) -> None:
        self._pools: dict[ThreadKind, Pool] = {}
        self._closed = False
        self._long_checks = 0

    async def run(self, kind: ThreadKind, call: Callable[P, T], /, *args: P.args, **keywords: P.kwargs) -> T:
        """Make a call in a thread of this kind. It goes on to its end even if the request is cancelled.

        A check has a time limit. It must change nothing, because one that is given up goes on, too.
        """
        if self._closed:
            raise closing()
        pool = self._pools.get(kind)
        if pool is None:
            pool = self._pools[kind] = Pool(THREADS[kind], f"stepwell-{kind}")
        if kind == "check":
            return await self._check(pool, functools.partial(call, *args, **keywords))
        return await pool.call(call, *args, **keywords)

    async def _check(self, pool: Pool, check: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        started = asyncio.Event()

        def start() -> T:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(started.set)
            self._refuse_if_busy()
            return check()

        self._refuse_if_busy()
        call = asyncio.ensure_future(pool.call(start))
        call.add_done_callback(lambda _: started.set())
        await started.wait()
        await asyncio.wait({call}, timeout=LONG_SECONDS)
        if not call.done():
            self._long_checks += 1
            pool.add_thread()
            call.add_done_callback(functools.partial(self._end_long_check, pool))
            await asyncio.wait({call}, timeout=CHECK_SECONDS - LONG_SECONDS)
        if not call.done():
            detail = f"checking this takes longer than {CHECK_SECONDS:g} s, and is given up; nothing was changed"
            raise HttpProblem(422, detail)
        return await call

    def _refuse_if_busy(self) -> None:
        if self._long_checks >= MAX_LONG_CHECKS:
            detail = f"{self._long_checks} documents that others have sent take long to check; try again later"
            raise HttpProblem(503, detail, headers={"Retry-After": "10"})

    def _end_long_check(self, pool: Pool, call: asyncio.Future[Any]) -> None:
        self._long_checks -= 1
        pool.remove_thread()
        if not call.cancelled():
            call.exception()  # which is looked at by nobody else if the check was given up

    def close(self) -> None:
        """Take no more calls. Those that are being made are not waited for."""
        self._closed = True
        for pool in self._pools.values():
            pool.close()


def closing() -> HttpProblem:
    """The answer to a request that a server which ends cannot serve."""
    return HttpProblem(503, "the server is closing", headers={"Retry-After": "2"})
