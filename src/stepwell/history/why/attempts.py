"""How attempts ended, and why the next one ran."""

from __future__ import annotations

from typing import Any

from ...base.codec import decode
from ...core.model import AttemptRow, AttemptStatus, JournalRow, NodeStatus
from .records import Cause, CauseKind, Facts, Known

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


def attempt_cause(facts: Facts, known: Known, attempt: AttemptRow, because: tuple[Cause, ...] = ()) -> Cause:
    """How an attempt ended that did not complete."""
    said = {} if attempt.error is None else error_of(attempt)
    node = known.row.id
    kind, later = _KINDS[attempt.status], _record(attempt).get("later")
    if later is not None:
        kind, said = CauseKind.ATTEMPT_POSTPONED, {**said, "later": later}
    return Cause(kind, node, facts.name(node), attempt.number, attempt.ended_at, said, because)


def error_of(attempt: AttemptRow) -> dict[str, Any]:
    """The type and message of the error of an attempt; None each when there is none."""
    said = _record(attempt)
    return {"type": said.get("type"), "message": said.get("message")}


def asked_too_often(attempt: AttemptRow) -> int | None:
    """How often the node had asked to be tried later, if the attempt failed because that is its limit."""
    return _record(attempt).get("postponed")


def _record(attempt: AttemptRow) -> dict[str, Any]:
    try:
        record = decode(attempt.error or b"{}")
    except ValueError:
        record = None
    return record if isinstance(record, dict) else {}


def last_ended(known: Known) -> AttemptRow | None:
    """The latest attempt that ended without completing."""
    return next((attempt for attempt in reversed(known.attempts) if attempt.status in _KINDS), None)


def made_it_run(facts: Facts, known: Known, number: int, left: int = HISTORY) -> tuple[Cause, ...]:
    """Why the attempt with this number ran, and the one before it, back to the first."""
    before = next((each for each in known.attempts if each.number == number - 1 and each.status in _KINDS), None)
    request = _request(facts, known, number - 1)
    if request is not None:
        because = () if before is None else (attempt_cause(facts, known, before),)
        gates = [gate for gate in facts.gates if gate.kind == "gate" and gate.seq < request.seq]
        purpose = gates[-1].status if gates else None  # what the gate was held for then
        return (Cause(CauseKind.ASKED, at=request.at, detail={"purpose": purpose}, because=because),)
    if number > 1:
        if before is None or not left:
            return ()
        return (attempt_cause(facts, known, before, made_it_run(facts, known, number - 1, left - 1)),)
    return _first(facts, known)


def _first(facts: Facts, known: Known) -> tuple[Cause, ...]:
    parents = facts.parents(known.row.id)
    if not parents:
        return (Cause(CauseKind.RUN_STARTED, at=facts.run.created_at),)
    ended = [(facts.ended[parent], parent) for parent in parents if parent in facts.ended]
    if not ended:
        return ()
    at, last = max(ended)
    return (Cause(CauseKind.PARENTS_DONE, last, facts.name(last), at=at, detail={"parents": len(parents)}),)


def _request(facts: Facts, known: Known, attempts: int) -> JournalRow | None:
    """The entry of a request to run this node again after this many attempts."""
    row = known.row
    for entry in reversed(facts.history):
        asked_again = entry.kind == "rewrote" and entry.status == NodeStatus.PENDING
        if asked_again and entry.index == row.index and entry.attempt == attempts:
            return entry
    return None
