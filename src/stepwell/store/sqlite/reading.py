"""The questions a store answers, as statements."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, assert_never

from ...ids import AttemptId, attempt_id, split_attempt_id
from ...model import (
    RECORDED,
    AttemptRow,
    CountNodes,
    GetGraph,
    GetGraphAges,
    GetOutputs,
    GetRecord,
    GetRun,
    GetVersion,
    JournalRow,
    LineRow,
    ListAttempts,
    ListEnded,
    ListJournal,
    ListLines,
    ListMarks,
    ListNames,
    ListNodes,
    ListReady,
    ListRecords,
    ListRuns,
    ListStops,
    ListUnfinished,
    ListUnusedGraphs,
    ListVersions,
    ListWorkers,
    NodeRow,
    Page,
    Query,
    ReadyRuns,
    RunPage,
    RunStatus,
    Unfinished,
    WorkerRow,
)
from ...model.outputs import Completion
from ..rules.codes import (
    ATTEMPT_STATUS,
    G_OPEN,
    KIND_CODE,
    KINDS,
    N_READY,
    NODE_CODE,
    NODE_STATUS,
    ORDINALS,
    R_COMPLETED,
    RUN_CODE,
    RUN_STATUS,
)
from ..rules.paging import page_of
from .ops.ending import Transaction
from .ops.leases import stops
from .ops.records import answer_record
from .ops.versions import answer_version
from .payloads import resolve, unpack
from .run_rows import RUN, ended_runs, run_row

_RUN_ORIGIN = RUN.replace("run r", "run r INDEXED BY run_origin")
_RUN_WORKFLOW = RUN.replace("run r", "run r INDEXED BY run_workflow")
_RUN_UNFINISHED = RUN.replace("run r", "run r INDEXED BY run_unfinished")
_RUN_STATUS = RUN.replace("run r", "run r INDEXED BY run_status")
_RUN_ENDED = RUN.replace("run r", "run r INDEXED BY run_ended")
_RUN_ID = RUN.replace("run r", "run r INDEXED BY sqlite_autoindex_run_1")
_NEVER = 2**63 - 1
_UNUSED_GRAPHS = """
SELECT digest, workflow FROM graph g
 WHERE digest > ? AND registered_at < ? AND NOT EXISTS (SELECT 1 FROM run WHERE run.graph = g.key)
   AND NOT EXISTS (SELECT 1 FROM former_graph f WHERE f.graph = g.key) ORDER BY digest LIMIT ?
"""


_UNFINISHED = f"""
SELECT DISTINCT r.workflow, r.target, g.digest FROM run r INDEXED BY run_unfinished CROSS JOIN graph g ON g.key = r.graph
 WHERE r.status < {R_COMPLETED} AND (r.workflow, coalesce(r.target, ''), g.digest) > (?, ?, ?)
 ORDER BY r.workflow, coalesce(r.target, ''), g.digest LIMIT ?
