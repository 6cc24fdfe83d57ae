"""The graph of a workflow or of a run, now or at an entry of its journal, as the JSON that `answers` describes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, TypeAlias

from ...base.ids import Digest, NodeId, RunId
from ...core.graph import Graph, Outline
from ...core.kernel.audit import earlier_graphs, folding
from ...core.model import NodeStatus, queries
from ...core.store import reader
from ...errors import InputError
from ..runs.stored import StoredRun
from .grouping import Group, Grouping, Item, edges

if TYPE_CHECKING:
    from ...answers.graphs import GraphEdges, GraphGroups, GraphRecord

FindGrouping: TypeAlias = Callable[[Digest, RunId], Grouping]
"""Gives the groups of a graph that a run has or had."""


def workflow_graph(workflow: str, digest: Digest, grouping: Grouping, open_groups: Iterable[str] = ()) -> GraphRecord:
    return _record(workflow, digest, grouping, open_groups)


def grouping_of(graph: Graph) -> Grouping:
    """The groups of a graph that no run may have."""
    return Grouping(Outline(graph.document.decode()))


def run_graph(
    run: StoredRun, group: FindGrouping, open_groups: Iterable[str] = (), at: int | None = None
) -> GraphRecord:
    """`at`: with the statuses, and the graph, of after this entry of the journal."""
    if at is None:
        columns = run.node_columns()
        digest, seq = run.row.digest, columns.seq
        statuses = dict(zip(columns.ids, columns.statuses, strict=True))
    else:
        digest, statuses, seq = *_statuses_at(run, at), at
    record = _record(run.row.workflow, digest, group(digest, run.row.id), open_groups, statuses)
    return {**record, "run": run.row.id, "seq": seq}


def _statuses_at(run: StoredRun, at: int) -> tuple[Digest, dict[NodeId, NodeStatus]]:
    """Folded from the journal as far as then."""
    if not 0 <= at <= run.row.seq:
        raise InputError(f"expected a seq of run {run.row.id}, from 0 to {run.row.seq:,}, got {at}")
    heals = list(reader.rows(run.store, queries.ListJournal(run.row.id, kinds=("healed",))))
    digests = earlier_graphs(heals) or [run.row.digest]
    digests = digests[: 1 + sum(entry.seq <= at for entry in heals)]
    graphs = [run.load(Digest(digest)) for digest in digests]
    entries = takewhile(lambda entry: entry.seq <= at, reader.rows(run.store, queries.ListJournal(run.row.id)))
    folded = deque(folding(graphs, entries), maxlen=1)[0]
    order, removed = graphs[-1].order, graphs[-1].removed
    found = {order[index]: status for index, status in enumerate(folded.nodes) if index not in removed}
    return Digest(digests[-1]), found


def _record(
    workflow: str,
    digest: Digest,
    grouping: Grouping,
    open_groups: Iterable[str],
    known: Mapping[NodeId, NodeStatus] | None = None,
) -> GraphRecord:
    outline = grouping.outline
    shown, opened = grouping.visible(open_groups)
    nodes = [item for item in shown if not isinstance(item, Group)]
    closed = [item for item in shown if isinstance(item, Group)]
    groups = [*closed, *opened]
    places = {id(group): place for place, group in enumerate(groups)}
    statuses = None if known is None else [known.get(node) for node in outline.ids]
    return {
        "workflow": workflow,
        "run": None,
        "seq": None,
        "digest": digest,
        "size": len(outline),
        "nodes": {
            "ids": [outline.ids[place] for place in nodes],
            "names": [outline.names[place] for place in nodes],
            "jobs": [outline.jobs[place] for place in nodes],
            "levels": [outline.levels[place] for place in nodes],
            "orders": nodes,
            "statuses": [None if statuses is None else statuses[place] for place in nodes],
            "groups": _groups_of(nodes, opened, places),
        },
        "groups": _group_columns(groups, opened, places, statuses),
        "edges": _edges(grouping, [*nodes, *closed], len(opened)),
    }


def _groups_of(nodes: Sequence[int], opened: Sequence[Group], places: Mapping[int, int]) -> list[int | None]:
    inside = {item: places[id(group)] for group in opened for item in group.items if not isinstance(item, Group)}
    return [inside.get(place) for place in nodes]


def _group_columns(
    groups: Sequence[Group],
    opened: Sequence[Group],
    places: Mapping[int, int],
    statuses: Sequence[NodeStatus | None] | None,
) -> GraphGroups:
    counts = [Counter(() if statuses is None else map(statuses.__getitem__, group.members)) for group in groups]
    return {
        "ids": [group.id for group in groups],
        "kinds": [group.kind for group in groups],
        "names": [group.name for group in groups],
        "levels": [group.level for group in groups],
        "sizes": [len(group.members) for group in groups],
        "counts": [{status: own[status] for status in NodeStatus if own[status]} for own in counts],
        "groups": [None if group.parent is None else places[id(group.parent)] for group in groups],
        "is_open": [group in opened for group in groups],
    }


def _edges(grouping: Grouping, shown: Sequence[Item], opened: int) -> GraphEdges:
    parents = [*edges(grouping, shown), *[list[int]()] * opened]
    return {
        "offsets": [0, *accumulate(map(len, parents))],
        "parents": [parent for own in parents for parent in own],
    }
