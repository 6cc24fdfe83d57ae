"""Whether an op may be applied, and what follows for a run: decided on a few facts, the same for every store."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from ...model import (
    AttemptStatus,
    GateState,
    OnFailure,
    Op,
    PutRecord,
    Receipt,
    RecordPut,
    Refusal,
    Refused,
    RunStatus,
    may_become,
    may_rewrite,
    ops,
    receipts,
)


class GateFacts(NamedTuple):
    """The gate of a run."""

    status: RunStatus
    state: GateState
    token: str | None
    purpose: str | None
    expires_at: int | None
    last_token: str | None
    """Of the request that was finished last."""

    def held_by(self, token: str) -> bool:
        return self.state is GateState.HELD and self.token == token


def refuse_gate(op: ops.Gate, gate: GateFacts, now: int) -> Refused | None:
    """Why this request may not have the gate. Who has it already may."""
    held = gate.state is GateState.HELD
    if gate.held_by(op.token):
        return None
    if op.token == gate.last_token:
        return Refused(Refusal.GATE_LOST, "what this request was for is done")
    if held and gate.purpose in ("load", "delete", "restore"):
        return Refused(Refusal.INCOMPLETE, gate.purpose)
    if op.allowed and gate.status not in op.allowed:
        return Refused(Refusal.STATUS, gate.status)
    if op.resume and (not held or gate.purpose != op.purpose):
        return Refused(Refusal.STATUS, gate.status)
    if held and gate.token is not None and gate.expires_at is not None and gate.expires_at > now:
        return Refused(Refusal.GATE_HELD, gate.purpose or "")
    if held and not op.resume:
        return Refused(Refusal.INCOMPLETE, gate.purpose or "")
    return None


def refuse_follower(op: Op, before: Receipt | None) -> Refused | None:
    """Why what is noted of a change is left out: `before` answers the op before it, which has changed nothing."""
    if type(op) is not PutRecord or not op.follows or _changes(before):
        return None
    return Refused(Refusal.CONFLICT)


def _changes(receipt: Receipt | None) -> bool:
    match receipt:
        case receipts.Created():
            return not receipt.existed
        case receipts.GateTaken() | receipts.Rewritten() | receipts.Deleted() | RecordPut():
            return True
        case _:
            return False


def refuse_switch(op: ops.SwitchGraph, gate: GateFacts, *, complete: bool, total: int, loaded: int) -> Refused | None:
    """Why a run with `loaded` nodes may not switch to a stored graph."""
    if not gate.held_by(op.token):
        return Refused(Refusal.GATE_LOST)
    if not complete or op.start > loaded:
        return Refused(Refusal.INCOMPLETE, f"the nodes before {op.start} are not there yet")
    if total < loaded:
        return Refused(Refusal.CONFLICT, f"graph {op.digest} does not number every node of the run")
    return None


def refuse_restore(
    op: ops.Restore, *, graph_complete: bool | None, restoring: bool | None, key_taken: bool = False
) -> Refused | None:
    """`graph_complete`: None if there is no such graph; `restoring`: None if there is no such run; `key_taken`: another run of
    its workflow has its idempotency key."""
    if not graph_complete:
        reason = Refusal.UNKNOWN if graph_complete is None else Refusal.INCOMPLETE
        return Refused(reason, f"graph {op.run.digest}")
    if restoring is False:
        return Refused(Refusal.CONFLICT, op.run.id)
    if op.run.gate is GateState.HELD or op.run.status.stopping:
        return Refused(Refusal.STATUS, op.run.purpose or op.run.status)
    if any(attempt.status is AttemptStatus.RUNNING for attempt in op.attempts):
        return Refused(Refusal.STATUS, "an attempt is RUNNING")
    if key_taken:
        return Refused(Refusal.CONFLICT, op.run.id)
    return None


def illegal_row(rows: Iterable[ops.NodeChange]) -> str | None:
    """The first move of a rewrite that no node may make, in words."""
    for row in rows:
        if row.status is not row.was and not may_rewrite(row.was, row.status):
            return f"node {row.index}: {row.was} -> {row.status}"
    return None


def illegal_move(op: ops.Rewrite, run: RunStatus) -> str | None:
    """The first move of a rewrite that no run or node may make, in words."""
    illegal = illegal_row(op.rows)
    if illegal is not None or op.finish is None:
        return illegal
    if op.finish.status.completed and not run.completed:
        return "a run completes with the last of its nodes, and by nothing else"
    if not may_become(run, op.finish.status):
        return f"{run} -> {op.finish.status}"
    if op.finish.open_gate != op.finish.status.moving:
        return f"{op.finish.status} behind {'an open' if op.finish.open_gate else 'a shut'} gate"
    return None


class Conclusion(Enum):
    """What follows for a run after its nodes have moved."""

    NOTHING = 0
    COMPLETED = 1
    PAUSED = 2
    FAILING = 3
    """Its gate closes for `failed`, and whoever sees that first finishes it."""
    CANCELLED = 4


def conclude(
    gate: GateState, status: RunStatus, on_failure: OnFailure, open_: int, active: int, failed: int, tolerated: int
) -> Conclusion:
    if gate is GateState.OPEN:
        if open_ == 0 and failed == 0:
            return Conclusion.COMPLETED
        if failed > tolerated and on_failure == "pause":
            return Conclusion.PAUSED
        if active == 0 or (failed > tolerated and on_failure == "fail_fast"):
            return Conclusion.FAILING
    elif status.stopping and active == 0:
        return Conclusion.CANCELLED
    return Conclusion.NOTHING
