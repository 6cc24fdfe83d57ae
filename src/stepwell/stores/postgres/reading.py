"""The questions a store answers: each is one statement, with the way to read its rows."""

from __future__ import annotations

from operator import attrgetter, itemgetter
from typing import Any, assert_never

from ...base.ids import AttemptId, attempt_id, split_attempt_id
from ...core.model import Lane, Query, queries, records
from ...core.model.outputs import Completion
from ...core.model.rows import AttemptRow, JournalRow, LineRow, NodeRow, WorkerRow
from ...core.store.rules.codes import (
    ATTEMPT_STATUS,
    KIND_CODE,
    KINDS,
    NODE_CODE,
    NODE_STATUS,
    ORDINALS,
    RUN_STATUS,
)
from ...core.store.rules.paging import attempt_columns, node_columns
from .payloads import storable
from .questions import Question, Rows, ask_ready, ask_record, ask_unfinished, paged
from .receipts import attempts
from .run_rows import RUN, ask_ended, ask_run_counts, ask_runs, read_run


def question(query: Query) -> Question:
    match query:
        case queries.GetRun(run_id):
            given: dict[str, Any] = {"run": storable(run_id)}
            return Question(f"{RUN} WHERE r.id = %(run)s", given, lambda rows: read_run(rows[0]) if rows else None)
        case queries.ListRuns():
            return ask_runs(query)
        case queries.CountRuns():
            return ask_run_counts(query)
        case queries.ListEnded():
            return ask_ended(query)
        case queries.ListNodes():
            return _nodes(query)
        case queries.ListAttempts():
            return _attempts(query)
        case queries.GetNodeColumns() | queries.GetAttemptColumns():
            return _columns(query)
        case queries.GetOutputs():
            return _outputs(query)
        case queries.ListJournal():
            return _journal(query)
        case queries.ListLines():
            return _lines(query)
        case queries.ListMarks():
            return _marks(query)
        case queries.CountNodes(run_id):
            statement = """
SELECT n.status, count(*) FROM run r JOIN node n ON n.run = r.key WHERE r.id = %(run)s GROUP BY n.status"""
            return Question(statement, {"run": storable(run_id)}, lambda rows: {NODE_STATUS[s]: n for s, n in rows})
        case queries.ListReady():
            return ask_ready(query)
        case queries.ListUnfinished():
            return ask_unfinished(query)
        case records.GetRecord() | records.ListRecords():
            return ask_record(query)
        case queries.GetGraph(digest):
            statement = "SELECT document FROM graph WHERE digest = %(digest)s AND loaded = total"
            return Question(statement, {"digest": storable(digest)}, lambda rows: rows[0][0] if rows else None)
        case queries.GetGraphAges(digests):
            statement = "SELECT digest, key FROM graph WHERE digest = ANY(%(digests)s)"
            return Question(statement, {"digests": [*map(storable, digests)]}, dict)
        case queries.ListUnusedGraphs(after, limit, before):
            statement = """
SELECT digest, workflow FROM graph g
 WHERE digest > %(after)s AND (%(before)s::bigint IS NULL OR registered_at < %(before)s)
   AND NOT EXISTS (SELECT FROM run r WHERE r.graph = g.key) AND NOT EXISTS (SELECT FROM former_graph f WHERE f.graph = g.key)
 ORDER BY digest LIMIT %(limit)s"""
            given = {"after": storable(after or ""), "before": before, "limit": limit}
            return paged(statement, given, tuple, itemgetter(0))
        case queries.ListStops(worker, limit):
            given = {"worker": storable(worker), "limit": limit}
            statement = "SELECT stops(%(worker)s, %(limit)s)"
            return Question(statement, given, lambda rows: queries.Page(attempts(rows[0][0])))
        case queries.ListWorkers(first, limit):
            statement = """
SELECT id, lease_until, renewed_at, info FROM worker WHERE id > %(after)s ORDER BY id LIMIT %(limit)s"""
            given = {"after": storable(first or ""), "limit": limit}
            return paged(statement, given, WorkerRow._make, attrgetter("id"))
        case _:
            assert_never(query)


def _nodes(query: queries.ListNodes) -> Question:
    codes = ",".join(str(NODE_CODE[status]) for status in query.statuses)
    statement = f"""
SELECT n.idx, l.id, n.status, n.attempt, n.waiting, n.skipped, n.failures, n.losses, a.queue, a.body, a.careful, a.suspect,
       n.due_at, n.reason, n.generation, n.postponed, n.wakes
  FROM run r JOIN node n ON n.run = r.key JOIN layout l ON l.graph = r.graph AND l.idx = n.idx JOIN lane a ON a.key = n.lane
 WHERE r.id = %(run)s AND n.idx > %(after)s {f"AND n.status IN ({codes})" if codes else ""}
       {"" if query.indexes is None else "AND n.idx = ANY(%(indexes)s)"}
 ORDER BY n.idx LIMIT %(limit)s"""
    given = {"run": storable(query.run_id), "after": query.after, "limit": query.limit, "indexes": _ints(query.indexes)}
    return paged(statement, given, _node, attrgetter("index"))


