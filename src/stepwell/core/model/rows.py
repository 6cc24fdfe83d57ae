"""What a store gives back when it is read: one record per stored thing."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, NamedTuple, TypeAlias

from ...base.codec import decode
from ...base.ids import AttemptId, Digest, NodeId, RunId, WorkerId
from .lanes import Lane
from .status import AttemptStatus, NodeStatus, RunStatus

OnFailure = Literal["fail_fast", "finish", "pause"]


INTERNAL_WORKFLOW = "@replay"
"""The workflow of runs that Stepwell starts for itself (`engine/internal_runs.py`). Lists, counts and events leave them out
unless they are asked for it by name. No workflow of a user has a name that begins with @."""


class GateState(StrEnum):
    """The switch of a run. While it is not OPEN, nothing moves forward."""

    OPEN = "OPEN"
    HELD = "HELD"
    SHUT = "SHUT"


class RunRow(NamedTuple):
    id: RunId
    workflow: str
    target: str | None
    """`module:name` of the class or builder function, so that another process can import it."""
    digest: Digest
    status: RunStatus
    on_failure: OnFailure
    input: bytes
    seed: int
    priority: int
    idempotency_key: str | None
    gate: GateState
    purpose: str | None
    stopping: bool
    """Its running attempts are asked to stop."""
    nodes: int
    open: int
    active: int
    failed: int
    seq: int
    created_at: int
    started_at: int | None
    ended_at: int | None
    deadline_at: int | None
    reason: str | None
    heals: int = 0
    """How often it has switched to another graph."""
    fork: bytes | None = None
    """Of which run it is a fork, and from where."""
    tolerated: int = 0
    """Failed nodes that do not stop the run."""
    origin: RunId | None = None
    """The run it is a fork of."""
    tags: tuple[tuple[str, str], ...] = ()
    timeout: int | None = None
    """How long it may take, in microseconds, from its start or the latest request to continue it."""
    error: str | None = None
    """The class of the error with which its first node failed; None if none has, or all that had were asked for again."""
    parent: RunId | None = None
    """The run of which it performs a node: it is a child run."""
    parent_node: int | None = None
    """The index of that node."""
    depth: int = 0
    """How many runs are above it."""
    releasing: bool = False
    """A node with very many children has completed, and not all of them know it yet; claims and sweeps tell the next ones."""


class NodeRow(NamedTuple):
    index: int  # type: ignore[assignment]  # hides tuple.index, which no record needs
    id: NodeId
    status: NodeStatus
    attempt: int
    """The number of the latest attempt, 0 before the first."""
    waiting: int
    """Parents that are not yet satisfied."""
    skipped: int
    """Parents that were skipped, but for those that a heal has added too late: these count as if they had run."""
    failures: int
    """Failed and timed-out attempts since the node was last asked for."""
    losses: int
    """Workers lost with this node since it was last asked for."""
    lane: Lane
    due_at: int | None
    reason: str | None
    generation: int = 0
    """How often a completion of it was superseded."""
    postponed: int = 0
    """Attempts since then that asked to be tried again later, which are no failures."""
    wakes: int = 0
    """0: no run performs it. Otherwise 1 since it was handed over, and 1 more for each time it was woken while RUNNING."""

    @property
    def parked(self) -> bool:
        """Whether it waits until it is woken."""
        return self.status is NodeStatus.WAITING and self.wakes > 0 and self.due_at is None


class AttemptRow(NamedTuple):
    id: AttemptId
    index: int  # type: ignore[assignment]  # hides tuple.index, which no record needs
    number: int
    status: AttemptStatus
    worker: WorkerId
    started_at: int
    ended_at: int | None
    output: bytes | None
    error: bytes | None
    outcome: bytes | None


class WorkerRow(NamedTuple):
    id: WorkerId
    lease_until: int
    renewed_at: int
    info: bytes

    @property
    def said(self) -> dict[str, Any]:
        """What it tells of itself, as far as it can be understood: it may be of another version."""
        try:
            info = decode(self.info)
        except ValueError:
            return {}
        return info if isinstance(info, dict) else {}


JournalKind: TypeAlias = Literal[
    "created",
    "claimed",
    "completed",
    "failed",
    "timed_out",
    "lost",
    "released",
    "cancelled",
    "superseded",
    "woken",
    "rewrote",
    "gate",
    "run",
    "healed",
    "shared",
    "parked",
]


class JournalRow(NamedTuple):
    seq: int
    at: int
    kind: JournalKind
    index: int | None  # type: ignore[assignment]  # hides tuple.index, which no record needs
    attempt: int | None
    status: str | None


class LineRow(NamedTuple):
    """One thing a running attempt appended: a log line, a progress mark, a durable effect."""

    attempt: AttemptId
    index: int  # type: ignore[assignment]  # hides tuple.index, which no record needs
    at: int
    kind: str
    data: bytes
    node: int
    """The index of the attempt's node."""
    number: int
    """The attempt's number."""
