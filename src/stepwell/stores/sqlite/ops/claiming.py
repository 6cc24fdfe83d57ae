"""Claims: READY nodes become RUNNING, each as a new attempt under the worker's lease.

Nodes are found in two steps: first the runs, by urgency and age, then their nodes, in the order of the graph.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ....base.ids import attempt_id
from ....core.model import Claim, Claimed, Grant, Lane, Receipt, Refusal, Refused, RunRow
from ....core.store.rules.codes import (
    A_COMPLETED,
    A_RUNNING,
    G_OPEN,
    KIND_CODE,
    N_READY,
    N_RUNNING,
    ORDINALS,
    R_RUNNING,
)
from ..limits import LIMITS
from ..payloads import resolve
from ..run_rows import run_rows
from .attempts import add_claim
from .ending import Transaction
from .single import FEW, Candidate, grant_few

# READY nodes of one run, of several runs, and of the runs that `_find_runs` found, in this order.
_OF_RUN = f"""
  FROM run r CROSS JOIN node n INDEXED BY node_ready
 WHERE r.id = :runs AND r.gate = {G_OPEN} AND n.run = r.key AND n.lane = :lane
   AND n.status = {N_READY}
 LIMIT :limit
"""
_OF_RUNS = f"""
  FROM (SELECT key, id, urgency, graph, heals, seq, started_at, status FROM run
         WHERE id IN (SELECT value FROM json_each(:runs)) AND gate = {G_OPEN}
         ORDER BY urgency, key LIMIT -1) r
       CROSS JOIN node n INDEXED BY node_ready
 WHERE n.run = r.key AND n.lane = :lane AND n.status = {N_READY}
 LIMIT :limit
"""
_OF_FOUND = f"""
  FROM json_each(:runs) j CROSS JOIN run r ON r.key = j.value CROSS JOIN node n INDEXED BY node_ready
 WHERE r.gate = {G_OPEN} AND n.run = r.key AND n.lane = :lane AND n.status = {N_READY}
 LIMIT :limit
"""
_CANDIDATES = {
    ready: f"""
SELECT n.run, r.id, n.idx, n.attempt + 1, n.failures, n.losses, (SELECT has_needs FROM graph WHERE key = r.graph),
       n.generation, r.heals, r.seq, r.started_at IS NULL OR r.status < {R_RUNNING}, n.postponed,
       n.skipped, n.wakes
{ready}"""
    for ready in (_OF_RUN, _OF_RUNS, _OF_FOUND)
}
# The first runs of the served versions of workflows that are marked READY in a lane, and whether they still have READY nodes.
_FIND = f"""
SELECT json_group_array(json_array(f.graph, f.workflow, f.urgency, f.run, r.gate = {G_OPEN} AND r.graph = f.graph AND EXISTS
         (SELECT 1 FROM node n INDEXED BY node_ready WHERE n.run = f.run AND n.lane = f.lane AND n.status = {N_READY})))
  FROM ({{found}} ORDER BY urgency, run LIMIT :limit) f LEFT JOIN run r ON r.key = f.run
"""
# Takes the first runs of each version by the index: sorting all of them would cost as much as waits, not as is taken.
_FIND_SERVED = _FIND.format(
    found="""
SELECT :lane AS lane, g.key AS graph, s.value ->> 0 AS workflow, e.value ->> 0 AS urgency, e.value ->> 1 AS run
  FROM json_each(:serves) s CROSS JOIN graph g ON g.digest = s.value ->> 1
       CROSS JOIN json_each((
         SELECT json_group_array(json_array(urgency, run))
           FROM (SELECT y.urgency, y.run FROM ready y
                  WHERE y.lane = :lane AND y.graph = g.key AND y.workflow = s.value ->> 0
                  ORDER BY y.urgency, y.run LIMIT :limit))) e"""
)
_FORGET = """
DELETE FROM ready WHERE (lane, graph, workflow, urgency, run) IN
  (SELECT :lane, j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3 FROM json_each(:stale) j)
