"""The SQL that answers each query."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, assert_never

from ...base.ids import AttemptId, attempt_id, split_attempt_id
from ...core.model import (
    AttemptRow,
    JournalRow,
    LineRow,
    NodeRow,
    Page,
    Query,
    WorkerRow,
    ops,
    queries,
    records,
)
from ...core.model.outputs import Completion
from ...core.store.rules import codes
from ...core.store.rules.paging import attempt_columns, node_columns, page_of
from .ops.attempts import of_run
from .ops.ending import Transaction
from .ops.leases import stops
from .ops.records import answer_record
from .payloads import resolve, unpack
from .run_rows import RUN, count_runs, ended_runs, list_runs, run_row

_NEVER = 2**63 - 1
_FIRST_ATTEMPTS = 4
"""Attempts whose lines are read for a page; then twice as many, until it is full."""
_UNUSED_GRAPHS = """
SELECT digest, workflow FROM graph g
 WHERE digest > ? AND registered_at < ? AND NOT EXISTS (SELECT 1 FROM run WHERE run.graph = g.key)
   AND NOT EXISTS (SELECT 1 FROM former_graph f WHERE f.graph = g.key) ORDER BY digest LIMIT ?
"""
_UNFINISHED = f"""
SELECT DISTINCT r.workflow, r.target, g.digest
  FROM run r INDEXED BY run_unfinished CROSS JOIN graph g ON g.key = r.graph
 WHERE r.status < {codes.R_TERMINAL} AND (r.workflow, coalesce(r.target, ''), g.digest) > (?, ?, ?)
 ORDER BY r.workflow, coalesce(r.target, ''), g.digest LIMIT ?
"""


def answer(tx: Transaction, query: Query) -> Any:
    match query:
        case queries.GetRun(run_id):
            row = tx.one(RUN + "WHERE r.id = ?", (run_id,))
            return None if row is None else run_row(tx, row)
        case queries.ListRuns():
            return list_runs(tx, query)
        case queries.CountRuns():
            return count_runs(tx, query)
        case queries.ListEnded():
            return ended_runs(tx, query)
        case queries.ListNodes():
            return _nodes(tx, query)
        case queries.ListAttempts():
            return _attempts(tx, query)
        case queries.GetNodeColumns() | queries.GetAttemptColumns():
            return _columns(tx, query)
        case queries.GetOutputs():
            return _outputs(tx, query)
        case queries.GetGraph(digest):
            document = "SELECT data FROM document JOIN graph ON key = graph WHERE digest = ? AND loaded = total"
            row = tx.one(document, (digest,))
            return None if row is None else row[0]
        case queries.GetGraphAges(digests):
            ages = "SELECT digest, key FROM graph WHERE digest IN (SELECT value FROM json_each(?))"
            return dict(tx.all(ages, (json.dumps(digests),)))
        case queries.ListUnusedGraphs(after, limit, before):
            found = tx.all(_UNUSED_GRAPHS, (after or "", _NEVER if before is None else before, limit))
            return page_of(found, limit, itemgetter(0))
        case queries.ListJournal():
            return _journal(tx, query)
        case queries.ListLines():
            return _lines(tx, query)
        case queries.ListMarks():
            return _marks(tx, query)
        case queries.ListStops(worker, limit):
            return Page(stops(tx, worker, limit))
        case queries.ListWorkers(first, limit):
            workers = "SELECT id, lease_until, renewed_at, info FROM worker WHERE id > ? ORDER BY id LIMIT ?"
            return page_of([WorkerRow(*row) for row in tx.all(workers, (first or "", limit))], limit, attrgetter("id"))
        case queries.CountNodes(run_id):
            counted = "SELECT status, count(*) FROM node WHERE run = (SELECT key FROM run WHERE id = ?) GROUP BY status"
            return {codes.NODE_STATUS[status]: count for status, count in tx.all(counted, (run_id,))}
        case queries.ListUnfinished(last, limit):
            start = ("", "", "") if last is None else (last[0], last[1] or "", last[2])
            rows = tx.all(_UNFINISHED, (*start, limit))
            return page_of([queries.Unfinished(*row) for row in rows], limit, tuple)
        case queries.ListReady(lanes, runs, serves, limit):
            asked = {"lanes": [tx.lanes.key(tx.db, lane) for lane in lanes], "runs": runs, "serves": serves}
            given = {key: json.dumps(value) for key, value in asked.items()}
            return tuple(run for (run,) in tx.all(_LIST_READY, given | {"limit": limit}))
        case records.GetRecord() | records.ListRecords():
            return answer_record(tx, query)
        case _:
            assert_never(query)


def _nodes(tx: Transaction, query: queries.ListNodes) -> Page[NodeRow]:
    statuses = ",".join(str(codes.NODE_CODE[status]) for status in query.statuses)
    chosen = "" if query.indexes is None else "AND n.idx IN (SELECT value FROM json_each(?))"
    statement = f"""
