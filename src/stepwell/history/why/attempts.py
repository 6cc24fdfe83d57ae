"""How attempts ended, and why the next one ran."""

from __future__ import annotations

from typing import Any

from ...answers.causes import CauseKind
from ...base.codec import decode
from ...core.model import AttemptRow, AttemptStatus, JournalRow, NodeStatus
from .records import Facts, KnownNode, WhyCause

HISTORY = 3
"""How many attempts are listed, back from the latest."""

_KINDS = {
    AttemptStatus.FAILED: CauseKind.ATTEMPT_FAILED,
    AttemptStatus.TIMED_OUT: CauseKind.ATTEMPT_TIMED_OUT,
    AttemptStatus.LOST: CauseKind.ATTEMPT_LOST,
    AttemptStatus.RELEASED: CauseKind.ATTEMPT_RELEASED,
    AttemptStatus.CANCELLED: CauseKind.ATTEMPT_CANCELLED,
    AttemptStatus.SUPERSEDED: CauseKind.ATTEMPT_SUPERSEDED,
}


def attempt_cause(facts: Facts, known: KnownNode, attempt: AttemptRow, because: tuple[WhyCause, ...] = ()) -> WhyCause:
    """How an attempt ended that did not complete."""
    error = {} if attempt.error is None else error_of(attempt)
    node = known.row.id
    kind, later = _KINDS[attempt.status], _record(attempt).get("later")
    if later is not None:
        kind, error = CauseKind.ATTEMPT_POSTPONED, {**error, "later": later}
    return WhyCause(kind, node, facts.name(node), attempt.number, attempt.ended_at, error, because)


def error_of(attempt: AttemptRow) -> dict[str, Any]:
    """The type and message of the error of an attempt; None each when there is none."""
    record = _record(attempt)
    return {"type": record.get("type"), "message": record.get("message")}


def postponements(attempt: AttemptRow) -> int | None:
    """How often the node was postponed, if the attempt failed because it reached the limit."""
    return _record(attempt).get("postponed")


def _record(attempt: AttemptRow) -> dict[str, Any]:
    try:
        record = decode(attempt.error or b"{}")
    except ValueError:
        record = None
    return record if isinstance(record, dict) else {}


def last_ended(node: KnownNode) -> AttemptRow | None:
    """The latest attempt that ended without completing."""
    return next((attempt for attempt in reversed(node.attempts) if attempt.status in _KINDS), None)


def reasons_to_run(facts: Facts, node: KnownNode, number: int, left: int = HISTORY) -> tuple[WhyCause, ...]:
    """Why the attempt with this number ran, and the one before it, back to the first."""
    before = next(
        (attempt for attempt in node.attempts if attempt.number == number - 1 and attempt.status in _KINDS), None
    )
    request = _request(facts, node, number - 1)
    if request is not None:
        because = () if before is None else (attempt_cause(facts, node, before),)
        gates = [gate for gate in facts.gates if gate.kind == "gate" and gate.seq < request.seq]
        purpose = gates[-1].status if gates else None  # what the gate was held for then
        return (WhyCause(CauseKind.ASKED, at=request.at, detail={"purpose": purpose}, because=because),)
    if any(attempt.number == number - 1 and attempt.status is AttemptStatus.PARKED for attempt in node.attempts):
        return reasons_to_run(facts, node, number - 1, left)  # this one looked at the run that performs the node
    if number > 1:
        if before is None or not left:
            return ()
        return (attempt_cause(facts, node, before, reasons_to_run(facts, node, number - 1, left - 1)),)
    return _first(facts, node)


def _first(facts: Facts, node: KnownNode) -> tuple[WhyCause, ...]:
    parents = facts.parents(node.row.id)
    if not parents:
        return (WhyCause(CauseKind.RUN_STARTED, at=facts.run.created_at),)
    ended = [(facts.ended[parent], parent) for parent in parents if parent in facts.ended]
    if not ended:
        return ()
    at, last = max(ended)
    return (WhyCause(CauseKind.PARENTS_DONE, last, facts.name(last), at=at, detail={"parents": len(parents)}),)


def _request(facts: Facts, node: KnownNode, attempts: int) -> JournalRow | None:
    """The entry of a request to run this node again after this many attempts."""
    row = node.row
    for entry in reversed(facts.history):
        asked_again = entry.kind == "rewrote" and entry.status == NodeStatus.PENDING
        if asked_again and entry.index == row.index and entry.attempt == attempts:
            return entry
    return None
