"""Queries: what is asked of the library, and rows from what it answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

from ...base.clock import SECOND
from ...base.ids import AttemptId, Digest, RunId, split_attempt_id
from ...core.model import Query, queries, records
from ...core.model.outputs import Completion
from ...core.model.rows import AttemptRow, JournalRow, LineRow, NodeRow, RunRow, WorkerRow
from ...core.model.status import NodeStatus
from ...core.store.rules.codes import KINDS, NODE_STATUS, RUN_STATUS
from ...core.store.rules.filtering import SECONDS_OF, folded, place_of
from ...core.store.rules.paging import attempt_columns, line_matches, page_of
from .decoding import Blobs, admission, record, value_of, whole
from .fields import LARGEST, Arguments, Fields, unpack_document
from .library import SCANNED


class LibraryQuestion(NamedTuple):
    query: Query
    fields: Fields
    read: Callable[[Any, Any, Blobs], Any]
    """Makes the answer to the query from that of the library."""


def question(query: Query, arguments: Arguments) -> LibraryQuestion:
    kind = type(query)
    fields = {"op": kind.__name__, **arguments.fields(query)}
    if "limit" in fields:
        fields["limit"] = max(0, min(fields["limit"], SCANNED))
    more = _MORE.get(kind)
    return LibraryQuestion(query, fields if more is None else fields | more(query), _READERS[kind])


def _nodes(query: queries.ListNodes, found: Any, _: Blobs) -> queries.Page[NodeRow]:
    return queries.Page(map(record(NodeRow), found[0]), _cursor(query, found[1]))


def _node_columns(_: queries.GetNodeColumns, found: Any, __: Blobs) -> queries.NodeColumns:
    seq, (rows, cursor) = found
    nodes = [*map(record(NodeRow), rows)]
    columns = (tuple(getattr(row, name) for row in nodes) for name in ("index", "id", "status", "reason"))
    return queries.NodeColumns._make((seq, *columns, cursor))


def _chosen(query: queries.ListNodes | queries.GetOutputs) -> list[int]:
    """The nodes that are named, of which one call looks at SCANNED."""
    return sorted({i for i in query.indexes or () if i > max(query.after, -1)})


def _cursor(query: queries.ListNodes | queries.GetOutputs, cursor: int | None) -> int | None:
    rest = _chosen(query)[SCANNED - 1 :]
    return rest[0] if cursor is None and len(rest) > 1 else cursor


def _chosen_nodes(query: queries.ListNodes | queries.GetOutputs) -> Fields:
    return {} if query.indexes is None else {"indexes": _chosen(query)[:SCANNED]}


def _after_line(query: queries.ListLines | queries.ListMarks) -> Fields:
    """All lines are looked through: which are wanted is decided here."""
    fields: Fields = {"op": "ListLines", "limit": SCANNED}
    if query.after is None:
        return fields
    attempt, index = query.after
    claim, ordinal = split_attempt_id(attempt)
    return fields | {"claim": claim, "ordinal": ordinal, "index": index}


def _searched(query: queries.ListRuns) -> Fields:
    return {} if query.text is None else {"text": folded(query.text)}


def _counted_runs(query: queries.CountRuns) -> Fields:
    asked = query.runs
    runs = Arguments().fields(asked) | _searched(asked)
    is_plain = asked == queries.ListRuns(asked.limit, asked.before, statuses=asked.statuses)
    return {"runs": runs, "plain": is_plain, "unit": SECONDS_OF.get(query.by, 0) * SECOND}


def run_counts(parts: Sequence[Sequence[Any]], query: queries.CountRuns, *, exact: bool) -> queries.CountedRuns:
    """Counts of several calls, as one."""
    counts: Counter[str] = Counter()
    for part in parts:
        for key, count in zip(part[::2], part[1::2], strict=True):
            counts[RUN_STATUS[int(key)] if query.by == "status" else key.decode()] += count
    return queries.CountedRuns(tuple(sorted(counts.items())), exact)


def _chosen_attempts(query: queries.GetAttemptColumns) -> Fields:
    if query.indexes is None:
        return {}
    return {"indexes": sorted({index for index in query.indexes if index >= max(query.after[0], 0)})[:SCANNED]}


def _attempt_columns(query: queries.GetAttemptColumns, found: Any, blobs: Blobs) -> queries.AttemptColumns:
    seq, rows = found
    if query.details:
        rows = [(*row[:5], row[5].decode(), whole(row[6], blobs)) for row in rows]
    columns = attempt_columns(seq, rows, min(query.limit, SCANNED))
    looked_at = _chosen_attempts(query).get("indexes", ())
    if columns.cursor is None and len(looked_at) == SCANNED:
        return columns._replace(cursor=(looked_at[-1], LARGEST))
    return columns


_MORE: dict[type[Query], Callable[[Any], Fields]] = {
    queries.ListRuns: lambda query: {"limit": max(0, query.limit)} | _searched(query),
    queries.CountRuns: _counted_runs,
    queries.ListNodes: _chosen_nodes,
    queries.GetOutputs: _chosen_nodes,
    queries.GetAttemptColumns: _chosen_attempts,
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
    runs = [*map(record(RunRow), rows)]
    if rows and len(rows) == query.limit:
        return queries.Page(runs, (runs[-1].ended_at, admission(rows[-1])))
    return queries.Page(runs, None if at is None else (at, number))


def run_page(rows: Sequence[Any], query: queries.ListRuns, more: bool) -> queries.RunPage:
    runs = tuple(map(record(RunRow), rows))
    return queries.RunPage(runs, (place_of(runs[-1], query.order) or 0, admission(rows[-1])) if more and runs else None)


def lines_of(rows: Sequence[Any], query: queries.ListLines | queries.ListMarks) -> list[LineRow]:
    """Those of a part of all lines that are asked for."""
    lines: Iterator[LineRow] = map(record(LineRow), rows)
    return [line for line in lines if line_matches(line, query)]


def _counts(_: queries.CountNodes, found: Sequence[int] | None, __: Blobs) -> dict[NodeStatus, int]:
    return {NODE_STATUS[code]: count for code, count in enumerate(found or ()) if count}


def _attempts(query: queries.ListAttempts, found: Sequence[Any], blobs: Blobs) -> queries.Page[AttemptRow]:
    rows: Iterator[AttemptRow] = map(record(AttemptRow), found)
    if blobs:
        rows = (
            AttemptRow._make(whole(value, blobs) if type(value) is bytes else value for value in row) for row in rows
        )
    return page_of(rows, min(query.limit, SCANNED), lambda row: (row.index, row.number))


def _outputs(query: queries.GetOutputs, found: Any, blobs: Blobs) -> queries.Page[tuple[int, Completion]]:
    rows = ((index, Completion(number, cast(bytes, whole(output, blobs)))) for index, number, output in found[0])
    return queries.Page(rows, _cursor(query, found[1]))


def _journal(query: queries.ListJournal, found: Sequence[Any], _: Blobs) -> queries.Page[JournalRow]:
    wanted = None if query.indexes is None else set(query.indexes)
    rows: list[JournalRow] = []
    for seq, (code, at, node, attempt, status) in enumerate(found, max(0, query.after) + 1):
        kind = KINDS[code]
        if (query.kinds and kind not in query.kinds) or (wanted is not None and node not in wanted):
            continue
        if len(rows) >= query.limit:
            break
        became = NODE_STATUS[status] if isinstance(status, int) else status and status.decode()
        rows.append(JournalRow(seq, at, kind, node, attempt, became))
    if rows and len(rows) >= query.limit:
        return queries.Page(rows, rows[-1].seq)
    return queries.Page(rows, max(0, query.after) + len(found) if len(found) == SCANNED else None)


def _unfinished(query: queries.ListUnfinished, found: Any, _: Blobs) -> queries.Page[queries.Unfinished]:
    items: list[queries.Unfinished] = []
    for name in found[::2]:
        workflow, target, digest = name.decode().split("\0")
        items.append(queries.Unfinished(workflow, target[1:] if target[0] == "1" else None, Digest(digest)))
    order: Callable[[Any], Any] = lambda item: (item[0], item[1] or "", item[2])  # noqa: E731
    left = (item for item in sorted(items, key=order) if query.after is None or order(item) > order(query.after))
    return page_of(left, query.limit, tuple)


def _one(kind: Any) -> Callable[[Any, Any, Blobs], Any]:
    return lambda query, found, blobs: None if found is None else record(kind)(found)


def _page(kind: Any, key: Callable[[Any], Any]) -> Callable[[Any, Any, Blobs], Any]:
    return lambda query, found, blobs: page_of(map(value_of(kind), found), query.limit, key)


_READERS: dict[type[Query], Callable[[Any, Any, Blobs], Any]] = {
    queries.GetRun: _one(RunRow),
    queries.ListRuns: lambda query, found, blobs: found,
    queries.CountRuns: lambda query, found, blobs: found,
    queries.ListEnded: _ended,
    queries.GetGraph: lambda query, found, blobs: unpack_document(found),
    queries.GetGraphAges: lambda query, found, blobs: {
        digest: age for digest, age in zip(query.digests, found, strict=True) if age is not None
    },
    queries.ListUnusedGraphs: _page(tuple[Digest, str], lambda pair: pair[0]),
    queries.ListStops: lambda query, found, blobs: queries.Page(map(value_of(AttemptId), found[: query.limit])),
    queries.ListWorkers: _page(WorkerRow, lambda row: row.id),
    queries.ListReady: lambda query, found, blobs: tuple(map(value_of(RunId), found)),
    queries.ListNodes: _nodes,
    queries.GetNodeColumns: _node_columns,
    queries.ListUnfinished: _unfinished,
    queries.CountNodes: _counts,
    queries.ListAttempts: _attempts,
    queries.GetAttemptColumns: _attempt_columns,
    queries.GetOutputs: _outputs,
    queries.ListJournal: _journal,
    queries.ListLines: lambda query, found, blobs: found,
    queries.ListMarks: lambda query, found, blobs: found,
    records.GetRecord: _one(records.RecordRow),
    records.ListRecords: _page(records.RecordRow, lambda row: row.key),
}