SELECT json_group_array(json_array(idx, id, status, attempt, waiting, skipped, failures, losses, lane, due_at, reason,
                                   generation, postponed, wakes))
  FROM (SELECT n.idx, l.id, n.status, n.attempt, n.waiting, n.skipped, n.failures, n.losses, n.lane, n.due_at,
               n.reason, n.generation, n.postponed, n.wakes
          FROM run r CROSS JOIN node n ON n.run = r.key CROSS JOIN layout l ON l.graph = r.graph AND l.idx = n.idx
         WHERE r.id = ? AND n.idx > ? {f"AND n.status IN ({statuses})" if statuses else ""} {chosen}
         ORDER BY n.idx LIMIT ?)
"""
    indexes = () if query.indexes is None else (json.dumps(query.indexes),)
    rows = tx.json(statement, (query.run_id, query.after, *indexes, query.limit))
    found = [
        NodeRow._make((idx, node, codes.NODE_STATUS[status], *counts, tx.lanes.lane(tx.db, lane), *rest))
        for (idx, node, status), counts, lane, rest in ((row[:3], row[3:8], row[8], row[9:]) for row in rows)
    ]
    return page_of(found, query.limit, attrgetter("index"))


_NODE_COLUMNS = """
SELECT n.idx, l.id, n.status, n.reason FROM node n CROSS JOIN layout l ON l.graph = :graph AND l.idx = n.idx
 WHERE n.run = :run AND n.idx > :after ORDER BY n.idx LIMIT :limit
"""
_ATTEMPT_COLUMNS = "a.idx, a.number, a.status, a.started_at, a.ended_at"


def _columns(tx: Transaction, query: queries.ColumnQuery) -> queries.NodeColumns | queries.AttemptColumns:
    row = tx.one("SELECT key, graph, seq FROM run WHERE id = ?", (query.run_id,))
    run, graph, seq = row or (-1, -1, 0)
    given: dict[str, Any] = {"run": run, "graph": graph, "limit": query.limit}
    if isinstance(query, queries.GetNodeColumns):
        return node_columns(seq, tx.all(_NODE_COLUMNS, given | {"after": query.after}), query.limit)
    after, number = query.after
    given |= {"after": after, "number": number, "indexes": json.dumps(query.indexes)}
    chosen = "" if query.indexes is None else "AND {idx} IN (SELECT value FROM json_each(:indexes))"
    parts = of_run(
        f"{_ATTEMPT_COLUMNS}, a.worker, a.error" if query.details else _ATTEMPT_COLUMNS,
        where=f"AND {{idx}} >= :after AND (a.idx, a.number) > (:after, :number) {chosen}",
        page="ORDER BY {idx}, a.number LIMIT :limit",
    )
    rows = tx.all(f"{parts} ORDER BY 1, 2 LIMIT :limit", given)
    if query.details:
        rows = [(*row[:6], resolve(tx.db, run, row[6])) for row in rows]
    return attempt_columns(seq, rows, query.limit)


def _attempts(tx: Transaction, query: queries.ListAttempts) -> Page[AttemptRow]:
    columns = (
        f"a.claim, a.key % {codes.ORDINALS}, a.idx, a.number, a.status, a.worker, a.started_at, a.ended_at, a.output, "
        "a.error, a.outcome"
    )
    where = "AND {idx} >= :after AND (a.idx, a.number) > (:after, :number)"
    if query.index is not None:
        where += " AND {idx} = :index"
    parts = of_run(columns, where=where, page="ORDER BY {idx}, a.number LIMIT :limit")
    run, (after, last) = _key(tx, query.run_id), query.after
    given = {"run": run, "after": after, "number": last, "index": query.index, "limit": query.limit}
    found = []
    for row in tx.all(f"{parts} ORDER BY 3, 4 LIMIT :limit", given):
        claim, ordinal, idx, number, status, worker, started_at, ended_at, *payloads = row
        slot = (attempt_id(claim, ordinal), idx, number, codes.ATTEMPT_STATUS[status])
        kept = (resolve(tx.db, run, payload) for payload in payloads)
        found.append(AttemptRow(*slot, worker, started_at, ended_at, *kept))
    return page_of(found, query.limit, attrgetter("index", "number"))


def _outputs(tx: Transaction, query: queries.GetOutputs) -> Page[tuple[int, Completion]]:
    chosen = "" if query.indexes is None else "AND n.idx IN (SELECT value FROM json_each(:indexes))"
    statement = f"""
