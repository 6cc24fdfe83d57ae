"""Questions about small records, and work: which runs have something READY, and what
unfinished ones need somebody to serve."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

from ...core.model import (
    GetRecord,
    ListReady,
    ListRecords,
    ListUnfinished,
    RecordRow,
    Unfinished,
)
from ...core.store.rules.codes import G_OPEN
from ...core.store.rules.paging import page_of
from .payloads import storable
from .schema import LOWEST

Rows = list[tuple[Any, ...]]


class Question(NamedTuple):
    """A statement, and the way to read its rows."""

    statement: str
    given: dict[str, Any]
    read: Callable[[Rows], Any]


def paged(
    statement: str, given: dict[str, Any], row: Callable[[tuple[Any, ...]], Any], cursor: Callable[[Any], Any]
) -> Question:
    """A question that is answered with a page of rows."""
    return Question(statement, given, lambda rows: page_of(map(row, rows), given["limit"], cursor))


_ONE = "SELECT key, version, value FROM record WHERE kind = %(kind)s AND key = %(key)s"
_MANY = """
SELECT key, version, value FROM record WHERE kind = %(kind)s AND (%(after)s::text IS NULL OR key > %(after)s)
 ORDER BY key LIMIT %(limit)s
"""


def ask_record(query: GetRecord | ListRecords) -> Question:
    kind = storable(query.kind)
    if isinstance(query, GetRecord):
        given: dict[str, Any] = {"kind": kind, "key": storable(query.key)}
        return Question(_ONE, given, lambda rows: RecordRow(*rows[0]) if rows else None)
    given = {"kind": kind, "after": None if query.after is None else storable(query.after), "limit": query.limit}
    return paged(_MANY, given, RecordRow._make, attrgetter("key"))


# From one (workflow, target, graph) to the next, however many runs each has. Those of one workflow and target are found in the
# order of their graphs and wanted in that of the digests: so all of the last are looked at, also beyond the limit.
_UNFINISHED = """
WITH RECURSIVE found (workflow, target, graph, digest, counted) AS (
  SELECT %(workflow)s::text COLLATE "C", %(target)s::text COLLATE "C", 0::bigint, NULL::text COLLATE "C", 0
  UNION ALL
  SELECT n.workflow, n.target, n.graph, g.digest,
         f.counted + ((n.workflow, n.target, g.digest) > (%(workflow)s, %(target)s, %(digest)s))::int
    FROM found f
         CROSS JOIN LATERAL (SELECT r.workflow, coalesce(r.target, '') AS target, r.graph FROM run r
                              WHERE r.ended_as IS NULL
                                AND (r.workflow, coalesce(r.target, ''), r.graph) > (f.workflow, f.target, f.graph)
                              ORDER BY r.workflow, coalesce(r.target, ''), r.graph LIMIT 1) n
         CROSS JOIN LATERAL (SELECT digest FROM graph WHERE key = n.graph OFFSET 0) g
   WHERE f.counted < %(limit)s OR (n.workflow, n.target) = (f.workflow, f.target))
SELECT workflow, nullif(target, ''), digest FROM found
 WHERE (workflow, target, digest) > (%(workflow)s, %(target)s, %(digest)s)
 ORDER BY workflow, target, digest LIMIT %(limit)s
"""


def ask_unfinished(query: ListUnfinished) -> Question:
    workflow, target, digest = query.after or ("", None, "")
    given = {"workflow": storable(workflow), "target": storable(target or ""), "digest": storable(digest)}
    return paged(_UNFINISHED, given | {"limit": query.limit}, Unfinished._make, tuple)


# No READY node of the lane has a lower rank. See `low_rank` in `schema/tables.sql`.
_LOW = f"CASE r.low_lane WHEN l.key THEN r.low_rank ELSE {LOWEST} END"
_LANES = """
lane l ON l.queue = q.queue AND l.body = q.body AND l.careful = q.careful AND l.suspect = q.suspect
"""
_IN_LANES = """
unnest(%(queues)s::text[], %(bodies)s::text[], %(careful)s::bool[], %(suspect)s::bool[]) q(queue, body, careful, suspect)
"""
_READY = f"""
WITH lanes AS MATERIALIZED (SELECT l.key FROM {_IN_LANES} JOIN {_LANES}),
found AS (
  SELECT r.key FROM unnest(%(runs)s::text[]) i(id) JOIN run r ON r.id = i.id
  UNION
  SELECT o.run FROM lanes l CROSS JOIN unnest(%(workflows)s::text[], %(digests)s::text[]) s(workflow, digest)
    JOIN graph g ON g.digest = s.digest JOIN offer o ON o.lane = l.key AND o.graph = g.key AND o.workflow = s.workflow)
SELECT r.id FROM found f JOIN run r ON r.key = f.key
 WHERE r.gate = {G_OPEN}
   AND EXISTS (SELECT FROM lanes l
                WHERE EXISTS (SELECT FROM ready y WHERE y.run = r.key AND y.lane = l.key AND y.rank >= {_LOW} OFFSET 0))
 ORDER BY r.urgency, r.key LIMIT %(limit)s
"""


def ask_ready(query: ListReady) -> Question:
    given = {
        "runs": [*map(storable, query.runs)],
        "queues": [storable(lane.queue) for lane in query.lanes],
        "bodies": [storable(lane.body) for lane in query.lanes],
        "careful": [lane.careful for lane in query.lanes],
        "suspect": [lane.suspect for lane in query.lanes],
        "workflows": [storable(workflow) for workflow, _ in query.serves],
        "digests": [storable(digest) for _, digest in query.serves],
        "limit": query.limit,
    }
    return Question(_READY, given, lambda rows: tuple(run for (run,) in rows))
