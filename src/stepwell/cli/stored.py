"""A run as it is stored, in the form that commands show. It needs a store and no engine, so that looking is quick."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ..clock import SECOND
from ..codec import decode
from ..commands import DEFAULT_STORE
from ..errors import InputError, RunNotFound, StoreCorrupt
from ..graph import Graph
from ..ids import Digest
from ..kernel.measuring import RunMetrics, measure
from ..model import SATISFIED_NODES, AttemptRow, ListNodes, NodeRow, NodeStatus, RunRow
from ..model.lines import Mark, Progress, latest_progress
from ..store import Store, reader
from .show.words import plain

if TYPE_CHECKING:
    from ..runner import Run

LONGEST_SEQ = 18
"""Digits of a number that a journal could reach."""
SHORTEST_PREFIX = 4
_FEW = 5
_TELLING = (NodeStatus.FAILED, NodeStatus.INTERRUPTED, NodeStatus.RUNNING, NodeStatus.WAITING)


def find_run(store: Store, text: str) -> RunRow:
    """The run with this id, or the only one whose id begins so."""
    row = reader.get_run(store, text)
    if row is not None:
        return row
    # An empty one stands for the default store until there is one.
    looked_at = DEFAULT_STORE if store.url == "memory://" else store.url
    if len(text) < SHORTEST_PREFIX:
        raise RunNotFound(text, f"the beginning of an id needs at least {SHORTEST_PREFIX} characters", store=looked_at)
    found = list(reader.all_runs(store, prefix=text))
    if not found:
        raise RunNotFound(text, store=looked_at)
    if len(found) > 1:
        shown = "".join(f"\n  {row.id}  {plain(row.workflow)} {row.status}" for row in found[:_FEW])
        more = f"\n  and {len(found) - _FEW:,} more" if len(found) > _FEW else ""
        raise InputError(f"{text!r} begins the ids of {len(found):,} runs; give more of it:{shown}{more}")
    return found[0]


def place_in(run: Run, at: str | None) -> int | str | None:
    """Where in a run somebody means: digits are a `seq`, unless a body gave a checkpoint such a label."""
    if at is None or not (at.isascii() and at.isdigit()) or len(at) > LONGEST_SEQ or run.step_of(at) is not None:
        return at
    return int(at)


def check_node(run: Run, node: str) -> None:
    """A node that is not there is a mistake in what was typed."""
    try:
        run.index_of(node)
    except KeyError as error:  # the message says which nodes there are
        raise InputError(str(error.args[0])) from None


class StoredError(NamedTuple):
    type: str
    message: str
    traceback: str | None

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


class StoredNode(NamedTuple):
    """A node with all its attempts."""

    row: NodeRow
    name: str
    attempts: tuple[AttemptRow, ...]
    progress: Progress | None = None
    """How far its latest attempt says it is."""

    @property
    def seconds(self) -> float | None:
        """How long the ended attempts took together."""
        ended = [each.ended_at - each.started_at for each in self.attempts if each.ended_at is not None]
        return sum(ended) / SECOND if ended else None

    @property
    def error(self) -> StoredError | None:
        """What keeps the node from being completed. Errors that a later attempt made good are none."""
        if self.row.status in SATISFIED_NODES:
            return None
        found = next((each.error for each in reversed(self.attempts) if each.error), None)
        if found is None:
            return None
        record = decode(found)
        return StoredError(record["type"], record["message"], record.get("traceback"))


class StoredRun:
    """A run: its row, and what is read when it is asked for."""

    def __init__(self, store: Store, row: RunRow, graph: Graph | None = None) -> None:
        self.store = store
        self.row = row
        if graph is not None:
            self.graph = graph

    @cached_property
    def graph(self) -> Graph:
        return self._load(self.row.digest)

    def _load(self, digest: Digest) -> Graph:
        document = reader.get_graph(self.store, digest)
        if document is None:
            raise StoreCorrupt(f"the graph {digest} of run {self.row.id} is missing from the store")
        return Graph.load(document)

    @property
    def seconds(self) -> float | None:
        """How long it took, or None before its end."""
        row = self.row
        return None if row.ended_at is None else (row.ended_at - (row.started_at or row.created_at)) / SECOND

    @property
    def size(self) -> int:
        """How many nodes it has, without those that a heal removed."""
        return len(self.graph) if self.row.heals else self.row.nodes

    def metrics(self) -> RunMetrics:
        history = reader.get_history(self.store, self.row.id)
        return measure(history.row, self._load, history.counts, history.journal, history.now)

    def counts(self) -> dict[NodeStatus, int]:
        return reader.count_nodes(self.store, self.row.id, self.graph.removed)

    def nodes(self) -> list[StoredNode]:
        """The nodes of its graph, in order."""
        removed = self.graph.removed
        return self._in_order(node for node in self._all_nodes() if node.row.index not in removed)

    def removed_nodes(self) -> list[StoredNode]:
        """What earlier versions of its graph had."""
        removed = self.graph.removed
        return [node for node in self._all_nodes() if node.row.index in removed] if removed else []

    def _all_nodes(self) -> list[StoredNode]:
        attempts: dict[int, list[AttemptRow]] = {}
        for attempt in reader.list_attempts(self.store, self.row.id):
            attempts.setdefault(attempt.index, []).append(attempt)
        rows = reader.all_nodes(self.store, self.row.id)
        marks = latest_progress(reader.list_marks(self.store, self.row.id))
        return [self._node(row, attempts.get(row.index, ()), marks) for row in rows]

    def telling_nodes(self, limit: int) -> list[StoredNode]:
        """All nodes of a run that has no more than `limit`; of a larger one those that failed or are at work."""
        if self.row.nodes <= limit:
            return self.nodes()
        (rows,) = self.store.read([ListNodes(self.row.id, limit=limit, statuses=_TELLING)])
        marks = latest_progress(reader.list_marks(self.store, self.row.id, tuple(row.index for row in rows)))
        return self._in_order(
            self._node(row, reader.list_attempts(self.store, self.row.id, row.index), marks)
            for row in rows
            if row.index not in self.graph.removed
        )

    def index_of(self, node: str) -> int:
        """The index of the node with this id or name."""
        graph = self.graph
        if node in graph.index:
            return graph.index[node]
        named = [index for index, spec in enumerate(graph.in_order) if spec.name == node]
        if len(named) == 1:
            return named[0]
        if named:
            ids = ", ".join(graph.order[index] for index in named[:_FEW])
            more = " ..." if len(named) > _FEW else ""
            raise InputError(f"run {self.row.id} has {len(named):,} nodes named {node!r}; give an id: {ids}{more}")
        shown = list(graph)[: 2 * _FEW]
        known = ", ".join(spec.name if spec.name == spec.id else f"{spec.name} ({spec.id})" for spec in shown)
        more = " ..." if len(graph) > 2 * _FEW else ""
        raise InputError(f"run {self.row.id} has no node {node!r}: there are: {known}{more}")

    def result(self) -> Any:
        """What the run is for: the output of its last node, or those of its last nodes by name (by id, if names repeat)."""
        graph = self.graph
        last = [index for index, own in enumerate(graph.children) if not own and index not in graph.removed]
        outputs = reader.get_outputs(self.store, self.row.id, tuple(last))
        found = {index: decode(output) for index, output in outputs.items() if output is not None}
        if len(last) == 1:
            return found.get(last[0])
        specs = graph.in_order
        unique = len({specs[index].name for index in last}) == len(last)
        return {specs[index].name if unique else specs[index].id: found.get(index) for index in last}

    def _node(self, row: NodeRow, attempts: Iterable[AttemptRow], marks: Mapping[int, Mark]) -> StoredNode:
        mark = marks.get(row.index)
        progress = mark.progress if mark is not None and mark.attempt == row.attempt else None
        return StoredNode(row, self.graph.in_order[row.index].name, tuple(attempts), progress)

    def _in_order(self, nodes: Iterable[StoredNode]) -> list[StoredNode]:
        """As people read them: level by level, and within a level as they were declared."""
        nodes = list(nodes)
        if not nodes:
            return []
        declared = {spec.id: position for position, spec in enumerate(self.graph)}
        return sorted(nodes, key=lambda node: (self.graph.level(node.row.id), declared[node.row.id]))
