"""The integers that stand for statuses in tables and statements."""

from __future__ import annotations

from ...model import AttemptStatus, GateState, NodeStatus, RunStatus

RUN_STATUS = tuple(RunStatus)
NODE_STATUS = tuple(NodeStatus)
ATTEMPT_STATUS = tuple(AttemptStatus)
GATE = tuple(GateState)
KINDS = (
    "created",
    "claimed",
    *(status.lower() for status in ATTEMPT_STATUS[1:]),  # an attempt ends: its status plus ENDS
    "woken",
    "rewrote",
    "gate",
    "run",
    "healed",
    "shared",
)
ENDS = 1

RUN_CODE = {status: code for code, status in enumerate(RUN_STATUS)}
NODE_CODE = {status: code for code, status in enumerate(NODE_STATUS)}
ATTEMPT_CODE = {status: code for code, status in enumerate(ATTEMPT_STATUS)}
KIND_CODE = {kind: code for code, kind in enumerate(KINDS)}

# Statements are written with these names. The partial indexes of the schema repeat some of the numbers.
N_PENDING, N_READY, N_RUNNING, N_WAITING, N_COMPLETED, N_FAILED, _, N_SKIPPED, N_CANCELLED, N_INTERRUPTED = range(10)
N_TERMINAL = N_COMPLETED
"""Statuses from here on are terminal; those between N_READY and here are active."""
A_RUNNING, A_COMPLETED, A_FAILED, A_TIMED_OUT, A_LOST, A_RELEASED, A_CANCELLED, A_SUPERSEDED = range(8)
R_PENDING, R_RUNNING, R_PAUSED, R_CANCELLING, R_COMPLETED, _, R_CANCELLED = range(7)
G_OPEN, G_HELD, G_SHUT = range(3)

ORDINALS = 65_536
"""A claim has room for this many attempts."""
