"""How a coroutine calls what may wait: in a thread of a small pool, while its loop goes on.

Nothing is written twice: a door is made from the method it leads to, and has its name, its parameters and its types.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from .pool import Pool

P = ParamSpec("P")
T = TypeVar("T")
Made = TypeVar("Made")
Behind = TypeVar("Behind")
Behind_co = TypeVar("Behind_co", covariant=True)

Awaited: TypeAlias = Coroutine[Any, Any, T]


class HasDoors(Protocol[Behind_co]):
    """What doors stand on: the object behind them, and where calls to it are made."""

    @property
    def sync(self) -> Behind_co: ...

    @property
    def _pool(self) -> Pool: ...


def giving(
    method: Callable[Concatenate[Behind, P], T], make: Callable[[T, Pool], Made]
) -> Callable[Concatenate[Any, P], Awaited[Made]]:
    """A method that is awaited, made from one that waits; `make` turns what that one gives into something for coroutines.

    What is behind it may have its own of that name.
    """

    @functools.wraps(method)
    async def awaited(self: HasDoors[Behind], /, *args: P.args, **keywords: P.kwargs) -> Made:
        return make(await self._pool.call(getattr(self.sync, method.__name__), *args, **keywords), self._pool)

    return awaited


def door(method: Callable[Concatenate[Behind, P], T]) -> Callable[Concatenate[Any, P], Awaited[T]]:
    """The same where what is given is for everybody."""
    return giving(method, lambda found, _: found)


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
    def __get__(self, owner: HasDoors[Any], kind: type) -> Awaited[T]: ...
    def __get__(self, owner: HasDoors[Any] | None, kind: type) -> reading[T] | Awaited[T]:
        if owner is None:
            return self
        awaited = owner._pool.call(self._read, owner.sync)
        setattr(awaited, "__qualname__", self._name)  # noqa: B010  # Python names it when nobody has awaited it
        return awaited
