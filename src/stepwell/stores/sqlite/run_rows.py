"""Reading rows of runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, TypeAlias

from ...base.clock import SECOND
from ...core.model import CountedRuns, CountRuns, ListEnded, ListRuns, Page, RunPage, RunRow
from ...core.store.rules.codes import GATE, R_TERMINAL, RUN_CODE, RUN_STATUS
from ...core.store.rules.filtering import SEARCHED, SECONDS_OF, chooses, folded
from ...core.store.rules.paging import page_of
from .ops.ending import Transaction
from .payloads import resolve

RUN = """
SELECT r.key, r.id, r.workflow, r.target, g.digest, r.status, r.on_failure, r.input, r.seed, r.urgency, r.idempotency_key,
       r.gate, r.purpose, r.stopping, r.total, r.open, r.active, r.failed, r.seq, r.created_at, r.started_at, r.ended_at,
       r.deadline_at, r.reason, r.heals, r.fork, r.tolerated, r.origin, r.tags, r.timeout,
       r.error, r.parent, r.parent_node, r.depth
  FROM run r JOIN graph g ON g.key = r.graph
"""


def indexed_by(index: str) -> str:
    return RUN.replace("run r", f"run r INDEXED BY {index}")


def run_rows(tx: Transaction, runs: Sequence[str]) -> tuple[RunRow, ...]:
    """In the order of their ids."""
    found = tx.all(f"{RUN} WHERE r.id IN (SELECT value FROM json_each(?)) ORDER BY r.id", (json.dumps(runs),))
    return tuple(run_row(tx, row) for row in found)


def run_row(tx: Transaction, row: Any) -> RunRow:
    run, *head, status, on_failure, payload, seed, urgency, key, gate, purpose, stopping = row[:14]
    *counts, tags, timeout, error, parent, node, depth = row[14:]
    values = (
        *head, RUN_STATUS[status], on_failure, resolve(tx.db, run, payload) or b"", int(seed), -urgency, key, GATE[gate],
        purpose, bool(stopping), *counts, tuple(map(tuple, json.loads(tags))) if tags else (), timeout, error, parent,
        node, depth, False,
    )  # fmt: skip
    return RunRow._make(values)


def ended_runs(tx: Transaction, query: ListEnded) -> Page[RunRow]:
    chosen = "" if query.workflow is None else "AND r.workflow = ?"
    codes = ",".join(str(RUN_CODE[status]) for status in query.statuses)
    chosen += f" AND r.status IN ({codes})" if codes else ""
    statement = f"""
{indexed_by("run_ended")} WHERE r.ended_at >= ? AND (r.ended_at, r.key) > (?, ?) {chosen} ORDER BY r.ended_at, r.key LIMIT ?"""
    after = (query.since, -1) if query.after is None else query.after
    named = () if query.workflow is None else (query.workflow,)
    rows = tx.all(statement, (query.since, *after, *named, query.limit))
    found = [(row[0], run_row(tx, row)) for row in rows]
    page = page_of(found, query.limit, lambda each: (each[1].ended_at, each[0]))
    return Page((run for _, run in page), page.cursor)


_HAS_TEXT = """
(instr(lower(r.id), ?) OR instr(lower(r.workflow), ?) OR instr(lower(r.error), ?)
 OR EXISTS (SELECT 1 FROM tag t WHERE t.run = r.key AND instr(lower(t.name || '=' || t.value), ?)))
"""
_COUNTED_BY = {"status": "r.status", "workflow": "r.workflow"} | {
    by: f"r.created_at / {seconds * SECOND} * {seconds * SECOND}" for by, seconds in SECONDS_OF.items()
}


_ORDERED_BY = {"ended": "r.ended_at", "duration": "r.duration"}
"""What runs are ordered by, other than by their creation; the index that has it is called run_ORDER."""


def list_runs(tx: Transaction, query: ListRuns) -> RunPage:
    index, floor = _index_for(query), _floor(tx, query)
    # One status at a time, which this index has in order: only the rows of the page are sorted.
    one_by_one = index == "run_status"
    each = [query._replace(statuses=(s,)) for s in dict.fromkeys(query.statuses)] if one_by_one else [query]
    source = (RUN if index is None else indexed_by(index)).replace("SELECT ", f"SELECT {_value(query)}, ")
    rows: list[Any] = []
    for one in each:
        where, values = _chosen(one, index, floor)
        rows += tx.all(f"{source} WHERE {where} {_order_by(query)} LIMIT ?", (*values, query.limit + 1))
    rows.sort(key=lambda row: row[:2], reverse=True)
    page = rows[: query.limit]
    cursor = page[-1][:2] if len(rows) > len(page) else floor
    return RunPage(tuple(run_row(tx, row[1:]) for row in page), cursor)


def count_runs(tx: Transaction, query: CountRuns) -> CountedRuns:
    asked = query.runs._replace(before=None)
    index, floor = _index_for(asked), _floor(tx, asked)
    where, values = _chosen(asked, index, floor)
    source = "run r" if index is None else f"run r INDEXED BY {index}"
    statement = f"""
