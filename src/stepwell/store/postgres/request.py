"""A batch as one call: what it locks, its ops, and the arrays that their rows are cut from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from ...ids import split_attempt_id
from ...model import AttemptStatus, Batch, NodeStatus, Op, Receipt, RunStatus, may_settle, ops, records, versions
from ..rules.codes import ATTEMPT_CODE, NODE_CODE, RUN_CODE, VERSION_CODE
from ..rules.grouping import groups, once_each
from ..rules.payloads import is_large
from ..rules.values import refuse_values
from ..rules.verdicts import illegal_move
from . import receipts
from .payloads import Packer, graph_columns
from .restoring import restored_rows
from .texts import storable

Bytes: TypeAlias = Iterator[bytes | None]
Decoder: TypeAlias = Callable[[Any, Bytes], Sequence[Receipt]]

_CLAIMS, _RENEWS, _ALONE = 0, 1, 2
"""How a worker's row is locked."""


class Request:
    """One call of the function `commit_1`, and how its answer is read."""

    def __init__(self, batch: Batch) -> None:
        self._packer = Packer()
        self._ops: list[dict[str, Any]] = []
        self._decoders: list[tuple[list[int], Decoder]] = []
        self._workers: list[tuple[str, int]] = []
        self._names: list[tuple[str, str, bool]] = []
        self._lanes: list[tuple[str, str, bool]] = []
        self._runs: list[str] = []
        self._dismissed: list[str] = []
        self._watched: dict[str, None] = {}
        self._refused: dict[int, Receipt] = {}
        self._size = len(batch)
        for kind, members in groups(batch):
            good = (
                members
                if kind is ops.Settle or kind is ops.Append
                else [p for p in members if self._judge(batch[p], p)]
            )
            if good:
                self._add(kind, good, [batch[position] for position in good])

    @property
    def empty(self) -> bool:
        """Nothing of it is to be asked of the server."""
        return not self._ops

    def parameters(self) -> tuple[Any, ...]:
        batch: dict[str, Any] = {"ops": self._ops}
        optional = {
            "workers": self._workers,
            "names": self._names,
            "lanes": sorted(set(self._lanes)),
            "runs": self._runs,
            "dismissed": self._dismissed,
            "watched": [*self._watched],
        }
        batch |= {name: value for name, value in optional.items() if value}
        return (json.dumps(batch, separators=(",", ":")), *self._packer.arrays())

    def receipts(self, answer: Any, payloads: Sequence[bytes | None] | None) -> list[Receipt]:
        found: list[Receipt | None] = [self._refused.get(position) for position in range(self._size)]
        rest = iter(payloads or ())
        for (positions, decode), part in zip(self._decoders, answer or (), strict=True):
            for position, receipt in zip(positions, decode(part, rest), strict=True):
                found[position] = receipt
        return [receipt for receipt in found if receipt is not None]

    def _judge(self, op: Op, position: int) -> bool:
        refused = refuse_values(op)
        if refused is not None:
            self._refused[position] = refused
        return refused is None

    def _ask(self, positions: list[int], decode: Decoder, op: str, **given: Any) -> None:
        self._ops.append({"op": op, **given})
        self._decoders.append((positions, decode))

    def _payload(self, payload: bytes | None) -> int:
        self._packer.add(payload)
        return self._packer.size

    def _add(self, kind: type[Op], positions: list[int], group: list[Any]) -> None:
        if kind is ops.Settle:
            self._settle(positions, group)
        elif kind is ops.Append:
            self._append(positions, group)
        elif kind is ops.Create:
            self._create(positions, group)
        else:
            _ADD[kind](self, positions, group[0])

    def _settle(self, positions: list[int], group: list[ops.Settle]) -> None:
        first, large = self._packer.size, list[tuple[int, int]]()
        legal = [True] * len(group)
        if not self._settle_completed(group):
            legal = [may_settle(op.status, op.node) for op in group]
            first = self._settle_any(group, legal, large)
        given = {"large": large} if large else {}

        def decode(answer: Any, _: Bytes) -> Sequence[Receipt]:
            return receipts.settled(group, legal, answer)

        self._ask(positions, decode, "settle", **{"from": first + 1, "to": self._packer.size}, **given)

    def _settle_completed(self, group: list[ops.Settle]) -> bool:
        """Whether all have completed, with small outputs and nothing else: then their rows are added, quickly."""
        done, node = AttemptStatus.COMPLETED, NodeStatus.COMPLETED
        for op in group:
            if (
                op.status is not done
                or op.node is not node
                or op.error is not None
                or op.lines
                or op.delay
                or op.postponed
            ):
                return False
        outputs, outcomes = [op.output for op in group], [op.outcome for op in group]
        if any(map(is_large, filter(None, outputs))) or any(map(is_large, filter(None, outcomes))):
            return False
        names = [split_attempt_id(storable(op.attempt)) for op in group]
        self._packer.add_completed(names, ATTEMPT_CODE[done] + 16 * NODE_CODE[node], outputs, outcomes)
        return True

    def _settle_any(self, group: list[ops.Settle], legal: list[bool], large: list[tuple[int, int]]) -> int:
        """Add their rows, and answer after which they begin."""
        lines = [
            ops.Append(op.attempt, index, kind, data)
            for op, allowed in zip(group, legal, strict=True)
            if allowed
            for index, (kind, data) in enumerate(op.lines, ops.RECORDED)
        ]
        if lines:  # those of attempts that do not run are refused, as their settlements are
            self._append([], lines)
        first = self._packer.size
        for place, (op, allowed) in enumerate(zip(group, legal, strict=True)):
            claim, ordinal = split_attempt_id(storable(op.attempt)) if allowed else ("", 0)
            self._packer.add(
                self._packer.shorten(op.output, place, large),
                self._packer.shorten(op.error, place, large),
                self._packer.shorten(op.outcome, place, large),
                claim=claim,
                ordinal=ordinal,
                code=ATTEMPT_CODE[op.status] + 16 * NODE_CODE[op.node] + 256 * op.postponed,
                number=op.delay or 0,
            )
        return first

    def _append(self, positions: list[int], group: list[ops.Append]) -> None:
        first, large = self._packer.size, list[tuple[int, int]]()
        for place, op in enumerate(group):
            claim, ordinal = split_attempt_id(storable(op.attempt))
            data = self._packer.shorten(op.data, place, large)
            self._packer.add(data, claim=claim, ordinal=ordinal, number=op.index, kind=op.kind)
        given = {"large": large} if large else {}
        decode = receipts.appended if positions else receipts.nothing
        self._ask(positions, decode, "append", **{"from": first + 1, "to": self._packer.size}, **given)

    def _create(self, positions: list[int], group: list[ops.Create]) -> None:
        first, large = self._packer.size, list[tuple[int, int]]()
        rows = []
        for place, op in enumerate(group):
            self._packer.add(self._packer.shorten(op.input, place, large), op.fork)
            self._names.append(("run", op.run_id, False))
            self._names.append(("graph", op.digest, True))
            if op.idempotency_key is not None:
                self._names.append(("run", f"{op.workflow} {op.idempotency_key}", False))
            tags = json.dumps(op.tags) if op.tags else None
            rows.append(
                (
                    *(op.run_id, op.workflow, op.target, op.digest, str(op.seed), op.on_failure, -op.priority),
                    *(op.timeout, op.idempotency_key, op.origin, tags),
                )
            )
        given = {"large": large} if large else {}

        def decode(answer: Any, _: Bytes) -> Sequence[Receipt]:
            return [receipts.created(op, row) for op, row in zip(group, answer, strict=True)]

        self._ask(positions, decode, "create", rows=rows, **{"from": first + 1, "to": self._packer.size}, **given)

    def _claim(self, positions: list[int], op: ops.Claim) -> None:
        self._workers.append((storable(op.worker), _CLAIMS))
        self._names.append(("claim", storable(op.claim_id), False))
        self._watched[storable(op.worker)] = None
        lanes = [(*map(storable, lane[:2]), *map(bool, lane[2:]), limit) for lane, limit in dict(op.lanes).items()]
        scope: dict[str, Any] = {"runs": [*map(storable, op.runs)]}
        if op.serves is not None:
            scope = {"serves": [[*map(storable, pair)] for pair in dict.fromkeys(op.serves)]}

        def decode(answer: Any, payloads: Bytes) -> Sequence[Receipt]:
            return [receipts.claimed(op, answer, payloads)]

        self._ask(
            positions, decode, "claim", claim=storable(op.claim_id), worker=storable(op.worker), lanes=lanes, **scope
        )

    def _enlist(self, positions: list[int], op: ops.Enlist) -> None:
        self._workers.append((op.worker, _ALONE))
        self._names.append(("worker", op.worker, False))
        place = self._payload(op.info)
        self._ask(positions, receipts.enlisted, "enlist", worker=op.worker, lease=op.lease, **{"from": place})

    def _renew(self, positions: list[int], op: ops.Renew) -> None:
        worker = storable(op.worker)
        self._workers.append((worker, _RENEWS))
        self._watched[worker] = None
        held = {} if op.held is None else {"held": [split_attempt_id(storable(attempt)) for attempt in op.held]}
        self._ask(positions, receipts.renewed, "renew", worker=worker, lease=op.lease, since=op.since, **held)

    def _dismiss(self, positions: list[int], op: ops.Dismiss) -> None:
        worker = storable(op.worker)
        self._workers.append((worker, _ALONE))
        self._dismissed.append(worker)
        self._ask(positions, receipts.dismissed, "dismiss", worker=worker)

    def _sweep(self, positions: list[int], op: ops.Sweep) -> None:
        run = None if op.run is None else storable(op.run)
        self._ask(positions, receipts.swept, "sweep", limit=op.limit, run=run)

    def _add_graph(self, positions: list[int], op: ops.AddGraph) -> None:
        self._names.append(("graph", op.digest, False))
        self._lanes += {(row.lane.queue, row.lane.body, row.lane.careful) for row in op.rows}
        place = self._payload(op.document)
        given = graph_columns(op.start, op.rows) | {
            "digest": op.digest,
            "workflow": op.workflow,
            "signature": op.signature,
            "total": op.total,
        }

        def decode(answer: Any, _: Bytes) -> Sequence[Receipt]:
            return [receipts.graph_added(op, answer)]

        self._ask(positions, decode, "add_graph", start=op.start, size=len(op.rows), **given, **{"from": place})

    def _add_nodes(self, positions: list[int], op: ops.AddNodes) -> None:
        self._runs.append(storable(op.run_id))

        def decode(answer: Any, _: Bytes) -> Sequence[Receipt]:
            return [receipts.nodes_added(op, answer)]

        self._ask(positions, decode, "add_nodes", run=storable(op.run_id), start=op.start)

    def _gate(self, positions: list[int], op: ops.Gate) -> None:
        self._runs.append(op.run_id)
        place = self._payload(op.arguments)
        given = {"run": op.run_id, "token": op.token, "purpose": op.purpose, "lease": op.lease, "stop": op.stop}
        allowed = [RUN_CODE[status] for status in op.allowed]
        self._ask(positions, receipts.gate_taken, "gate", allowed=allowed, resume=op.resume, **given, **{"from": place})

    def _rewrite(self, positions: list[int], op: ops.Rewrite) -> None:
        run = storable(op.run_id)
        self._runs.append(run)
        first = {row.index: row for row in reversed(op.rows)}
        rows = [
            (
                *(row.index, NODE_CODE[row.was], row.was_attempt, NODE_CODE[row.status], row.reason, row.fresh),
                row is first[row.index],
            )
            for row in op.rows
        ]
        illegal = {RUN_CODE[status]: wrong for status in RunStatus if (wrong := illegal_move(op, status)) is not None}
        given: dict[str, Any] = {}
        if op.finish is not None:
            end = op.finish
            given["finish"] = (RUN_CODE[end.status], end.open_gate, end.reason, end.grace, end.tolerate)
            if end.input is not None:
                large: list[tuple[int, int]] = []
                given["from"] = self._payload(self._packer.shorten(end.input, 0, large))
                given |= {"large": large} if large else {}
        self._ask(
            positions,
            receipts.rewritten,
            "rewrite",
            run=run,
            token=storable(op.token),
            rows=rows,
            illegal=illegal,
            **given,
        )

    def _switch(self, positions: list[int], op: ops.SwitchGraph) -> None:
        run, digest = storable(op.run_id), storable(op.digest)
        self._runs.append(run)
        self._names.append(("graph", digest, True))
        given = {"run": run, "token": storable(op.token), "digest": digest, "start": op.start}
        self._ask(positions, receipts.switched, "switch_graph", **given)

    def _share(self, positions: list[int], op: ops.Share) -> None:
        run, origin = storable(op.run_id), storable(op.origin)
        self._runs += (run, origin)
        self._names.append(("claim", storable(op.claim_id), False))
        given = {"run": run, "origin": origin, "token": storable(op.token), "claim": storable(op.claim_id)}
        self._ask(positions, receipts.shared, "share", rows=once_each(op.rows), **given)

    def _restore(self, positions: list[int], op: ops.Restore) -> None:
        row, packer = op.run, self._packer
        self._runs.append(storable(row.id))
        self._names += (("run", storable(row.id), False), ("graph", storable(row.digest), True))
        if row.idempotency_key is not None:
            self._names.append(("run", f"{row.workflow} {row.idempotency_key}", False))
        self._lanes += {(node.lane.queue, node.lane.body, node.lane.careful) for node in op.nodes}
        large: list[tuple[int, int]] = []
        first = self._payload(packer.shorten(row.input, 0, large))
        packer.second[-1] = row.fork
        for attempt in op.attempts:
            claim, ordinal = split_attempt_id(attempt.id)
            payloads = (packer.shorten(each, 0, large) for each in (attempt.output, attempt.error, attempt.outcome))
            packer.add(*payloads, claim=claim, ordinal=ordinal)
        last = packer.size
        for line in op.lines:
            claim, ordinal = split_attempt_id(line.attempt)
            packer.add(packer.shorten(line.data, 0, large), claim=claim, ordinal=ordinal)
        given = restored_rows(op) | {"from": first, "to": last, "end": packer.size}
        self._ask(positions, receipts.restored, "restore", **given, **({"large": large} if large else {}))

    def _delete(self, positions: list[int], op: ops.Delete) -> None:
        self._runs.append(storable(op.run_id))
        self._ask(positions, receipts.deleted, "delete", run=storable(op.run_id), limit=op.limit)

    def _delete_graph(self, positions: list[int], op: ops.DeleteGraph) -> None:
        digest = storable(op.digest)
        self._names.append(("graph", digest, False))
        self._ask(positions, receipts.deleted, "delete_graph", digest=digest, limit=op.limit)

    def _save_version(self, positions: list[int], op: versions.SaveVersion) -> None:
        kind = VERSION_CODE[op.kind]
        self._names.append((f"version {kind}", op.name, False))
        place = self._payload(op.body)
        given = {"kind": kind, "name": op.name, "digest": op.digest, "from": place}
        self._ask(positions, receipts.version_saved, "save_version", **given)

    def _activate(self, positions: list[int], op: versions.ActivateVersion) -> None:
        kind, name = VERSION_CODE[op.kind], storable(op.name)
        self._names.append((f"version {kind}", name, False))

        def decode(answer: Any, _: Bytes) -> Sequence[Receipt]:
            return [receipts.version_activated(op, answer)]

        self._ask(positions, decode, "activate_version", kind=kind, name=name, number=op.number)

    def _put_record(self, positions: list[int], op: records.PutRecord) -> None:
        self._names.append((f"record {op.kind}", op.key, False))
        place = self._payload(op.value)
        given = {"kind": op.kind, "key": op.key, "expected": op.expected, "from": place}
        self._ask(positions, receipts.record_put, "put_record", **given)


_ADD: dict[type[Op], Callable[[Request, list[int], Any], None]] = {
    ops.Claim: Request._claim,
    ops.Enlist: Request._enlist,
    ops.Renew: Request._renew,
    ops.Dismiss: Request._dismiss,
    ops.Sweep: Request._sweep,
    ops.AddGraph: Request._add_graph,
    ops.AddNodes: Request._add_nodes,
    ops.Gate: Request._gate,
    ops.Rewrite: Request._rewrite,
    ops.SwitchGraph: Request._switch,
    ops.Share: Request._share,
    ops.Restore: Request._restore,
    ops.Delete: Request._delete,
    ops.DeleteGraph: Request._delete_graph,
    versions.SaveVersion: Request._save_version,
    versions.ActivateVersion: Request._activate,
    records.PutRecord: Request._put_record,
}
