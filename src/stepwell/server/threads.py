"""The threads in which requests are served.

Each kind of work has its own, so that none waits for another. The threads are daemons: what still goes on when the server ends
does not keep its process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, ParamSpec, TypeAlias, TypeVar

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
P = ParamSpec("P")
T = TypeVar("T")


class RequestThreads:
    """Used on one loop. The threads of a kind are started when they are first needed."""

    def __init__(self) -> None:
        self._pools: dict[ThreadKind, Pool] = {}
        self._closed = False

    async def run(self, kind: ThreadKind, call: Callable[P, T], /, *args: P.args, **keywords: P.kwargs) -> T:
        """Make a call in a thread of this kind. It goes on to its end even if the request is cancelled."""
        if self._closed:
            raise closing()
        pool = self._pools.get(kind)
        if pool is None:
            pool = self._pools[kind] = Pool(THREADS[kind], f"stepwell-{kind}")
        return await pool.call(call, *args, **keywords)

    def close(self) -> None:
        """Take no more calls. Those that are being made are not waited for."""
        self._closed = True
        for pool in self._pools.values():
            pool.close()


def closing() -> HttpProblem:
    """The answer to a request that a server which ends cannot serve."""
    return HttpProblem(503, "the server is closing", headers={"Retry-After": "2"})
