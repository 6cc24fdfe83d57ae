"""What the functions of the schema answer, as receipts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...ids import AttemptId, RunId, attempt_id
from ...model import Receipt, RecordPut, Refusal, Refused, RunRow, ops, receipts, versions
from ..rules.codes import GATE, RUN_STATUS

Bytes = Iterator[bytes | None]
FENCED = Refused(Refusal.FENCED)


def news(row: Any) -> receipts.RunNews:
    _, run, status, gate, purpose, opened, active, failed, seq = row
    return receipts.RunNews(RunId(run), RUN_STATUS[status], GATE[gate], purpose, opened, active, failed, seq)


def attempts(pairs: Any) -> tuple[AttemptId, ...]:
    return tuple(attempt_id(claim, ordinal) for claim, ordinal in pairs)


def nothing(answer: Any, _: Bytes) -> Sequence[Receipt]:
    return ()


def settled(settles: Sequence[ops.Settle], legal: Sequence[bool], answer: Any) -> list[Receipt]:
    runs = {row[0]: news(row) for row in answer["news"]}
    if "run" in answer:
        return [receipts.Settled(False, runs[answer["run"]])] * len(settles)
    if "verdicts" not in answer:
        return [receipts.Settled(False, runs[run]) for run in answer["runs"]]
    found: list[Receipt] = []
    for op, allowed, verdict, run in zip(settles, legal, answer["verdicts"], answer["runs"], strict=True):
        if verdict:
            found.append(receipts.Settled(verdict == 2, runs[run]))
        elif allowed:
            found.append(FENCED)
        else:
            found.append(Refused(Refusal.STATUS, f"{op.status} -> {op.node}"))
    return found


def appended(answer: Any, _: Bytes) -> Sequence[Receipt]:
    return [FENCED if run is None else receipts.Appended() for run in answer]


def created(op: ops.Create, row: Any) -> Receipt:
    if isinstance(row, bool):
        return Refused(Refusal.INCOMPLETE if row else Refusal.UNKNOWN, f"graph {op.digest}")
    run, existed, same, loaded, total, _ = row
    if existed and not same:
        return Refused(Refusal.CONFLICT, run)
    return receipts.Created(RunId(run), existed, loaded, total)


def claimed(op: ops.Claim, answer: Any, payloads: Bytes) -> Receipt:
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
    claim, places = op.claim_id, list(map(int, taken["idxs"].split(",")))
    runs = [taken["run"]] * len(places) if "run" in taken else taken["ids"]
    # Not by the class, which takes twice as long: a wide run is granted hundreds at a time.
    grants = [
        tuple.__new__(receipts.Grant, (f"{claim}.{ordinal}", run, idx, 1, 0, 0, (), 0, 0, 0))
        for ordinal, (run, idx) in enumerate(zip(runs, places, strict=True))
    ]
    for ordinal, number, failures, losses, generation, postponed in taken["past"] or ():
        past = {"number": number, "failures": failures, "losses": losses}
        grants[ordinal] = grants[ordinal]._replace(**past, generation=generation, postponed=postponed)
    for ordinal, given in inputs.items():
        grants[ordinal] = grants[ordinal]._replace(inputs=tuple(given))
    if taken["heals"]:
        heals = taken["heals"]
        grants = [grant._replace(heals=heals.get(grant.run_id, 0)) for grant in grants]
    return tuple(grants)


def _repeated(op: ops.Claim, rows: Any, inputs: Mapping[int, list[tuple[int, bytes]]]) -> tuple[receipts.Grant, ...]:
    """What is still current of a claim that was made before."""
    return tuple(
        receipts.Grant(
            *(attempt_id(op.claim_id, ordinal), run, idx, number, failures, losses),
            *(tuple(inputs.get(ordinal, ())), generation, heals, postponed),
        )
        for ordinal, run, idx, number, failures, losses, generation, heals, postponed in rows
    )


def run_row(row: Sequence[Any], content: bytes, fork: bytes | None) -> RunRow:
    """A row of a run, with its two payloads in their places."""
    run, workflow, target, digest, status, on_failure, _, seed, priority, key, gate, *rest = row
    purpose, stopping, *counts = rest
    tolerated, origin, tags, timeout = counts[-4:]
    values = (
        run,
        workflow,
        target,
        digest,
        RUN_STATUS[status],
        on_failure,
        content,
        int(seed),
        priority,
        key,
        GATE[gate],
    )
    labels = tuple(map(tuple, json.loads(tags))) if tags else ()
    return RunRow._make((*values, purpose, stopping, *counts[:-5], fork, tolerated, origin, labels, timeout, False))


def enlisted(answer: Any, _: Bytes) -> Sequence[Receipt]:
    return [receipts.Enlisted(answer)]


def renewed(answer: Any, _: Bytes) -> Sequence[Receipt]:
    if answer is None:
        return [Refused(Refusal.LEASE_EXPIRED)]
    until, stop, released = answer
    return [receipts.Renewed(until, attempts(stop), released)]


def dismissed(answer: Any, _: Bytes) -> Sequence[Receipt]:
    return [receipts.Dismissed(answer)]


def swept(answer: Any, payloads: Bytes) -> Sequence[Receipt]:
    gates = tuple(
        receipts.HeldGate(RunId(run), purpose or "", next(payloads) or b"") for run, purpose in answer["gates"]
    )
    runs = tuple(news(row) for row in answer["news"])
    return [receipts.Swept(answer["lost"], answer["woken"], runs, gates, answer["next_due"], answer["workers"])]


def graph_added(op: ops.AddGraph, answer: Any) -> Receipt:
    if answer is None:
        return Refused(Refusal.INCOMPLETE, f"the nodes before {op.start} are not there yet")
    return receipts.GraphAdded(op.digest, *answer)


def nodes_added(op: ops.AddNodes, answer: Any) -> Receipt:
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


def gate_taken(answer: Any, _: Bytes) -> Sequence[Receipt]:
    return [_refused(answer) or receipts.GateTaken(news(answer["news"][0]))]


def rewritten(answer: Any, _: Bytes) -> Sequence[Receipt]:
    return [_refused(answer) or receipts.Rewritten(news(answer["news"][0]))]


def switched(answer: Any, _: Bytes) -> Sequence[Receipt]:
    return [_refused(answer) or receipts.GraphSwitched(*answer)]


def shared(answer: Any, _: Bytes) -> Sequence[Receipt]:
    return [_refused(answer) or receipts.Shared(answer)]


def restored(answer: Any, _: Bytes) -> Sequence[Receipt]:
    return [_refused(answer) or receipts.Restored(answer["nodes"], answer["finished"])]


def deleted(answer: Any, _: Bytes) -> Sequence[Receipt]:
    return [_refused(answer) or receipts.Deleted(answer)]


def version_saved(answer: Any, _: Bytes) -> Sequence[Receipt]:
    return [versions.VersionSaved(*answer)]


def version_activated(op: versions.ActivateVersion, answer: Any) -> Receipt:
    if answer is None:
        return Refused(Refusal.UNKNOWN, op.name if op.number is None else f"{op.name}@{op.number}")
    return versions.VersionActivated(answer)


def record_put(answer: Any, _: Bytes) -> Sequence[Receipt]:
    done, version = answer
    return [RecordPut(version) if done else Refused(Refusal.CONFLICT, str(version))]
