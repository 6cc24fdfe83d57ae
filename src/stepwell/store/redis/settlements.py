"""Settlements: as arguments of the library, and its verdicts as receipts."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from ...ids import RunId, split_attempt_id
from ...model import AttemptStatus, Claim, NodeStatus, Op, Receipt, Refusal, Refused, RunNews, Settle, Settled
from ..rules.codes import ATTEMPT_CODE, GATE, NODE_CODE, RUN_STATUS
from ..rules.payloads import is_large
from .fields import Arg, duration, lane_text, pack_id, payload, text

_PLACE = struct.Struct(">H")
_ACCEPTED, _FENCED = ord("a"), ord("f")
_SETTLEMENT = struct.Struct(">?HBB")
_COMPLETED, _NODE_COMPLETED = AttemptStatus.COMPLETED, NodeStatus.COMPLETED
_COMPLETED_CODE, _NODE_COMPLETED_CODE = ATTEMPT_CODE[_COMPLETED], NODE_CODE[_NODE_COMPLETED]
_PLAIN_REST = [None, None, None, False, ()]
"""Of a settlement: no error, outcome, delay, postponement or lines."""


def encode_step(batch: Sequence[Op]) -> list[Arg] | None:
    """What a chain commits over and over, if it is that: a completion with a small output, a claim in one run and one lane."""
    if len(batch) != 2:
        return None
    done, claim = batch
    if type(done) is not Settle or type(claim) is not Claim or claim.serves is not None or len(claim.runs) != 1:
        return None
    attempt, status, node, output, *rest = done
    if status is not _COMPLETED or node is not _NODE_COMPLETED or output is None or rest != _PLAIN_REST:
        return None
    name, ordinal = split_attempt_id(attempt)
    if not name or is_large(output) or len(claim.lanes) != 1:
        return None
    ((lane, limit),) = claim.lanes
    if lane.suspect or limit < 1:
        return None
    head = _SETTLEMENT.pack(True, ordinal, _COMPLETED_CODE, _NODE_COMPLETED_CODE) + pack_id(name)
    settle: tuple[Arg, ...] = ("1", claim.worker, "step", "settle", "1", head, "1", output)
    return [
        *settle,
        "claim",
        pack_id(claim.claim_id),
        claim.worker,
        "1",
        lane_text(lane),
        "0",
        limit,
        "1",
        claim.runs[0],
        "0",
    ]


def encode_settle(op: Settle, args: list[Arg]) -> None:
    attempt, status, node, output, error, outcome, delay, postponed, lines = op
    claim, ordinal = split_attempt_id(attempt)
    plain = status is _COMPLETED and node is _NODE_COMPLETED and error is None and outcome is None and not lines
    args.append(_SETTLEMENT.pack(plain, ordinal, ATTEMPT_CODE[status], NODE_CODE[node]) + pack_id(claim))
    args += payload(output)
    if plain:
        return
    args += (duration(delay or 0), "1" if postponed else "0")
    args += payload(op.error)
    args += payload(op.outcome)
    args.append(2 * len(op.lines))
    for kind, data in op.lines:
        args += (kind, data)


def news_of(found: Sequence[Any]) -> RunNews:
    run, status, gate, purpose, open_, active, failed, seq = found
    return RunNews(RunId(run.decode()), RUN_STATUS[status], GATE[gate], text(purpose), open_, active, failed, seq)


def settlements_of(found: Sequence[Any]) -> Iterator[Receipt]:
    """One receipt for each op of a set; those about one run share its news."""
    _, verdicts, which, news = found
    runs = [*map(news_of, news)]
    accepted = [Settled(False, run) for run in runs]
    for verdict, (place,) in zip(verdicts, _PLACE.iter_unpack(which), strict=True):
        if verdict == _ACCEPTED:
            yield accepted[place - 1]
        elif verdict == _FENCED:
            yield Refused(Refusal.FENCED)
        else:
            yield Settled(True, runs[place - 1])