"""


def answer(tx: Transaction, query: Query) -> Any:
    match query:
        case GetRun(run_id):
            row = tx.one(RUN + "WHERE r.id = ?", (run_id,))
            return None if row is None else run_row(tx, row)
        case ListRuns():
            return _runs(tx, query)
        case ListEnded():
            return ended_runs(tx, query)
        case ListNodes():
            return _nodes(tx, query)
        case ListAttempts():
            return _attempts(tx, query)
        case GetOutputs():
            return _outputs(tx, query)
        case GetGraph(digest):
            document = "SELECT data FROM document JOIN graph ON key = graph WHERE digest = ? AND loaded = total"
            row = tx.one(document, (digest,))
            return None if row is None else row[0]
        case GetGraphAges(digests):
            ages = "SELECT digest, key FROM graph WHERE digest IN (SELECT value FROM json_each(?))"
            return dict(tx.all(ages, (json.dumps(digests),)))
        case ListUnusedGraphs(after, limit, before):
            found = tx.all(_UNUSED_GRAPHS, (after or "", _NEVER if before is None else before, limit))
            return page_of(found, limit, itemgetter(0))
        case ListJournal():
            return _journal(tx, query)
        case ListLines():
            return _lines(tx, query)
        case ListMarks():
            return _marks(tx, query)
        case ListStops(worker, limit):
            return Page(stops(tx, worker, limit))
        case ListWorkers(first, limit):
            workers = "SELECT id, lease_until, renewed_at, info FROM worker WHERE id > ? ORDER BY id LIMIT ?"
            return page_of([WorkerRow(*row) for row in tx.all(workers, (first or "", limit))], limit, attrgetter("id"))
        case CountNodes(run_id):
            counted = "SELECT status, count(*) FROM node WHERE run = (SELECT key FROM run WHERE id = ?) GROUP BY status"
            return {NODE_STATUS[status]: count for status, count in tx.all(counted, (run_id,))}
        case ListUnfinished(last, limit):
            start = ("", "", "") if last is None else (last[0], last[1] or "", last[2])
            rows = tx.all(_UNFINISHED, (*start, limit))
            return page_of([Unfinished(*row) for row in rows], limit, tuple)
        case ReadyRuns(runs):
            return _ready(tx, runs)
        case ListReady(lanes, runs, serves, limit):
            asked = {"lanes": [tx.lanes.key(tx.db, lane) for lane in lanes], "runs": runs, "serves": serves}
            return tuple(
                run
                for (run,) in tx.all(
                    _READY, {key: json.dumps(value) for key, value in asked.items()} | {"limit": limit}
                )
            )
        case GetVersion() | ListVersions() | ListNames():
            return answer_version(tx, query)
        case GetRecord() | ListRecords():
            return answer_record(tx, query)
        case _:
            assert_never(query)


def _runs(tx: Transaction, query: ListRuns) -> RunPage:
    """Each way costs what it finds, not what is stored: among all runs that ever were, those that are asked for are few."""
    if query.origin is not None:
        source = _RUN_ORIGIN
    elif query.prefix:
        source = _RUN_ID
    elif query.digest is not None and query.statuses and all(RUN_CODE[s] < R_COMPLETED for s in query.statuses):
        source = _RUN_UNFINISHED
    elif query.ended_before is not None or query.ended_since is not None:
        source = _RUN_ENDED
    elif query.statuses and query.digest is None:
        # One status after the other: the index has them in order, and nothing is sorted but what is given back.
        rows = [
            row for status in dict.fromkeys(query.statuses) for row in _some_runs(tx, query, _RUN_STATUS, (status,))
        ]
        return _page(tx, query, sorted(rows, key=lambda row: -row[0]))
    elif query.workflow is not None and not query.tags:
        source = _RUN_WORKFLOW
    else:
        source = RUN
    return _page(tx, query, _some_runs(tx, query, source, query.statuses))


def _page(tx: Transaction, query: ListRuns, rows: list[Any]) -> RunPage:
    page = rows[: query.limit]
    return RunPage(tuple(run_row(tx, row) for row in page), page[-1][0] if len(rows) > len(page) else None)


def _some_runs(tx: Transaction, query: ListRuns, source: str, statuses: tuple[RunStatus, ...]) -> list[Any]:
    """One more than the page has, newest first."""
    asked: dict[str, object] = {
        "r.key < ?": query.before,
        "r.workflow = ?": query.workflow,
        "r.ended_at < ?": query.ended_before,
        "r.ended_at >= ?": query.ended_since,
        "r.graph = (SELECT key FROM graph WHERE digest = ?)": query.digest,
        "r.origin = ?": query.origin,
        "r.created_at >= ?": query.since,
        "r.created_at < ?": query.until,
    }
    chosen = {condition: value for condition, value in asked.items() if value is not None}
    where, values = [*chosen], [*chosen.values()]
    if query.prefix:
        where.append("r.id >= ? AND r.id < ? AND substr(r.id, 1, ?) = ?")
        values += [query.prefix, query.prefix + chr(0x10FFFF), len(query.prefix), query.prefix]
    for tag in query.tags:
        where.append("r.key IN (SELECT run FROM tag WHERE name = ? AND value = ?)")
        values += tag
    if statuses:
        where.append(f"r.status IN ({','.join(str(RUN_CODE[status]) for status in statuses)})")
    if source is _RUN_UNFINISHED:
        where.append(f"r.status < {R_COMPLETED}")
    statement = f"{source} WHERE {' AND '.join(where) or '1'} ORDER BY r.key DESC LIMIT ?"
    return tx.all(statement, (*values, query.limit + 1))


def _nodes(tx: Transaction, query: ListNodes) -> Page[NodeRow]:
    codes = ",".join(str(NODE_CODE[status]) for status in query.statuses)
    chosen = "" if query.indexes is None else "AND n.idx IN (SELECT value FROM json_each(?))"
    statement = f"""
