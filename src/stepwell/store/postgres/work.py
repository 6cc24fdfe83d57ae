"""Questions about work: which runs have something READY, and what unfinished ones need somebody to serve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...model import ListReady, ListUnfinished, ReadyRuns, Unfinished
from ..rules.codes import G_OPEN
from ..rules.paging import page_of
from .schema import LOWEST
from .texts import storable

Asked = tuple[str, dict[str, Any], Callable[[list[tuple[Any, ...]]], Any]]

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


def ask_unfinished(query: ListUnfinished) -> Asked:
    limit = query.limit
    workflow, target, digest = query.after or ("", None, "")
    given = {
        "workflow": storable(workflow),
        "target": storable(target or ""),
        "digest": storable(digest),
        "limit": limit,
    }
    return _UNFINISHED, given, lambda rows: page_of([Unfinished(*row) for row in rows], limit, tuple)


_READY = f"""
SELECT r.id FROM unnest(%(runs)s::text[]) WITH ORDINALITY i(id, place) JOIN run r ON r.id = i.id
 WHERE r.gate = {G_OPEN}
   AND (EXISTS (SELECT FROM ready y WHERE y.run = r.key AND y.lane = r.low_lane AND y.rank >= r.low_rank OFFSET 0)
        OR EXISTS (SELECT FROM ready y WHERE y.run = r.key OFFSET 0))
 ORDER BY i.place
"""
# No READY node of the lane has a lower rank. See `low_rank` in the migrations.
_LOW = f"CASE r.low_lane WHEN l.key THEN r.low_rank ELSE {LOWEST} END"
_LANES = """
lane l ON l.queue = q.queue AND l.body = q.body AND l.careful = q.careful AND l.suspect = q.suspect
"""
_IN_LANES = """
unnest(%(queues)s::text[], %(bodies)s::text[], %(careful)s::bool[], %(suspect)s::bool[]) q(queue, body, careful, suspect)
"""
_READY_IN_LANES = f"""
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


def ask_ready(query: ReadyRuns | ListReady) -> Asked:
    given: dict[str, Any] = {"runs": [*map(storable, query.runs)]}
    if isinstance(query, ReadyRuns):
        return _READY, given, lambda rows: tuple(run for (run,) in rows)
    given |= {
        "queues": [storable(lane.queue) for lane in query.lanes],
        "bodies": [storable(lane.body) for lane in query.lanes],
        "careful": [lane.careful for lane in query.lanes],
        "suspect": [lane.suspect for lane in query.lanes],
        "workflows": [storable(workflow) for workflow, _ in query.serves],
        "digests": [storable(digest) for _, digest in query.serves],
        "limit": query.limit,
    }
    return _READY_IN_LANES, given, lambda rows: tuple(run for (run,) in rows)
