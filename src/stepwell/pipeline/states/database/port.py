"""What the store of states needs of a database. Statements are those that SQLite and PostgreSQL share, with `?` for a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

AT_ONCE = 500
"""Values that are looked for by one statement."""


class Change(Protocol):
    """What can be done in a transaction."""

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]: ...
    def run(self, statement: str, values: Sequence[Any] = ()) -> None: ...
    def run_many(self, statement: str, values: Sequence[Sequence[Any]]) -> None: ...


class Database(Protocol):
    url: str
    scratch: str
    """A folder of this machine, for what bodies write and read as files."""

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]: ...
    def changing(self, *, durable: bool = True) -> AbstractContextManager[Change]:
        """One transaction, alone: all of it or nothing. What is not `durable` may be lost if the machine loses its power."""
        ...

    def change_mark(self) -> object:
        """Another value after each change, by whomever."""
        ...

    def lease(self, name: str, patience: float) -> AbstractContextManager[Callable[[], bool]]: ...
    def lease_number(self, name: str) -> int: ...
    def close(self) -> None: ...


def rows_of(source: Change | Database, statement: str, values: Iterable[Any]) -> list[Any]:
    """The rows whose column is one of these values: the statement ends with `IN`."""
    wanted = list(dict.fromkeys(values))
    found: list[Any] = []
    for start in range(0, len(wanted), AT_ONCE):
        part = wanted[start : start + AT_ONCE]
        found += source.rows(f"{statement} ({', '.join('?' * len(part))})", part)
    return found