def _node(row: tuple[Any, ...]) -> NodeRow:
    return NodeRow._make((*row[:2], NODE_STATUS[row[2]], *row[3:8], Lane(*row[8:12]), *row[12:]))


def _ints(indexes: tuple[int, ...] | None) -> list[int] | None:
    return None if indexes is None else [index for index in indexes if -(2**31) <= index < 2**31]


# One row at least, which has the `seq` of the run.
_NODE_COLUMNS = """
SELECT r.seq, n.* FROM run r LEFT JOIN LATERAL (
  SELECT n.idx, l.id, n.status, n.reason FROM node n JOIN layout l ON l.graph = r.graph AND l.idx = n.idx
   WHERE n.run = r.key AND n.idx > %(after)s ORDER BY n.idx LIMIT %(limit)s) n ON true
 WHERE r.id = %(run)s ORDER BY n.idx"""
_ATTEMPT_COLUMNS = """
SELECT r.seq, a.* FROM run r LEFT JOIN LATERAL (
  SELECT a.idx, a.number, a.status, a.started_at, a.ended_at {details} FROM attempt a
   WHERE a.run = r.key AND (a.idx, a.number) > (%(after)s, %(number)s) {chosen}
   ORDER BY a.idx, a.number LIMIT %(limit)s) a ON true
 WHERE r.id = %(run)s ORDER BY a.idx, a.number"""


def _columns(query: queries.ColumnQuery) -> Question:
    given: dict[str, Any] = {"run": storable(query.run_id), "limit": query.limit}

    def read(rows: Rows) -> Any:
        found = [row[1:] for row in rows if row[1] is not None]
        make = node_columns if isinstance(query, queries.GetNodeColumns) else attempt_columns
        return make(rows[0][0] if rows else 0, found, query.limit)

    if isinstance(query, queries.GetNodeColumns):
        return Question(_NODE_COLUMNS, given | {"after": query.after}, read)
    statement = _ATTEMPT_COLUMNS.format(
        details=", a.worker, whole_payload(a.run, a.error)" if query.details else "",
        chosen="" if query.indexes is None else "AND a.idx = ANY(%(indexes)s)",
    )
    after, number = query.after
    return Question(statement, given | {"after": after, "number": number, "indexes": _ints(query.indexes)}, read)


def _attempts(query: queries.ListAttempts) -> Question:
    statement = f"""
SELECT c.id, a.key %% {ORDINALS}, a.idx, a.number, a.status, a.worker, a.started_at, a.ended_at, whole_payload(a.run, a.output),
       whole_payload(a.run, a.error), whole_payload(a.run, a.outcome)
  FROM run r JOIN attempt a ON a.run = r.key JOIN claim c ON c.key = a.key / {ORDINALS}
 WHERE r.id = %(run)s AND (a.idx, a.number) > (%(node)s, %(number)s) {"" if query.index is None else "AND a.idx = %(index)s"}
 ORDER BY a.idx, a.number LIMIT %(limit)s"""
    node, number = query.after
    given = {"run": storable(query.run_id), "node": node, "number": number, "index": query.index, "limit": query.limit}
    return paged(statement, given, _attempt, attrgetter("index", "number"))


def _attempt(row: tuple[Any, ...]) -> AttemptRow:
    return AttemptRow(attempt_id(row[0], row[1]), row[2], row[3], ATTEMPT_STATUS[row[4]], *row[5:])


def _outputs(query: queries.GetOutputs) -> Question:
    statement = f"""
SELECT a.idx, a.number, whole_payload(a.run, a.output) FROM run r JOIN attempt a ON a.run = r.key
 WHERE r.id = %(run)s AND a.idx > %(after)s AND a.status = 1 {"" if query.indexes is None else "AND a.idx = ANY(%(indexes)s)"}
 ORDER BY a.idx LIMIT %(limit)s"""
    given = {"run": storable(query.run_id), "after": query.after, "limit": query.limit, "indexes": _ints(query.indexes)}
    return paged(statement, given, lambda row: (row[0], Completion(row[1], row[2] or b"")), itemgetter(0))


