"""The integers that stand for statuses and kinds in tables and statements.

They are written out because files keep them for ever: a number is never changed or used again. A status or kind that is new
gets a new one. Attempts leave room: the journal calls the end of an attempt by its status, as that number plus ENDS, so a
new attempt status needs a number from 20 on, with the next one free among the kinds.
"""

from __future__ import annotations

from ...model import AttemptStatus, GateState, NodeStatus, RunStatus, VersionKind

RUN_CODE = {
    RunStatus.PENDING: 0,
    RunStatus.RUNNING: 1,
    RunStatus.PAUSED: 2,
    RunStatus.CANCELLING: 3,
    RunStatus.COMPLETED: 4,
    RunStatus.FAILED: 5,
    RunStatus.CANCELLED: 6,
}
NODE_CODE = {
    NodeStatus.PENDING: 0,
    NodeStatus.READY: 1,
    NodeStatus.RUNNING: 2,
    NodeStatus.WAITING: 3,
    NodeStatus.COMPLETED: 4,
    NodeStatus.FAILED: 5,
    NodeStatus.UPSTREAM_FAILED: 6,
    NodeStatus.SKIPPED: 7,
    NodeStatus.CANCELLED: 8,
    NodeStatus.INTERRUPTED: 9,
}
ATTEMPT_CODE = {
    AttemptStatus.RUNNING: 0,
    AttemptStatus.COMPLETED: 1,
    AttemptStatus.FAILED: 2,
    AttemptStatus.TIMED_OUT: 3,
    AttemptStatus.LOST: 4,
    AttemptStatus.RELEASED: 5,
    AttemptStatus.CANCELLED: 6,
    AttemptStatus.SUPERSEDED: 7,
}
GATE_CODE = {GateState.OPEN: 0, GateState.HELD: 1, GateState.SHUT: 2}
KIND_CODE = {
    "created": 0,
    "claimed": 1,
    "completed": 2,
    "failed": 3,
    "timed_out": 4,
    "lost": 5,
    "released": 6,
    "cancelled": 7,
    "superseded": 8,
    "woken": 9,
    "rewrote": 10,
    "gate": 11,
    "run": 12,
    "healed": 13,
    "shared": 14,
}
ENDS = 1
VERSION_CODE: dict[VersionKind, int] = {"document": 0, "pipeline": 1, "trigger": 2}

RUN_STATUS = {code: status for status, code in RUN_CODE.items()}
NODE_STATUS = {code: status for status, code in NODE_CODE.items()}
ATTEMPT_STATUS = {code: status for status, code in ATTEMPT_CODE.items()}
GATE = {code: state for state, code in GATE_CODE.items()}
KINDS = {code: kind for kind, code in KIND_CODE.items()}

# Statements are written with these names. The partial indexes of the schema repeat some of the numbers.
N_PENDING = NODE_CODE[NodeStatus.PENDING]
N_READY = NODE_CODE[NodeStatus.READY]
N_RUNNING = NODE_CODE[NodeStatus.RUNNING]
N_WAITING = NODE_CODE[NodeStatus.WAITING]
N_COMPLETED = NODE_CODE[NodeStatus.COMPLETED]
N_FAILED = NODE_CODE[NodeStatus.FAILED]
N_SKIPPED = NODE_CODE[NodeStatus.SKIPPED]
N_CANCELLED = NODE_CODE[NodeStatus.CANCELLED]
N_INTERRUPTED = NODE_CODE[NodeStatus.INTERRUPTED]
N_TERMINAL = N_COMPLETED
"""Statuses from here on are terminal; those between N_READY and here are active."""
A_RUNNING = ATTEMPT_CODE[AttemptStatus.RUNNING]
A_COMPLETED = ATTEMPT_CODE[AttemptStatus.COMPLETED]
A_FAILED = ATTEMPT_CODE[AttemptStatus.FAILED]
A_TIMED_OUT = ATTEMPT_CODE[AttemptStatus.TIMED_OUT]
A_LOST = ATTEMPT_CODE[AttemptStatus.LOST]
A_RELEASED = ATTEMPT_CODE[AttemptStatus.RELEASED]
A_CANCELLED = ATTEMPT_CODE[AttemptStatus.CANCELLED]
A_SUPERSEDED = ATTEMPT_CODE[AttemptStatus.SUPERSEDED]
R_PENDING = RUN_CODE[RunStatus.PENDING]
R_RUNNING = RUN_CODE[RunStatus.RUNNING]
R_PAUSED = RUN_CODE[RunStatus.PAUSED]
R_CANCELLING = RUN_CODE[RunStatus.CANCELLING]
R_COMPLETED = RUN_CODE[RunStatus.COMPLETED]
R_CANCELLED = RUN_CODE[RunStatus.CANCELLED]
G_OPEN, G_HELD, G_SHUT = GATE_CODE[GateState.OPEN], GATE_CODE[GateState.HELD], GATE_CODE[GateState.SHUT]

ORDINALS = 65_536
"""A claim has room for this many attempts."""
