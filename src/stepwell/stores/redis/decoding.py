"""What the library answers, as records: each is a list of its fields, which are read by their annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Any, Literal, NewType, cast, get_args, get_origin, get_type_hints

from ...base.ids import RunId, attempt_id
from ...core.model import (
    AttemptStatus,
    GateState,
    Lane,
    NodeStatus,
    Op,
    Receipt,
    Refusal,
    Refused,
    RunRow,
    RunStatus,
    ops,
    receipts,
)
from ...core.store.rules.codes import ATTEMPT_STATUS, GATE, NODE_STATUS, RUN_STATUS
from ...core.store.rules.payloads import REFERENCE
from .fields import lane_of

Blobs = Mapping[bytes, bytes]
_FENCED, _REPEATED = ord("f"), ord("r")
_STORED: dict[Any, Callable[[Any], Any]] = {
    AttemptStatus: ATTEMPT_STATUS.__getitem__,
    GateState: GATE.__getitem__,
    Lane: lambda found: lane_of(*found),
    NodeStatus: NODE_STATUS.__getitem__,
    RunStatus: RUN_STATUS.__getitem__,
    bytes: lambda found: found,
    str: bytes.decode,
}
_MISSING = {bool: False, tuple: ()}
"""What stands for nothing; elsewhere None does."""
_RECEIPTS = {kind.__name__.encode(): kind for kind in get_args(Receipt)}


@cache
def value_of(annotation: Any) -> Callable[[Any], Any]:
    """What makes a value of this annotation from what the library answers."""
    if isinstance(annotation, NewType):
        return value_of(annotation.__supertype__)
    if annotation in _STORED:
        return _STORED[annotation]
    members = [member for member in get_args(annotation) if member is not NoneType and member is not Ellipsis]
    if get_origin(annotation) is Literal:
        return bytes.decode
    if get_origin(annotation) is tuple:
        member = value_of(members[0])
        return lambda found: tuple(map(member, found))
    if members:
        return value_of(members[0])
    if issubclass(annotation, StrEnum):
        return lambda found: annotation(found.decode())
    return record(annotation) if hasattr(annotation, "_fields") else cast("Callable[[Any], Any]", annotation)


@cache
def record(kind: Any) -> Callable[[Sequence[Any]], Any]:
    """What makes a record of this kind from its fields; more than these are passed by."""
    hints = [get_type_hints(kind)[name] for name in kind._fields]
    places = [(value_of(hint), _MISSING.get(get_origin(hint) or hint)) for hint in hints]

    def make(found: Sequence[Any]) -> Any:
        return kind._make(
            [missing if value is None else read(value) for (read, missing), value in zip(places, found, strict=False)]
        )

    return make


def blobs_of(found: Sequence[bytes]) -> Blobs:
    return dict(zip(found[::2], found[1::2], strict=True))


def whole(value: bytes | None, blobs: Blobs) -> bytes | None:
    """A payload, or what it refers to."""
    return blobs[value] if value is not None and value[:1] == REFERENCE else value


def admission(found: Sequence[Any]) -> int:
    return cast(int, found[-1])


def settlements_of(found: Sequence[Any]) -> Iterator[Receipt]:
    """One receipt for each op of a set; those about one run share its news."""
    if found[0] == b"Refused":
        yield record(Refused)(found[1:])
        return
    _, verdicts, places, news = found
    runs = [*map(record(receipts.RunNews), news)]
    accepted = [receipts.Settled(False, run) for run in runs]
    for verdict, place in zip(verdicts, places, strict=True):
        if verdict == _FENCED:
            yield Refused(Refusal.FENCED)
        elif verdict == _REPEATED:
            yield receipts.Settled(True, runs[place - 1])
        else:
            yield accepted[place - 1]


def decode(op: Op, found: Sequence[Any], blobs: Blobs) -> Receipt:
    kind = _RECEIPTS[found[0]]
    if kind is receipts.Claimed:
        grants, rows = found[1:]
        runs = sorted(map(record(RunRow), rows), key=lambda row: row.id)
        claim = cast(ops.Claim, op).claim_id
        return receipts.Claimed(tuple(grant for part in grants for grant in _grants(claim, part, blobs)), tuple(runs))
    return cast(Receipt, record(kind)(found[1:]))


def _grants(claim: str, part: Sequence[Any], blobs: Blobs) -> Iterator[receipts.Grant]:
    """Those in one run."""
    run, heals, flat = part
    run_id = RunId(run.decode())
    for ordinal, index, number, past, inputs in zip(*[iter(flat)] * 5, strict=True):
        failures, losses, generation, postponed, skipped, wakes = past or (0, 0, 0, 0, 0, 0)
        outputs = zip(inputs[::2], inputs[1::2], strict=True) if inputs else ()
        taken = tuple((node, cast(bytes, whole(output, blobs))) for node, output in outputs)
        attempt = attempt_id(claim, ordinal)
        history = (taken, generation, heals, postponed, skipped, wakes)
        yield receipts.Grant(attempt, run_id, index, number, failures, losses, *history)
