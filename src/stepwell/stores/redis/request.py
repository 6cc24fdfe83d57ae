"""A batch as one call of the library, and how its answer is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from ...base.ids import split_attempt_id
from ...core.model import Batch, NodeStatus, Op, Receipt, Refusal, Refused, ops
from ...core.model.rows import AttemptRow, JournalRow, LineRow
from ...core.store.rules.codes import KIND_CODE, NODE_CODE
from ...core.store.rules.grouping import groups, once_each
from ...core.store.rules.payloads import error_type
from ...core.store.rules.values import refuse_unfollowed, refuse_values
from ...core.store.rules.verdicts import illegal_row, refuse_restore
from .decoding import Blobs, decode, settlements_of
from .fields import Arg, Arguments, Fields, lane_text, pack_document
from .library import EDGES


class Request:
    def __init__(self, batch: Batch, keep: int | None) -> None:
        """`keep`: how long runs are kept after their end, which a sweep sees to."""
        self._arguments = Arguments()
        self._ops: list[Fields] = []
        self._batch = batch
        self._refused: dict[int, Receipt] = {}
        self._answered: list[list[int]] = []
        """The positions that each answer is about."""
        for kind, members in groups(batch):
            refuse: Callable[[Any], Refused | None] = _refuse_settlement if kind is ops.Settle else refuse_values
            positions = []
            for position in members:
                refused = refuse(batch[position]) or refuse_unfollowed(batch, position, self._refused)
                if refused is None:
                    positions.append(position)
                else:
                    self._refused[position] = refused
            for some in [positions] if kind is ops.Settle and positions else ([position] for position in positions):
                self._ops.append(_fields_of([batch[position] for position in some], self._arguments))
                self._answered.append(some)
        if keep is not None and any(type(op) is ops.Sweep and op.run is None for op in batch):
            self._ops.append({"op": "ForgetOld", "keep": keep})

    def arguments(self) -> list[Arg]:
        claims = [op for op in self._batch if type(op) is ops.Claim]
        workers = [op.worker for op in claims] + [op.worker for op in self._batch if type(op) is ops.Renew]
        lanes = {lane_text(lane) for op in claims for lane, _ in op.lanes}
        return self._arguments.of({"workers": [*dict.fromkeys(workers)], "lanes": [*lanes], "ops": self._ops})

    def receipts(self, answers: Sequence[Any], blobs: Blobs) -> list[Receipt]:
        receipts: list[Receipt | None] = [self._refused.get(position) for position in range(len(self._batch))]
        for positions, answer in zip(self._answered, answers, strict=True):
            first = self._batch[positions[0]]
            if isinstance(first, ops.Settle):
                for position, receipt in zip(positions, settlements_of(answer), strict=True):
                    receipts[position] = receipt
            else:
                receipts[positions[0]] = decode(first, answer, blobs)
        return cast("list[Receipt]", receipts)


def parts_before(op: ops.AddGraph) -> Iterator[list[Arg]]:
    """The calls before an op that has too many edges for one, with all but its last part.

    The graph stays incomplete meanwhile, so nobody sees whether only a part of this has come; each part is repeatable.
    """
    first, edges = 0, 0
    for place, row in enumerate(op.rows):
        wide, child = len(row.parents) > EDGES, op.start + place
        edges += len(row.parents)
        if edges > EDGES:
            document = None if op.start + first else op.document
            arguments = Arguments()
            part = op._replace(start=op.start + first, rows=op.rows[first:place], document=document)
            yield arguments.of({"workers": [], "ops": [_fields_of([part], arguments)]})
            first, edges = place, 0 if wide else len(row.parents)
        if wide:
            parents = sorted({*row.parents})
            for begin in range(0, len(parents), EDGES):
                some = {"digest": op.digest, "child": child, "from": begin, "parents": parents[begin : begin + EDGES]}
                yield Arguments().of({"workers": [], "ops": [{"op": "AddEdges", **some}]})


def _refuse_settlement(op: ops.Settle) -> Refused | None:
    """What can be decided without the rows."""
    if op.child is not None and (refused := refuse_values(op)) is not None:
        return refused
    if not op.legal:
        return Refused(Refusal.STATUS, f"{op.status} -> {op.node}")
    return None if split_attempt_id(op.attempt)[0] else Refused(Refusal.FENCED)


def _fields_of(group: Sequence[Op], arguments: Arguments) -> Fields:
    """An op by its fields, some of which differ from those of the record; a set of settlements as columns."""
    op = group[0]
    if isinstance(op, ops.Settle) and op.child is not None:
        settlement = _fields_of([op._replace(child=None)], arguments)
        return settlement | {"op": "HandOver", "child": _create(op.child, arguments)}
    if isinstance(op, ops.Settle):
        settlements = cast("Sequence[ops.Settle]", group)
        claims, ordinals = zip(*(split_attempt_id(each.attempt) for each in settlements), strict=True)
        columns = arguments.columns(settlements, 1)
        types = {"error_type": [error_type(each.error) or "" for each in settlements]} if "error" in columns else {}
        return {"op": "Settle", "claim": claims, "ordinal": ordinals, **columns, **types}
    own = _FIELDS.get(type(op))
    return {"op": type(op).__name__, **(arguments.fields(op) if own is None else own(op, arguments))}


def _claim(op: ops.Claim, _: Arguments) -> Fields:
    lanes = [(lane_text(lane), int(lane.suspect), max(0, limit)) for lane, limit in dict(op.lanes).items()]
    scope = {"runs": op.runs} if op.serves is None else {"serves": op.serves}
    return {"claim_id": op.claim_id, "worker": op.worker, "lanes": lanes, **scope}


def _attempt(
    op: ops.Append | LineRow | AttemptRow, attempt: str, arguments: Arguments, *, large: bool = False
) -> Fields:
    claim, ordinal = split_attempt_id(attempt)
    return arguments.fields(op, large=large) | {"claim": claim, "ordinal": ordinal}


def _add_graph(op: ops.AddGraph, arguments: Arguments) -> Fields:
    document = None if op.document is None else pack_document(op.document)
    rows = tuple(row._replace(parents=tuple(sorted({*row.parents}))) for row in op.rows)
    return arguments.fields(op._replace(document=document, rows=rows))


def _create(op: ops.Create, arguments: Arguments) -> Fields:
    """Seed and priority have more bits than a Lua number, so they are text."""
    fields = arguments.fields(op._replace(tags=op.tags or None))  # type: ignore[arg-type]
    return fields | {"seed": str(op.seed), "priority": str(op.priority), "urgency": f"{2**63 - 1 - op.priority:016x}"}


def _restore(op: ops.Restore, arguments: Arguments) -> Fields:
    row, refused = op.run, refuse_restore(op, graph_complete=True, restoring=True)
    fields = arguments.fields(row._replace(input=None, fork=None, tags=None))  # type: ignore[arg-type]
    fields |= _create(ops.Create.like(row), arguments)
    fields |= arguments.fields(op._replace(run=None, attempts=(), journal=(), lines=()))  # type: ignore[arg-type]
    return fields | {
        "attempts": [_attempt(attempt, attempt.id, arguments, large=True) for attempt in op.attempts],
        "journal": [_entry(entry, arguments) for entry in op.journal],
        "lines": [_attempt(line, line.attempt, arguments) for line in op.lines],
        **({} if refused is None else {"illegal": refused.detail}),
    }


def _entry(entry: JournalRow, arguments: Arguments) -> Fields:
    """What became of a node is a number there, of a run a text."""
    fields = arguments.fields(entry._replace(status=None)) | {"kind": KIND_CODE[entry.kind]}
    if entry.status:
        fields["status"] = str(entry.status) if entry.index is None else NODE_CODE[NodeStatus(entry.status)]
    return fields


def _rewrite(op: ops.Rewrite, arguments: Arguments) -> Fields:
    illegal = illegal_row(op.rows)
    return arguments.fields(op) | ({} if illegal is None else {"illegal": illegal})


_FIELDS: dict[type[Op], Callable[[Any, Arguments], Fields]] = {
    ops.Claim: _claim,
    ops.Append: lambda op, arguments: _attempt(op, op.attempt, arguments),
    ops.AddGraph: _add_graph,
    ops.Create: _create,
    ops.Restore: _restore,
    ops.Rewrite: _rewrite,
    ops.Share: lambda op, arguments: arguments.fields(op) | {"rows": once_each(op.rows)},
}
