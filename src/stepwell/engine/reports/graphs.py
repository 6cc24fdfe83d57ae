"""The graph of a workflow or of a run, now or at an entry of its journal, as the JSON that `answers` describes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from ...base.ids import Digest, NodeId, RunId
from ...core.graph import Graph, Outline
from ...core.model import NodeStatus
from ..runs.stored import StoredRun
from .grouping import Group, Grouping, Item, edges
from .moments import moment_of

if TYPE_CHECKING:
    from ...answers.graphs import GraphEdges, GraphGroups, GraphRecord

FindGrouping: TypeAlias = Callable[[Digest, RunId], Grouping]
"""Gives the groups of a graph that a run has or had."""
NO_REASONS: Mapping[NodeId, str | None] = MappingProxyType({})


def workflow_graph(workflow: str, digest: Digest, grouping: Grouping, open_groups: Iterable[str] = ()) -> GraphRecord:
    return _record(workflow, digest, grouping, open_groups)


def grouping_of(graph: Graph) -> Grouping:
    """The groups of a graph that no run may have."""
    return Grouping(Outline(graph.document.decode()))


def run_graph(
    run: StoredRun,
    group: FindGrouping,
    open_groups: Iterable[str] = (),
    at: int | None = None,
    show: str | None = None,
) -> GraphRecord:
    """`at`: with the statuses, and the graph, of after this entry of the journal. `show`: with the groups open that this node,
    named by its id, is in."""
    reasons: dict[NodeId, str | None] = {}
    if at is None:
        columns = run.node_columns()
        digest, seq = run.row.digest, columns.seq
        statuses = dict(zip(columns.ids, columns.statuses, strict=True))
        reasons = dict(zip(columns.ids, columns.reasons, strict=True))
    else:
        moment = moment_of(run, at)
        order, removed = moment.graph.order, moment.graph.removed
        digest, seq = moment.graph.digest, at
        statuses = {order[index]: status for index, status in enumerate(moment.statuses) if index not in removed}
    grouping = group(digest, run.row.id)
    place = None if show is None else grouping.outline.places.get(NodeId(show))
    record = _record(run.row.workflow, digest, grouping, open_groups, statuses, reasons, place)
    return {**record, "run": run.row.id, "seq": seq}


def _record(
    workflow: str,
    digest: Digest,
    grouping: Grouping,
    open_groups: Iterable[str],
    known: Mapping[NodeId, NodeStatus] | None = None,
    reasons: Mapping[NodeId, str | None] = NO_REASONS,
    show: int | None = None,
) -> GraphRecord:
    outline = grouping.outline
    shown, opened = grouping.visible(open_groups, show)
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
            "reasons": [reasons.get(outline.ids[place]) for place in nodes],
            "conditions": [outline.spec(place).when for place in nodes],
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
