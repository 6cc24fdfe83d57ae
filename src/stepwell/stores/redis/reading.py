"""Queries: what is asked of the library, and rows from what it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from ...base.ids import AttemptId, Digest, NodeId, RunId, WorkerId, split_attempt_id
from ...core.model import Lane, Query, queries, records, versions
from ...core.model.outputs import Completion
from ...core.model.rows import AttemptRow, JournalRow, LineRow, NodeRow, RunRow, WorkerRow
from ...core.model.status import NodeStatus
from ...core.store.rules.codes import ATTEMPT_STATUS, KINDS, NODE_STATUS
from ...core.store.rules.paging import attempt_columns, page_of
from .decoding import Blobs, admission, attempts_of, run_row, whole
from .fields import Arguments, Fields, tags_text, text, unpack_document
from .library import SCANNED


class Question(NamedTuple):
    query: Query
    fields: Fields
    read: Callable[[Any, Any, Blobs], Any]
    """Makes the answer to the query from that of the library."""


class Reader:
    """Knows the lanes by their numbers: they never change."""

    def __init__(self, lane: Callable[[int], Lane]) -> None:
        self._lane = lane
        self._readers: dict[type[Query], Callable[[Any, Any, Blobs], Any]] = {
            **_READERS,
            queries.ListNodes: self._nodes,
            queries.GetNodeColumns: self._node_columns,
        }

    def question(self, query: Query, arguments: Arguments) -> Question:
        kind = type(query)
        fields = {"op": kind.__name__, **arguments.fields(query)}
        if "limit" in fields:
            fields["limit"] = max(0, min(fields["limit"], SCANNED))
        more = _MORE.get(kind)
        return Question(query, fields if more is None else fields | more(query), self._readers[kind])

    def _nodes(self, query: queries.ListNodes, found: Any, _: Blobs) -> queries.Page[NodeRow]:
        rows, cursor = found
        indexes = _chosen(query)
        if cursor is None and indexes is not None and len(indexes) > SCANNED:
            cursor = indexes[SCANNED - 1]
        return queries.Page(map(self._node, rows), cursor)

    def _node_columns(self, query: queries.GetNodeColumns, found: Any, _: Blobs) -> queries.NodeColumns:
        seq, (rows, cursor) = found
        nodes = [self._node(row) for row in rows]
        columns = (tuple(getattr(row, name) for row in nodes) for name in ("index", "id", "status", "reason"))
        return queries.NodeColumns._make((seq, *columns, cursor))

    def _node(self, found: Sequence[Any]) -> NodeRow:
        index, name, status, attempt, waiting, live, failures, losses, number, suspect, due, reason, *rest = found
        lane = self._lane(number)._replace(suspect=suspect == 1)
        counts = (attempt, waiting, live, failures, losses)
        return NodeRow(index, NodeId(name.decode()), NODE_STATUS[status], *counts, lane, due, text(reason), *rest)


def _chosen(query: queries.ListNodes) -> list[int] | None:
    return None if query.indexes is None else sorted({i for i in query.indexes if i > max(query.after, -1)})


def _chosen_nodes(query: queries.ListNodes) -> Fields:
    indexes = _chosen(query)
    return {} if indexes is None else {"indexes": indexes[:SCANNED]}


def _after_line(query: queries.ListLines | queries.ListMarks) -> Fields:
    """All lines are looked through: which are wanted is decided here."""
    fields: Fields = {"op": "ListLines", "limit": SCANNED}
    if query.after is None:
        return fields
    attempt, index = query.after
    claim, ordinal = split_attempt_id(attempt)
    return fields | {"claim": claim, "ordinal": ordinal, "index": index}


_MORE: dict[type[Query], Callable[[Any], Fields]] = {
    queries.ListRuns: lambda query: {"limit": max(0, query.limit), "tags": [tags_text([tag]) for tag in query.tags]},
    queries.ListNodes: _chosen_nodes,
    queries.ListJournal: lambda query: {
        "after": max(0, query.after),
        "limit": SCANNED if query.kinds or query.indexes is not None else max(0, min(query.limit, SCANNED)),
    },
    queries.ListLines: _after_line,
    queries.ListMarks: _after_line,
}
"""What goes with a query in place of its own fields."""


def _ended(query: queries.ListEnded, found: Any, _: Blobs) -> queries.Page[RunRow]:
    rows, at, number = found
    runs = [*map(run_row, rows)]
    if rows and len(rows) == query.limit:
        return queries.Page(runs, (runs[-1].ended_at, admission(rows[-1])))
    return queries.Page(runs, None if at is None else (at, number))


def run_page(rows: Sequence[Any], more: bool) -> queries.RunPage:
    return queries.RunPage(tuple(map(run_row, rows)), admission(rows[-1]) if more and rows else None)


def lines_of(rows: Sequence[Any], query: queries.ListLines | queries.ListMarks) -> list[LineRow]:
    """Those of a part of all lines that are asked for."""
    lines = [
        LineRow(AttemptId(attempt.decode()), index, at, kind.decode(), data, node, number)
        for attempt, index, at, kind, data, node, number in rows
        if (index < 0) == isinstance(query, queries.ListMarks)
    ]
    return [line for line in lines if _is_wanted(line, query)]


def _is_wanted(row: LineRow, query: queries.ListLines | queries.ListMarks) -> bool:
    if isinstance(query, queries.ListMarks):
        return query.indexes is None or row.node in query.indexes
    return (
        (query.index is None or row.node == query.index)
        and (query.number is None or row.number == query.number)
        and (query.kind is None or row.kind == query.kind)
        and (query.since is None or row.at >= query.since)
    )


def _counts(_: queries.CountNodes, found: Sequence[int] | None, __: Blobs) -> dict[NodeStatus, int]:
    return {NODE_STATUS[code]: count for code, count in enumerate(found or ()) if count}


def _attempts(query: queries.ListAttempts, found: Sequence[Any], blobs: Blobs) -> queries.Page[AttemptRow]:
    rows: list[AttemptRow] = []
    for name, index, number, status, worker, started, ended, *payloads in found:
        slot = (AttemptId(name.decode()), index, number, ATTEMPT_STATUS[status], WorkerId(worker.decode()))
        rows.append(AttemptRow(*slot, started, ended, *(whole(payload, blobs) for payload in payloads)))
    return page_of(rows, min(query.limit, SCANNED), lambda row: (row.index, row.number))


def _outputs(_: queries.GetOutputs, found: Any, blobs: Blobs) -> queries.Page[tuple[int, Completion]]:
    rows, cursor = found
    each = zip(rows[::3], rows[1::3], rows[2::3], strict=True)
    return queries.Page(
        ((i, Completion(number, cast(bytes, whole(output, blobs)))) for i, number, output in each), cursor
    )


def _journal(query: queries.ListJournal, found: Sequence[Any], _: Blobs) -> queries.Page[JournalRow]:
    wanted = None if query.indexes is None else set(query.indexes)
    rows: list[JournalRow] = []
    for seq, (code, at, node, attempt, status) in enumerate(found, max(0, query.after) + 1):
        kind = KINDS[code]
        if (query.kinds and kind not in query.kinds) or (wanted is not None and node not in wanted):
            continue
        if len(rows) >= query.limit:
            break
        became = NODE_STATUS[status] if isinstance(status, int) else text(status)
        rows.append(JournalRow(seq, at, kind, node, attempt, became))
    if rows and len(rows) >= query.limit:
        return queries.Page(rows, rows[-1].seq)
    return queries.Page(rows, max(0, query.after) + len(found) if len(found) == SCANNED else None)


def _unused(query: queries.ListUnusedGraphs, found: Sequence[bytes], _: Blobs) -> queries.Page[tuple[Digest, str]]:
    pairs = [
        (Digest(digest.decode()), workflow.decode()) for digest, workflow in zip(found[::2], found[1::2], strict=True)
    ]
    return page_of(pairs, query.limit, lambda pair: pair[0])


def _worker(found: Sequence[Any]) -> WorkerRow:
    name, until, renewed, info = found
    return WorkerRow(WorkerId(name.decode()), int(until), int(renewed), info)


def _unfinished(query: queries.ListUnfinished, found: Any, _: Blobs) -> queries.Page[queries.Unfinished]:
    items: list[queries.Unfinished] = []
    for name in found[::2]:
        workflow, target, digest = name.decode().split("\0")
        items.append(queries.Unfinished(workflow, target[1:] if target[0] == "1" else None, Digest(digest)))
    order: Callable[[Any], Any] = lambda item: (item[0], item[1] or "", item[2])  # noqa: E731
    left = (item for item in sorted(items, key=order) if query.after is None or order(item) > order(query.after))
    return page_of(left, query.limit, tuple)


def _version(found: Sequence[Any]) -> versions.VersionRow:
    name, number, digest, size, at, active, body = found
    return versions.VersionRow(name.decode(), number, digest.decode(), size, at, active == 1, body)


def _name(found: Sequence[Any]) -> versions.NameRow:
    name, newest, active, digest, at = found
    return versions.NameRow(name.decode(), newest, active, digest.decode(), at)


def _record(found: Sequence[Any]) -> records.RecordRow:
    key, version, value = found
    return records.RecordRow(key.decode(), version, value)


def _one(read: Callable[[Any], Any]) -> Callable[[Any, Any, Blobs], Any]:
    return lambda query, found, blobs: None if found is None else read(found)


def _page(read: Callable[[Any], Any], key: Callable[[Any], Any]) -> Callable[[Any, Any, Blobs], Any]:
    return lambda query, found, blobs: page_of(map(read, found), query.limit, key)


def _run_ids(_: Query, found: Sequence[bytes], __: Blobs) -> tuple[RunId, ...]:
    return tuple(RunId(run.decode()) for run in found)


_READERS: dict[type[Query], Callable[[Any, Any, Blobs], Any]] = {
    queries.GetRun: _one(run_row),
    queries.ListRuns: lambda query, found, blobs: found,
    queries.ListEnded: _ended,
    queries.GetGraph: lambda query, found, blobs: unpack_document(found),
    queries.GetGraphAges: lambda query, found, blobs: {
        digest: age for digest, age in zip(query.digests, found, strict=True) if age is not None
    },
    queries.ListUnusedGraphs: _unused,
    queries.ListStops: lambda query, found, blobs: queries.Page(attempts_of(found)[: query.limit]),
    queries.ListWorkers: _page(_worker, lambda row: row.id),
    queries.ReadyRuns: _run_ids,
    queries.ListReady: _run_ids,
    queries.ListUnfinished: _unfinished,
    queries.CountNodes: _counts,
    queries.ListAttempts: _attempts,
    queries.GetAttemptColumns: lambda query, found, blobs: attempt_columns(
        found[0], found[1], min(query.limit, SCANNED)
    ),
    queries.GetOutputs: _outputs,
    queries.ListJournal: _journal,
    queries.ListLines: lambda query, found, blobs: found,
    queries.ListMarks: lambda query, found, blobs: found,
    versions.GetVersion: _one(_version),
    versions.ListVersions: _page(_version, lambda row: row.number),
    versions.ListNames: _page(_name, lambda row: row.name),
    records.GetRecord: _one(_record),
    records.ListRecords: _page(_record, lambda row: row.key),
}