SELECT n.idx, a.number, a.output, a.run
  FROM run r CROSS JOIN node n ON n.run = r.key CROSS JOIN attempt a ON a.key = n.last AND a.status = {codes.A_COMPLETED}
 WHERE r.id = :run AND n.idx > :after {chosen} ORDER BY n.idx LIMIT :limit
"""
    given = {"run": query.run_id, "after": query.after, "limit": query.limit}
    found = tx.all(statement, given if query.indexes is None else given | {"indexes": json.dumps(query.indexes)})
    completions = [(idx, Completion(number, resolve(tx.db, run, output) or b"")) for idx, number, output, run in found]
    return page_of(completions, query.limit, itemgetter(0))


def _journal(tx: Transaction, query: queries.ListJournal) -> Page[JournalRow]:
    kinds = ",".join(str(codes.KIND_CODE.get(kind, -1)) for kind in query.kinds)
    statement = f"""
SELECT j.seq, j.at, j.kind, j.idx, j.number, j.status, j.detail
  FROM run r CROSS JOIN journal j ON j.run = r.key
 WHERE r.id = ? AND j.seq > ? {f"AND j.kind IN ({kinds})" if kinds else ""}
       {"" if query.indexes is None else "AND j.idx IN (SELECT value FROM json_each(?))"}
 ORDER BY j.seq LIMIT ?
"""
    chosen = () if query.indexes is None else (json.dumps(query.indexes),)
    rows = tx.all(statement, (query.run_id, query.after, *chosen, query.limit))
    found = [
        JournalRow(seq, at, codes.KINDS[kind], idx, number, _shown(codes.KINDS[kind], status, detail))
        for seq, at, kind, idx, number, status, detail in rows
    ]
    return page_of(found, query.limit, attrgetter("seq"))


def _shown(kind: str, status: int | None, detail: str | None) -> str | None:
    if status is None:
        return detail
    return codes.RUN_STATUS[status] if kind == "run" else codes.NODE_STATUS[status]


def _lines(tx: Transaction, query: queries.ListLines) -> Page[LineRow]:
    # An attempt that had ended by then has appended nothing since.
    since = "" if query.since is None else "AND (a.ended_at IS NULL OR a.ended_at >= :since)"
    start = _start(tx, query.after, (_NEVER, 0) if query.newest_first else (-1, -1))
    given = _scope(tx, query) | {"key": start[0], "line": start[1], "limit": query.limit}
    beyond, order = ("<", "DESC") if query.newest_first else (">", "ASC")
    where = f"{_chosen(query)} {since} AND a.key {beyond}= :key"
    attempts = [key for (key,) in tx.all(f"{of_run('a.key', where=where)} ORDER BY 1 {order}", given)]
    statement = f"""
SELECT {_LINE} FROM json_each(:attempts) CROSS JOIN attempt a ON a.key = value CROSS JOIN line l ON l.attempt = a.key
 WHERE l.idx >= 0 AND (a.key, l.idx) {beyond} (:key, :line) {"" if query.kind is None else "AND l.kind = :kind"}
       {"" if query.since is None else "AND l.at >= :since"}
 ORDER BY a.key {order}, l.idx {order} LIMIT :limit
