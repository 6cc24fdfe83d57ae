"""A run as it is stored: what `Run` and the commands read. It needs a store and no engine, so looking is quick."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.clock import SECOND
from ...base.codec import decode
from ...base.ids import Digest, NodeId, RunId
from ...base.words import shown
from ...core.graph import Graph, NodeSpec, Outline
from ...core.kernel.children import root_id
from ...core.model import (
    AttemptColumns,
    AttemptRow,
    AttemptStatus,
    NodeColumns,
    NodeRow,
    NodeStatus,
    Query,
    RunRow,
    queries,
)
from ...core.model.lines import LatestProgress, Progress, latest_progress
from ...core.store import Store, reader, versions
from ...errors import NodeNotFound
from ...history.measuring import RunMetrics, measure
from ..code.graphs import Graphs, load_outline
from .ancestries import Ancestries
from .idempotency_keys import IdempotencyKeys
from .overview import Overview, columns_of
from .views import AttemptView, NodeView, RunProgress

if TYPE_CHECKING:
    from ...history.why import Why

_ALL = 2**40
_AT_ONCE = 100
"""Nodes whose attempts are asked for in one request; a server takes 500 questions."""
_FEW = 5
_CHILDREN_AT_ONCE = 1_000
_TELLING = (NodeStatus.FAILED, NodeStatus.INTERRUPTED, NodeStatus.RUNNING, NodeStatus.WAITING)


def too_many(run_id: str, name: str, ids: Sequence[str], which: str = "named") -> str:
    """The message for a name that several nodes have."""
    more = " ..." if len(ids) > _FEW else ""
    return f"run {run_id} has {len(ids):,} nodes {which} {shown(name)}; give an id: {', '.join(ids[:_FEW])}{more}"


class Ancestor(NamedTuple):
    """A run above a child run, and its node that the next one below performs."""

    run_id: RunId
    workflow: str
    node: NodeId
    name: str


class StoredRun:
    """A run: its row, and everything else read at its first use."""

    def __init__(self, store: Store, row: RunRow, load: Callable[[Digest], Graph] | None = None) -> None:
        """`load` finds graphs that are known already."""
        self.store = store
        self.row = row
        graphs = Graphs(store)
        self.load = load or (lambda digest: graphs.get(digest, row.id))

    @cached_property
    def graph(self) -> Graph:
        return self.load(self.row.digest)

    @cached_property
    def outline(self) -> Outline:
        """What people see of its graph; of a large one it is read much sooner."""
        return load_outline(self.store, self.row.digest, self.row.id)

    @property
    def seconds(self) -> float | None:
        """How long it took, or None before its end."""
        row = self.row
        return None if row.ended_at is None else (row.ended_at - (row.started_at or row.created_at)) / SECOND

    @property
    def size(self) -> int:
        """How many nodes it has, without those that a heal removed."""
        return len(self.graph) if self.row.heals else self.row.nodes

    @property
    def progress(self) -> RunProgress:
        row = self.row
        return RunProgress(self.size, max(0, self.size - row.open), row.active, row.failed)

    @cached_property
    def document_version(self) -> int | None:
        """The version of the document that it is a run of; None if that was never saved."""
        source = self.outline.source
        if source is None:
            return None
        row = versions.get_version(self.store, "document", self.row.workflow, digest=source.digest)
        return None if row is None else row.number

    @cached_property
    def ancestors(self) -> tuple[Ancestor, ...]:
        """The runs above a child run, the root first, as far as they are there."""
        row, found = self.row, list[Ancestor]()
        while row.parent is not None and row.parent_node is not None:
            above = reader.get_run(self.store, row.parent)
            if above is None:
                break
            spec = self.load(above.digest).in_order[row.parent_node]
            found.append(Ancestor(above.id, above.workflow, spec.id, spec.name))
            row = above
        return tuple(reversed(found))

    @property
    def path(self) -> str:
        """The id of its root, and the names of the nodes down to the one that it performs."""
        return "/".join([root_id(self.row.id, self.row.depth), *(above.name for above in self.ancestors)])

    def children(self) -> Iterator[RunRow]:
        """The runs that perform its nodes, or did so before these were attempted again, the newest first."""
        before = None
        while True:
            page = reader.list_runs(self.store, queries.ListRuns(_CHILDREN_AT_ONCE, before, parent=self.row.id))
            yield from page.runs
            if page.cursor is None:
                return
            before = page.cursor

    def children_of(self, nodes: Iterable[NodeRow]) -> dict[int, RunId]:
        """By index, the runs that perform these nodes."""
        wanted, found = {node.index for node in nodes if node.wakes}, dict[int, RunId]()
        for child in self.children() if wanted else ():
            if child.parent_node in wanted:
                found[child.parent_node] = child.id
                wanted.remove(child.parent_node)
            if not wanted:
                break
        return found

    def counts(self) -> dict[NodeStatus, int]:
        healed = self.row.heals > 0 or self.row.fork is not None  # perhaps the origin of the fork was
        return reader.count_nodes(self.store, self.row.id, self.outline.removed if healed else frozenset())

    def metrics(self) -> RunMetrics:
        """The run in numbers. Reads its whole journal."""
        history = reader.get_history(self.store, self.row.id)
        return measure(history.row, self.load, history.counts, history.journal, history.now)

    def why(self, node: str | None = None) -> Why:
        """Why the run, or one of its nodes, has the status it has."""
        from ..reports import explain

        if node is None:
            return explain.why_run(self.store, self.row.id, lambda: self.outline)
        return explain.why_node(self.store, self.row.id, self.graph, self.index_of(node))

    def index_of(self, node: str) -> int:
        """The index of the node with this id or name; raises NodeNotFound."""
        graph = self.graph
        if node in graph.index:
            return graph.index[node]
        named = graph.named.get(node, ())
        if len(named) == 1:
            return named[0]
        if named:
            told = too_many(self.row.id, node, [graph.order[index] for index in named])
            raise NodeNotFound(told, run_id=self.row.id, node=node)
        renamed = [
            graph.index[now] for now, names in graph.former_names.items() if node in names and now in graph.index
        ]
        if len(renamed) == 1:
            return renamed[0]
        first = list(graph)[: 2 * _FEW]
        known = ", ".join(spec.name if spec.name == spec.id else f"{spec.name} ({spec.id})" for spec in first)
        more = " ..." if len(graph) > len(first) else ""
        told = f"run {self.row.id} has no node {shown(node)}: there are: {known}{more}"
        raise NodeNotFound(told, run_id=self.row.id, node=node)

    def result(self, read: Callable[[NodeSpec, bytes], Any] = lambda _, output: decode(output)) -> Any:
        """The output of the last node; of several last nodes a dict by name, or by id if names repeat, as declared."""
        graph = self.graph
        last = graph.last
        outputs = reader.get_outputs(self.store, self.row.id, last)
        specs = graph.in_order
        found = {index: read(specs[index], output) for index, output in outputs.items() if output is not None}
        if len(last) == 1:
            return found.get(last[0])
        unique = len({specs[index].name for index in last}) == len(last)
        return {specs[index].name if unique else specs[index].id: found.get(index) for index in last}

    def nodes(self, only: int | None = None) -> list[NodeView]:
        """Every node, or one, with its attempts, in order; also nodes that only earlier versions of the graph had.

        All of it is read at one moment. If the run has switched to another graph, `row` and `graph` become those.
        """
        run_id, own = self.row.id, None if only is None else (only,)
        rows, attempts, lines = self.read(
            queries.ListNodes(run_id, limit=_ALL, indexes=own),
            queries.ListAttempts(run_id, only, limit=_ALL),
            queries.ListMarks(run_id, own),
        )
        marks, ranks, specs = latest_progress(lines), self.graph.ranks, self.graph.in_order
        asked_later = self._asked_later(only)
        tries: dict[int, list[AttemptRow]] = {}
        for attempt in attempts:
            tries.setdefault(attempt.index, []).append(attempt)
        ordered = sorted(rows, key=lambda row: ranks[row.index])
        return [_view(row, specs[row.index].name, tries.get(row.index, ()), marks, asked_later) for row in ordered]

    def overview(self, limit: int | None = None) -> Overview:
        """All nodes, in columns. With `limit`, of a run with more nodes only those that failed or are at work, this many."""
        if limit is not None and self.row.nodes > limit:
            (rows,) = self.store.read([queries.ListNodes(self.row.id, limit=limit, statuses=_TELLING)])
            return Overview(self.outline, *columns_of(self.some_nodes([row.index for row in rows])), self.store.now())
        row, nodes, attempts = reader.get_columns(self.store, self.row.id)
        self._follow(row)
        return Overview(self.outline, nodes, attempts, self.store.now())

    def some_nodes(self, indexes: Sequence[int]) -> list[NodeView]:
        """These nodes, with their attempts."""
        found: list[NodeView] = []
        asked_later = self._asked_later()
        for start in range(0, len(indexes), _AT_ONCE):
            some = tuple(indexes[start : start + _AT_ONCE])
            asked = (queries.ListAttempts(self.row.id, index, limit=_ALL) for index in some)
            rows, *attempts = self.store.read([queries.ListNodes(self.row.id, indexes=some), *asked])
            tries = dict(zip(some, attempts, strict=True))
            marks = latest_progress(reader.list_marks(self.store, self.row.id, some))
            found += [_view(row, self.outline.name(row.id), tries[row.index], marks, asked_later) for row in rows]
        return found

    @property
    def idempotency_keys(self) -> IdempotencyKeys:
        """What `ctx.idempotency_key` gives its nodes."""
        return IdempotencyKeys(self.store, self.row, self.load)

    def _asked_later(self, only: int | None = None) -> _AskedLater:
        ancestries = Ancestries(self.store, self.row.id, self.load, only)
        return _AskedLater(ancestries.of, self.idempotency_keys.of_attempt)

    def running_progress(self, limit: int) -> dict[NodeId, Progress]:
        """How far RUNNING nodes are, at most so many, of those whose attempts have reported it."""
        (rows,) = self.read(queries.ListNodes(self.row.id, limit=limit, statuses=(NodeStatus.RUNNING,)))
        if not rows:
            return {}
        marks = latest_progress(reader.list_marks(self.store, self.row.id, tuple(row.index for row in rows)))
        progress = {row.id: _progress(row, marks) for row in rows}
        return {node: reported for node, reported in progress.items() if reported is not None}

    def read(self, *asked: Query) -> list[Any]:
        """The answers to queries about it, and the run as it was at that moment."""
        row, *found = reader.at_one_moment(self.store, self.row.id, *asked)
        self._follow(row)
        return found

    def node_columns(self) -> NodeColumns:
        """All its nodes; `seq` is that of the first page."""
        whole: NodeColumns = self._columns(queries.GetNodeColumns(self.row.id, limit=_ALL))
        return whole

    def attempt_columns(self, query: queries.GetAttemptColumns) -> AttemptColumns:
        """The attempts that are asked for; `seq` is that of the first page."""
        whole: AttemptColumns = self._columns(query)
        return whole

    def _columns(self, query: queries.ColumnQuery) -> Any:
        """All that is asked for, page by page where a store answers with less."""
        (page,) = self.read(query)
        pages, size = [page], len(page.indexes)
        while page.cursor is not None and size < query.limit:
            (page,) = self.store.read([query._replace(after=page.cursor, limit=query.limit - size)])
            pages.append(page)
            size += len(page.indexes)
        return reader.joined(pages)._replace(seq=pages[0].seq)

    def present_graph(self) -> tuple[Graph, dict[str, NodeStatus]]:
        """Its graph without nodes that only earlier versions had, and the status of each node."""
        removed = self.graph.removed
        rows = (row for row in reader.all_nodes(self.store, self.row.id) if row.index not in removed)
        return Graph(list(self.graph)) if removed else self.graph, {row.id: row.status for row in rows}

    def declared(self, nodes: Iterable[NodeView]) -> list[NodeView]:
        """The nodes of its graph in the order people read: by level, then as declared."""
        graph = self.graph
        place = {spec.id: place for place, spec in enumerate(graph)}
        own = (node for node in nodes if node.row.index not in graph.removed)
        return sorted(own, key=lambda node: (graph.level(node.id), place[node.id]))

    def removed(self, nodes: Iterable[NodeView]) -> list[NodeView]:
        """Nodes that only earlier versions of its graph had."""
        return [node for node in nodes if node.row.index in self.graph.removed]

    def _follow(self, row: RunRow) -> None:
        """Know the run as it was read last. If it has switched to another graph, that is read at its first use."""
        if row.digest != self.row.digest:
            for known in ("graph", "outline"):
                self.__dict__.pop(known, None)
        self.row = row


class _AskedLater(NamedTuple):
    """What views of attempts read when they are asked for it."""

    hash_of: Callable[[int, int], str | None]
    key_of: Callable[[AttemptRow, int], str | None]


def _view(
    row: NodeRow,
    name: str,
    attempts: Iterable[AttemptRow],
    marks: Mapping[int, LatestProgress],
    asked_later: _AskedLater,
) -> NodeView:
    views: list[AttemptView] = []
    generation = 0
    for attempt in attempts:
        views.append(AttemptView(attempt, *asked_later, generation))
        generation += attempt.status is AttemptStatus.SUPERSEDED
    return NodeView(row, name, tuple(views), _progress(row, marks))


def _progress(row: NodeRow, marks: Mapping[int, LatestProgress]) -> Progress | None:
    mark = marks.get(row.index)
    return mark.progress if mark is not None and mark.attempt == row.attempt else None


SLACK = 10 * SECOND
"""A commit may become visible after another one with a later time, so this much is read again."""
