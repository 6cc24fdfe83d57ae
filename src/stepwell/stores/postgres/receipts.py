"""What the functions of the schema answer, as receipts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...base.ids import AttemptId, RunId, attempt_id
from ...core.model import (
    Op,
    PutRecord,
    Receipt,
    RecordPut,
    Refusal,
    Refused,
    RunRow,
    ops,
    receipts,
)
from ...core.store.rules.codes import GATE, RUN_STATUS

Bytes = Iterator[bytes | None]
FENCED = Refused(Refusal.FENCED)
_PAST = ("number", "failures", "losses", "generation", "postponed", "skipped", "wakes")
"""What a node that is granted may have, besides its attempt."""
_PLACES = ("status", "gate", "seed", "tags", "input", "fork")
_STATUS, _GATE, _SEED, _TAGS, _INPUT, _FORK = map(RunRow._fields.index, _PLACES)


def news(row: Any) -> receipts.RunNews:
    _, run, status, gate, purpose, opened, active, failed, seq = row
    return receipts.RunNews(RunId(run), RUN_STATUS[status], GATE[gate], purpose, opened, active, failed, seq)


def attempts(pairs: Any) -> tuple[AttemptId, ...]:
    return tuple(attempt_id(claim, ordinal) for claim, ordinal in pairs)


def read(group: Sequence[Op], answer: Any, payloads: Bytes) -> Sequence[Receipt]:
    """What was answered to ops of one set, or to one that stands alone."""
    op = group[0]
    if type(op) is ops.Settle:
        refused = None if op.child is None else _refused(answer)
        return _settled(group, answer) if refused is None else [refused]  # type: ignore[arg-type]
    if type(op) is ops.Append:
        return [FENCED if run is None else receipts.Appended() for run in answer]
    if type(op) is ops.Create:
        return [_created(op, row) for op, row in zip(group, answer, strict=True)]  # type: ignore[arg-type]
    return [_refused(answer) or _READ[type(op)](op, answer, payloads)]


def _settled(settles: Sequence[ops.Settle], answer: Any) -> list[Receipt]:
    runs = {row[0]: news(row) for row in answer["news"]}
    found: list[Receipt] = []
    for op, verdict, run in zip(settles, answer["verdicts"], answer["runs"], strict=True):
        if verdict:
            found.append(receipts.Settled(verdict == 2, runs[run]))
        elif op.legal:
            found.append(FENCED)
        else:
            found.append(Refused(Refusal.STATUS, f"{op.status} -> {op.node}"))
    return found


def _created(op: ops.Create, row: Any) -> Receipt:
    if isinstance(row, bool):
        return Refused(Refusal.INCOMPLETE if row else Refusal.UNKNOWN, f"graph {op.digest}")
    run, existed, same, loaded, total, _ = row
    if existed and not same:
        return Refused(Refusal.CONFLICT, run)
    return receipts.Created(RunId(run), existed, loaded, total)


def _claimed(op: ops.Claim, answer: Any, payloads: Bytes) -> Receipt:
    if answer is None:
        return Refused(Refusal.LEASE_EXPIRED)
    inputs: dict[int, list[tuple[int, bytes]]] = {}
    for ordinal, ancestor in answer.get("inputs") or ():
        inputs.setdefault(ordinal, []).append((ancestor, next(payloads) or b""))
    taken = answer.get("taken")
    grants = _repeated(op, answer["grants"], inputs) if taken is None else _taken(op, taken, inputs)
    rows = answer.get("runs") or ()
    contents = [next(payloads) or b"" for _ in rows]
    forks = [next(payloads) for _ in rows]
    runs = tuple(run_row(row, content, fork) for row, content, fork in zip(rows, contents, forks, strict=True))
    return receipts.Claimed(grants, runs, answer["contended"])


def _taken(op: ops.Claim, taken: Any, inputs: Mapping[int, list[tuple[int, bytes]]]) -> tuple[receipts.Grant, ...]:
    """What a claim took now: nearly all of it nodes that have never run."""
    claim, ids, runs = op.claim_id, taken["ids"], taken["runs"].split(",")
    places = map(int, taken["idxs"].split(","))
    # Not by the class, which takes twice as long: a wide run is granted hundreds at a time.
    grants = [
        tuple.__new__(receipts.Grant, (f"{claim}.{ordinal}", ids[run], idx, 1, 0, 0, (), 0, 0, 0, 0, 0))
        for ordinal, (run, idx) in enumerate(zip(runs, places, strict=True))
    ]
    for ordinal, *past in taken["past"] or ():
        grants[ordinal] = grants[ordinal]._replace(**dict(zip(_PAST, past, strict=True)))
    for ordinal, given in inputs.items():
        grants[ordinal] = grants[ordinal]._replace(inputs=tuple(given))
    if taken["heals"]:
        heals = taken["heals"]
        grants = [grant._replace(heals=heals.get(run, 0)) for grant, run in zip(grants, runs, strict=True)]
    return tuple(grants)


def _repeated(op: ops.Claim, rows: Any, inputs: Mapping[int, list[tuple[int, bytes]]]) -> tuple[receipts.Grant, ...]:
    """What is still current of a claim that was made before."""
    return tuple(
        receipts.Grant(
            *(attempt_id(op.claim_id, ordinal), run, idx, number, failures, losses),
            *(tuple(inputs.get(ordinal, ())), generation, heals, *rest),
        )
        for ordinal, run, idx, number, failures, losses, generation, heals, *rest in rows
    )


def run_row(row: Sequence[Any], content: bytes, fork: bytes | None) -> RunRow:
    """A row of a run, with its two payloads in their places."""
    found = [*row, False]
    found[_STATUS], found[_GATE], found[_SEED] = RUN_STATUS[row[_STATUS]], GATE[row[_GATE]], int(row[_SEED])
    found[_TAGS] = tuple(map(tuple, json.loads(row[_TAGS]))) if row[_TAGS] else ()
    found[_INPUT], found[_FORK] = content, fork
    return RunRow._make(found)


def _renewed(_: ops.Renew, answer: Any, __: Bytes) -> Receipt:
    if answer is None:
        return Refused(Refusal.LEASE_EXPIRED)
    until, stop, released = answer
    return receipts.Renewed(until, attempts(stop), released)


def _swept(_: ops.Sweep, answer: Any, payloads: Bytes) -> Receipt:
    gates = tuple(
        receipts.HeldGate(RunId(run), purpose or "", next(payloads) or b"") for run, purpose in answer["gates"]
    )
    runs = tuple(news(row) for row in answer["news"])
    return receipts.Swept(answer["lost"], answer["woken"], runs, gates, answer["next_due"], answer["workers"])


def _graph_added(op: ops.AddGraph, answer: Any, _: Bytes) -> Receipt:
    if answer is None:
        return Refused(Refusal.INCOMPLETE, f"the nodes before {op.start} are not there yet")
    return receipts.GraphAdded(op.digest, *answer)


def _woken(_: ops.Wake, answer: Any, __: Bytes) -> Receipt:
    return receipts.Woken(None, None) if answer is None else receipts.Woken(news(answer["news"][0]), answer["queue"])


def _nodes_added(op: ops.AddNodes, answer: Any, _: Bytes) -> Receipt:
    if answer is None:
        return Refused(Refusal.UNKNOWN, op.run_id)
    if isinstance(answer, int):
        return Refused(Refusal.INCOMPLETE, f"the nodes before {op.start} are not there yet")
    loaded, total, repeated = answer
    return receipts.Created(op.run_id, repeated, loaded, total)


def _refused(answer: Any) -> Refused | None:
    if not isinstance(answer, dict) or "refused" not in answer:
        return None
    if "rows" in answer:
        detail = ",".join(map(str, answer["rows"]))
    elif "status" in answer:
        detail = RUN_STATUS[answer["status"]]
    else:
        detail = answer["detail"]
    return Refused(Refusal(answer["refused"]), detail)


_READ: Mapping[type[Op], Callable[[Any, Any, Bytes], Receipt]] = {
    ops.Claim: _claimed,
    ops.Wake: _woken,
    ops.Enlist: lambda op, answer, _: receipts.Enlisted(answer),
    ops.Renew: _renewed,
    ops.Dismiss: lambda op, answer, _: receipts.Dismissed(answer),
    ops.Sweep: _swept,
    ops.AddGraph: _graph_added,
    ops.AddNodes: _nodes_added,
    ops.Gate: lambda op, answer, _: receipts.GateTaken(news(answer["news"][0])),
    ops.Rewrite: lambda op, answer, _: receipts.Rewritten(news(answer["news"][0])),
    ops.SwitchGraph: lambda op, answer, _: receipts.GraphSwitched(*answer),
    ops.Share: lambda op, answer, _: receipts.Shared(answer),
    ops.Restore: lambda op, answer, _: receipts.Restored(answer["nodes"], answer["finished"]),
    ops.Delete: lambda op, answer, _: receipts.Deleted(answer),
    ops.DeleteGraph: lambda op, answer, _: receipts.Deleted(answer),
    PutRecord: lambda op, answer, _: RecordPut(answer[1]) if answer[0] else Refused(Refusal.CONFLICT, str(answer[1])),
}
