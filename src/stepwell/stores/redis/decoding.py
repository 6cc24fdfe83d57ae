"""What the library answers, as records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from ...base.ids import AttemptId, RunId, attempt_id
from ...core.model import Op, Receipt, RecordPut, Refusal, Refused, RunRow, ops, receipts, versions
from ...core.store.rules.codes import GATE, RUN_STATUS
from ...core.store.rules.payloads import REFERENCE
from .fields import tags_of, text

Blobs = Mapping[bytes, bytes]
_NAMES = ("id", "workflow", "target", "digest", "on_failure", "idempotency_key", "purpose", "reason", "origin", "tags")
_TEXTS = tuple(map(RunRow._fields.index, _NAMES))
_NUMBERS = tuple(map(RunRow._fields.index, ("seed", "priority", "created_at", "timeout")))
"""Which fields of a run are sent as bytes, and are texts or numbers."""
_FENCED, _REPEATED = ord("f"), ord("r")
_FIXED = ("status", "gate", "tags", "stopping", "releasing")
_STATUS, _GATE, _TAGS, _STOPPING, _RELEASING = map(RunRow._fields.index, _FIXED)


def blobs_of(found: Sequence[bytes]) -> Blobs:
    return dict(zip(found[::2], found[1::2], strict=True))


def whole(value: bytes | None, blobs: Blobs) -> bytes | None:
    """A payload, or what it refers to."""
    return blobs[value] if value is not None and value[:1] == REFERENCE else value


def attempts_of(found: Sequence[Any]) -> tuple[AttemptId, ...]:
    return tuple(AttemptId(attempt.decode()) for attempt in found)


def run_row(found: Sequence[Any]) -> RunRow:
    row: list[Any] = [*found[:-1]]
    for place in _TEXTS:
        if row[place] is not None:
            row[place] = row[place].decode()
    for place in _NUMBERS:
        if row[place] is not None:
            row[place] = int(row[place])
    row[_STATUS], row[_GATE], row[_TAGS] = RUN_STATUS[row[_STATUS]], GATE[row[_GATE]], tags_of(row[_TAGS])
    row[_STOPPING], row[_RELEASING] = bool(row[_STOPPING]), bool(row[_RELEASING])
    return RunRow._make(row)


def admission(found: Sequence[Any]) -> int:
    return cast(int, found[-1])


def news_of(found: Sequence[Any]) -> receipts.RunNews:
    run, status, gate, purpose, open_, active, failed, seq = found
    return receipts.RunNews(
        RunId(run.decode()), RUN_STATUS[status], GATE[gate], text(purpose), open_, active, failed, seq
    )


def settlements_of(found: Sequence[Any]) -> Iterator[Receipt]:
    """One receipt for each op of a set; those about one run share its news."""
    _, verdicts, places, news = found
    runs = [*map(news_of, news)]
    accepted = [receipts.Settled(False, run) for run in runs]
    for verdict, place in zip(verdicts, places, strict=True):
        if verdict == _FENCED:
            yield Refused(Refusal.FENCED)
        elif verdict == _REPEATED:
            yield receipts.Settled(True, runs[place - 1])
        else:
            yield accepted[place - 1]


def decode(op: Op, found: Sequence[Any], blobs: Blobs) -> Receipt:
    kind, *fields = found
    if kind == b"claimed":
        return _claimed(cast(ops.Claim, op), fields, blobs)
    if kind == b"refused":
        return Refused(Refusal(fields[0].decode()), fields[1].decode())
    if kind == b"graph_added":
        return receipts.GraphAdded(cast(ops.AddGraph, op).digest, *fields)
    return _DECODERS[kind](*fields)


def _claimed(op: ops.Claim, fields: Sequence[Any], blobs: Blobs) -> receipts.Claimed:
    grants, rows = fields
    runs = sorted(map(run_row, rows), key=lambda row: row.id)
    return receipts.Claimed(tuple(grant for part in grants for grant in _grants(op.claim_id, part, blobs)), tuple(runs))


def _grants(claim: str, part: Sequence[Any], blobs: Blobs) -> Iterator[receipts.Grant]:
    """Those in one run."""
    run, heals, flat = part
    run_id = RunId(run.decode())
    for ordinal, index, number, past, inputs in zip(*[iter(flat)] * 5, strict=True):
        failures, losses, generation, postponed = past or (0, 0, 0, 0)
        outputs = zip(inputs[::2], inputs[1::2], strict=True) if inputs else ()
        taken = tuple((node, cast(bytes, whole(output, blobs))) for node, output in outputs)
        attempt = attempt_id(claim, ordinal)
        yield receipts.Grant(attempt, run_id, index, number, failures, losses, taken, generation, heals, postponed)


def _swept(lost: int, woken: int, runs: Any, gates: Any, next_due: int | None, workers: int) -> receipts.Swept:
    held = tuple(
        receipts.HeldGate(RunId(run.decode()), purpose.decode(), arguments) for run, purpose, arguments in gates
    )
    return receipts.Swept(lost, woken, tuple(map(news_of, runs)), held, next_due, workers)


_DECODERS: dict[bytes, Callable[..., Receipt]] = {
    b"created": lambda run, existed, loaded, total: receipts.Created(RunId(run.decode()), existed == 1, loaded, total),
    b"graph_switched": receipts.GraphSwitched,
    b"shared": receipts.Shared,
    b"appended": receipts.Appended,
    b"enlisted": receipts.Enlisted,
    b"renewed": lambda until, stop, released: receipts.Renewed(until, attempts_of(stop), released),
    b"dismissed": receipts.Dismissed,
    b"swept": _swept,
    b"gate_taken": lambda news: receipts.GateTaken(news_of(news)),
    b"rewritten": lambda news, finished: receipts.Rewritten(news_of(news), finished == 1),
    b"restored": lambda nodes, finished: receipts.Restored(nodes, finished == 1),
    b"deleted": lambda finished: receipts.Deleted(finished == 1),
    b"version_saved": lambda number, existed, active: versions.VersionSaved(number, existed == 1, active),
    b"version_activated": versions.VersionActivated,
    b"record_put": RecordPut,
}
