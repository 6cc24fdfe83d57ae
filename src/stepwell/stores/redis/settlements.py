"""Settlements: as arguments of the library, and its verdicts as receipts."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from ...base.ids import RunId, split_attempt_id
from ...core.model import Receipt, Refusal, Refused, ops, receipts
from ...core.model.status import may_settle
from ...core.store.rules.codes import ATTEMPT_CODE, GATE, NODE_CODE, RUN_STATUS
from .fields import Arg, duration, flag, many, pack_id, payload, text

_PLACE = struct.Struct(">H")
_FENCED, _REPEATED = ord("f"), ord("r")
_HEAD = struct.Struct(">HBBB")
"""Ordinal, status of the attempt and of the node, whether there is more than an output; the id of the claim follows."""


def refused_here(op: ops.Settle) -> Refused | None:
    """What can be told without the rows."""
    if not may_settle(op.status, op.node):
        return Refused(Refusal.STATUS, f"{op.status} -> {op.node}")
    return None if split_attempt_id(op.attempt)[0] else Refused(Refusal.FENCED)


def encode_settlements(settlements: Sequence[ops.Settle]) -> list[Arg]:
    """A set of settlements that are not refused here."""
    args: list[Arg] = ["settle", len(settlements)]
    for op in settlements:
        claim, ordinal = split_attempt_id(op.attempt)
        more = bool(op.delay or op.postponed or op.lines) or op.error is not None or op.outcome is not None
        args.append(_HEAD.pack(ordinal, ATTEMPT_CODE[op.status], NODE_CODE[op.node], more) + pack_id(claim))
        args += payload(op.output)
        if more:
            args += (duration(op.delay or 0), flag(op.postponed), *payload(op.error), *payload(op.outcome))
            args += many(part for line in op.lines for part in line)
    return args


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
    for verdict, (place,) in zip(verdicts, _PLACE.iter_unpack(which), strict=True):
        if verdict == _FENCED:
            yield Refused(Refusal.FENCED)
        elif verdict == _REPEATED:
            yield receipts.Settled(True, runs[place - 1])
        else:
            yield accepted[place - 1]
