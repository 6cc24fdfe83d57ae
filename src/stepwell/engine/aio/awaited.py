"""Methods that coroutines await: the call is made in a thread of a small pool, while the loop goes on.

Nothing is written twice: an awaited method is made from the blocking one, with its name, parameters and types.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, overload

from .pool import Pool

P = ParamSpec("P")
T = TypeVar("T")
Made = TypeVar("Made")
Behind = TypeVar("Behind")

Awaited: TypeAlias = Coroutine[Any, Any, T]


class Wrapper(Generic[Behind]):
    """The blocking object, and the pool in which it is called."""

    def __init__(self, sync: Behind, pool: Pool) -> None:
        self.sync = sync
        self._pool = pool


def awaited_as(
    method: Callable[Concatenate[Behind, P], T], make: Callable[[T, Pool], Made], *, reads: bool = False
) -> Callable[Concatenate[Any, P], Awaited[Made]]:
    """An awaited method, made from a blocking one; `make` turns its result into something for coroutines. `reads`: it commits
    nothing.

    It is looked up by its name, so that a subclass may have its own.
    """

    @functools.wraps(method)
    async def call(self: Wrapper[Behind], /, *args: P.args, **keywords: P.kwargs) -> Made:
        call = self._pool.read if reads else self._pool.call
        return make(await call(getattr(self.sync, method.__name__), *args, **keywords), self._pool)

    return refused_unawaited(call) if reads else call


def awaited(
    method: Callable[Concatenate[Behind, P], T], *, reads: bool = False
) -> Callable[Concatenate[Any, P], Awaited[T]]:
    """The same for a result that needs no wrapping."""
    return awaited_as(method, lambda found, _: found, reads=reads)


def refused_unawaited(method: Callable[P, Awaited[T]]) -> Callable[P, Awaited[T]]:
    """A method that reads, whose result cannot be compared before it is awaited: `run.output("ship") == "shipped"` raises.

    Methods that wait or commit give plain coroutines, because some libraries start only those as tasks.
    """

    @functools.wraps(method)
    def call(*args: P.args, **keywords: P.kwargs) -> Awaited[T]:
        kind = type(args[0]).__name__
        expression = f"{kind.removeprefix('Async').lower()}.{method.__name__}(...)"
        return Unawaited(method(*args, **keywords), f"{kind}.{method.__name__}", expression)

    return call


class Unawaited(Coroutine[Any, Any, T]):
    """What `run.status` of an `AsyncRun` is until it is awaited. Comparing it raises: the result would always be False."""

    def __init__(self, coroutine: Awaited[T], name: str, expression: str) -> None:
        self._coroutine = coroutine
        self._name = name
        self._expression = expression

    def __repr__(self) -> str:
        return f"<{self._name}, not awaited>"

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coroutine.__await__()

    def send(self, value: Any, /) -> Any:
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    def __eq__(self, other: object) -> bool:
        raise self._refused()

    def __bool__(self) -> bool:
        raise self._refused()

    def __hash__(self) -> int:
        # `asyncio.gather` keeps what it is given as keys of a dict. In any other set or dict it would be looked for in vain.
        if sys._getframe(1).f_globals.get("__name__") == "asyncio.tasks":
            return id(self)
        raise self._refused()

    def _refused(self) -> TypeError:
        self._coroutine.close()  # the warning that it was never awaited would say the same again
        return TypeError(f"{self._name} must be awaited before it is compared: `await {self._expression}`")


class reading(Generic[T]):
    """A property that is awaited, `await run.status`, made from one that reads the store."""

    def __init__(self, read: Callable[[Any], T], doc: str | None = None) -> None:
        self._read = read
        self._name = ""
        self.__doc__ = doc

    def __set_name__(self, kind: type, name: str) -> None:
        self._name = f"{kind.__name__}.{name}"

    @overload
    def __get__(self, owner: None, kind: type) -> reading[T]: ...
    @overload
    def __get__(self, owner: Wrapper[Any], kind: type) -> Awaited[T]: ...
    def __get__(self, owner: Wrapper[Any] | None, kind: type) -> reading[T] | Awaited[T]:
        if owner is None:
            return self
        awaited = owner._pool.read(self._read, owner.sync)
        setattr(awaited, "__qualname__", self._name)  # noqa: B010  # for the warning when nobody awaits it
        return Unawaited(awaited, self._name, f"run.{self._name.rpartition('.')[2]}")
