"""What one node of a graph is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from ..clock import SECONDS_NEEDED, is_seconds
from ..errors import DefinitionError
from ..ids import NodeId
from ..importable import exception_name
from ..model.lanes import Lane
from ..place import caller
from ..words import shown

Body = Literal["thread", "loop", "process"]
"""Where a body runs: a thread (`def`), the event loop (`async def`) or a process of its own (`isolation="process"`)."""

OnLost = Literal["rerun", "interrupt"]
Kind = Literal["step", "task"]
SideEffects = Literal["pure", "recordable", "opaque"]
"""What a replay may do with a body: run it again (`pure`: it asks nothing of the outside; `recordable`: all that it asks is
recorded), or only give what it returned (`opaque`)."""

NO_ARGS: Mapping[str, Any] = MappingProxyType({})
DEFAULT_QUEUE = "default"
MAX_NAME = 500
"""Characters of a name or an id, all of them printable: they are shown on terminals."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often, and after which delay, a failed node is tried again by itself.

    The delay before attempt `n + 1` is `min(base_delay * 2**(n - 1) + jitter, max_delay)` seconds, the jitter between 0
    and `base_delay`, drawn from the run's seed. `retry_on` limits it to some exceptions (and their subclasses): classes, or
    their names, which are looked up where a workflow is written.

        @step(retry=Retry(max_attempts=5, base_delay=0.5, retry_on=(ConnectionError,)))
    """

    max_attempts: int
    base_delay: float = 1.0
    max_delay: float = 60.0
    retry_on: type[BaseException] | str | tuple[type[BaseException] | str, ...] | None = None
    unchecked: tuple[str, ...] = field(default=(), init=False, repr=False, compare=False)
    """Names of `retry_on` that nobody has looked up: they may lead nowhere, or be another name of a class."""

    def __post_init__(self) -> None:
        if not isinstance(self.max_attempts, int) or isinstance(self.max_attempts, bool) or self.max_attempts < 1:
            raise _wrong(f"max_attempts={self.max_attempts!r}", "a whole number of at least 1 is needed")
        for name, seconds in (("base_delay", self.base_delay), ("max_delay", self.max_delay)):
            if not is_seconds(seconds):
                raise _wrong(f"{name}={shown(seconds)}", f"{SECONDS_NEEDED} is needed")
        if self.retry_on is not None:
            given = self.retry_on if isinstance(self.retry_on, tuple | list | set | frozenset) else (self.retry_on,)
            object.__setattr__(self, "retry_on", tuple(_exception_name(item) for item in given))
            object.__setattr__(self, "unchecked", tuple(item for item in given if isinstance(item, str)))

    @classmethod
    def of(cls, value: Retry | int | None) -> Retry | None:
        """`retry=3` is short for `retry=Retry(3)`."""
        if value is None or isinstance(value, Retry):
            return value
        return cls(value)

    def with_classes(self, known: Mapping[str, type[BaseException]]) -> Retry:
        """The same, each of these names replaced by that of the class that it led to."""
        if not isinstance(self.retry_on, tuple):
            return self
        made = replace(self, retry_on=tuple(known.get(str(name), name) for name in self.retry_on))
        object.__setattr__(made, "unchecked", ())
        return made

    def names(self) -> tuple[str, ...] | None:
        return tuple(map(str, self.retry_on)) if isinstance(self.retry_on, tuple) else None


def _exception_name(item: type[BaseException] | str) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, type) and issubclass(item, BaseException):
        return exception_name(item)
    raise _wrong("retry_on=...", f"{item!r} is not an exception class, nor the name of one (package.module.Name)")


def _wrong(what: str, needed: str) -> DefinitionError:
    return DefinitionError(f"Retry({what}): {needed}", where=caller())


class NodeSpec(NamedTuple):
    """A vertex of a graph: what it runs, after what, and under which rules."""

    id: NodeId
    name: str
    depends_on: tuple[NodeId, ...] = ()
    job: str | None = None
    """`package.module:function`, the name of a handler, or None when the node is the method `name` of the workflow's class."""
    args: Mapping[str, Any] = NO_ARGS
    needs: tuple[NodeId, ...] = ()
    """Ancestors whose outputs the body takes as parameters."""
    kind: Kind = "step"
    retry: Retry | None = None
    timeout: float | None = None
    on_lost: OnLost = "rerun"
    body: Body = "thread"
    queue: str = DEFAULT_QUEUE
    was: tuple[str, ...] = ()
    """Ids this node had in earlier versions of its workflow: what a run did under them, it did for this node."""
    side_effects: SideEffects = "opaque"
    templated: bool = False
    """Its args hold templates, as those of a document do. They are rendered before the body begins, with what it `needs`."""
    transaction: bool = False
    """Its body gets `ctx.db`, a transaction on the server of the store, with which its completion is committed."""

    @property
    def lane(self) -> Lane:
        return Lane(self.queue, self.body, self.on_lost == "interrupt")
