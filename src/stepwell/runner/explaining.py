"""Read what explains a run or one of its nodes, and no more than that: a run may have 100,000 nodes."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from ..errors import RunNotFound
from ..graph import Graph
from ..ids import NodeId, RunId
from ..kernel.why import GROUPS, Facts, Known, Why, Worker, above, explain, most_telling, wanted
from ..model import (
    CountNodes,
    GetRun,
    JournalRow,
    ListAttempts,
    ListJournal,
    ListNodes,
    ListWorkers,
    NodeRow,
    NodeStatus,
    RunRow,
    RunStatus,
)
from ..store import Store, reader
from ..store.living import among

CANDIDATES = 20
"""Nodes of a kind that are looked at to tell of a few."""
TRIES = 3
"""How often it is read again when the run moved meanwhile; then what was found is told."""

_BROKEN = GROUPS[0]
_NO_BLOCKERS = (RunStatus.COMPLETED, RunStatus.CANCELLED)


def why_run(store: Store, run_id: RunId, graph: Graph) -> Why:
    """Why a run is not done yet, or ended as it did."""
    for _ in range(TRIES):
        run, workers, gates, counts = _standing(store, run_id, [CountNodes(run_id)])
        found: list[Known] = []
        for statuses in _telling_of(run):
            found += _candidates(store, run_id, statuses)
        if _seq(store, run_id) == run.seq:
            break
    nodes: dict[str, Known] = {known.row.id: known for known in found}
    return explain(Facts(run, graph, store.now(), workers, gates, nodes, blockers=most_telling(found), counts=counts))


def why_node(store: Store, run_id: RunId, graph: Graph, index: int) -> Why:
    """Why one node of a run, given by its number, stands as it does."""
    for _ in range(TRIES):
        facts, node = _facts_of_node(store, run_id, graph, index)
        if _seq(store, run_id) == facts.run.seq:
            break
    return explain(facts, node)


def _facts_of_node(store: Store, run_id: RunId, graph: Graph, index: int) -> tuple[Facts, NodeId]:
    asked = [
        ListNodes(run_id, index - 1, 1),
        ListAttempts(run_id, index),
        ListJournal(run_id, kinds=("rewrote", "woken"), indexes=(index,)),
    ]
    run, workers, gates, rows, attempts, history = _standing(store, run_id, asked)
    if not rows:
        raise RunNotFound(run_id)
    row: NodeRow = rows[0]
    want = wanted(run, graph, row)
    found: list[Known] = []
    if want.broken:
        found = _candidates(store, run_id, _BROKEN)
    elif want.blockers:
        ancestors = above(graph, row.id)
        for statuses in GROUPS:
            found += _candidates(store, run_id, statuses, ancestors)
    nodes: dict[str, Known] = {known.row.id: known for known in (*_read(store, run_id, graph, want.nodes), *found)}
    facts = Facts(
        run,
        graph,
        store.now(),
        workers,
        gates,
        {**nodes, row.id: Known(row, attempts)},
        blockers=most_telling(found),
        history=history,
        ended=_ended(store, run_id, graph, want.ended),
    )
    return facts, row.id


def _standing(store: Store, run_id: RunId, others: Sequence[Any]) -> tuple[Any, ...]:
    """The run, the workers that are alive, its gates, and the answers to the other questions, all from one moment."""
    run, rows, gates, *answers = store.read(
        [GetRun(run_id), ListWorkers(), ListJournal(run_id, kinds=("gate", "run")), *others]
    )
    if run is None:
        raise RunNotFound(run_id)
    workers = tuple(Worker.of(worker.id, worker.info) for worker in among(rows, store.now()))
    return run, workers, gates, *answers


def _telling_of(run: RunRow) -> tuple[tuple[NodeStatus, ...], ...]:
    """The kinds of nodes that tell why a run stands as it does."""
    if run.status in _NO_BLOCKERS:
        return ()
    if run.status is RunStatus.CANCELLING:
        return ((NodeStatus.RUNNING,),)
    return (_BROKEN,) if run.status in (RunStatus.FAILED, RunStatus.PAUSED) else GROUPS


def _candidates(
    store: Store, run_id: RunId, statuses: tuple[NodeStatus, ...], among: Container[str] | None = None
) -> list[Known]:
    """The first nodes with these statuses, of all or of some, with their attempts."""
    rows: list[NodeRow] = []
    query = ListNodes(run_id, limit=CANDIDATES if among is None else ListNodes(run_id).limit, statuses=statuses)
    while len(rows) < CANDIDATES:
        (page,) = store.read([query])
        rows += [row for row in page if among is None or row.id in among]
        if len(page) < query.limit:
            break
        query = query._replace(after=page[-1].index)
    rows = rows[:CANDIDATES]
    attempts = store.read([ListAttempts(run_id, row.index) for row in rows])
    return [Known(row, tuple(own)) for row, own in zip(rows, attempts, strict=True)]


def _read(store: Store, run_id: RunId, graph: Graph, nodes: Sequence[NodeId]) -> list[Known]:
    pages = store.read([ListNodes(run_id, graph.index[node] - 1, 1) for node in nodes])
    rows: list[NodeRow] = [row for page in pages for row in page]
    attempts = store.read(
        [ListAttempts(run_id, row.index) for row in rows if row.status in _BROKEN]  # those of others may be large
    )
    of_broken = dict(zip((row.index for row in rows if row.status in _BROKEN), attempts, strict=True))
    return [Known(row, tuple(of_broken.get(row.index, ()))) for row in rows]


def _ended(store: Store, run_id: RunId, graph: Graph, nodes: Sequence[NodeId]) -> dict[str, int]:
    """When these nodes completed."""
    if not nodes:
        return {}
    ids = {graph.index[node]: node for node in nodes}
    entries: tuple[JournalRow, ...]
    (entries,) = store.read([ListJournal(run_id, kinds=("completed",), indexes=tuple(ids))])
    return {ids[entry.index]: entry.at for entry in entries if entry.index is not None}


def _seq(store: Store, run_id: RunId) -> int:
    run = reader.get_run(store, run_id)
    return -1 if run is None else run.seq
