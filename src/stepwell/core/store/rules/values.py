"""Which texts and numbers every store can keep: what one of them could not is refused by all.

Texts are UTF-8 without NUL (PostgreSQL has no other), of at most 500 bytes where a store finds rows by them; numbers have 64
bits, a seed is one without a sign.
"""

from __future__ import annotations

from collections.abc import Container

from ...model import AddGraph, Batch, Create, Enlist, Gate, Op, PutRecord, Refusal, Refused, Settle

INDEXED_BYTES = 500
MAX_TEXT = 4_000
"""Bytes of an id of a node, which nothing is found by."""
MAX_TAGS = 32
_LARGEST = 2**63


def refuse_values(op: Op) -> Refused | None:
    """Why no store may keep this. Only ops that bring texts and numbers of users are asked."""
    match op:
        case Settle():
            return None if op.child is None else refuse_values(op.child)
        case Create():
            texts = (op.run_id, op.workflow, op.digest, op.target, op.idempotency_key, op.origin, op.parent)
            tags = [text for tag in op.tags for text in tag]
            numbers = (op.priority, -op.priority, op.timeout)
            wrong = _text((*texts, *tags)) or _number(numbers)
            if wrong is None and not 0 <= op.seed < 2 * _LARGEST:
                wrong = "a seed has 64 bits and no sign"
            if wrong is None and (len(op.tags) > MAX_TAGS or len(dict(op.tags)) < len(op.tags)):
                wrong = f"a run has at most {MAX_TAGS} tags, each name once"
        case AddGraph():
            lanes = {text for row in op.rows for text in (row.lane.queue, row.lane.body)}
            wrong = _text((op.digest, op.workflow, op.signature, *lanes)) or _number((op.total, op.start))
            wrong = wrong or _text(tuple(row.id for row in op.rows), MAX_TEXT)
        case Enlist():
            wrong = _text((op.worker,)) or _number((op.lease,))
        case Gate():
            wrong = _text((op.run_id, op.token, op.purpose)) or _number((op.lease,))
        case PutRecord():
            wrong = _text((op.kind, op.key)) or _number((op.expected,))
        case _:
            return None
    return None if wrong is None else Refused(Refusal.INVALID, wrong)


def refuse_unfollowed(batch: Batch, position: int, refused: Container[int]) -> Refused | None:
    """Why no store is asked to note a change: nothing is before it, or what is was `refused` (positions)."""
    op = batch[position]
    if type(op) is PutRecord and op.follows and (position == 0 or position - 1 in refused):
        return Refused(Refusal.CONFLICT)
    return None


def _text(texts: tuple[str | None, ...], most: int = INDEXED_BYTES) -> str | None:
    for text in texts:
        if text is None:
            continue
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            return f"{ascii(text)[:80]} is no UTF-8"
        if "\x00" in text:
            return f"{ascii(text)[:80]} holds a NUL"
        if size > most:
            return f"{text[:60]!r}... has {size} bytes, {most} are allowed"
    return None


def _number(numbers: tuple[int | None, ...]) -> str | None:
    for number in numbers:
        if number is not None and not -_LARGEST <= number < _LARGEST:
            return f"{number} has more than 64 bits"
    return None
