"""The kinds of bodies: where the body of a node runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .executor import Executor


class BodyKind(NamedTuple):
    """What the scheduler and the worker have to know of a kind. How its bodies run is in the module of its executor."""

    executor: Callable[[], type[Executor]]
    """Loads the executor when there is a body for it."""
    limit: str
    """The field of `Limits` that says how many bodies of this kind run at once."""
    claimed_ahead: bool
    """Whether nodes are claimed before a slot is free. A process is not left idle for long: its bodies take long."""


def _threads() -> type[Executor]:
    from .threads import BodyThreads

    return BodyThreads


def _loop() -> type[Executor]:
    from .loop import LoopBodies

    return LoopBodies


def _processes() -> type[Executor]:
    from .process import ProcessBodies

    return ProcessBodies


KINDS = {
    "thread": BodyKind(_threads, "threads", claimed_ahead=True),
    "loop": BodyKind(_loop, "loop", claimed_ahead=True),
    "process": BodyKind(_processes, "processes", claimed_ahead=False),
}
"""By the name that nodes and lanes have for it (`NodeSpec.body`)."""


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
