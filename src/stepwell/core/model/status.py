"""Statuses: what each means for what stores count, which moves are legal, which requests fit, and how each looks.

A status that is new gets a row here, a look, and the place in the kernel or the store where it acts.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, NamedTuple

Phase = Literal["moving", "paused", "stopping", "ended"]
NodeTrait = Literal["active", "terminal", "satisfies", "broken"]
# Type checkers take `RunStatus("PAUSED")` for a call of `__new__`, which is why codes have a default.


class RunStatus(StrEnum):
    """Its name, the number that stores keep for it, and its phase. A number is never changed or used again."""

    PENDING = "PENDING", 0, "moving"
    RUNNING = "RUNNING", 1, "moving"
    PAUSED = "PAUSED", 2, "paused"
    CANCELLING = "CANCELLING", 3, "stopping"
    COMPLETED = "COMPLETED", 4, "ended"
    FAILED = "FAILED", 5, "ended"
    CANCELLED = "CANCELLED", 6, "ended"

    _value_: str
    code: int
    moving: bool
    """Its nodes start as they become ready: it is behind an open gate."""
    paused: bool
    """Nothing starts until a person asks for it."""
    stopping: bool
    """Nothing starts, and bodies at work were asked to stop."""
    terminal: bool
    resting: bool
    """Paused or ended: nothing of it moves until a person asks for it."""

    def __new__(cls, value: str, code: int = -1, phase: Phase = "ended") -> RunStatus:
        status = str.__new__(cls, value)
        status._value_, status.code = value, code
        status.moving, status.paused = phase == "moving", phase == "paused"
        status.stopping, status.terminal = phase == "stopping", phase == "ended"
        status.resting = status.paused or status.terminal
        return status

    @property
    def completed(self) -> bool:
        return self is RunStatus.COMPLETED


class NodeStatus(StrEnum):
    """Its name, the number that stores keep for it, and its traits. A number is never changed or used again."""

    PENDING = "PENDING", 0
    READY = "READY", 1, "active"
    RUNNING = "RUNNING", 2, "active"
    WAITING = "WAITING", 3, "active"
    COMPLETED = "COMPLETED", 4, "terminal", "satisfies"
    FAILED = "FAILED", 5, "terminal", "broken"
    UPSTREAM_FAILED = "UPSTREAM_FAILED", 6, "terminal"
    SKIPPED = "SKIPPED", 7, "terminal", "satisfies"
    CANCELLED = "CANCELLED", 8, "terminal"
    INTERRUPTED = "INTERRUPTED", 9, "terminal", "broken"

    _value_: str
    code: int
    active: bool
    terminal: bool
    satisfies: bool
    """What a child needs each of its parents to be."""
    broken: bool
    """Counts as a failure of its run."""

    def __new__(cls, value: str, code: int = -1, *traits: NodeTrait) -> NodeStatus:
        status = str.__new__(cls, value)
        status._value_, status.code = value, code
        status.active, status.terminal = "active" in traits, "terminal" in traits
        status.satisfies, status.broken = "satisfies" in traits, "broken" in traits
        return status


class AttemptStatus(StrEnum):
    """Its name, and the number that stores keep for it."""

    RUNNING = "RUNNING", 0
    COMPLETED = "COMPLETED", 1
    FAILED = "FAILED", 2
    TIMED_OUT = "TIMED_OUT", 3
    LOST = "LOST", 4
    RELEASED = "RELEASED", 5
    CANCELLED = "CANCELLED", 6
    SUPERSEDED = "SUPERSEDED", 7
    PARKED = "PARKED", 20

    _value_: str
    code: int

    def __new__(cls, value: str, code: int = -1) -> AttemptStatus:
        status = str.__new__(cls, value)
        status._value_, status.code = value, code
        return status


R, N, A = RunStatus, NodeStatus, AttemptStatus

MOVING_RUNS = frozenset(status for status in R if status.moving)
UNPAUSED_RUNS = tuple(status for status in R if not status.resting)
"""Unfinished runs that wait for a worker, and for no person."""
UNFINISHED_RUNS = frozenset(status for status in R if not status.terminal)
TERMINAL_RUNS = frozenset(status for status in R if status.terminal)
TERMINAL_NODES = frozenset(status for status in N if status.terminal)
ACTIVE_NODES = frozenset(status for status in N if status.active)
FAILED_NODES = frozenset(status for status in N if status.broken)
SATISFIED_NODES = frozenset(status for status in N if status.satisfies)

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

SETTLEMENTS: Mapping[AttemptStatus, frozenset[NodeStatus]] = {
    A.COMPLETED: frozenset({N.COMPLETED}),
    A.FAILED: frozenset({N.FAILED, N.WAITING}),
    A.TIMED_OUT: frozenset({N.FAILED, N.WAITING, N.INTERRUPTED}),
    A.CANCELLED: frozenset({N.CANCELLED, N.INTERRUPTED}),
    A.RELEASED: frozenset({N.READY, N.SKIPPED}),
    A.LOST: frozenset({N.READY, N.INTERRUPTED}),
    A.PARKED: frozenset({N.WAITING}),  # the node is READY at once if it was woken meanwhile
}
"""How an attempt may end, and what its worker may then ask of the node."""

PARENT_PAUSED = "its parent run is paused"
"""The reason of a child run that is PAUSED because its parent is, and goes on with it."""
CONDITION = "condition"
"""The reason of a node that is SKIPPED because its condition did not hold."""
PARENTS_SKIPPED = "parents_skipped"
"""The same for a node all of whose parents were skipped."""
PARENT_SKIPPED = "parent_skipped"
"""The same for a node that runs only if none of its parents was skipped."""
HEALED_LATE = "healed_late"
"""The same for a node that a heal has added above work that was done without it. Its children count it as one that ran."""


class RunVerb(NamedTuple):
    """What people request of a run."""

    allowed: tuple[RunStatus, ...]
    """The statuses in which it does something."""
    becomes: RunStatus | None = None
    done: tuple[RunStatus, ...] = ()
    """The statuses in which a run already is what was requested."""
    refusal: str = "its graph cannot be changed"
    """What is said in all others."""
    options: tuple[str, ...] | None = None
    """The options of the method of `Run` with this name, besides `dry_run`; None: it is not requested by this name alone."""
    summary: str = ""


_UNCOMPLETED = (R.PENDING, R.RUNNING, R.PAUSED, R.FAILED, R.CANCELLED)
RUN_VERBS: Mapping[str, RunVerb] = {
    "retry": RunVerb(
        (R.FAILED, R.CANCELLED, R.PAUSED),
        R.RUNNING,
        refusal="only a FAILED, CANCELLED or PAUSED run can be retried",
        options=("accept", "input"),
        summary="Run again what did not complete.",
    ),
    "reattempt": RunVerb(
        (R.RUNNING, R.PAUSED, R.FAILED, R.CANCELLED, R.COMPLETED),
        R.RUNNING,
        refusal="only a node of a run that has started and is not being cancelled can be attempted again",
        options=("cascade",),
        summary="Run an ended node again, even one that completed, with what failed or was cancelled below it.",
    ),
    "cancel": RunVerb(
        (R.PENDING, R.RUNNING, R.PAUSED),
        R.CANCELLED,
        done=(R.CANCELLING, R.CANCELLED),
        refusal="it has ended and cannot be cancelled",
        options=("grace_seconds",),
        summary="Start nothing more, ask running bodies to stop, and fence them after the grace.",
    ),
    "pause": RunVerb(
        (R.PENDING, R.RUNNING),
        R.PAUSED,
        done=(R.PAUSED,),
        refusal="only a run that has not ended can be paused",
        options=(),
        summary="Start nothing more until it is resumed. Running bodies may end, and are recorded.",
    ),
    "resume": RunVerb(
        (R.PAUSED,),
        R.RUNNING,
        done=(R.PENDING, R.RUNNING),
        refusal="only a paused run can be resumed",
        options=("accept", "input"),
        summary="Go on with a paused run.",
    ),
    "fork": RunVerb(
        tuple(R),
        R.PENDING,
        options=("at", "input"),
        summary="Start a new run that begins with what this one has done.",
    ),
    "heal": RunVerb(_UNCOMPLETED),
    "import": RunVerb(_UNCOMPLETED),
    "freeze": RunVerb(_UNCOMPLETED),
}


class Look(NamedTuple):
    """How a status is shown to people."""

    symbol: str
    style: str
    """On a terminal, as rich names it."""
    fill: str
    stroke: str


LOOKS: Mapping[str, Look] = {
    "PENDING": Look("·", "dim", "#f3f4f6", "#9ca3af"),
    "READY": Look("○", "cyan", "#e0f2fe", "#0284c7"),
    "RUNNING": Look("▶", "blue", "#dbeafe", "#2563eb"),
    "WAITING": Look("◌", "yellow", "#fef9c3", "#ca8a04"),
    "PAUSED": Look("◌", "yellow", "#fef9c3", "#ca8a04"),
    "CANCELLING": Look("■", "yellow", "#fef9c3", "#ca8a04"),
    "COMPLETED": Look("✓", "green", "#dcfce7", "#16a34a"),
    "FAILED": Look("✗", "bold red", "#fee2e2", "#dc2626"),
    "UPSTREAM_FAILED": Look("⊘", "dark_orange", "#ffedd5", "#ea580c"),
    "SKIPPED": Look("–", "dim", "#f5f5f4", "#a8a29e"),
    "CANCELLED": Look("■", "dim", "#e7e5e4", "#57534e"),
    "INTERRUPTED": Look("!", "magenta", "#fae8ff", "#a21caf"),
}
"""By name: runs and nodes of one status look the same."""


def was_skipped(status: NodeStatus, reason: str | None) -> bool:
    """Whether a parent counts as skipped for its children."""
    return status is NodeStatus.SKIPPED and reason != HEALED_LATE


def may_rewrite(was: NodeStatus, status: NodeStatus) -> bool:
    """A rewrite makes no node RUNNING (claims do) or READY (counters do), and ends none that runs (settlements do)."""
    return status in NODE_MOVES[was] - {NodeStatus.READY, NodeStatus.RUNNING} and was is not NodeStatus.RUNNING


def may_become(was: RunStatus, status: RunStatus) -> bool:
    return status is was or status in RUN_MOVES[was]


def settled_as(
    asked: NodeStatus, *, stopping: bool, cancelling: bool, removed: bool = False, parked: bool = False
) -> NodeStatus:
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
        return NodeStatus.CANCELLED if cancelling or parked else NodeStatus.FAILED
    return asked


del R, N, A
