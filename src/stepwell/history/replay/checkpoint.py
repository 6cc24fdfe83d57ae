"""Checkpoints: a run as it was after an entry of its journal. They are derived when needed; nothing is stored for them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ...base.clock import SECOND, utc_text
from ...base.codec import encode_checked, sha256
from ...core.graph import Graph
from ...core.kernel.audit import Folded
from ...core.model import ACTIVE_NODES, JournalRow, NodeStatus, RunRow
from ...core.model.lines import KEY_BEGINS
from ..effects.record import Effect

if TYPE_CHECKING:
    from ...answers.reports import CheckpointRecord, EffectRecord, LabelRecord, WorkItemRecord

VERSION = 1


class WorkItem(NamedTuple):
    """A node that is READY, RUNNING or WAITING."""

    node: str
    """Its id."""
    status: NodeStatus
    attempt: int
    """The running attempt, or the next one."""
    level: int
    order_key: int
    parents: tuple[str, ...]
    edge: int
    """Its place among the children of its parent with the smallest id, or among the nodes without parents."""

    def data(self) -> WorkItemRecord:
        fields = self._asdict() | {"parents": list(self.parents), "order_key": str(self.order_key)}
        return cast("WorkItemRecord", fields)


class Label(NamedTuple):
    """A name that a body gave to a checkpoint."""

    label: str
    step: int
    """The `seq` of its journal entry."""
    time: float
    node: str
    attempt: int

    @property
    def seq(self) -> int:
        return self.step

    def to_dict(self) -> LabelRecord:
        return cast("LabelRecord", self._asdict())


class Checkpoint(NamedTuple):
    """A run as it was at one `seq` of its journal."""

    version: int
    run_id: str
    step: int
    """The `seq`."""
    state: dict[str, Any] | None
    """The state of the workflow; None when it has none."""
    frontier: tuple[WorkItem, ...]
    seed: int
    effects: tuple[Effect, ...]
    """Those of the attempts that had ended."""
    idempotency_key: str
    time: float
    label: str | None
    """The last name that a body gave it, if any."""

    @classmethod
    def of(
        cls,
        run: RunRow,
        entry: JournalRow,
        state: dict[str, Any] | None,
        frontier: tuple[WorkItem, ...],
        effects: tuple[Effect, ...],
        label: str | None,
    ) -> Checkpoint:
        """The checkpoint after this entry of the journal."""
        key = idempotency_key(run.id, entry.seq, frontier, state)
        return cls(VERSION, run.id, entry.seq, state, frontier, run.seed, effects, key, entry.at / SECOND, label)

    def data(self) -> CheckpointRecord:
        """As JSON data. Numbers that JavaScript would round are strings."""
        return {
            "version": self.version,
            "run_id": self.run_id,
            "step": self.step,
            "state": self.state,
            "frontier": [item.data() for item in self.frontier],
            "seed": str(self.seed),
            "effects": [effect_data(effect) for effect in self.effects],
            "idempotency_key": self.idempotency_key,
            "timestamp": utc_text(self.time),
            "label": self.label,
        }


def idempotency_key(run_id: str, step: int, frontier: Sequence[WorkItem], state: Mapping[str, Any] | None) -> str:
    """`sha256:` and the hash of the canonical JSON of these four; a work item is its node, order key and attempt.

    >>> idempotency_key("r-1", 3, [], None)[:23]
    'sha256:eb0044b9a4d7bed4'
    """
    return joined_key(run_id, step, map(_counting, frontier), encode_checked(state))


def joined_key(run_id: str, step: int, items: Iterable[bytes], state: bytes) -> str:
    """The same from parts that are canonical JSON."""
    parts = (encode_checked(run_id), b"%d" % step, b"[" + b",".join(items) + b"]", state)
    return KEY_BEGINS + sha256(b"[" + b",".join(parts) + b"]")


def _counting(item: WorkItem) -> bytes:
    """What counts of a work item for the key."""
    return encode_checked([item.node, str(item.order_key), item.attempt])


class Frontiers:
    """The frontiers of a run while it had one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._edges: dict[str, int] | None = None

    def of(self, folded: Folded) -> tuple[WorkItem, ...]:
        active = [index for index, status in enumerate(folded.nodes) if status in ACTIVE_NODES]
        return tuple(sorted((self.item(index, folded) for index in active), key=_in_order))

    def item(self, index: int, folded: Folded) -> WorkItem:
        graph, status = self._graph, folded.nodes[index]
        node = graph.order[index]
        latest = 0
        while (index, latest + 1) in folded.attempts:
            latest += 1
        attempt = latest if status is NodeStatus.RUNNING else latest + 1
        if index in graph.removed:
            return WorkItem(node, status, attempt, 0, 0, (), 0)
        parents = tuple(graph.order[parent] for parent in graph.parents[index])
        return WorkItem(node, status, attempt, graph.level(node), graph.order_key(node), parents, self._edge_of()[node])

    def _edge_of(self) -> Mapping[str, int]:
        if self._edges is None:
            self._edges = {}
            children: dict[str, int] = {}
            for spec in self._graph:
                parents: set[str] = set(spec.depends_on) or {""}
                self._edges[spec.id] = children.get(min(parents), 0)
                for parent in parents:
                    children[parent] = children.get(parent, 0) + 1
        return self._edges


class FrontierHistory:
    """Follows the frontier through the journal, as far as keys need it; only what an entry touches changes."""

    def __init__(self, graph: Graph, folded: Folded) -> None:
        self._graph = graph
        self._frontiers = Frontiers(graph)
        self._there: dict[int, tuple[int, int, str, int]] = {}
        self._order: list[tuple[int, int, str, int]] = []
        self.items: list[bytes] = []
        """Canonical JSON, in order."""
        active = [index for index, status in enumerate(folded.nodes) if status in ACTIVE_NODES]
        for place, counting in sorted(self._place(index, folded) for index in active):
            self._there[place[-1]] = place
            self._order.append(place)
            self.items.append(counting)

    def follow(self, entry: JournalRow, folded: Folded) -> None:
        """An entry about a node changes that node; one that completes it also changes its children."""
        if entry.index is None:
            return
        self._look_at(entry.index, folded)
        if entry.kind == "completed":
            for child in self._graph.children[entry.index]:
                self._look_at(child, folded)

    def _look_at(self, index: int, folded: Folded) -> None:
        if index in self._there:
            at = bisect_left(self._order, self._there.pop(index))
            del self._order[at], self.items[at]
        if folded.nodes[index] in ACTIVE_NODES:
            place, counting = self._place(index, folded)
            at = bisect_left(self._order, place)
            self._order.insert(at, place)
            self.items.insert(at, counting)
            self._there[index] = place

    def _place(self, index: int, folded: Folded) -> tuple[tuple[int, int, str, int], bytes]:
        item = self._frontiers.item(index, folded)
        return (*_in_order(item), index), _counting(item)


def _in_order(item: WorkItem) -> tuple[int, int, str]:
    return item.level, item.order_key, item.node


def effect_data(effect: Effect) -> EffectRecord:
    error = None if effect.error is None else effect.error.data()
    return cast("EffectRecord", effect._asdict() | {"error": error})
