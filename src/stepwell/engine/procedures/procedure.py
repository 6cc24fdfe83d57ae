"""Work that takes several commits and reads, written without doing them.

A procedure is a generator: it yields what it wants from a store and is sent the answer. `carry_out` runs one on a real store;
the simulator runs it step by step, with other actors in between and crashes anywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, assert_never

from ...base.ids import Digest, RunId
from ...core.graph import Graph
from ...core.model import (
    GateState,
    GetGraph,
    Hint,
    JournalRow,
    ListJournal,
    ListNodes,
    NodeRow,
    Op,
    Query,
    Receipt,
    Rewritten,
    RunNews,
    RunRow,
    Swept,
    Woken,
)
from ...core.store import Store
from ...errors import RunBusy, StoreCorrupt, StoreError

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
    """Run a procedure to its end. An error of the store is raised in it, and it may go on.

    `graphs` finds graphs that are kept: reading one of 100,000 nodes takes seconds and holds up other threads.
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


def in_turn(ask: Callable[[], Result], seconds: float) -> Result:
    """Ask again while the run is busy, for so many seconds: somebody else holds its gate."""
    until = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except RunBusy:
            if time.monotonic() >= until:
                raise
            time.sleep(0.01)


def perform(store: Store, wish: Wish) -> list[Any]:
    match wish:
        case Commit(ops):
            answer = store.commit(ops)
            if store.needs_hints:
                _tell_those_who_wait(store, answer)
            return answer
        case Read(queries):
            return store.read(queries)
        case LoadGraph(digest):
            (document,) = store.read([GetGraph(digest)])
            return [None if document is None else Graph.load(document)]
        case AskLimits():
            return [store.limits]
        case _:
            assert_never(wish)


def _tell_those_who_wait(store: Store, answer: Sequence[Receipt]) -> None:
    """Send a hint of the runs that a gate or a sweep has ended or paused, as a worker does after its commits, and of nodes that
    were woken."""
    news: list[RunNews] = []
    ready: list[Woken] = []
    for receipt in answer:
        if isinstance(receipt, Rewritten) and receipt.finished:
            news.append(receipt.run)
        elif isinstance(receipt, Swept):
            news += receipt.runs
        elif isinstance(receipt, Woken) and receipt.run is not None:
            news.append(receipt.run)
            ready += [receipt] if receipt.queue is not None else []
    started = tuple(woken.run.run_id for woken in ready if woken.run is not None)
    if started:
        store.send_hint(
            Hint(queues=tuple({woken.queue: None for woken in ready if woken.queue is not None}), started=started)
        )
    if moved := tuple(run.run_id for run in news if run.gate is not GateState.OPEN):
        store.send_hint(Hint(runs=moved))


# What procedures look up, page by page


def news_of(row: RunRow) -> RunNews:
    """A row in the form that receipts have."""
    return RunNews(row.id, row.status, row.gate, row.purpose, row.open, row.active, row.failed, row.seq)


def all_nodes(run_id: RunId) -> Procedure[list[NodeRow]]:
    nodes: list[NodeRow] = []
    query = ListNodes(run_id)
    while True:
        (page,) = yield Read([query])
        nodes += page
        if page.cursor is None:
            return nodes
        query = query._replace(after=page.cursor)


def journal(run_id: RunId, seq: int) -> Procedure[list[JournalRow]]:
    """The history of a run up to `seq`."""
    entries: list[JournalRow] = []
    while len(entries) < seq:
        (page,) = yield Read([ListJournal(run_id, after=len(entries))])
        if not page:
            break
        entries += page
    return entries[:seq]


def load_graph(run_id: RunId, digest: Digest) -> Procedure[Graph]:
    (graph,) = yield LoadGraph(digest)
    if graph is None:
        raise StoreCorrupt(f"the graph {digest} of run {run_id} is missing")
    return graph  # type: ignore[no-any-return]
