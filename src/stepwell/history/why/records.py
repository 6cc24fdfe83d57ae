"""Causes as data, and the rows they are derived from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from ...base.ids import NodeId, WorkerId
from ...base.words import iso
from ...core.graph import Graph, NodeSpec, Outline
from ...core.model import AttemptRow, JournalRow, NodeRow, NodeStatus, RunRow, WorkerRow


class CauseKind(StrEnum):
    """The kind of a cause. Scripts and user interfaces read these names: new ones may come, none changes or goes."""

    # How a node stands.
    WAITS_FOR_PARENTS = "waits_for_parents"
    READY = "ready"
    RUNNING = "running"
    WAITS_UNTIL = "waits_until"
    COMPLETED = "completed"
    FAILED = "failed"
    UPSTREAM_FAILED = "upstream_failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    # How an attempt ended, and what else made a node run.
    ATTEMPT_FAILED = "attempt_failed"
    ATTEMPT_POSTPONED = "attempt_postponed"
    ATTEMPT_TIMED_OUT = "attempt_timed_out"
    ATTEMPT_LOST = "attempt_lost"
    ATTEMPT_RELEASED = "attempt_released"
    ATTEMPT_CANCELLED = "attempt_cancelled"
    ATTEMPT_SUPERSEDED = "attempt_superseded"
    PARENTS_DONE = "parents_done"
    RUN_STARTED = "run_started"
    ASKED = "asked"
    # Who should do it.
    NO_WORKER = "no_worker"
    NOT_SERVED = "not_served"
    QUEUE_NOT_SERVED = "queue_not_served"
    LACKING = "lacking"
    BUSY = "busy"
    ALONE = "alone"
    WORKER_GONE = "worker_gone"
    # How the run stands.
    HELD = "held"
    PAUSED = "paused"
    DEADLINE = "deadline"
    REASON = "reason"


BEGINNINGS = (CauseKind.PARENTS_DONE, CauseKind.RUN_STARTED)
"""What makes every node run once. Only told for the node in question, not for those that hold it up."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason, and the reasons behind it: `because` leads to the root."""

    kind: CauseKind
    node: NodeId | None = None
    name: str | None = None
    attempt: int | None = None
    at: int | None = None
    """When it happened or is due: microseconds since 1970, by the clock of the store."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON; which keys there are depends on the kind."""
    because: tuple[Cause, ...] = ()

    def without(self, *kinds: CauseKind) -> Cause:
        """The same cause, with none of these kinds behind it."""
        kept = tuple(cause.without(*kinds) for cause in self.because if cause.kind not in kinds)
        return replace(self, because=kept)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": str(self.kind),
            "node": self.node,
            "name": self.name,
            "attempt": self.attempt,
            "at": iso(self.at),
            "detail": dict(self.detail),
            "because": [cause.to_dict() for cause in self.because],
        }


class Known(NamedTuple):
    """A node that was read, with its attempts, oldest first."""

    row: NodeRow
    attempts: tuple[AttemptRow, ...] = ()


class Worker(NamedTuple):
    """A worker that is alive, and what it says of itself."""

    id: WorkerId
    host: str | None = None
    pid: int | None = None
    serves: frozenset[tuple[str, str]] | None = None
    """The (workflow, digest) pairs it works for; None when it does not say."""
    queues: frozenset[str] | None = None
    """The queues it takes nodes from; None: all of them."""
    lacks: Mapping[tuple[str, str], str] = {}
    """By workflow and digest: what is missing there to work on such runs."""

    @classmethod
    def of(cls, row: WorkerRow) -> Worker:
        """What a worker, perhaps of another version, announced, as far as it can be understood."""
        said = row.said
        host, pid, queues = said.get("host"), said.get("pid"), said.get("queues")
        return cls(
            row.id,
            host if isinstance(host, str) else None,
            pid if isinstance(pid, int) else None,
            frozenset((a, b) for a, b in _lists(said, "serves", 2)) if isinstance(said.get("serves"), list) else None,
            frozenset(map(str, queues)) if isinstance(queues, list) else None,
            {(workflow, digest): reason for workflow, digest, reason in _lists(said, "lacks", 3)},
        )


def _lists(said: Mapping[str, Any], name: str, size: int) -> list[list[str]]:
    """The lists of so many texts among what is said under a name."""
    given = said.get(name)
    found = given if isinstance(given, list) else []
    return [[*map(str, each)] for each in found if isinstance(each, list) and len(each) == size]


@dataclass(frozen=True, slots=True)
class Facts:
    """What was read to explain a run or one of its nodes: never all of a large one."""

    run: RunRow
    load_graph: Callable[[], Graph | Outline]
    """The graph of a large run takes longer to read than all the rest, and an ended run is mostly explained without it."""
    now: int
    workers: tuple[Worker, ...] = ()
    """Those that are alive."""
    gates: tuple[JournalRow, ...] = ()
    """Its journal entries of kind `gate` and `run`: what the gate was held for, and the status afterwards."""
    nodes: Mapping[str, Known] = field(default_factory=dict)
    """By id, what was read."""
    blockers: tuple[NodeId, ...] = ()
    """Nodes that did not complete and hold others up, the most telling first."""
    history: tuple[JournalRow, ...] = ()
    """When the node in question was rewritten or woken."""
    ended: Mapping[str, int] = field(default_factory=dict)
    """By id, when parents of the node in question completed."""
    counts: Mapping[NodeStatus, int] = field(default_factory=dict)
    """For a run: its nodes by status."""

    @property
    def graph(self) -> Graph | Outline:
        return self.load_graph()

    def spec(self, node: str) -> NodeSpec | None:
        """None for a node that is no longer part of the graph."""
        return self.graph.nodes.get(node)

    def name(self, node: str) -> str:
        """What people call it: its name, with the id when another node has the same name."""
        spec = self.spec(node)
        if spec is None or spec.name == node:
            return node
        return spec.name if self.graph.alike(spec.name) == 1 else f"{spec.name} ({node})"

    def parents(self, node: str) -> tuple[NodeId, ...]:
        spec = self.spec(node)
        return () if spec is None else spec.depends_on
