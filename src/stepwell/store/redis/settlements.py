"""Settlements: as arguments of the library, and its verdicts as receipts."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, cast

from ...ids import RunId, WorkerId, attempt_id, split_attempt_id
from ...model import Answer, Lane, Op, Receipt, Refusal, Refused, ops, receipts
from ...model.rows import GateState
from ...model.status import AttemptStatus, NodeStatus, RunStatus, may_settle
from ..rules.codes import ATTEMPT_CODE, GATE, NODE_CODE, RUN_STATUS
from ..rules.payloads import is_large
from .fields import Arg, duration, lane_text, pack_id, payload, text

_PLACE = struct.Struct(">H")
_ACCEPTED, _FENCED = ord("a"), ord("f")
_SETTLEMENT = struct.Struct(">HBB")
_HEAD = struct.Struct(">BHHI")
_WITH_OUTPUT, _WITHOUT_OUTPUT = 1, 2
_AS_OTHER = _HEAD.pack(0, 0, 0, 0)
_COMPLETED, _NODE_COMPLETED = AttemptStatus.COMPLETED, NodeStatus.COMPLETED
_COMPLETED_CODE, _NODE_COMPLETED_CODE = ATTEMPT_CODE[_COMPLETED], NODE_CODE[_NODE_COMPLETED]
_RUNNING, _OPEN = RunStatus.RUNNING, GateState.OPEN
_STEP = struct.Struct(">QIIQIIIBI")
_LONGEST_CLAIM = 255
_ORDINAL = struct.Struct(">HIB")
_SIZE = struct.Struct(">H")


def encode_step(batch: Sequence[Op]) -> tuple[bytes, bytes] | None:
    """What a chain commits over and over, if it is that: a completion with a small output, a claim in one run and one lane."""
    if len(batch) != 2:
        return None
    done, claim = batch
    if type(done) is not ops.Settle or type(claim) is not ops.Claim:
        return None
    attempt, status, node, output, error, outcome, _, _, lines = done
    claim_id, worker_id, lanes, runs, serves = claim
    if status is not _COMPLETED or node is not _NODE_COMPLETED or output is None or is_large(output):
        return None
    if error is not None or outcome is not None or lines or serves is not None or len(runs) != 1 or len(lanes) != 1:
        return None
    name, ordinal = split_attempt_id(attempt)
    ((lane, limit),) = lanes
    if not name or lane.suspect or limit < 1:
        return None
    settled, asked = pack_id(name), pack_id(claim_id)
    if len(settled) > _LONGEST_CLAIM or len(asked) > _LONGEST_CLAIM:
        return None
    head, place = _ORDINAL.pack(ordinal, limit, len(settled)), _place(worker_id, lane, runs[0])
    return b"%b%b%c%b%b" % (head, settled, len(asked), asked, place), output


@lru_cache(maxsize=1_024)
def _place(worker: WorkerId, lane: Lane, run: RunId) -> bytes:
    """Who claims, in which lane of which run: alike in all steps of a chain."""
    return b"".join(_SIZE.pack(len(part)) + part for part in (worker.encode(), lane_text(lane).encode(), run.encode()))


def decode_step(batch: Sequence[Op], found: bytes) -> Answer:
    """The answer to a step that was as usual."""
    now, open_, active, seq, child, number, heals, needs, index = _STEP.unpack(found)
    claim: ops.Claim = batch[1]  # type: ignore[assignment]
    (run,) = claim.runs
    inputs = ((index, cast(ops.Settle, batch[0]).output),) if needs else ()
    news = receipts.RunNews(run, _RUNNING, _OPEN, None, open_, active, 0, seq)
    grant = receipts.Grant(attempt_id(claim.claim_id, 0), run, child, number, 0, 0, inputs, 0, heals)  # type: ignore[arg-type]
    return Answer((receipts.Settled(False, news), receipts.Claimed((grant,), ())), now)


def refused_here(op: ops.Settle) -> Refused | None:
    """What can be told without the rows."""
    if not may_settle(op.status, op.node):
        return Refused(Refusal.STATUS, f"{op.status} -> {op.node}")
    return None if split_attempt_id(op.attempt)[0] else Refused(Refusal.FENCED)


def encode_settlements(
    batch: Sequence[Op], members: Sequence[int], args: list[Arg], found: list[Receipt | None]
) -> list[int]:
    """A set of settlements, added to the arguments. Which of them are sent; those that are refused here get their receipts.

    Nearly all are completions with a small output, or none: these are packed together, and the others follow one by one.
    """
    heads, outputs, others, sent = [], [], [], []
    places: dict[str, int] = {}
    for position in members:
        op: ops.Settle = batch[position]  # type: ignore[assignment]
        attempt, status, node, output, error, outcome, _, _, lines = op
        plain = status is _COMPLETED and node is _NODE_COMPLETED and error is None and outcome is None and not lines
        claim, ordinal = split_attempt_id(attempt)
        if not plain or not claim or (output is not None and is_large(output)):
            refused = refused_here(op)
            if refused is None:
                heads.append(_AS_OTHER)
                others.append(op)
                sent.append(position)
            else:
                found[position] = refused
            continue
        place = places.get(claim)
        if place is None:
            place = places[claim] = len(places) + 1
        if output is None:
            heads.append(_HEAD.pack(_WITHOUT_OUTPUT, place, ordinal, 0))
        else:
            heads.append(_HEAD.pack(_WITH_OUTPUT, place, ordinal, len(output)))
            outputs.append(output)
        sent.append(position)
    if sent:
        args += ("settle", b"".join(heads), b"".join(outputs), len(places), *map(pack_id, places), len(others))
        for op in others:
            _encode_other(op, args)
    return sent


def _encode_other(op: ops.Settle, args: list[Arg]) -> None:
    attempt, status, node, output, error, outcome, delay, postponed, lines = op
    claim, ordinal = split_attempt_id(attempt)
    args.append(_SETTLEMENT.pack(ordinal, ATTEMPT_CODE[status], NODE_CODE[node]) + pack_id(claim))
    args += payload(output)
    args += (duration(delay or 0), "1" if postponed else "0")
    args += payload(error)
    args += payload(outcome)
    args.append(2 * len(lines))
    for kind, data in lines:
        args += (kind, data)


def news_of(found: Sequence[Any]) -> receipts.RunNews:
    run, status, gate, purpose, open_, active, failed, seq = found
    return receipts.RunNews(
        RunId(run.decode()), RUN_STATUS[status], GATE[gate], text(purpose), open_, active, failed, seq
    )


def settlements_of(found: Sequence[Any]) -> Iterator[Receipt]:
    """One receipt for each op of a set; those about one run share its news."""
    _, verdicts, which, news = found
    runs = [*map(news_of, news)]
    accepted = [receipts.Settled(False, run) for run in runs]
    if not which:  # all are about the same run
        if verdicts.count(_ACCEPTED) == len(verdicts):
            yield from repeat(accepted[0], len(verdicts))
            return
        which = _PLACE.pack(1) * len(verdicts)
    for verdict, (place,) in zip(verdicts, _PLACE.iter_unpack(which), strict=True):
        if verdict == _ACCEPTED:
            yield accepted[place - 1]
        elif verdict == _FENCED:
            yield Refused(Refusal.FENCED)
        else:
            yield receipts.Settled(True, runs[place - 1])