SELECT json_group_array(json_array(idx, id, status, attempt, waiting, live, failures, losses, lane, due_at, reason,
                                   generation, postponed))
  FROM (SELECT n.idx, l.id, n.status, n.attempt, n.waiting, n.live, n.failures, n.losses, n.lane, n.due_at,
               n.reason, n.generation, n.postponed
          FROM run r CROSS JOIN node n ON n.run = r.key CROSS JOIN layout l ON l.graph = r.graph AND l.idx = n.idx
         WHERE r.id = ? AND n.idx > ? {f"AND n.status IN ({codes})" if codes else ""} {chosen}
         ORDER BY n.idx LIMIT ?)
"""
    indexes = () if query.indexes is None else (json.dumps(query.indexes),)
    rows = tx.json(statement, (query.run_id, query.after, *indexes, query.limit))
    found = [
        NodeRow._make((idx, node, NODE_STATUS[status], *counts, tx.lanes.lane(tx.db, lane), *rest))
        for (idx, node, status), counts, lane, rest in ((row[:3], row[3:8], row[8], row[9:]) for row in rows)
    ]
    return page_of(found, query.limit, attrgetter("index"))


def _attempts(tx: Transaction, query: ListAttempts) -> Page[AttemptRow]:
    statement = f"""
SELECT c.id, a.key % {ORDINALS}, a.idx, a.number, a.status, a.worker, a.started_at, a.ended_at, a.output, a.error, a.outcome,
       a.run
  FROM run r CROSS JOIN attempt a INDEXED BY attempt_slot ON a.run = r.key
       CROSS JOIN claim c ON c.key = a.key / {ORDINALS}
 WHERE r.id = ? AND (a.idx, a.number) > (?, ?) {"" if query.index is None else "AND a.idx = ?"}
 ORDER BY a.idx, a.number LIMIT ?
"""
    index = () if query.index is None else (query.index,)
    rows = tx.all(statement, (query.run_id, *query.after, *index, query.limit))
    found = [
        AttemptRow(
            attempt_id(claim, ordinal),
            idx,
            number,
            ATTEMPT_STATUS[status],
            worker,
            started_at,
            ended_at,
            resolve(tx.db, run, output),
            resolve(tx.db, run, error),
            resolve(tx.db, run, outcome),
        )
        for claim, ordinal, idx, number, status, worker, started_at, ended_at, output, error, outcome, run in rows
    ]
    return page_of(found, query.limit, attrgetter("index", "number"))


def _outputs(tx: Transaction, query: GetOutputs) -> Page[tuple[int, Completion]]:
    chosen = "" if query.indexes is None else "AND a.idx IN (SELECT value FROM json_each(:indexes))"
    statement = f"""
