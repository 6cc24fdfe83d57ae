"""Reads just enough to explain a run or one of its nodes: a run may have 100,000 nodes."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from ...base.ids import NodeId, RunId, WorkerId
from ...core.graph import Graph, Outline
from ...core.model import SATISFIED_NODES, NodeRow, NodeStatus, Query, RunRow, queries, was_skipped
from ...core.store import Store, reader
from ...core.store.living import among, living
from ...errors import RunNotFound
from ...history.why import (
    GROUPS,
    ChildRun,
    Facts,
    KnownNode,
    RowsToRead,
    Why,
    Worker,
    above,
    explain,
    most_telling,
    rows_to_read,
    skipped_by,
)
from ..code.graphs import load_outline

CANDIDATES = 20
"""Nodes of a kind that are looked at to name a few."""
NAMED = 3
"""How many of several nodes are named."""
TRIES = 4
"""How often to read again when the run moved meanwhile; then the last reading is used."""

_BROKEN = GROUPS[0]
_PAGE = queries.ListNodes(RunId("")).limit


def why_run(store: Store, run_id: RunId, load_graph: Callable[[], Graph | Outline], *, children: int = NAMED) -> Why:
    """Why a run is not done yet, or ended as it did. The graph is read only if the answer depends on it.

    `children`: at most so many child runs are explained; of each of them one, down to the last.
    """
    for _ in range(TRIES):
        run, workers, gates = _standing(store, run_id, [])
        healed = run.heals > 0 or run.fork is not None  # perhaps the origin of the fork was
        counts = reader.count_nodes(store, run_id, load_graph().removed if healed else frozenset())
        found: list[KnownNode] = []
        for statuses in _telling_of(run):
            found += _candidates(store, run_id, statuses)
        skipped = _skipped_last(store, run, load_graph, counts)
        now = reader.get_run(store, run_id)
        if now is not None and now.seq == run.seq:
            break
    facts = Facts(
        run,
        load_graph,
        store.now(),
        workers,
        gates,
        {known.row.id: known for known in (*found, *map(KnownNode, skipped))},
        blockers=most_telling(found),
        counts=counts,
        children=_children(store, run_id, found, children),
        skipped_last=tuple(row.id for row in skipped),
    )
    return replace(explain(facts), store=store.url)


def _skipped_last(
    store: Store, run: RunRow, load_graph: Callable[[], Graph | Outline], counts: Mapping[NodeStatus, int]
) -> list[NodeRow]:
    """The first of the last nodes of a run that completed, if all of them were skipped."""
    skipped = counts.get(NodeStatus.SKIPPED, 0)
    if not run.status.completed or not skipped:
        return []
    graph = load_graph()
    last = {*graph.last} if isinstance(graph, Outline) else {graph.order[index] for index in graph.last}
    if skipped < len(last):
        return []
    rows = [row for row in reader.all_nodes(store, run.id, NodeStatus.SKIPPED) if row.id in last]
    all_were = len(rows) == len(last) and all(was_skipped(row.status, row.reason) for row in rows)
    return rows[:NAMED] if all_were else []


def why_node(store: Store, run_id: RunId, graph: Graph, index: int) -> Why:
    """Why one node of a run, given by its number, has the status it has.

    A run that is being loaded or deleted lacks some nodes: then the run is explained.
    """
    run, rows = store.read([queries.GetRun(run_id), queries.ListNodes(run_id, index - 1, 1)])
    if run is None or not rows:
        return why_run(store, run_id, lambda: graph)
    row: NodeRow = rows[0]
    for _ in range(TRIES):
        facts = _facts_of_node(store, run, graph, row)
        was, run, row = row, facts.run, facts.nodes[row.id].row
        if row.status is was.status:
            break
    return replace(explain(facts, row.id), store=store.url)


def served_by(
    store: Store, row: RunRow, graph: Graph, *, but: WorkerId | None = None, queue: str | None = None
) -> bool:
    """Whether a live worker, `but` this one, may work on the run, and takes nodes of `queue` if one is given. Workers do not
    announce graphs that were built at run time."""
    workers = [Worker.of(worker) for worker in living(store) if worker.id != but]
    workers = [each for each in workers if queue is None or each.queues is None or queue in each.queues]
    versions = {(row.workflow, row.digest), (row.workflow, graph.follows)}
    return any(row.target is None or each.serves is None or not each.serves.isdisjoint(versions) for each in workers)


def _facts_of_node(store: Store, run: RunRow, graph: Graph, row: NodeRow) -> Facts:
    """All that explains a node; what need not be searched for is read at one moment."""
    want = rows_to_read(run, graph, row)
    found = _holding_up(store, run.id, graph, row.id, want)
    others: list[Query] = [
        queries.ListAttempts(run.id, row.index),
        queries.ListJournal(run.id, kinds=("rewrote", "woken"), indexes=(row.index,)),
        queries.ListJournal(run.id, kinds=("completed",), indexes=tuple(graph.index[node] for node in want.ended)),
        *(
            queries.ListNodes(run.id, index - 1, 1)
            for index in (row.index, *(graph.index[node] for node in want.nodes))
        ),
    ]
    run, workers, gates, attempts, history, ended, own, *pages = _standing(store, run.id, others)
    if not own:
        raise RunNotFound(run.id, store=store.url)
    read = _with_errors(store, run.id, [row for page in pages for row in page])
    moved = {known.row.id for known in read if known.row.status in SATISFIED_NODES}
    found = [known for known in found if want.skipped or known.row.id not in moved]
    nodes: dict[str, KnownNode] = {known.row.id: known for known in (*read, *found, KnownNode(own[0], attempts))}
    ids = {graph.index[node]: node for node in want.ended}
    return Facts(
        run,
        lambda: graph,
        store.now(),
        workers,
        gates,
        nodes,
        blockers=tuple(known.row.id for known in found) if want.skipped else most_telling(found),
        history=history,
        ended={ids[entry.index]: entry.at for entry in ended},
        children=_children(store, run.id, nodes.values(), NAMED),
    )


def _children(store: Store, run_id: RunId, nodes: Iterable[KnownNode], most: int) -> dict[str, ChildRun]:
    """The runs for which some of these nodes wait, or with which they have failed."""
    held_up = [known for known in nodes if known.row.parked or known.row.status is NodeStatus.FAILED]
    found: dict[str, ChildRun] = {}
    for known in held_up:
        row = None if known.child is None else reader.get_run(store, known.child)
        if row is not None and len(found) < most:
            load = cache(partial(load_outline, store, row.digest, row.id))
            why = why_run(store, row.id, load, children=1)
            found[known.row.id] = ChildRun(why.run, why.causes)
    return found


def _holding_up(store: Store, run_id: RunId, graph: Graph, node: NodeId, want: RowsToRead) -> list[KnownNode]:
    """The nodes that broke the run, or those above this one that hold it up, or with which it was skipped."""
    if want.skipped:
        rows = {row.id: row for row in reader.all_nodes(store, run_id, NodeStatus.SKIPPED)}
        return [KnownNode(row) for row in skipped_by(graph, node, rows)]
    if want.broken:
        return _candidates(store, run_id, _BROKEN)
    if not want.blockers:
        return []
    ancestors = above(graph, node)
    return [known for statuses in GROUPS for known in _candidates(store, run_id, statuses, ancestors)]


def _standing(store: Store, run_id: RunId, others: Sequence[Query]) -> tuple[Any, ...]:
    """The run, the live workers, its gates, and the answers to other queries, all from one moment."""
    asked = (queries.ListWorkers(), queries.ListJournal(run_id, kinds=("gate", "run")), *others)
    run, rows, gates, *answers = reader.at_one_moment(store, run_id, *asked)
    workers = tuple(map(Worker.of, among(rows, store.now())))
    return run, workers, gates, *answers


def _telling_of(run: RunRow) -> tuple[tuple[NodeStatus, ...], ...]:
    """The statuses of nodes that explain a run."""
    if run.status.stopping:
        return ((NodeStatus.RUNNING,), (NodeStatus.WAITING,))  # what waits then, waits for a child run to end
    return (_BROKEN,) if run.status.resting else GROUPS


def _candidates(
    store: Store, run_id: RunId, statuses: tuple[NodeStatus, ...], among: Container[str] | None = None
) -> list[KnownNode]:
    """The first nodes with these statuses, optionally `among` some, with their attempts."""
    rows: list[NodeRow] = []
    query = queries.ListNodes(run_id, limit=CANDIDATES, statuses=statuses)
    while len(rows) < CANDIDATES:
        (page,) = store.read([query])
        rows += [row for row in page if among is None or row.id in among]
        if page.cursor is None:
            break
        # Mostly the first page has them; if not, larger and larger pages find them soon.
        query = query._replace(after=page.cursor, limit=min(4 * query.limit, _PAGE))
    rows = rows[:CANDIDATES]
    attempts = store.read([queries.ListAttempts(run_id, row.index) for row in rows])
    return [KnownNode(row, tuple(own)) for row, own in zip(rows, attempts, strict=True)]


def _with_errors(store: Store, run_id: RunId, rows: Sequence[NodeRow]) -> list[KnownNode]:
    """Nodes, and the attempts of those that failed: those of others may carry large outputs."""
    broken = [row.index for row in rows if row.status in _BROKEN]
    attempts = dict(zip(broken, store.read([queries.ListAttempts(run_id, index) for index in broken]), strict=True))
    return [KnownNode(row, tuple(attempts.get(row.index, ()))) for row in rows]
