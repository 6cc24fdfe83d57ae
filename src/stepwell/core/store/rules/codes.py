"""The integers that stand for statuses and kinds in tables and statements.

They are written out, those of statuses in their table, because files keep them for ever: a number is never changed or used
again. A status or kind that is new gets a new one. Attempts leave room: the journal calls the end of an attempt by its status,
as that number plus ENDS, so a new attempt status needs a number from 20 on, with the next one free among the kinds.
"""

from __future__ import annotations

from typing import get_args

from ...model import AttemptStatus, GateState, JournalKind, NodeStatus, RunStatus

RUN_CODE = {status: status.code for status in RunStatus}
NODE_CODE = {status: status.code for status in NodeStatus}
ATTEMPT_CODE = {status: status.code for status in AttemptStatus}
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
    "parked": 21,
}
ENDS = 1

RUN_STATUS = {code: status for status, code in RUN_CODE.items()}
NODE_STATUS = {code: status for status, code in NODE_CODE.items()}
ATTEMPT_STATUS = {code: status for status, code in ATTEMPT_CODE.items()}
GATE = {code: state for state, code in GATE_CODE.items()}
KINDS: dict[int, JournalKind] = {KIND_CODE[kind]: kind for kind in get_args(JournalKind)}

# Statements are written with these names. The partial indexes of the schema repeat some of the numbers.
N_PENDING = NodeStatus.PENDING.code
N_READY = NodeStatus.READY.code
N_RUNNING = NodeStatus.RUNNING.code
N_WAITING = NodeStatus.WAITING.code
N_COMPLETED = NodeStatus.COMPLETED.code
N_FAILED = NodeStatus.FAILED.code
N_SKIPPED = NodeStatus.SKIPPED.code
N_CANCELLED = NodeStatus.CANCELLED.code
N_INTERRUPTED = NodeStatus.INTERRUPTED.code
N_TERMINAL = N_COMPLETED
"""Statuses from here on are terminal; those between N_READY and here are active."""
A_RUNNING = AttemptStatus.RUNNING.code
A_COMPLETED = AttemptStatus.COMPLETED.code
A_FAILED = AttemptStatus.FAILED.code
A_TIMED_OUT = AttemptStatus.TIMED_OUT.code
A_LOST = AttemptStatus.LOST.code
A_RELEASED = AttemptStatus.RELEASED.code
A_CANCELLED = AttemptStatus.CANCELLED.code
A_SUPERSEDED = AttemptStatus.SUPERSEDED.code
A_PARKED = AttemptStatus.PARKED.code
R_PENDING = RunStatus.PENDING.code
R_RUNNING = RunStatus.RUNNING.code
"""The next number after that of PENDING, which a run leaves when its first node starts."""
R_PAUSED = RunStatus.PAUSED.code
R_CANCELLING = RunStatus.CANCELLING.code
R_COMPLETED = RunStatus.COMPLETED.code
R_CANCELLED = RunStatus.CANCELLED.code
R_TERMINAL = R_COMPLETED
"""Statuses from here on are terminal."""
G_OPEN, G_HELD, G_SHUT = GATE_CODE[GateState.OPEN], GATE_CODE[GateState.HELD], GATE_CODE[GateState.SHUT]

ORDINALS = 65_536
"""A claim has room for this many attempts."""