"""
_UNMARK = "UPDATE run SET marked = NULL WHERE key IN (SELECT value FROM json_each(?))"
_INTO_GRANTED = """
INSERT INTO temp.granted (run, idx, number, graph, failures, losses)
SELECT n.run, n.idx, n.attempt + 1, r.graph, n.failures, n.losses
"""
_START_ATTEMPTS = f"""
INSERT INTO attempt (key, run, idx, number, status, claim, worker, started_at)
SELECT :key * {ORDINALS} + ord - 1, run, idx, number, {A_RUNNING}, :claim, :worker, :now FROM temp.granted
"""
_START_NODES = f"""
UPDATE node SET status = {N_RUNNING}, attempt = g.number, last = :key * {ORDINALS} + g.ord - 1
  FROM temp.granted g WHERE node.run = g.run AND node.idx = g.idx
"""
_COUNT_STARTS = """
UPDATE run SET seq = seq + t.started
  FROM (SELECT run, count(*) AS started FROM temp.granted GROUP BY run) t WHERE run.key = t.run
"""
_HOLD = "INSERT OR IGNORE INTO held (run, worker) SELECT DISTINCT run, ? FROM temp.granted"
# A statement of its own: it updates indexes, which would else be written with every claim.
_START_RUNS = f"""
UPDATE run
   SET started_at = coalesce(started_at, :now), status = max(status, {R_RUNNING})
 WHERE key IN (SELECT run FROM temp.granted) AND (started_at IS NULL OR status < {R_RUNNING})
"""
_NOTE_STARTS = f"""
INSERT INTO journal (run, seq, at, kind, idx, number)
SELECT g.run, r.seq + 1 - row_number() OVER (PARTITION BY g.run ORDER BY g.ord DESC), :now, {KIND_CODE["claimed"]},
       g.idx, g.number
  FROM temp.granted g CROSS JOIN run r ON r.key = g.run
"""
_GRANTS = f"""
SELECT json_group_array(json_array(a.key % {ORDINALS}, r.id, a.idx, a.number, n.failures, n.losses, n.generation, r.heals,
                                   n.postponed, n.skipped, n.wakes)),
       max(g.has_needs)
  FROM (SELECT key, run, idx, number FROM attempt
         WHERE key BETWEEN :claim * {ORDINALS} AND :claim * {ORDINALS} + {ORDINALS - 1} AND status = {A_RUNNING}
         ORDER BY key) a
       CROSS JOIN node n ON n.run = a.run AND n.idx = a.idx
       CROSS JOIN run r ON r.key = a.run CROSS JOIN graph g ON g.key = r.graph
"""
_INPUTS = f"""
SELECT a.key % {ORDINALS}, need.ancestor, p.output, a.run
  FROM attempt a CROSS JOIN run r ON r.key = a.run CROSS JOIN need ON need.graph = r.graph AND need.child = a.idx
       CROSS JOIN node m ON m.run = a.run AND m.idx = need.ancestor
       CROSS JOIN attempt p ON p.key = m.last AND p.status = {A_COMPLETED}
 WHERE a.key BETWEEN :claim * {ORDINALS} AND :claim * {ORDINALS} + {ORDINALS - 1} AND a.status = {A_RUNNING}
   AND p.output IS NOT NULL
 ORDER BY a.key, need.ancestor