SELECT a.idx, a.number, a.output, a.run FROM run r CROSS JOIN attempt a INDEXED BY attempt_slot ON a.run = r.key
 WHERE r.id = :run AND a.idx > :after AND a.slot = 0 {chosen} ORDER BY a.idx LIMIT :limit
"""
    given = {"run": query.run_id, "after": query.after, "limit": query.limit}
    found = tx.all(statement, given if query.indexes is None else given | {"indexes": json.dumps(query.indexes)})
    completions = [(idx, Completion(number, resolve(tx.db, run, output) or b"")) for idx, number, output, run in found]
    return page_of(completions, query.limit, itemgetter(0))


def _journal(tx: Transaction, query: ListJournal) -> Page[JournalRow]:
    kinds = ",".join(str(KIND_CODE.get(kind, -1)) for kind in query.kinds)
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
        JournalRow(seq, at, KINDS[kind], idx, number, _shown(KINDS[kind], status, detail))
        for seq, at, kind, idx, number, status, detail in rows
    ]
    return page_of(found, query.limit, attrgetter("seq"))


def _shown(kind: str, status: int | None, detail: str | None) -> str | None:
    if status is None:
        return detail
    return RUN_STATUS[status] if kind == "run" else NODE_STATUS[status]


def _lines(tx: Transaction, query: ListLines) -> Page[LineRow]:
    asked = {
        "AND a.idx = ?": (query.index,),
        "AND a.number = ?": (query.number,),
        "AND l.kind = ?": (query.kind,),
        # An attempt that had ended by then appended nothing since, so its lines need not be looked at.
        "AND (a.ended_at IS NULL OR a.ended_at >= ?) AND l.at >= ?": (query.since, query.since),
    }
    chosen = {condition: values for condition, values in asked.items() if values[0] is not None}
    start = _start(tx, query.after)
    statement = f"""
SELECT {_LINE}
  FROM run r CROSS JOIN attempt a INDEXED BY attempt_slot ON a.run = r.key CROSS JOIN line l ON l.attempt = a.key
       CROSS JOIN claim c ON c.key = a.key / {ORDINALS}
 WHERE r.id = ? AND l.idx >= 0 AND (a.key, l.idx) > (?, ?) {" ".join(chosen)}
 ORDER BY a.key, l.idx LIMIT ?
"""
    values = [value for found in chosen.values() for value in found]
    rows = _line_rows(tx, statement, (query.run_id, *start, *values, query.limit))
    rows += islice(_recorded(tx, query, start), query.limit)
    rows.sort(key=lambda row: (row[0], row[1].index))
    return _line_page(rows, query.limit)


def _start(tx: Transaction, after: tuple[AttemptId, int] | None) -> tuple[int, int]:
    """The attempt and the line after which a page begins."""
    if after is None:
        return -1, -1
    claim, ordinal = split_attempt_id(after[0])
    row = tx.one("SELECT key FROM claim WHERE id = ?", (claim,))
    return (-1, -1) if row is None else (row[0] * ORDINALS + ordinal, after[1])


def _line_page(rows: list[tuple[int, LineRow]], limit: int) -> Page[LineRow]:
    return page_of([row for _, row in rows[:limit]], limit, attrgetter("attempt", "index"))


def _recorded(tx: Transaction, query: ListLines, start: tuple[int, int]) -> Iterator[tuple[int, LineRow]]:
    """The lines that came with settlements and are kept in their attempts' rows."""
    asked = {
        "AND a.idx = ?": query.index,
        "AND a.number = ?": query.number,
        "AND a.ended_at >= ?": query.since,
        # Some of them may only mention it.
        "AND instr(a.record, ?)": None if query.kind is None else f"{query.kind} ".encode(),
    }
    chosen = {condition: value for condition, value in asked.items() if value is not None}
    statement = f"""
SELECT c.id, a.key, a.ended_at, a.record, a.idx, a.number
  FROM run r CROSS JOIN attempt a INDEXED BY attempt_slot ON a.run = r.key CROSS JOIN claim c ON c.key = a.key / {ORDINALS}
 WHERE r.id = ? AND a.record IS NOT NULL AND a.key >= ? {" ".join(chosen)}
 ORDER BY a.key
"""
    for claim, key, at, record, node, number in tx.db.execute(statement, (query.run_id, start[0], *chosen.values())):
        attempt = AttemptId(attempt_id(claim, key % ORDINALS))
        for index, (kind, data) in enumerate(unpack(record), RECORDED):
            if query.kind in (None, kind) and (key, index) > start:
                yield key, LineRow(attempt, index, at, kind, data, node, number)