SELECT counted, count(*) FROM (SELECT {_COUNTED_BY[query.by]} AS counted FROM {source} WHERE {where}
                               {_order_by(asked)} LIMIT ?) GROUP BY 1"""
    rows = tx.all(statement, (*values, query.limit + 1))
    exact = floor is None and sum(count for _, count in rows) <= query.limit
    named = ((RUN_STATUS[key] if query.by == "status" else str(key), count) for key, count in rows)
    return CountedRuns(tuple(sorted(named)), exact)


def _value(query: ListRuns) -> str:
    return _ORDERED_BY.get(query.order, "0")


def _order_by(query: ListRuns) -> str:
    return "ORDER BY r.key DESC" if query.order == "created" else f"ORDER BY {_value(query)} DESC, r.key DESC"


def _index_for(query: ListRuns) -> str | None:
    """The index with which the query costs what it finds, not what is stored."""
    unfinished = query.statuses and all(RUN_CODE[status] < R_TERMINAL for status in query.statuses)
    if query.parent is not None:
        return "run_parent"
    if query.order != "created":
        return f"run_{query.order}"
    if query.origin is not None:
        return "run_origin"
    if query.prefix:
        return "sqlite_autoindex_run_1"
    if query.error is not None:
        return "run_error"
    if query.digest is not None and unfinished:
        return "run_unfinished"
    if query.ended_before is not None or query.ended_since is not None:
        return "run_ended"
    if query.statuses and query.digest is None:
        return "run_status"
    return "run_workflow" if query.workflow is not None and not query.tags else None


def _floor(tx: Transaction, query: ListRuns) -> tuple[int, int] | None:
    """The place down to which runs are searched, where these may be very many; None if that is all of them."""
    if query.parent is not None:
        return None
    if query.order != "created":
        where, values = _conditions([_bound(query, "<", query.before)])
        statement = f"""
SELECT {_value(query)}, r.key FROM run r INDEXED BY run_{query.order} WHERE {where} AND {_value(query)} IS NOT NULL
{_order_by(query)} LIMIT 1 OFFSET {SEARCHED - 1}"""
        return tx.one(statement, values) if chooses(query) else None
    if query.text is None:
        return None
    top = query.before and query.before[1]
    if top is None:
        ((top,),) = tx.all("SELECT coalesce(max(key), 0) + 1 FROM run", ())
    return (0, top - SEARCHED) if top - SEARCHED > 1 else None


_Condition: TypeAlias = tuple[str, Sequence[object]]


def _bound(query: ListRuns, sign: str, place: tuple[int, int] | None) -> _Condition:
    """Where a run is in the order, as a condition and its values."""
    if place is None:
        return "1", ()
    return (
        (f"r.key {sign} ?", place[1:])
        if query.order == "created"
        else (f"({_value(query)}, r.key) {sign} (?, ?)", place)
    )


def _conditions(conditions: Iterable[_Condition]) -> tuple[str, list[object]]:
    texts, values = zip(*conditions, strict=True)
    return " AND ".join(texts), list(chain(*values))


def _chosen(query: ListRuns, index: str | None, floor: tuple[int, int] | None) -> tuple[str, list[object]]:
    """The condition for the runs that are asked for, and its values."""
    asked: dict[str, object] = {
        "r.workflow = ?": query.workflow,
        "r.ended_at < ?": query.ended_before,
        "r.ended_at >= ?": query.ended_since,
        "r.graph = (SELECT key FROM graph WHERE digest = ?)": query.digest,
        "r.origin = ?": query.origin,
        "r.parent = ?": query.parent,
        "r.created_at >= ?": query.since,
        "r.created_at < ?": query.until,
        "r.error = ?": query.error,
    }
    chosen: list[_Condition] = [_bound(query, "<", query.before), _bound(query, ">=", floor)]
    chosen += [(condition, (value,)) for condition, value in asked.items() if value is not None]
    if query.order != "created":
        chosen.append((f"{_value(query)} IS NOT NULL", ()))
    if query.roots:
        chosen.append(("r.parent IS NULL", ()))
    if query.prefix:
        values = (query.prefix, query.prefix + chr(0x10FFFF), len(query.prefix), query.prefix)
        chosen.append(("r.id >= ? AND r.id < ? AND substr(r.id, 1, ?) = ?", values))
    chosen += [("r.key IN (SELECT run FROM tag WHERE name = ? AND value = ?)", tag) for tag in query.tags]
    if query.statuses:
        chosen.append((f"r.status IN ({','.join(str(RUN_CODE[status]) for status in query.statuses)})", ()))
    if index == "run_unfinished":
        chosen.append((f"r.status < {R_TERMINAL}", ()))
    if query.text is not None:
        chosen.append((_HAS_TEXT, [folded(query.text)] * 4))
    return _conditions(chosen)
