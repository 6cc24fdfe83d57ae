"""Statuses and the legal moves between them. One table each; everything else is refused."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class RunStatus(StrEnum):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    CANCELLING = "CANCELLING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def terminal(self) -> bool:
        return self in TERMINAL_RUNS


class NodeStatus(StrEnum):
    PENDING = "PENDING"
    READY = "READY"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    UPSTREAM_FAILED = "UPSTREAM_FAILED"
    SKIPPED = "SKIPPED"
    CANCELLED = "CANCELLED"
    INTERRUPTED = "INTERRUPTED"

    @property
    def terminal(self) -> bool:
        return self in TERMINAL_NODES


class AttemptStatus(StrEnum):
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    LOST = "LOST"
    RELEASED = "RELEASED"
    CANCELLED = "CANCELLED"
    SUPERSEDED = "SUPERSEDED"


R, N, A = RunStatus, NodeStatus, AttemptStatus

RUN_MOVES: Mapping[RunStatus, frozenset[RunStatus]] = {
    R.PENDING: frozenset({R.RUNNING, R.PAUSED, R.CANCELLING, R.CANCELLED, R.FAILED, R.COMPLETED}),
    R.RUNNING: frozenset({R.PAUSED, R.CANCELLING, R.COMPLETED, R.FAILED, R.CANCELLED}),
    R.PAUSED: frozenset({R.RUNNING, R.CANCELLING, R.CANCELLED, R.FAILED, R.COMPLETED}),
    R.CANCELLING: frozenset({R.CANCELLED}),
    R.COMPLETED: frozenset({R.RUNNING}),  # only by a reattempt
    R.FAILED: frozenset({R.RUNNING}),  # only by a retry
    R.CANCELLED: frozenset({R.RUNNING}),
}

NODE_MOVES: Mapping[NodeStatus, frozenset[NodeStatus]] = {
    N.PENDING: frozenset({N.READY, N.UPSTREAM_FAILED, N.SKIPPED, N.CANCELLED}),
    N.READY: frozenset({N.RUNNING, N.PENDING, N.SKIPPED, N.CANCELLED}),
    # PENDING: it must run again, and a heal has given it a parent that is not done.
    N.RUNNING: frozenset({N.COMPLETED, N.FAILED, N.WAITING, N.READY, N.PENDING, N.SKIPPED, N.CANCELLED, N.INTERRUPTED}),
    N.WAITING: frozenset({N.READY, N.PENDING, N.CANCELLED, N.COMPLETED, N.FAILED}),
    # These are terminal, and left only by a request: retry, reattempt, heal.
    N.COMPLETED: frozenset({N.PENDING}),
    N.FAILED: frozenset({N.PENDING, N.CANCELLED}),
    N.UPSTREAM_FAILED: frozenset({N.PENDING, N.CANCELLED}),
    N.SKIPPED: frozenset({N.PENDING}),
    N.CANCELLED: frozenset({N.PENDING, N.SKIPPED}),
    N.INTERRUPTED: frozenset({N.PENDING, N.CANCELLED}),
}

UNFINISHED_RUNS = frozenset({R.PENDING, R.RUNNING, R.PAUSED, R.CANCELLING})
TERMINAL_RUNS = frozenset({R.COMPLETED, R.FAILED, R.CANCELLED})
TERMINAL_NODES = frozenset({N.COMPLETED, N.FAILED, N.UPSTREAM_FAILED, N.SKIPPED, N.CANCELLED, N.INTERRUPTED})
ACTIVE_NODES = frozenset({N.READY, N.RUNNING, N.WAITING})
FAILED_NODES = frozenset({N.FAILED, N.INTERRUPTED})
SATISFIED_NODES = frozenset({N.COMPLETED, N.SKIPPED})
"""What a child needs each of its parents to be."""

SETTLEMENTS: Mapping[AttemptStatus, frozenset[NodeStatus]] = {
    A.COMPLETED: frozenset({N.COMPLETED}),
    A.FAILED: frozenset({N.FAILED, N.WAITING}),
    A.TIMED_OUT: frozenset({N.FAILED, N.WAITING, N.INTERRUPTED}),
    A.CANCELLED: frozenset({N.CANCELLED, N.INTERRUPTED}),
    A.RELEASED: frozenset({N.READY}),
    A.LOST: frozenset({N.READY, N.INTERRUPTED}),
}
"""How an attempt may end, and what its worker may then ask of the node."""


def may_settle(attempt: AttemptStatus, node: NodeStatus) -> bool:
    return node in SETTLEMENTS.get(attempt, ())


def may_rewrite(was: NodeStatus, status: NodeStatus) -> bool:
    """A rewrite makes no node RUNNING (claims do) or READY (counters do), and ends none that runs (settlements do)."""
    return status in NODE_MOVES[was] - {NodeStatus.READY, NodeStatus.RUNNING} and was is not NodeStatus.RUNNING


def may_become(was: RunStatus, status: RunStatus) -> bool:
    return status is was or status in RUN_MOVES[was]


def settled_as(asked: NodeStatus, *, stopping: bool, cancelling: bool, removed: bool = False) -> NodeStatus:
    """What becomes of a node whose attempt ended: in a run that is stopping, nothing waits or becomes ready again.

    A body that obeyed a stop which no longer holds, because the run was retried meanwhile, runs again. A node that was
    removed from the graph completes or is cancelled: its failure is nobody's business any more.
    """
    if removed:
        return asked if asked is NodeStatus.COMPLETED else NodeStatus.CANCELLED
    if not stopping:
        return NodeStatus.READY if asked is NodeStatus.CANCELLED else asked
    if asked is NodeStatus.READY:
        return NodeStatus.CANCELLED
    if asked is NodeStatus.WAITING:
        return NodeStatus.CANCELLED if cancelling else NodeStatus.FAILED
    return asked


del R, N, A
