"""Work that takes several commits and reads, written without doing them.

A procedure is a generator: it yields what it wants of a store and is sent the answer. `carry_out` drives one on a real
store; the simulator drives it step by step, with other actors in between and a crash wherever it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, assert_never

from ...errors import StoreError
from ...graph import Graph
from ...ids import Digest
from ...model import GetGraph, Op, Query
from ...store import Store

Result = TypeVar("Result")


class Commit(NamedTuple):
    ops: Sequence[Op]


class Read(NamedTuple):
    queries: Sequence[Query]


class LoadGraph(NamedTuple):
    """The graph with this digest, in a list; None when the store does not have it."""

    digest: Digest


class AskLimits(NamedTuple):
    """How much the store takes at once, in a list."""


Wish: TypeAlias = Commit | Read | LoadGraph | AskLimits
Procedure: TypeAlias = Generator[Wish, list[Any], Result]


def carry_out(
    store: Store, procedure: Procedure[Result], graphs: Callable[[Digest], Graph | None] = lambda _: None
) -> Result:
    """Do what a procedure wishes until it ends. It is told when the store fails, and may go on.

    `graphs` finds graphs that are at hand: to read one of 100,000 nodes takes seconds, and keeps other threads waiting.
    """
    try:
        wish = next(procedure)
        while True:
            try:
                known = graphs(wish.digest) if isinstance(wish, LoadGraph) else None
                answer = perform(store, wish) if known is None else [known]
            except StoreError as error:
                wish = procedure.throw(error)
            else:
                wish = procedure.send(answer)
    except StopIteration as done:
        result: Result = done.value
        return result


def perform(store: Store, wish: Wish) -> list[Any]:
    match wish:
        case Commit(ops):
            return store.commit(ops)
        case Read(queries):
            return store.read(queries)
        case LoadGraph(digest):
            (document,) = store.read([GetGraph(digest)])
            return [None if document is None else Graph.load(document)]
        case AskLimits():
            return [store.limits]
        case _:
            assert_never(wish)
