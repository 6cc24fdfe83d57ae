"""How often, and after which delay, a failed node is retried."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ...base.clock import POSITIVE_SECONDS_NEEDED, SECONDS_NEEDED, Duration, in_seconds, is_seconds
from ...base.importable import exception_name, module_of
from ...base.place import caller
from ...base.words import shown
from ...errors import DefinitionError

RetryOn: TypeAlias = type[BaseException] | Callable[[Any], bool] | str
"""An exception class, or a function that is asked about an exception; or the name of one of them."""


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
            raise _wrong(f"max_attempts={self.max_attempts!r}", "expected a whole number of at least 1")
        self._set(base_delay=in_seconds(self.base_delay), max_delay=in_seconds(self.max_delay))
        if not is_seconds(self.base_delay, positive=True):
            raise _wrong(f"base_delay={shown(self.base_delay)}", f"expected {POSITIVE_SECONDS_NEEDED}")
        if not is_seconds(self.max_delay):
            raise _wrong(f"max_delay={shown(self.max_delay)}", f"expected {SECONDS_NEEDED}")
        if self.max_delay < self.base_delay:  # type: ignore[operator]  # both are seconds now
            both = f"base_delay={shown(self.base_delay)}, max_delay={shown(self.max_delay)}"
            raise _wrong(both, "max_delay cannot be less than base_delay, which is the first delay; give both")
        if self.retry_on is not None:
            conditions = (
                self.retry_on if isinstance(self.retry_on, tuple | list | set | frozenset) else (self.retry_on,)
            )
            names = tuple(map(_name_of, conditions))
            functions = ((name, item) for name, item in zip(names, conditions, strict=True) if name is not item)
            self._set(
                retry_on=names,
                unchecked=tuple(item for item in conditions if isinstance(item, str)),
                predicates=tuple(name for name in names if ":" in name),
                functions=tuple((name, item) for name, item in functions if ":" in name),
            )

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def stored(cls, max_attempts: int, base_delay: float, max_delay: float, retry_on: tuple[str, ...] | None) -> Retry:
        """As stored: it may have delays that are refused today."""
        retry = cls(max_attempts, retry_on=retry_on)
        retry._set(base_delay=base_delay, max_delay=max_delay)
        return retry

    def to_dict(self) -> dict[str, Any]:
        """As JSON, without what is at its default."""
        fields: dict[str, Any] = {"max_attempts": self.max_attempts}
        if self.base_delay != 1.0:
            fields["base_delay"] = self.base_delay
        if self.max_delay != 60.0:
            fields["max_delay"] = self.max_delay
        if self.retry_on is not None:
            fields["retry_on"] = sorted(self.names() or ())
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Retry:
        """What `to_dict` wrote."""
        retry_on = fields.get("retry_on")
        delays = fields.get("base_delay", 1.0), fields.get("max_delay", 60.0)
        return cls.stored(fields["max_attempts"], *delays, None if retry_on is None else tuple(retry_on))

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
        retry = Retry.stored(self.max_attempts, *self.delays(), None)
        meant = Retry(1, retry_on=tuple(known.get(name, own.get(name, name)) for name in names))
        retry._set(retry_on=meant.retry_on, predicates=meant.predicates, functions=meant.functions)
        return retry

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
        return "expected a function of one argument, the exception"
    except ValueError:  # some built-in functions do not tell
        pass
    return None


def _wrong(what: str, problem: str) -> DefinitionError:
    return DefinitionError(f"Retry({what}): {problem}", where=caller())
