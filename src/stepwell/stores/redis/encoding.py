"""Ops as the flat list of arguments that the library takes, and its receipts as records.

Numbers go as text and payloads as they are. A seed or a priority has more bits than a Lua number, so the library never
calculates with one: the urgency of a run is eight bytes that sort as its priority does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...base.ids import split_attempt_id
from ...core.model import JournalRow, NodeStatus, Op, PutRecord, ops, versions
from ...core.store.rules.codes import ATTEMPT_CODE, GATE_CODE, KIND_CODE, NODE_CODE, RUN_CODE, VERSION_CODE
from ...core.store.rules.grouping import once_each
from ...core.store.rules.verdicts import illegal_row, refuse_restore
from . import fields
from .fields import Arg, duration, flag, lane_text, many, maybe, pack_document, pack_id, payload, tags_text
from .library import EDGES

_REMOVED, _CAREFUL, _SUSPECT = 8, 16, 32


def encode(group: Sequence[Op]) -> list[Arg]:
    """Ops of one set, other than settlements."""
    if len(group) == 1:
        return _ENCODERS[type(group[0])](group[0])
    return [arg for op in group for arg in _ENCODERS[type(op)](op)]


def _claim(op: ops.Claim) -> list[Arg]:
    args: list[Arg] = ["claim", pack_id(op.claim_id), op.worker]
    lanes = dict(op.lanes)
    args.append(len(lanes))
    for lane, limit in lanes.items():
        args += (lane_text(lane), int(lane.suspect), max(0, limit))
    args += many(op.runs if op.serves is None else ())
    args += ("0",) if op.serves is None else ("1", *many(text for pair in op.serves for text in pair))
    return args


def _attempt(attempt: str) -> tuple[Arg, Arg]:
    claim, ordinal = split_attempt_id(attempt)
    return pack_id(claim), ordinal


def _numbers(values: Sequence[int]) -> bytes:
    return struct.pack(f">{len(values)}I", *values)


def _add_graph(op: ops.AddGraph) -> list[Arg]:
    args: list[Arg] = [
        "add_graph",
        op.digest,
        op.workflow,
        op.signature,
        *maybe(None if op.document is None else pack_document(op.document)),
        op.total,
        op.start,
    ]
    args.append(len(op.rows))
    for row in op.rows:
        flags = _REMOVED * row.removed + _CAREFUL * row.lane.careful + _SUSPECT * row.lane.suspect
        args += (row.id, _numbers(sorted({*row.parents})), _numbers(row.needs), lane_text(row.lane), row.rank, flags)
    return args


def parts_before(op: ops.AddGraph) -> Iterator[list[Arg]]:
    """What is sent before an op that has too many edges for one call. It is then only what is left that takes time.

    The graph stays incomplete meanwhile, so nobody sees whether only a part of this has come; each part is repeatable.
    """
    first, edges = 0, 0
    for place, row in enumerate(op.rows):
        wide, child = len(row.parents) > EDGES, op.start + place
        edges += len(row.parents)
        if edges > EDGES:
            document = None if op.start + first else op.document
            yield _add_graph(op._replace(start=op.start + first, rows=op.rows[first:place], document=document))
            first, edges = place, 0 if wide else len(row.parents)
        if wide:
            parents = sorted({*row.parents})
            for begin in range(0, len(parents), EDGES):
                yield ["add_edges", op.digest, child, begin, _numbers(parents[begin : begin + EDGES])]


def _new_run(kind: str, op: ops.Create, timeout: int | None) -> list[Arg]:
    return [
        kind,
        op.run_id,
        op.workflow,
        *maybe(op.target),
        op.digest,
        op.input,
        str(op.seed),
        op.on_failure,
        str(op.priority),
        (2**63 - 1 - op.priority).to_bytes(8, "big"),  # its urgency
        *maybe(timeout),
        *maybe(op.idempotency_key),
        *maybe(op.fork),
        *maybe(op.origin),
        *maybe(tags_text(op.tags)),
    ]


def _renew(op: ops.Renew) -> list[Arg]:
    held = (part for attempt in op.held or () for part in _attempt(attempt))
    told = ("0",) if op.held is None else ("1", *many(held))
    return ["renew", op.worker, duration(op.lease), *told, *maybe(None if op.since is None else duration(op.since))]


def _gate(op: ops.Gate) -> list[Arg]:
    return [
        *("gate", op.run_id, op.token, op.purpose, op.arguments, duration(op.lease), flag(op.stop)),
        *many(RUN_CODE[status] for status in op.allowed),
        flag(op.resume),
    ]


def _rewrite(op: ops.Rewrite) -> list[Arg]:
    args: list[Arg] = ["rewrite", op.run_id, op.token, *maybe(illegal_row(op.rows)), len(op.rows)]
    for row in op.rows:
        args += (row.index, NODE_CODE[row.was], row.was_attempt, NODE_CODE[row.status])
        args += (*maybe(row.reason), flag(row.fresh))
    if op.finish is None:
        return [*args, "0"]
    end = op.finish
    reason, grace = maybe(end.reason), duration(end.grace or 0)
    return [
        *args,
        "1",
        RUN_CODE[end.status],
        flag(end.open_gate),
        *reason,
        grace,
        flag(end.tolerate),
        *maybe(end.input),
    ]


def _restore(op: ops.Restore) -> list[Arg]:
    row = op.run
    refused = refuse_restore(op, graph_complete=True, restoring=True)
    args = _new_run("restore", ops.Create.like(row), row.timeout)
    args += (int(row.created_at), RUN_CODE[row.status], GATE_CODE[row.gate], flag(row.stopping))
    args += (row.seq, row.heals, row.tolerated, *maybe(row.started_at), *maybe(row.ended_at))
    args += (*maybe(row.deadline_at), *maybe(row.reason), *maybe(None if refused is None else refused.detail))
    args.append(len(op.nodes))
    for node in op.nodes:
        args += (node.index, NODE_CODE[node.status], node.attempt, node.waiting, node.live, node.failures, node.losses)
        args += (flag(node.lane.suspect), *maybe(node.due_at), *maybe(node.reason), node.generation, node.postponed)
    args.append(len(op.attempts))
    for attempt in op.attempts:
        args += (*_attempt(attempt.id), attempt.index, attempt.number, ATTEMPT_CODE[attempt.status], attempt.worker)
        args += (attempt.started_at, *maybe(attempt.ended_at))
        args += (*payload(attempt.output), *payload(attempt.error), *payload(attempt.outcome))
    args.append(len(op.journal))
    for entry in op.journal:
        args += (entry.seq, pack_entry(entry))
    args.append(len(op.lines))
    for line in op.lines:
        args += (*_attempt(line.attempt), line.index, line.at, line.kind, line.data)
    return [*args, *many(op.former_graphs), flag(op.finish)]


def pack_entry(entry: JournalRow) -> bytes:
    """As the library writes it."""
    index = fields.NO_NODE if entry.index is None else entry.index
    head = fields.ENTRY.pack(KIND_CODE[entry.kind], entry.at.to_bytes(7, "big"), index, entry.attempt or 0)
    if entry.index is not None and entry.status:
        return head + bytes((NODE_CODE[NodeStatus(entry.status)],))
    return head + (entry.status or "").encode()


_ENCODERS: dict[type[Op], Callable[[Any], list[Arg]]] = {
    ops.Claim: _claim,
    ops.Append: lambda op: ["append", *_attempt(op.attempt), op.index, op.kind, op.data],
    ops.AddGraph: _add_graph,
    ops.Create: lambda op: _new_run("create", op, None if op.timeout is None else duration(op.timeout)),
    ops.Share: lambda op: [
        *("share", op.run_id, op.token, op.origin, pack_id(op.claim_id)),
        *many(number for row in once_each(op.rows) for number in row),
    ],
    ops.Renew: _renew,
    ops.Gate: _gate,
    ops.Rewrite: _rewrite,
    ops.Sweep: lambda op: ["sweep", op.limit, *maybe(op.run)],
    ops.Restore: _restore,
    ops.AddNodes: lambda op: ["add_nodes", op.run_id, op.start],
    ops.SwitchGraph: lambda op: ["switch_graph", op.run_id, op.token, op.digest, op.start],
    ops.Enlist: lambda op: ["enlist", op.worker, duration(op.lease), op.info],
    ops.Dismiss: lambda op: ["dismiss", op.worker],
    ops.Delete: lambda op: ["delete", op.run_id, op.limit],
    ops.DeleteGraph: lambda op: ["delete_graph", op.digest, op.limit],
    versions.SaveVersion: lambda op: ["save_version", VERSION_CODE[op.kind], op.name, op.digest, op.body],
    versions.ActivateVersion: lambda op: ["activate_version", VERSION_CODE[op.kind], op.name, *maybe(op.number)],
    PutRecord: lambda op: ["put_record", op.kind, op.key, *maybe(op.value), *maybe(op.expected)],
}
