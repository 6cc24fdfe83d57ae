"""Reading rows of runs."""

from __future__ import annotations

from collections.abc import Collection
from operator import itemgetter
from typing import Any

from ...base.clock import SECOND
from ...core.model import RunStatus, queries
from ...core.store.rules.codes import RUN_CODE, RUN_STATUS
from ...core.store.rules.filtering import SEARCHED, SECONDS_OF, chooses, folded
from ...core.store.rules.paging import page_of
from .payloads import storable
from .questions import Question, Rows
from .receipts import run_row

_HAS_TEXT = """
(strpos(lower(r.id), %(text)s) > 0 OR strpos(lower(r.workflow), %(text)s) > 0 OR strpos(lower(r.error), %(text)s) > 0
 OR EXISTS (SELECT FROM tag t WHERE t.run = r.key AND strpos(lower(t.name || '=' || t.value), %(text)s) > 0))
"""
LAST = chr(0x10FFFF)
"""No text that begins with a prefix comes after the prefix and this."""


RUN = """
SELECT r.key, whole_payload(r.key, r.input), r.fork, r.id, r.workflow, r.target, g.digest, r.status, r.on_failure, NULL,
       r.seed::text, -r.urgency, r.idempotency_key, r.gate, r.purpose, r.stopping, r.total, r.open, r.active, r.failed, r.seq,
       r.created_at, r.started_at, r.ended_at, r.deadline_at, r.reason, r.heals, NULL, r.tolerated, r.origin, r.tags, r.timeout,
       r.error, r.parent, r.parent_node, r.depth
  FROM run r JOIN graph g ON g.key = r.graph
"""


def read_run(row: tuple[Any, ...]) -> Any:
    _, content, fork, *rest = row
    return run_row(rest, content, fork)


_ORDERED_BY = {"ended": "r.ended_at", "duration": "r.duration"}
"""What runs are ordered by, other than by their creation."""


def _value(query: queries.ListRuns) -> str:
    return _ORDERED_BY.get(query.order, "0")


def _order_by(query: queries.ListRuns) -> str:
    return "ORDER BY r.key DESC" if query.order == "created" else f"ORDER BY {_value(query)} DESC, r.key DESC"


def _floor(query: queries.ListRuns) -> str:
    """A row with the place down to which runs are searched, where these may be very many."""
    if query.order != "created" and chooses(query):
        return f"""
(SELECT max(f.value) AS value, max(f.key) AS key
   FROM (SELECT {_value(query)} AS value, r.key FROM run r WHERE r.ended_at IS NOT NULL AND {_below(query)}
         {_order_by(query)} LIMIT 1 OFFSET {SEARCHED - 1}) f) f"""
    if query.order == "created" and query.text is not None:
        top = f"coalesce(%(key)s::bigint, (SELECT max(key) + 1 FROM run)) - {SEARCHED}"
        return f"(SELECT 0::bigint AS value, CASE WHEN f.key > 1 THEN f.key END AS key FROM (SELECT {top} AS key) f) f"
    return "(SELECT NULL::bigint AS value, NULL::bigint AS key) f"


def _below(query: queries.ListRuns) -> str:
    if query.before is None:
        return "true"
    return "r.key < %(key)s" if query.order == "created" else f"({_value(query)}, r.key) < (%(value)s, %(key)s)"


def ask_runs(query: queries.ListRuns) -> Question:
    """One more than the page has, and one row at least, which has the floor."""
    where, given = _chosen_runs(query)
    runs = RUN.replace("SELECT ", f"SELECT {_value(query)} AS value, ", 1)
    statement = f"""
SELECT f.value, f.key, x.* FROM {_floor(query)} LEFT JOIN LATERAL (
  {runs} WHERE {where} {_order_by(query)} LIMIT %(more)s) x ON true"""

    def read(rows: Rows) -> queries.RunPage:
        floor = None if rows[0][1] is None else rows[0][:2]
        found = sorted((row[2:] for row in rows if row[3] is not None), key=itemgetter(0, 1), reverse=True)
        page = found[: query.limit]
        cursor = page[-1][:2] if len(found) > len(page) else floor
        return queries.RunPage(tuple(read_run(row[1:]) for row in page), cursor)

    return Question(statement, given | {"more": query.limit + 1}, read)


_COUNTED_BY = {"status": "r.status::int", "workflow": "r.workflow"} | {
    by: f"r.created_at / {seconds * SECOND} * {seconds * SECOND}" for by, seconds in SECONDS_OF.items()
}