def _journal(query: queries.ListJournal) -> Question:
    kinds = ",".join(str(KIND_CODE.get(kind, -1)) for kind in query.kinds)
    statement = f"""
SELECT j.seq, j.at, j.kind, j.idx, j.number, j.status, j.detail FROM run r JOIN journal j ON j.run = r.key
 WHERE r.id = %(run)s AND j.seq > %(after)s {f"AND j.kind IN ({kinds})" if kinds else ""}
       {"" if query.indexes is None else "AND j.idx = ANY(%(indexes)s)"}
 ORDER BY j.seq LIMIT %(limit)s"""
    given = {"run": storable(query.run_id), "after": query.after, "limit": query.limit, "indexes": _ints(query.indexes)}
    return paged(statement, given, _entry, attrgetter("seq"))


def _entry(row: tuple[Any, ...]) -> JournalRow:
    seq, at, code, idx, number, status, detail = row
    kind = KINDS[code]
    named = detail if status is None else RUN_STATUS[status] if kind == "run" else NODE_STATUS[status]
    return JournalRow(seq, at, kind, idx, number, named)


_LINE_COLUMNS = f"c.id, a.key %% {ORDINALS}, l.idx, l.at, l.kind, whole_payload(a.run, l.data), a.idx, a.number"
_LINE = f"""
SELECT {_LINE_COLUMNS}
  FROM run r JOIN attempt a ON a.run = r.key JOIN line l ON l.attempt = a.key JOIN claim c ON c.key = a.key / {ORDINALS}
"""
# The lines of each attempt are read from their end, so that a page does not sort those of the whole run.
_LAST_LINES = f"""
SELECT {_LINE_COLUMNS}
  FROM (SELECT a.* FROM run r JOIN attempt a ON a.run = r.key WHERE r.id = %(run)s ORDER BY a.key DESC) a
 CROSS JOIN LATERAL (SELECT * FROM line l WHERE l.attempt = a.key AND l.idx >= 0 {{where}}
                      ORDER BY l.idx DESC LIMIT %(limit)s) l
  JOIN claim c ON c.key = a.key / {ORDINALS}
 ORDER BY a.key DESC, l.idx DESC LIMIT %(limit)s
"""
_LAST = 2**63 - 1
_PLACE = f"(coalesce((SELECT key * {ORDINALS} + %(ordinal)s FROM claim WHERE id = %(claim)s), %(unknown)s), %(line)s)"
_AFTER = f"(a.key, l.idx) > {_PLACE}"
_BEFORE = f"(a.key, l.idx) < {_PLACE}"


def _lines(query: queries.ListLines) -> Question:
    asked = {
        "a.idx = %(index)s": query.index,
        "a.number = %(number)s": query.number,
        "l.kind = %(kind)s": query.kind,
        # An attempt that had ended by then recorded nothing since, so its lines need not be looked at.
        "(a.ended_at IS NULL OR a.ended_at >= %(since)s) AND l.at >= %(since)s": query.since,
        _BEFORE if query.newest_first else _AFTER: query.after,
    }
    where = "".join(f" AND {condition}" for condition, value in asked.items() if value is not None)
    statement = (
        _LAST_LINES.format(where=where)
        if query.newest_first
        else f"{_LINE} WHERE r.id = %(run)s AND l.idx >= 0 {where} ORDER BY a.key, l.idx LIMIT %(limit)s"
    )
    given = {
        "run": storable(query.run_id),
        "index": query.index,
        "number": query.number,
        "kind": None if query.kind is None else storable(query.kind),
        "since": query.since,
        "limit": query.limit,
    }
    start = _start(query.after, unknown=_LAST if query.newest_first else -1)
    return paged(statement, given | start, _line, attrgetter("attempt", "index"))


def _marks(query: queries.ListMarks) -> Question:
    chosen = "" if query.indexes is None else "AND a.idx = ANY(%(indexes)s)"
    after = "" if query.after is None else f"AND {_AFTER}"
    statement = f"{_LINE} WHERE r.id = %(run)s AND l.idx < 0 {chosen} {after} ORDER BY a.key, l.idx LIMIT %(limit)s"
    given = {"run": storable(query.run_id), "indexes": _ints(query.indexes), "limit": query.limit}
    return paged(statement, given | _start(query.after), _line, attrgetter("attempt", "index"))


def _start(after: tuple[AttemptId, int] | None, unknown: int = -1) -> dict[str, Any]:
    """Where a page begins; an attempt that is not there is at `unknown`."""
    if after is None:
        return {}
    claim, ordinal = split_attempt_id(storable(after[0]))
    return {"claim": claim, "ordinal": ordinal, "line": after[1], "unknown": unknown}


def _line(row: tuple[Any, ...]) -> LineRow:
    return LineRow(attempt_id(row[0], row[1]), *row[2:])
