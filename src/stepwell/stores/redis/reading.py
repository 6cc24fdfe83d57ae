"""Queries: what is asked of the library, and rows from what it answers. It gives stored bytes; they are taken apart here."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, assert_never, cast

from ...base.ids import Digest, NodeId, WorkerId, attempt_id, split_attempt_id
from ...core.model import Lane, Query, queries, records, versions
from ...core.model.outputs import Completion
from ...core.model.rows import AttemptRow, JournalRow, LineRow, NodeRow, RunRow, WorkerRow
from ...core.model.status import NodeStatus
from ...core.store.rules.codes import ATTEMPT_STATUS, KINDS, NODE_STATUS, RUN_CODE, VERSION_CODE
from ...core.store.rules.paging import attempt_columns, page_of
from . import fields
from .decoding import Blobs, admission, attempts_of, run_row, whole
from .fields import Arg, duration, lane_text, many, maybe, pack_id, run_id_of, unpack_document, unpack_id

SCANNED = 2_000
"""Rows that one answer looks at, so that nobody else has to wait for long. A page may be short."""
SCANNED_RUNS = 1_000
NODE = struct.Struct(">BIHIIIIIII7s")
"""As `rows.lua` writes it; a claim and a reason may follow."""
LAYOUT = struct.Struct(">IHBIIIB")
"""As `graphs.lua` writes it; the id follows."""
_SUSPECT, _REASON, _CLAIM = 16, 32, 64
_LINE_ZERO = 1 << 31
_NAMED_BY_A_RUN = frozenset({"run", "gate", "healed", "created"})


class Asked(NamedTuple):
    args: list[Arg]
    answer: Callable[[Any, Blobs], Any]


class Reader:
    """Knows the lanes by their numbers: they never change."""

    def __init__(self, lane: Callable[[int], Lane]) -> None:
        self._lane = lane

    def ask(self, query: Query) -> Asked:
        if isinstance(query, queries.RunQuery):
            return self._of_run(query)
        match query:
            case queries.GetRun(run_id):
                return Asked(["get_run", run_id], lambda found, _: None if found is None else run_row(found))
            case queries.ListRuns():
                return Asked(runs_args(query), lambda found, _: found)
            case queries.ListEnded():
                return Asked(_ended_args(query), lambda found, _: _ended(found, query))
            case queries.GetGraph(digest):
                return Asked(["get_graph", digest], lambda found, _: unpack_document(found))
            case queries.GetGraphAges(digests):
                return Asked(
                    ["graph_ages", *many(digests)],
                    lambda found, _: {
                        digest: age for digest, age in zip(digests, found, strict=True) if age is not None
                    },
                )
            case queries.ListUnusedGraphs(after, limit, before):
                args = ["unused_graphs", *maybe(after), max(0, limit), *maybe(_time(before))]
                return Asked(args, lambda found, _: _unused(found, limit))
            case queries.ListStops(worker, limit):
                return Asked(["list_stops", worker], lambda found, _: queries.Page(attempts_of(found)[:limit]))
            case queries.ListWorkers(after, limit):
                return Asked(["list_workers", *maybe(after), max(0, limit)], lambda found, _: _workers(found, limit))
            case queries.ReadyRuns(runs):
                return Asked(["ready_runs", *many(runs)], lambda found, _: tuple(map(run_id_of, found)))
            case queries.ListReady(lanes, runs, serves, limit):
                named = [len(lanes), *(part for lane in lanes for part in (lane_text(lane), int(lane.suspect)))]
                pairs = many(part for pair in serves for part in pair)
                args = ["list_ready", *named, *many(runs), *pairs, max(0, limit)]
                return Asked(args, lambda found, _: tuple(map(run_id_of, found)))
            case queries.ListUnfinished(found_before, limit):
                return Asked(["list_unfinished"], lambda found, _: _unfinished(found, found_before, limit))
            case versions.GetVersion(kind, name, number, digest):
                args = ["get_version", VERSION_CODE[kind], name, *maybe(number), *maybe(digest)]
                return Asked(args, lambda found, _: None if found is None else _version(found))
            case versions.ListVersions(kind, name, number, limit):
                args = ["list_versions", VERSION_CODE[kind], name, number, max(0, limit)]
                return Asked(args, lambda found, _: page_of(map(_version, found), limit, lambda row: row.number))
            case versions.ListNames(kind, after, limit):
                args = ["list_names", VERSION_CODE[kind], *maybe(after), max(0, limit)]
                return Asked(args, lambda found, _: page_of(map(_name, found), limit, lambda row: row.name))
            case records.GetRecord(kind_, key):
                return Asked(["get_record", kind_, key], lambda found, _: None if found is None else _record(found))
            case records.ListRecords(kind_, after, limit):
                args = ["list_records", kind_, *maybe(after), max(0, limit)]
                return Asked(args, lambda found, _: page_of(map(_record, found), limit, lambda row: row.key))
            case _:
                assert_never(query)

    def _of_run(self, query: queries.RunQuery) -> Asked:
        run = query.run_id
        match query:
            case queries.CountNodes():
                return Asked(["count_nodes", run], _counts)
            case queries.ListNodes():
                first = query.after if query.indexes is None else max(query.after, min(query.indexes, default=0) - 1)
                chosen = bool(query.statuses) or query.indexes is not None
                count = max(0, 10_000 if chosen else min(query.limit, 10_000))
                return Asked(["list_nodes", run, max(first, -1), count], lambda found, _: self._nodes(found, query))
            case queries.ListAttempts(_, index, after, limit):
                most = max(0, min(limit, SCANNED))
                args = ["list_attempts", run, *maybe(index), after[0], max(0, after[1]), most]
                return Asked(args, lambda found, blobs: _attempts(found, blobs, most))
            case queries.GetNodeColumns(_, last, limit):
                args = ["node_columns", run, max(-1, last), max(0, min(limit, SCANNED))]
                return Asked(args, lambda found, _: self._node_columns(found, query))
            case queries.GetAttemptColumns(_, after, limit):
                most = max(0, min(limit, SCANNED))
                args = ["attempt_columns", run, after[0], max(0, after[1]), most]
                return Asked(args, lambda found, _: attempt_columns(found[0], found[1], most))
            case queries.GetOutputs(_, indexes, last, limit):
                most = max(0, min(limit, SCANNED))
                wanted = ("0",) if indexes is None else ("1", *many(sorted({i for i in indexes if i >= 0})))
                args = ["get_outputs", run, *wanted, max(-1, last), most]
                return Asked(args, _outputs)
            case queries.ListJournal():
                count = max(0, 10_000 if query.kinds or query.indexes is not None else min(query.limit, 10_000))
                args = ["list_journal", run, min(max(0, query.after), 2**53), count]
                return Asked(args, lambda found, _: _journal(found, query, count))
            case queries.ListLines() | queries.ListMarks():
                return Asked(lines_args(query, None), lambda found, _: found)
            case _:
                assert_never(query)

    def _nodes(self, found: Any, query: queries.ListNodes) -> queries.Page[NodeRow]:
        if found is None:
            return queries.Page()
        loaded, first, nodes, layout = found
        wanted = None if query.indexes is None else set(query.indexes)
        statuses = set(query.statuses)
        rows: list[NodeRow] = []
        for index, (node, of_graph) in enumerate(zip(nodes, layout, strict=True), first):
            status = NODE_STATUS[node[0] % _SUSPECT]
            if (
                index <= query.after
                or (wanted is not None and index not in wanted)
                or (statuses and status not in statuses)
            ):
                continue
            if len(rows) >= query.limit:
                break
            rows.append(self._node(index, status, node, of_graph))
        scanned = first + len(nodes)
        if rows and len(rows) >= query.limit:
            return queries.Page(rows, rows[-1].index)
        return queries.Page(rows, scanned - 1 if scanned < loaded and nodes else None)

    def _node_columns(self, found: Any, query: queries.GetNodeColumns) -> queries.NodeColumns:
        seq, nodes = found
        page = self._nodes(nodes or None, queries.ListNodes(query.run_id, query.after, query.limit))
        columns = (tuple(getattr(row, name) for row in page) for name in ("index", "id", "status", "reason"))
        return queries.NodeColumns._make((seq, *columns, page.cursor))

    def _node(self, index: int, status: NodeStatus, node: bytes, of_graph: bytes) -> NodeRow:
        flags, _, _, attempt, waiting, live, failures, losses, postponed, generation, at = NODE.unpack_from(node)
        _, number, _, _, _, _, size = LAYOUT.unpack_from(of_graph)
        name = of_graph[LAYOUT.size : LAYOUT.size + size].decode()
        due = int.from_bytes(at, "big") - 1
        rest = node[NODE.size :]
        if flags & _CLAIM:  # two bytes, then its length
            rest = rest[3 + rest[2] :]
        reason = rest.decode() if flags & _REASON else None
        lane = self._lane(number)._replace(suspect=bool(flags & _SUSPECT))
        slot = (index, NodeId(name), status, attempt, waiting, live, failures, losses, lane)
        return NodeRow._make((*slot, None if due < 0 else due, reason, generation, postponed))


def _time(value: int | None) -> int | None:
    return None if value is None else duration(value)


def runs_args(query: queries.ListRuns) -> list[Arg]:
    return [
        "list_runs",
        max(0, query.limit),
        *maybe(query.before),
        *maybe(query.workflow),
        *many(RUN_CODE[status] for status in query.statuses),
        *maybe(_time(query.ended_before)),
        *maybe(query.digest),
        *maybe(query.origin),
        *maybe(query.prefix),
        *many(f"\0{name}\0\0{value}\0" for name, value in query.tags),
        *maybe(_time(query.since)),
        *maybe(_time(query.until)),
        *maybe(_time(query.ended_since)),
        SCANNED_RUNS,
    ]


def _ended_args(query: queries.ListEnded) -> list[Arg]:
    at, number = (_time(query.since), -1) if query.after is None else query.after
    codes = many(RUN_CODE[status] for status in query.statuses)
    return ["list_ended", max(0, query.limit), at or 0, number, *maybe(query.workflow), *codes, SCANNED_RUNS]


def _ended(found: Any, query: queries.ListEnded) -> queries.Page[RunRow]:
    rows, at, number = found
    if rows and len(rows) == query.limit:
        last = run_row(rows[-1])
        return queries.Page(map(run_row, rows), (last.ended_at, admission(rows[-1])))
    return queries.Page(map(run_row, rows), None if at is None else (at, number))


def run_page(rows: Sequence[Any], more: bool) -> queries.RunPage:
    return queries.RunPage(tuple(map(run_row, rows)), admission(rows[-1]) if more and rows else None)


def lines_args(query: queries.ListLines | queries.ListMarks, start: bytes | None) -> list[Arg]:
    claim, ordinal, line = None, 0, 0
    if query.after is not None:
        name, line = query.after
        claim, ordinal = split_attempt_id(name)
    packed = None if claim is None else pack_id(claim)
    return ["list_lines", query.run_id, *maybe(packed), ordinal, line, *maybe(start), SCANNED]


def lines_of(
    values: Sequence[bytes], names: Sequence[bytes], query: queries.ListLines | queries.ListMarks
) -> Iterator[LineRow]:
    """Those of a part of all lines that are asked for."""
    for value, name in zip(values, names, strict=True):
        index = int.from_bytes(name[4:], "big") - _LINE_ZERO
        if (index < 0) != isinstance(query, queries.ListMarks):
            continue
        at = int.from_bytes(value[:7], "big")
        node, number, ordinal, claim, size = struct.unpack_from(">IIHBB", value, 7)
        begin = 19 + claim
        attempt, kind = attempt_id(unpack_id(value[19:begin]), ordinal), value[begin : begin + size].decode()
        row = LineRow(attempt, index, at, kind, value[begin + size :], node, number)
        if _is_wanted(row, query):
            yield row


def _is_wanted(row: LineRow, query: queries.ListLines | queries.ListMarks) -> bool:
    if isinstance(query, queries.ListMarks):
        return query.indexes is None or row.node in query.indexes
    return (
        (query.index is None or row.node == query.index)
        and (query.number is None or row.number == query.number)
        and (query.kind is None or row.kind == query.kind)
        and (query.since is None or row.at >= query.since)
    )


def _counts(found: Sequence[int] | None, _: Blobs) -> dict[NodeStatus, int]:
    return {NODE_STATUS[code]: count for code, count in enumerate(found or ()) if count}


def _attempts(found: Sequence[Any], blobs: Blobs, limit: int) -> queries.Page[AttemptRow]:
    rows: list[AttemptRow] = []
    for claim, ordinal, index, number, status, worker, started, ended, *payloads in found:
        slot = (attempt_id(unpack_id(claim), ordinal), index, number, ATTEMPT_STATUS[status], WorkerId(worker.decode()))
        rows.append(AttemptRow(*slot, started, ended, *(whole(payload, blobs) for payload in payloads)))
    return page_of(rows, limit, lambda row: (row.index, row.number))


def _outputs(found: Any, blobs: Blobs) -> queries.Page[tuple[int, Completion]]:
    rows, cursor = found
    each = zip(rows[::3], rows[1::3], rows[2::3], strict=True)
    return queries.Page(
        ((i, Completion(number, cast(bytes, whole(output, blobs)))) for i, number, output in each), cursor
    )


def _journal(found: Sequence[bytes], query: queries.ListJournal, count: int) -> queries.Page[JournalRow]:
    wanted = None if query.indexes is None else set(query.indexes)
    rows: list[JournalRow] = []
    for seq, entry in enumerate(found, max(0, query.after) + 1):
        code, at, index, attempt = fields.ENTRY.unpack_from(entry)
        kind = KINDS[code]
        node = None if index == fields.NO_NODE else index
        if (query.kinds and kind not in query.kinds) or (wanted is not None and node not in wanted):
            continue
        if len(rows) >= query.limit:
            break
        told = entry[fields.ENTRY.size :]
        status = None if not told else told.decode() if node is None else NODE_STATUS[told[0]]
        number = None if kind in _NAMED_BY_A_RUN else attempt
        rows.append(JournalRow(seq, int.from_bytes(at, "big"), kind, node, number, status))
    if rows and len(rows) >= query.limit:
        return queries.Page(rows, rows[-1].seq)
    return queries.Page(rows, max(0, query.after) + len(found) if found and len(found) == count else None)


def _unused(found: Sequence[bytes], limit: int) -> queries.Page[tuple[Digest, str]]:
    pairs = [
        (Digest(digest.decode()), workflow.decode()) for digest, workflow in zip(found[::2], found[1::2], strict=True)
    ]
    return page_of(pairs, limit, lambda pair: pair[0])


def _workers(found: Sequence[Any], limit: int) -> queries.Page[WorkerRow]:
    rows = (WorkerRow(WorkerId(name.decode()), int(until), int(renewed), info) for name, until, renewed, info in found)
    return page_of(rows, limit, lambda row: row.id)


def _unfinished(found: Any, after: tuple[str, str | None, str] | None, limit: int) -> queries.Page[queries.Unfinished]:
    items: list[queries.Unfinished] = []
    for name in found[::2]:
        workflow, target, digest = name.decode().split("\0")
        items.append(queries.Unfinished(workflow, target[1:] if target[0] == "1" else None, Digest(digest)))
    order: Callable[[Any], Any] = lambda item: (item[0], item[1] or "", item[2])  # noqa: E731
    left = (item for item in sorted(items, key=order) if after is None or order(item) > order(after))
    return page_of(left, limit, tuple)


def _version(found: Sequence[Any]) -> versions.VersionRow:
    name, number, digest, size, at, active, body = found
    return versions.VersionRow(name.decode(), number, digest.decode(), size, at, active == 1, body)


def _name(found: Sequence[Any]) -> versions.NameRow:
    name, newest, active, digest, at = found
    return versions.NameRow(name.decode(), newest, active, digest.decode(), at)


def _record(found: Sequence[Any]) -> records.RecordRow:
    key, version, value = found
    return records.RecordRow(key.decode(), version, value)