"""
    rows: list[tuple[int, LineRow]] = []
    # A page has the lines of few attempts: those of all the others are not sorted for it.
    done, count = 0, _FIRST_ATTEMPTS
    while done < len(attempts) and len(rows) < query.limit:
        rows += _line_rows(tx, statement, given | {"attempts": json.dumps(attempts[done : done + count])})
        done, count = done + count, 2 * count
    rows += islice(_recorded(tx, query, start), query.limit)
    rows.sort(key=lambda row: (row[0], row[1].index), reverse=query.newest_first)
    return _line_page(rows, query.limit)


def _start(tx: Transaction, after: tuple[AttemptId, int] | None, unknown: tuple[int, int]) -> tuple[int, int]:
    """The key of the attempt, and the line, after which a page begins; `unknown` if there is none."""
    if after is None:
        return unknown
    claim, ordinal = split_attempt_id(after[0])
    row = tx.one("SELECT key FROM claim WHERE id = ?", (claim,))
    return unknown if row is None else (row[0] * codes.ORDINALS + ordinal, after[1])


def _line_page(rows: list[tuple[int, LineRow]], limit: int) -> Page[LineRow]:
    return page_of([row for _, row in rows[:limit]], limit, attrgetter("attempt", "index"))


def _recorded(tx: Transaction, query: queries.ListLines, start: tuple[int, int]) -> Iterator[tuple[int, LineRow]]:
    """The lines that came with settlements, which the rows of attempts hold; in the order of the query."""
    beyond, order = ("<=", "DESC") if query.newest_first else (">=", "ASC")
    since = "" if query.since is None else "AND a.ended_at >= :since"
    # Finds too many: other lines may contain it. The loop below looks at the kind itself.
    kind = "" if query.kind is None else "AND instr(a.record, :word)"
    where = f"{_chosen(query)} AND a.record IS NOT NULL AND a.key {beyond} :key {since} {kind}"
    statement = of_run("a.claim, a.key, a.ended_at, a.record, a.idx, a.number", where=where) + f" ORDER BY 2 {order}"
    given = _scope(tx, query) | {"key": start[0], "word": f"{query.kind} ".encode()}
    for claim, key, at, record, node, number in tx.db.execute(statement, given):
        attempt = attempt_id(claim, key % codes.ORDINALS)
        lines = [*enumerate(unpack(record), ops.RECORDED)]
        for index, (kind, data) in reversed(lines) if query.newest_first else lines:
            is_left = (key, index) < start if query.newest_first else (key, index) > start
            if query.kind in (None, kind) and is_left:
                yield key, LineRow(attempt, index, at, kind, data, node, number)


def _chosen(query: queries.ListLines) -> str:
    node = "" if query.index is None else "AND {idx} = :index"
    return f"{node} {'' if query.number is None else 'AND a.number = :number'} "


def _scope(tx: Transaction, query: queries.ListLines) -> dict[str, Any]:
    asked = {"index": query.index, "number": query.number, "kind": query.kind, "since": query.since}
    return {"run": _key(tx, query.run_id), **asked}


def _key(tx: Transaction, run: str) -> int:
    row = tx.one("SELECT key FROM run WHERE id = ?", (run,))
    return -1 if row is None else row[0]


def _marks(tx: Transaction, query: queries.ListMarks) -> Page[LineRow]:
    nodes = "" if query.indexes is None else "AND {idx} IN (SELECT value FROM json_each(:indexes))"
    statement = f"""
SELECT {_LINE} FROM ({of_run("a.claim, a.key, a.idx, a.number, a.run", where=nodes)}) a CROSS JOIN line l ON l.attempt = a.key
 WHERE l.idx < 0 AND (a.key, l.idx) > (:key, :line) ORDER BY a.key, l.idx LIMIT :limit
"""
    key, line = (-1, 0) if query.after is None else _start(tx, query.after, (-1, -1))
    given = {"run": _key(tx, query.run_id), "indexes": json.dumps(query.indexes), "key": key, "line": line}
    return _line_page(_line_rows(tx, statement, given | {"limit": query.limit}), query.limit)


_LINE = "a.claim, a.key, l.idx, l.at, l.kind, l.data, a.idx, a.number, a.run"


def _line_rows(tx: Transaction, statement: str, parameters: dict[str, Any]) -> list[tuple[int, LineRow]]:
    """Each line with the key of its attempt: attempts have keys in the order of their claims."""
    found = []
    for claim, key, idx, at, kind, data, node, number, run in tx.all(statement, parameters):
        payload = resolve(tx.db, run, data) or b""
        found.append((key, LineRow(attempt_id(claim, key % codes.ORDINALS), idx, at, kind, payload, node, number)))
    return found


_HAS_READY = f"""
r.gate = {codes.G_OPEN} AND EXISTS (SELECT 1 FROM json_each(:lanes) s CROSS JOIN lane l ON l.key = s.value
   CROSS JOIN node n INDEXED BY node_ready ON n.run = r.key AND n.lane = l.key AND n.status = {codes.N_READY})
"""
_LIST_READY = f"""
SELECT r.id FROM run r
 WHERE r.key IN (SELECT r.key FROM json_each(:runs) j CROSS JOIN run r ON r.id = j.value WHERE {_HAS_READY}
                 UNION
                 SELECT r.key FROM json_each(:lanes) s CROSS JOIN lane l ON l.key = s.value
                        CROSS JOIN json_each(:serves) p
                        CROSS JOIN graph g ON g.digest = p.value ->> 1
                        CROSS JOIN ready y ON y.lane = l.key AND y.graph = g.key AND y.workflow = p.value ->> 0
                        CROSS JOIN run r ON r.key = y.run AND r.graph = y.graph
                  WHERE {_HAS_READY})
 ORDER BY r.urgency, r.key LIMIT :limit
"""
