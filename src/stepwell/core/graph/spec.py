"""What one node of a graph is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from ...base.clock import POSITIVE_SECONDS_NEEDED, SECONDS_NEEDED, Duration, in_seconds, is_seconds
from ...base.ids import NodeId
from ...base.importable import exception_name, module_of
from ...base.place import caller
from ...base.words import shown
from ...errors import DefinitionError
from ..model.lanes import Lane

Body = Literal["thread", "loop", "process"]
"""Where a body runs: a thread (`def`), the event loop (`async def`) or a process of its own (`isolation="process"`)."""

OnLost = Literal["rerun", "interrupt"]
Kind = Literal["step", "task"]
SideEffects = Literal["pure", "recordable", "opaque"]
"""Whether a replay runs a body again (`pure`: no side effects; `recordable`: all recorded) or returns its output (`opaque`)."""

RetryOn: TypeAlias = type[BaseException] | Callable[[Any], bool] | str
"""An exception class, or a function that is asked about an exception; or the name of one of them."""

NO_ARGS: Mapping[str, Any] = MappingProxyType({})
DEFAULT_QUEUE = "default"
MAX_NAME = 500
"""Characters of a name or an id, all of them printable: they are shown on terminals."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often, and after which delay, a failed node is retried automatically.

    The delay before attempt `n + 1` is `min(base_delay * 2**(n - 1) + jitter, max_delay)` seconds, the jitter between 0
    and `base_delay`, drawn from the run's seed. `retry_on` limits it to some exceptions: classes, which stand for their
    subclasses too, and functions that take the exception and say whether to try again. Both may be given by name
    (`package.module.Name`, `package.module:function`), and are looked up where a workflow is written.

        @step(retry=Retry(max_attempts=5, base_delay=0.5, retry_on=(ConnectionError,)))
        @step(retry=Retry(max_attempts=5, retry_on=lambda error: getattr(error, "status", 0) >= 500))
    """

    max_attempts: int
    base_delay: Duration = 1.0
    max_delay: Duration = 60.0
    retry_on: RetryOn | tuple[RetryOn, ...] | None = None
    unchecked: tuple[str, ...] = field(default=(), init=False, repr=False, compare=False)
    """Names in `retry_on` that were not looked up yet: they may not exist, or be an alias of a class."""
    predicates: tuple[str, ...] = field(default=(), init=False, repr=False, compare=False)
    """Names of `retry_on` that are functions to be asked: `package.module:function`."""
    functions: tuple[tuple[str, Callable[[Any], bool]], ...] = field(default=(), init=False, repr=False, compare=False)
    """The functions among them that are known, by name."""

    def __post_init__(self) -> None:
        if not isinstance(self.max_attempts, int) or isinstance(self.max_attempts, bool) or self.max_attempts < 1:
            raise _wrong(f"max_attempts={self.max_attempts!r}", "a whole number of at least 1 is needed")
        self._set(base_delay=in_seconds(self.base_delay), max_delay=in_seconds(self.max_delay))
        if not is_seconds(self.base_delay, positive=True):
            raise _wrong(f"base_delay={shown(self.base_delay)}", f"{POSITIVE_SECONDS_NEEDED} is needed")
        if not is_seconds(self.max_delay):
            raise _wrong(f"max_delay={shown(self.max_delay)}", f"{SECONDS_NEEDED} is needed")
        if self.max_delay < self.base_delay:  # type: ignore[operator]  # both are seconds now
            both = f"base_delay={shown(self.base_delay)}, max_delay={shown(self.max_delay)}"
            raise _wrong(both, "max_delay cannot be less than base_delay, which is the first delay; give both")
        if self.retry_on is not None:
            given = self.retry_on if isinstance(self.retry_on, tuple | list | set | frozenset) else (self.retry_on,)
            names = tuple(map(_name_of, given))
            functions = ((name, item) for name, item in zip(names, given, strict=True) if name is not item)
            self._set(
                retry_on=names,
                unchecked=tuple(item for item in given if isinstance(item, str)),
                predicates=tuple(name for name in names if ":" in name),
                functions=tuple((name, item) for name, item in functions if ":" in name),
            )

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def stored(cls, max_attempts: int, base_delay: float, max_delay: float, retry_on: tuple[str, ...] | None) -> Retry:
        """As stored: it may have delays that are refused today."""
        made = cls(max_attempts, retry_on=retry_on)
        made._set(base_delay=base_delay, max_delay=max_delay)
        return made

    @classmethod
    def of(cls, value: Retry | int | None) -> Retry | None:
        """`retry=3` is short for `retry=Retry(3)`."""
        if value is None or isinstance(value, Retry):
            return value
        return cls(value)

    def looked_up(self, known: Mapping[str, RetryOn]) -> Retry:
        """A copy in which these names are replaced by those of the classes or functions they were found to mean."""
        if not isinstance(self.retry_on, tuple):
            return self
        own = dict(self.functions)
        names = [str(name) for name in self.retry_on]
        made = Retry.stored(self.max_attempts, *self.delays(), None)
        meant = Retry(1, retry_on=tuple(known.get(name, own.get(name, name)) for name in names))
        made._set(retry_on=meant.retry_on, predicates=meant.predicates, functions=meant.functions)
        return made

    def delays(self) -> tuple[float, float]:
        """The shortest and the longest delay, in seconds."""
        return self.base_delay, self.max_delay  # type: ignore[return-value]  # they are seconds since it was made

    def names(self) -> tuple[str, ...] | None:
        return tuple(map(str, self.retry_on)) if isinstance(self.retry_on, tuple) else None


def _name_of(item: RetryOn) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, type):
        if issubclass(item, BaseException):
            return exception_name(item)
    elif callable(item) and isinstance(getattr(item, "__qualname__", None), str) and getattr(item, "__module__", None):
        problem = predicate_problem(item)
        if problem:
            raise _wrong(f"retry_on={item.__qualname__}", problem)
        return f"{module_of(item)}:{item.__qualname__}"
    raise _wrong(
        "retry_on=...",
        f"{item!r} is not an exception class, nor a function of an exception, nor the name of one of them "
        f"(package.module.Name, package.module:function)",
    )


def predicate_problem(function: Callable[..., Any]) -> str | None:
    """Why a function cannot be asked whether to try again after an exception; None if it can."""
    if inspect.iscoroutinefunction(function):
        return "it is asked while an attempt ends, so it cannot be async: write def"
    try:
        inspect.signature(function).bind(Exception())
    except TypeError:
        return "a function of one argument is needed, which is the exception"
    except ValueError:  # some built-in functions do not tell
        pass
    return None


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
    """Its args hold templates, as in a document. They are rendered before the body begins, with the outputs it `needs`."""
    transaction: bool = False
    """Its body gets `ctx.db`, a transaction on the server of the store, with which its completion is committed."""

    @property
    def lane(self) -> Lane:
        return Lane(self.queue, self.body, self.on_lost == "interrupt")


OPTIONS: Final = 5
"""From this field on, the fields of a node are options; those before say what it is, its dependencies and arguments."""
PLAIN_OPTIONS = NodeSpec(NodeId(""), "")[OPTIONS:]
"""Those of most nodes of a large graph."""
