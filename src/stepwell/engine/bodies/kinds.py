"""The kinds of bodies: where the body of a node runs."""

from __future__ import annotations

from typing import NamedTuple


class BodyKind(NamedTuple):
    """What the scheduler and the worker have to know of a kind."""

    limit: str
    """The field of `Limits` that says how many bodies of this kind run at once."""
    claimed_ahead: bool
    """Whether nodes are claimed before a slot is free. A process is not left idle for long: its bodies take long."""


KINDS = {
    "thread": BodyKind("threads", claimed_ahead=True),
    "loop": BodyKind("loop", claimed_ahead=True),
    "process": BodyKind("processes", claimed_ahead=False),
}
"""By the name that nodes and lanes have for it (`NodeSpec.body`)."""


POOLS = {kind: (f"{kind}!", kind) for kind in KINDS}
"""The pools of each kind. The careful one has the nodes that must not be claimed ahead of a free slot. It comes first: if the
other were claimed ahead first, no slot would ever be free for it."""
CAREFUL = frozenset(careful for careful, _ in POOLS.values())


def pool_of(kind: str, *, careful: bool) -> str:
    return POOLS[kind][0 if careful else 1]


class Limits(NamedTuple):
    """How much one worker runs and claims."""

    threads: int = 8
    loop: int = 1_000
    processes: int = 2
    queue_depth: int = 1_024
    node_seconds: float | None = None
    """The time limit of nodes that declare none."""

    def of(self, kind: str) -> int:
        limit: int = getattr(self, KINDS[kind].limit)
        return limit


class ByKind(NamedTuple):
    """A number for each kind of body: `def` in threads, `async def` on the loop, isolated in processes."""

    thread: int | float
    loop: int | float
    process: int | float

    @property
    def total(self) -> int | float:
        return sum(self)
