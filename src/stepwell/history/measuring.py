"""The metrics of a run, computed from its row and its journal: the same numbers in every process, now and years later.

Times are those of the store's clock. An attempt lasts from its claim to its settlement, including the wait for a thread of
its worker: when a body began is not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, NamedTuple, cast

from ..base.clock import SECOND
from ..base.ids import Digest, RunId
from ..core.graph import Graph
from ..core.kernel.audit import earlier_graphs, folding
from ..core.model import MOVING_RUNS, SATISFIED_NODES, AttemptStatus, JournalRow, NodeStatus, RunRow, RunStatus

if TYPE_CHECKING:
    from ..answers.reports import MetricsRecord

_ENDS = frozenset(status.lower() for status in AttemptStatus if status is not AttemptStatus.RUNNING)
_FAILURES = frozenset({"failed", "timed_out"})
_EXECUTED = frozenset({"completed", *_FAILURES})
"""Ends of attempts whose body ran to an end, in the words of the journal."""
_SATISFIED = frozenset(str(status) for status in SATISFIED_NODES)
_MOVING = frozenset(map(str, MOVING_RUNS))


class Latency(NamedTuple):
    """How long things of one kind took, in seconds; percentiles are values that occurred (nearest rank)."""

    samples: int
    total: float
    average: float
    p50: float
    p95: float
    most: float

    @classmethod
    def of(cls, microseconds: Iterable[int]) -> Latency:
        """
        >>> Latency.of([3_000_000, 1_000_000])
        Latency(samples=2, total=4.0, average=2.0, p50=1.0, p95=3.0, most=3.0)
        >>> Latency.of([]).average
        0.0
        """
        values = sorted(microseconds)
        if not values:
            return cls(0, 0.0, 0.0, 0.0, 0.0, 0.0)
        total = sum(values) / SECOND
        p50, p95, most = (values[ceil(len(values) * share / 100) - 1] / SECOND for share in (50, 95, 100))
        return cls(len(values), total, total / len(values), p50, p95, most)


class RunMetrics(NamedTuple):
    """A run in numbers, all of one moment."""

    run_id: RunId
    status: RunStatus
    steps: int
    """Entries of its journal: `seq`."""
    nodes: int
    active: int
    """Nodes RUNNING now."""
    most_active: int
    """The most attempts that were claimed and not settled at once."""
    queued: int
    """Nodes READY now: waiting in the store for a worker."""
    most_queued: int
    """The most that were READY at once."""
    executed: int
    """Nodes with an attempt whose body ran to an end, good or bad."""
    attempts: int
    retries: int
    """Attempts made because the one before had failed or timed out."""
    lost: int
    """Attempts whose worker was lost."""
    released: int
    """Attempts given back before their body began; those of nodes that were skipped do not count."""
    heals: int
    """How often the run switched to another graph."""
    wall_seconds: float
    """From its first claim to its end, or until now."""
    average_active: float
    """How many attempts were claimed and not settled, on average. Those that waited in a worker's memory count, so at most
    this many bodies ran at once."""
    step_latency: Latency
    """Of attempts whose body ran to an end: from the claim to the settlement."""
    queue_latency: Latency
    """Of all attempts: from the moment their node became READY to the claim."""

    def to_dict(self) -> MetricsRecord:
        """As JSON has it."""
        latencies = {"step_latency": self.step_latency._asdict(), "queue_latency": self.queue_latency._asdict()}
        return cast("MetricsRecord", self._asdict() | latencies)


def measure(
    row: RunRow,
    load: Callable[[Digest], Graph],
    counts: Mapping[NodeStatus, int],
    journal: Sequence[JournalRow],
    now: int,
) -> RunMetrics:
    """The metrics of a run from rows read at one moment; `now` is the time of the store then, `load` gives a stored graph."""
    graphs = [load(Digest(digest)) for digest in earlier_graphs(journal)] or [load(row.digest)]
    states, later = folding(graphs, journal), iter(graphs)
    history = _AttemptHistory(next(later).children)
    folded = next(states)
    for entry in journal:
        if entry.kind == "healed":
            history.children = next(later).children
        history.add(entry, len(folded.ready))
        next(states)
    wall = 0 if row.started_at is None else max(0, (now if row.ended_at is None else row.ended_at) - row.started_at)
    spent = history.spent + sum(max(0, now - began) for began in history.running.values())
    return RunMetrics(
        row.id,
        row.status,
        row.seq,
        row.nodes - len(load(row.digest).removed),
        counts.get(NodeStatus.RUNNING, 0),
        history.most_active,
        counts.get(NodeStatus.READY, 0),
        max(history.most_ready, len(folded.ready)) if history.gate_open else history.most_ready,
        len(history.executed),
        len(history.queued),
        history.retries,
        history.ends.get("lost", 0),
        history.ends.get("released", 0),
        row.heals,
        wall / SECOND,
        spent / wall if wall else 0.0,
        Latency.of(history.lasted),
        Latency.of(history.queued),
    )


class _AttemptHistory:
    """What the journal tells about attempts, entry by entry."""

    def __init__(self, children: Sequence[Sequence[int]]) -> None:
        self.children = children
        """Of the graph that the run has now."""
        self.gate_open = True
        self.most_ready = 0
        """While a gate is open only claims make fewer nodes READY: so there were most just before one of them, or are now."""
        self._opened_at = 0
        """When the run was created, or its gate last opened: nothing could be claimed before."""
        self._ready_at: dict[int, int] = {}
        """When a parent of the node last ended, or the node itself became READY again."""
        self._last_end: dict[int, str] = {}
        self.running: dict[int, int] = {}
        """When the attempts that run now were claimed, by node."""
        self.most_active = 0
        self.retries = 0
        self.spent = 0
        """How long all ended attempts were held, in microseconds."""
        self.ends: dict[str, int] = {}
        self.executed: set[int] = set()
        self.lasted: list[int] = []
        self.queued: list[int] = []

    def add(self, entry: JournalRow, ready: int) -> None:
        """`ready`: how many nodes were READY before it."""
        _, at, kind, index, _, status = entry
        if index is None:
            if kind in ("gate", "run"):
                self.gate_open = kind == "run" and status in _MOVING
            if kind == "created" or (kind == "run" and status in _MOVING):
                self._opened_at = at
            return
        if kind == "claimed":
            self.most_ready = max(self.most_ready, ready)
            self._claimed(index, at)
        elif kind in _ENDS:
            self._ended(index, at, kind)
            if kind == "released" and status == NodeStatus.SKIPPED:
                self.ends[kind] -= 1  # it was not given back: its node has ended without a body
        if status in _SATISFIED:
            for child in self.children[index]:
                self._ready_at[child] = at
        elif status == NodeStatus.READY:
            self._ready_at[index] = at

    def _claimed(self, index: int, at: int) -> None:
        self.queued.append(max(0, at - max(self._opened_at, self._ready_at.get(index, 0))))
        self.running[index] = at
        self.most_active = max(self.most_active, len(self.running))
        self.retries += self._last_end.get(index) in _FAILURES

    def _ended(self, index: int, at: int, kind: str) -> None:
        self.ends[kind] = self.ends.get(kind, 0) + 1
        self._last_end[index] = kind
        lasted = max(0, at - self.running.pop(index, at))
        self.spent += lasted
        if kind in _EXECUTED:
            self.executed.add(index)
            self.lasted.append(lasted)
