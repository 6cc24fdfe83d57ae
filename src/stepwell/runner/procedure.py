"""Work that takes several commits and reads, written without doing them.

A procedure is a generator: it yields what it wants of a store and is sent the answer. `carry_out` drives one on a real
store; the simulator drives it step by step, with other actors in between and a crash wherever it likes.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ..model import Op, Query
from ..store import Store

Result = TypeVar("Result")


class Commit(NamedTuple):
    ops: Sequence[Op]


class Read(NamedTuple):
    queries: Sequence[Query]


Procedure: TypeAlias = Generator[Commit | Read, list[Any], Result]


def carry_out(store: Store, procedure: Procedure[Result]) -> Result:
    try:
        wish = next(procedure)
        while True:
            wish = procedure.send(perform(store, wish))
    except StopIteration as done:
        result: Result = done.value
        return result


def perform(store: Store, wish: Commit | Read) -> list[Any]:
    return store.commit(wish.ops) if isinstance(wish, Commit) else store.read(wish.queries)