"""


def claim(tx: Transaction, op: Claim) -> Receipt:
    few: list[Candidate] = []
    for lane, limit in _lanes(op):
        room = min(limit, FEW + 1) - len(few)
        if room > 0:
            ready, scope = _ready(tx, op, lane, room)
            few += map(Candidate._make, tx.all(_CANDIDATES[ready], scope))
    granted = grant_few(tx, op, few) if 0 < len(few) <= FEW else None
    if granted is None:
        return _claim_many(tx, op, some=bool(few))
    key, grants = granted
    given = _with_inputs(tx, key, grants) if any(node.has_needs for node in few) else tuple(grants)
    return Claimed(given, _runs(tx, op, given))


def _runs(tx: Transaction, op: Claim, grants: Iterable[Grant]) -> tuple[RunRow, ...]:
    """The rows of the granted runs, for a worker that may not know them."""
    if op.serves is None:
        return ()
    return run_rows(tx, sorted({grant.run_id for grant in grants}))


def _with_inputs(tx: Transaction, key: int, grants: list[Grant]) -> tuple[Grant, ...]:
    inputs = _inputs(tx, key)
    return tuple(grant._replace(inputs=tuple(inputs.get(ordinal, ()))) for ordinal, grant in enumerate(grants))


def _claim_many(tx: Transaction, op: Claim, *, some: bool) -> Receipt:
    """A claim that is granted many nodes or none, is repeated, or is refused."""
    known = "SELECT (SELECT 1 FROM worker WHERE id = ? AND lease_until > ?), (SELECT key FROM claim WHERE id = ?)"
    ((alive, key),) = tx.all(known, (op.worker, tx.now, op.claim_id))
    if not alive:
        return Refused(Refusal.LEASE_EXPIRED)
    if key is None:
        if not some:
            return Claimed(())
        key = _grant_many(tx, op)
    grants = _grants(tx, op, key)
    return Claimed(grants, _runs(tx, op, grants))


def _lanes(op: Claim) -> Iterable[tuple[Lane, int]]:
    return op.lanes if len(op.lanes) == 1 else dict(op.lanes).items()


def _ready(tx: Transaction, op: Claim, lane: Lane, limit: int) -> tuple[str, dict[str, Any]]:
    """The end of a statement that selects the READY nodes of a lane for a claim, and its parameters."""
    given = {"lane": tx.lanes.key(tx.db, lane), "limit": limit}
    if op.serves is not None:
        return _OF_FOUND, given | {"runs": json.dumps(_find_runs(tx, op.serves, given))}
    if len(op.runs) == 1:
        return _OF_RUN, given | {"runs": op.runs[0]}
    return _OF_RUNS, given | {"runs": json.dumps(op.runs)}


def _find_runs(tx: Transaction, serves: Sequence[tuple[str, str]], given: dict[str, Any]) -> list[int]:
    """The first runs with READY nodes in a lane, at most as many as nodes are wanted. Deletes marks that are out of date."""
    scope = given | {"serves": json.dumps([*dict.fromkeys(serves)])}  # without duplicates, or runs would be found twice
    while True:
        found = tx.json(_FIND_SERVED, scope)
        stale = [mark for *mark, has_ready in found if not has_ready]
        if not stale:
            return [run for _, _, _, run, _ in found]
        tx.execute(_FORGET, {"lane": given["lane"], "stale": json.dumps(stale)})
        tx.execute(_UNMARK, (json.dumps([run for _, _, _, run in stale]),))


def _grant_many(tx: Transaction, op: Claim) -> int:
    """Grant READY nodes as a set. Returns the key of the claim."""
    tx.execute("DELETE FROM temp.granted")
    found = 0
    for lane, limit in _lanes(op):
        room = min(limit, LIMITS.nodes) - found
        if room > 0:
            ready, scope = _ready(tx, op, lane, room)
            tx.execute(_INTO_GRANTED + ready, scope)
            found += tx.db.changes()
    key = add_claim(tx, op.claim_id)
    tx.execute(_START_ATTEMPTS, {"key": key, "claim": op.claim_id, "worker": op.worker, "now": tx.now})
    tx.execute(_START_NODES, {"key": key})
    tx.execute(_HOLD, (op.worker,))
    tx.execute(_COUNT_STARTS)
    tx.execute(_START_RUNS, {"now": tx.now})
    tx.execute(_NOTE_STARTS, {"now": tx.now})
    return key


def _grants(tx: Transaction, op: Claim, key: int) -> tuple[Grant, ...]:
    """The attempts of a claim that are still running, with the outputs that their bodies take."""
    ((rows, has_needs),) = tx.all(_GRANTS, {"claim": key})
    inputs = _inputs(tx, key) if has_needs else {}
    return tuple(
        Grant(
            attempt_id(op.claim_id, ordinal),
            run,
            idx,
            number,
            failures,
            losses,
            tuple(inputs.get(ordinal, ())),
            generation,
            heals,
            *counts,
        )
        for ordinal, run, idx, number, failures, losses, generation, heals, *counts in json.loads(rows)
    )


def _inputs(tx: Transaction, claim: int) -> dict[int, list[tuple[int, bytes]]]:
    """The outputs that the bodies of a claim take, by ordinal."""
    inputs: dict[int, list[tuple[int, bytes]]] = {}
    for ordinal, ancestor, output, run in tx.all(_INPUTS, {"claim": claim}):
        inputs.setdefault(ordinal, []).append((ancestor, resolve(tx.db, run, output) or b""))
    return inputs