def ask_run_counts(query: queries.CountRuns) -> Question:
    runs = query.runs._replace(before=None)
    where, given = _chosen_runs(runs)
    statement = f"""
SELECT f.key, x.* FROM {_floor(runs)} LEFT JOIN LATERAL (
  SELECT counted, count(*) FROM (SELECT {_COUNTED_BY[query.by]} AS counted FROM run r WHERE {where}
                                 {_order_by(runs)} LIMIT %(more)s) r GROUP BY 1) x ON true"""

    def read(rows: Rows) -> queries.CountedRuns:
        found = [(key, count) for _, key, count in rows if count is not None]
        exact = rows[0][0] is None and sum(count for _, count in found) <= query.limit
        named = ((RUN_STATUS[key] if query.by == "status" else str(key), count) for key, count in found)
        return queries.CountedRuns(tuple(sorted(named)), exact)

    return Question(statement, given | {"more": query.limit + 1}, read)


def _chosen_runs(query: queries.ListRuns) -> tuple[str, dict[str, Any]]:
    """The condition for the runs that are asked for, and its values; `f` has the floor of a search."""
    asked: dict[str, Any] = {
        "r.workflow = %(workflow)s": query.workflow,
        "r.ended_at < %(ended_before)s": query.ended_before,
        "r.ended_at >= %(ended_since)s": query.ended_since,
        "r.graph = (SELECT key FROM graph WHERE digest = %(digest)s)": query.digest,
        "r.origin = %(origin)s": query.origin,
        "r.parent = %(parent)s": query.parent,
        "r.parent IS NULL": query.roots or None,
        "r.created_at >= %(since)s": query.since,
        "r.created_at < %(until)s": query.until,
        "r.error = %(error)s": query.error,
    }
    where = [_below(query), *(condition for condition, value in asked.items() if value is not None)]
    if query.order != "created":
        where.append(
            f"r.ended_at IS NOT NULL AND ({_value(query)}, r.key) >= (coalesce(f.value, 0), coalesce(f.key, 0))"
        )
    given = {key: storable(value) if isinstance(value, str) else value for key, value in query._asdict().items()}
    if query.prefix:
        where.append("r.id >= %(prefix)s AND r.id < %(prefix_end)s AND starts_with(r.id, %(prefix)s)")
        given["prefix_end"] = given["prefix"] + LAST
    for place, (name, value) in enumerate(query.tags):
        where.append(f"r.key IN (SELECT run FROM tag WHERE name = %(tag{place})s AND value = %(value{place})s)")
        given |= {f"tag{place}": storable(name), f"value{place}": storable(value)}
    if query.statuses:
        where.append(_status_is(query.statuses))
    if query.text is not None:
        where.append(f"{_HAS_TEXT}{' AND r.key >= coalesce(f.key, 0)' if query.order == 'created' else ''}")
        given["text"] = storable(folded(query.text))
    given = {key: value for key, value in given.items() if key not in ("statuses", "tags", "before")}
    return " AND ".join(where), given | dict(zip(("value", "key"), query.before or (None, None), strict=True))


def _status_is(statuses: Collection[RunStatus]) -> str:
    """In words that an index has, where one does."""
    codes = ",".join(str(RUN_CODE[status]) for status in statuses)
    if all(status.terminal for status in statuses):
        return f"r.ended_as IN ({codes})"
    unfinished = "" if any(status.terminal for status in statuses) else "r.ended_as IS NULL AND "
    return f"{unfinished}r.status IN ({codes})"


def ask_ended(query: queries.ListEnded) -> Question:
    chosen = "" if query.workflow is None else "AND r.workflow = %(workflow)s"
    codes = ",".join(str(RUN_CODE[status]) for status in query.statuses)
    statement = f"""
{RUN} WHERE r.ended_at >= %(since)s AND (r.ended_at, r.key) > (%(at)s, %(key)s) {chosen}
   {f"AND r.status IN ({codes})" if codes else ""} ORDER BY r.ended_at, r.key LIMIT %(limit)s"""
    at, key = (query.since, -1) if query.after is None else query.after
    given: dict[str, Any] = {"since": query.since, "at": at, "key": key, "limit": query.limit}
    given |= {} if query.workflow is None else {"workflow": storable(query.workflow)}

    def read(rows: Rows) -> Any:
        page = page_of([(row[0], read_run(row)) for row in rows], query.limit, lambda each: (each[1].ended_at, each[0]))
        return queries.Page((run for _, run in page), page.cursor)

    return Question(statement, given, read)