def _marks(tx: Transaction, query: ListMarks) -> Page[LineRow]:
    all_nodes = query.indexes is None
    nodes = "" if all_nodes else "CROSS JOIN json_each(?) j"
    chosen = "" if all_nodes else "AND a.idx = j.value"
    statement = f"""
SELECT {_LINE}
  FROM run r {nodes} CROSS JOIN attempt a INDEXED BY attempt_slot ON a.run = r.key {chosen}
       CROSS JOIN line l ON l.attempt = a.key CROSS JOIN claim c ON c.key = a.key / {ORDINALS}
 WHERE r.id = ? AND l.idx < 0 AND (a.key, l.idx) > (?, ?) ORDER BY a.key, l.idx LIMIT ?
"""
    indexes = () if query.indexes is None else (json.dumps(sorted(set(query.indexes))),)
    start = (-1, 0) if query.after is None else _start(tx, query.after)
    return _line_page(_line_rows(tx, statement, (*indexes, query.run_id, *start, query.limit)), query.limit)


_LINE = "c.id, a.key, l.idx, l.at, l.kind, l.data, a.idx, a.number, a.run"


def _line_rows(tx: Transaction, statement: str, parameters: tuple[object, ...]) -> list[tuple[int, LineRow]]:
    """With the keys of their attempts, which say when they were claimed."""
    return [
        (
            key,
            LineRow(
                AttemptId(attempt_id(claim, key % ORDINALS)),
                idx,
                at,
                kind,
                resolve(tx.db, run, data) or b"",
                node,
                number,
            ),
        )
        for claim, key, idx, at, kind, data, node, number, run in tx.all(statement, parameters)
    ]


_HAS_READY = f"""
r.gate = {G_OPEN} AND EXISTS (SELECT 1 FROM json_each(:lanes) s CROSS JOIN lane l ON l.key = s.value
   CROSS JOIN node n INDEXED BY node_ready ON n.run = r.key AND n.lane = l.key AND n.status = {N_READY})
"""
_READY = f"""
SELECT r.id FROM run r
 WHERE r.key IN (SELECT r.key FROM json_each(:runs) j CROSS JOIN run r ON r.id = j.value WHERE {_HAS_READY}
                 UNION
                 SELECT r.key FROM json_each(:lanes) s CROSS JOIN lane l ON l.key = s.value CROSS JOIN json_each(:serves) p
                        CROSS JOIN graph g ON g.digest = p.value ->> 1
                        CROSS JOIN ready y ON y.lane = l.key AND y.graph = g.key AND y.workflow = p.value ->> 0
                        CROSS JOIN run r ON r.key = y.run AND r.graph = y.graph
                  WHERE {_HAS_READY})
 ORDER BY r.urgency, r.key LIMIT :limit
"""


def _ready(tx: Transaction, runs: tuple[str, ...]) -> tuple[str, ...]:
    statement = f"""
SELECT j.value FROM json_each(?) j CROSS JOIN run r ON r.id = j.value
 WHERE r.gate = {G_OPEN} AND EXISTS (SELECT 1 FROM node n INDEXED BY node_ready
   WHERE n.run = r.key AND n.status = {N_READY}) ORDER BY j.key
"""
    return tuple(run for (run,) in tx.all(statement, (json.dumps(runs),)))
