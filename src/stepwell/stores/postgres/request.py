"""A batch as one call: what it locks, its ops, and the arrays that their rows are cut from."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any
from zlib import crc32

from ...base.ids import split_attempt_id
from ...core.model import AttemptStatus, Batch, NodeStatus, Op, Receipt, RunStatus, ops, records
from ...core.store.rules.codes import ATTEMPT_CODE, NODE_CODE, RUN_CODE
from ...core.store.rules.grouping import groups, once_each
from ...core.store.rules.payloads import error_type
from ...core.store.rules.values import refuse_unfollowed, refuse_values
from ...core.store.rules.verdicts import illegal_move
from .payloads import ArrayPacker, graph_columns, storable, texts
from .receipts import read
from .restoring import restored_rows

_CLAIMS, _RENEWS, _ALONE = 0, 1, 2
"""How a worker's row is locked."""


class BatchCall:
    """One call of the function `commit_batch`, and how its answer is read."""

    def __init__(self, batch: Batch) -> None:
        self._packer = ArrayPacker()
        self._ops: list[dict[str, Any]] = []
        self._asked: list[tuple[list[int], Sequence[Op]]] = []
        self._workers: dict[str, int] = {}
        self._names: dict[int, bool] = {}
        self._lanes: list[tuple[str, str, bool]] = []
        self._runs: list[str] = []
        self._dismissed: list[str] = []
        self._watched: dict[str, None] = {}
        self._refused: dict[int, Receipt] = {}
        self._size = len(batch)
        for kind, members in groups(batch):
            first = batch[members[0]]
            unjudged = isinstance(first, ops.Append) or (isinstance(first, ops.Settle) and first.child is None)
            good = members if unjudged else [p for p in members if self._judge(batch, p)]
            if good:
                self._add(kind, good, [batch[position] for position in good])

    @property
    def empty(self) -> bool:
        """Nothing of it is to be asked of the server."""
        return not self._ops

    def parameters(self) -> tuple[Any, ...]:
        batch: dict[str, Any] = {"ops": self._ops}
        optional = {
            "workers": sorted(self._workers.items()),
            "names": sorted(self._names.items()),
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
        for (positions, group), part in zip(self._asked, answer or (), strict=True):
            if positions:
                for position, receipt in zip(positions, read(group, part, rest), strict=True):
                    found[position] = receipt
        return [receipt for receipt in found if receipt is not None]

    def _lock_worker(self, worker: str, how: int) -> None:
        self._workers[worker] = max(how, self._workers.get(worker, how))

    def _lock_name(self, kind: str, name: str, *, shared: bool = False) -> None:
        """Lock a name that may be new. Runs share 256 numbers, so that no batch needs more locks than that."""
        if kind == "run":
            name = str(crc32(name.encode()) & 255)
        number = int.from_bytes(blake2b(f"{kind} {name}".encode(), digest_size=8).digest(), signed=True)
        self._names[number] = shared and self._names.get(number, True)

    def _judge(self, batch: Batch, position: int) -> bool:
        refused = refuse_values(batch[position]) or refuse_unfollowed(batch, position, self._refused)
        if refused is not None:
            self._refused[position] = refused
        return refused is None

    def _ask(self, positions: list[int], group: Sequence[Op], op: str, given: dict[str, Any]) -> None:
        self._ops.append({"op": op, **given})
        self._asked.append((positions, group))

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
            name, given_by = _ADD[kind]
            self._ask(positions, group, name, given_by(self, group[0]))

    def _rows_from(self, first: int, large: list[tuple[int, int]]) -> dict[str, Any]:
        """Where the rows of a set are, and which of them have large payloads."""
        return {"from": first + 1, "to": self._packer.size} | ({"large": large} if large else {})

    def _settle(self, positions: list[int], group: list[ops.Settle]) -> None:
        legal = [op.legal for op in group]
        lines = [
            ops.Append(op.attempt, index, kind, data)
            for op, allowed in zip(group, legal, strict=True)
            if allowed
            for index, (kind, data) in enumerate(op.lines, ops.RECORDED)
        ]
        recorded = self._lines(lines) if lines else {}
        child = group[0].child
        if child is not None:
            parts = {"lines": {"op": "append", **recorded}} if lines else {}
            parts["settlement"] = {"op": "settle", **self._settlements(group, legal)}
            parts["child"] = {"op": "create", **self._runs_to_create([child])}
            self._ask(positions, group, "hand_over", parts)
            return
        if lines:  # those of attempts that do not run are refused, as their settlements are
            self._ask([], lines, "append", recorded)
        self._ask(positions, group, "settle", self._settlements(group, legal))

    def _settlements(self, group: list[ops.Settle], legal: list[bool]) -> dict[str, Any]:
        first, large = self._packer.size, list[tuple[int, int]]()
        for place, (op, allowed) in enumerate(zip(group, legal, strict=True)):
            claim, ordinal = split_attempt_id(storable(op.attempt)) if allowed else ("", 0)
            self._packer.add(
                self._packer.shorten(op.output, place, large),
                self._packer.shorten(op.error, place, large),
                self._packer.shorten(op.outcome, place, large),
                claim=claim,
                ordinal=ordinal,
                code=ATTEMPT_CODE[op.status] + 32 * NODE_CODE[op.node] + 512 * op.postponed,
                number=op.wakes if op.status is AttemptStatus.PARKED else op.delay or 0,
                kind=op.reason if op.node is NodeStatus.SKIPPED else error_type(op.error),
            )
        return self._rows_from(first, large)

    def _append(self, positions: list[int], group: list[ops.Append]) -> None:
        self._ask(positions, group, "append", self._lines(group))

    def _lines(self, group: list[ops.Append]) -> dict[str, Any]:
        first, large = self._packer.size, list[tuple[int, int]]()
        for place, op in enumerate(group):
            claim, ordinal = split_attempt_id(storable(op.attempt))
            data = self._packer.shorten(op.data, place, large)
            self._packer.add(data, claim=claim, ordinal=ordinal, number=op.index, kind=op.kind)
        return self._rows_from(first, large)

    def _create(self, positions: list[int], group: list[ops.Create]) -> None:
        self._ask(positions, group, "create", self._runs_to_create(group))

    def _runs_to_create(self, group: list[ops.Create]) -> dict[str, Any]:
        first, large = self._packer.size, list[tuple[int, int]]()
        rows = []
        for place, op in enumerate(group):
            self._packer.add(self._packer.shorten(op.input, place, large), op.fork)
            self._lock_name("run", op.run_id)
            self._lock_name("graph", op.digest, shared=True)
            if op.idempotency_key is not None:
                self._lock_name("run", f"{op.workflow} {op.idempotency_key}")
            tags = json.dumps(op.tags) if op.tags else None
            rows.append(
                (
                    *(op.run_id, op.workflow, op.target, op.digest, str(op.seed), op.on_failure, -op.priority),
                    *(op.timeout, op.idempotency_key, op.origin, tags, op.parent, op.parent_node, op.depth),
                )
            )
        return {"rows": rows, **self._rows_from(first, large)}

    # What the function is given of an op that stands alone, after what it locks was noted.

    def _claim(self, op: ops.Claim) -> dict[str, Any]:
        self._lock_worker(storable(op.worker), _CLAIMS)
        self._lock_name("claim", storable(op.claim_id))
        self._watched[storable(op.worker)] = None
        lanes = [(*map(storable, lane[:2]), *map(bool, lane[2:]), limit) for lane, limit in dict(op.lanes).items()]
        scope = {"runs": texts([*map(storable, op.runs)])}
        if op.serves is not None:
            pairs = [tuple(map(storable, pair)) for pair in dict.fromkeys(op.serves)]
            scope = {"workflows": texts([pair[0] for pair in pairs]), "digests": texts([pair[1] for pair in pairs])}
        return {"claim": storable(op.claim_id), "worker": storable(op.worker), "lanes": lanes, **scope}

    def _enlist(self, op: ops.Enlist) -> dict[str, Any]:
        self._lock_worker(op.worker, _ALONE)
        self._lock_name("worker", op.worker)
        return {"worker": op.worker, "lease": op.lease, "from": self._payload(op.info)}

    def _renew(self, op: ops.Renew) -> dict[str, Any]:
        worker = storable(op.worker)
        self._lock_worker(worker, _RENEWS)
        self._watched[worker] = None
        held = {} if op.held is None else {"held": [split_attempt_id(storable(attempt)) for attempt in op.held]}
        return {"worker": worker, "lease": op.lease, "since": op.since, **held}

    def _dismiss(self, op: ops.Dismiss) -> dict[str, Any]:
        worker = storable(op.worker)
        self._lock_worker(worker, _ALONE)
        self._dismissed.append(worker)
        return {"worker": worker}

    def _sweep(self, op: ops.Sweep) -> dict[str, Any]:
        return {"limit": op.limit, "run": None if op.run is None else storable(op.run)}

    def _add_graph(self, op: ops.AddGraph) -> dict[str, Any]:
        self._lock_name("graph", op.digest)
        self._lanes += {(row.lane.queue, row.lane.body, row.lane.careful) for row in op.rows}
        named = {name: getattr(op, name) for name in ("digest", "workflow", "signature", "total", "start")}
        columns = graph_columns(op.start, op.rows)
        return named | columns | {"size": len(op.rows), "from": self._payload(op.document)}

    def _add_nodes(self, op: ops.AddNodes) -> dict[str, Any]:
        self._runs.append(storable(op.run_id))
        return {"run": storable(op.run_id), "start": op.start}

    def _wake(self, op: ops.Wake) -> dict[str, Any]:
        run, ended = storable(op.run_id), storable(op.ended or "")
        self._runs += (run, ended)
        return {"run": run, "index": op.index, "ended": ended}

    def _gate(self, op: ops.Gate) -> dict[str, Any]:
        self._runs.append(op.run_id)
        given = {name: getattr(op, name) for name in ("token", "purpose", "lease", "stop", "resume")}
        allowed = [RUN_CODE[status] for status in op.allowed]
        return given | {"run": op.run_id, "allowed": allowed, "from": self._payload(op.arguments)}

    def _rewrite(self, op: ops.Rewrite) -> dict[str, Any]:
        run = storable(op.run_id)
        self._runs.append(run)
        first = {row.index: row for row in reversed(op.rows)}
        rows = [
            (
                *(row.index, NODE_CODE[row.was], row.was_attempt, NODE_CODE[row.status], row.reason, row.fresh),
                *(row is first[row.index], row.anew),
            )
            for row in op.rows
        ]
        illegal = {RUN_CODE[status]: wrong for status in RunStatus if (wrong := illegal_move(op, status)) is not None}
        given: dict[str, Any] = {"run": run, "token": storable(op.token), "rows": rows, "illegal": illegal}
        if op.finish is not None:
            end = op.finish
            given["finish"] = (RUN_CODE[end.status], end.open_gate, end.reason, end.grace, end.tolerate)
            if end.input is not None:
                large: list[tuple[int, int]] = []
                given["from"] = self._payload(self._packer.shorten(end.input, 0, large))
                given |= {"large": large} if large else {}
        return given

    def _switch(self, op: ops.SwitchGraph) -> dict[str, Any]:
        run, digest = storable(op.run_id), storable(op.digest)
        self._runs.append(run)
        self._lock_name("graph", digest, shared=True)
        return {"run": run, "token": storable(op.token), "digest": digest, "start": op.start}

    def _share(self, op: ops.Share) -> dict[str, Any]:
        run, origin, claim = storable(op.run_id), storable(op.origin), storable(op.claim_id)
        self._runs += (run, origin)
        self._lock_name("claim", claim)
        return {"run": run, "origin": origin, "token": storable(op.token), "claim": claim, "rows": once_each(op.rows)}

    def _restore(self, op: ops.Restore) -> dict[str, Any]:
        row, packer = op.run, self._packer
        self._runs.append(storable(row.id))
        self._lock_name("run", storable(row.id))
        self._lock_name("graph", storable(row.digest), shared=True)
        if row.idempotency_key is not None:
            self._lock_name("run", f"{row.workflow} {row.idempotency_key}")
        self._lanes += {(node.lane.queue, node.lane.body, node.lane.careful) for node in op.nodes}
        large: list[tuple[int, int]] = []
        packer.add(packer.shorten(row.input, 0, large), row.fork)
        first = packer.size
        for attempt in op.attempts:
            claim, ordinal = split_attempt_id(attempt.id)
            payloads = (packer.shorten(each, 0, large) for each in (attempt.output, attempt.error, attempt.outcome))
            packer.add(*payloads, claim=claim, ordinal=ordinal)
        last = packer.size
        for line in op.lines:
            claim, ordinal = split_attempt_id(line.attempt)
            packer.add(packer.shorten(line.data, 0, large), claim=claim, ordinal=ordinal)
        places = {"from": first, "to": last, "end": packer.size}
        return restored_rows(op) | places | ({"large": large} if large else {})

    def _delete(self, op: ops.Delete) -> dict[str, Any]:
        self._runs.append(storable(op.run_id))
        return {"run": storable(op.run_id), "limit": op.limit}

    def _delete_graph(self, op: ops.DeleteGraph) -> dict[str, Any]:
        self._lock_name("graph", storable(op.digest))
        return {"digest": storable(op.digest), "limit": op.limit}

    def _put_record(self, op: records.PutRecord) -> dict[str, Any]:
        self._lock_name(f"record {op.kind}", op.key)
        given = {"kind": op.kind, "key": op.key, "expected": op.expected, "from": self._payload(op.value)}
        return given | ({"follows": True} if op.follows else {})


_ADD: dict[type[Op], tuple[str, Callable[[BatchCall, Any], dict[str, Any]]]] = {
    ops.Claim: ("claim", BatchCall._claim),
    ops.Wake: ("wake", BatchCall._wake),
    ops.Enlist: ("enlist", BatchCall._enlist),
    ops.Renew: ("renew", BatchCall._renew),
    ops.Dismiss: ("dismiss", BatchCall._dismiss),
    ops.Sweep: ("sweep", BatchCall._sweep),
    ops.AddGraph: ("add_graph", BatchCall._add_graph),
    ops.AddNodes: ("add_nodes", BatchCall._add_nodes),
    ops.Gate: ("gate", BatchCall._gate),
    ops.Rewrite: ("rewrite", BatchCall._rewrite),
    ops.SwitchGraph: ("switch_graph", BatchCall._switch),
    ops.Share: ("share", BatchCall._share),
    ops.Restore: ("restore", BatchCall._restore),
    ops.Delete: ("delete", BatchCall._delete),
    ops.DeleteGraph: ("delete_graph", BatchCall._delete_graph),
    records.PutRecord: ("put_record", BatchCall._put_record),
}
"""How each op that stands alone is called there, and what it is given."""
