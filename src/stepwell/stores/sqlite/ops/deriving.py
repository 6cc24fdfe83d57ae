"""Deriving, before a gate opens, both counters of every node and which unstarted nodes are READY.

A small run is derived in one commit. A large one takes several, with AT_ONCE nodes or edges each, so that no other commit
waits for long: first all counters are cleared, then parents are counted edge by edge, then nodes become READY or PENDING.
The run's row says how far this has come; any node that ends or changes meanwhile starts it again.
"""

from __future__ import annotations

from ....core.model import HEALED_LATE
from ....core.store.rules.codes import N_COMPLETED, N_PENDING, N_READY, N_SKIPPED
from .ending import Transaction

AT_ONCE = 5_000
_NODES = 1 << 29
"""More than any graph has, so that (parent, child) fits into one number."""
_PHASE = 60
"""`run.derived` holds the phase from this bit on, and below it the node or edge to continue with."""

_SKIPPED = f"p.status = {N_SKIPPED} AND p.reason IS NOT '{HEALED_LATE}'"
_CLEAR = "UPDATE node SET waiting = 0, skipped = 0 WHERE run = :run AND idx >= :first AND idx < :end AND waiting + skipped > 0"
_COUNT_IN = f"""
UPDATE node SET waiting = node.waiting + t.waiting, skipped = node.skipped + t.skipped
  FROM (SELECT e.child, sum(p.status NOT IN ({N_COMPLETED}, {N_SKIPPED})) AS waiting, sum({_SKIPPED}) AS skipped
          FROM (SELECT parent, child FROM edge WHERE graph = :graph AND (parent, child) > (:parent, :child)
                   AND (parent, child) <= (:last_parent, :last_child)) e
               CROSS JOIN node p ON p.run = :run AND p.idx = e.parent GROUP BY e.child) t
 WHERE node.run = :run AND node.idx = t.child
"""
_LAST_EDGE = f"""
SELECT parent, child FROM edge WHERE graph = ? AND (parent, child) > (?, ?) ORDER BY parent, child LIMIT 1 OFFSET {AT_ONCE - 1}
"""
_READY = f"""
UPDATE node SET status = iif(waiting = 0, {N_READY}, {N_PENDING})
 WHERE run = :run AND idx >= :first AND idx < :end AND status = iif(waiting = 0, {N_PENDING}, {N_READY})
"""
# For a run that fits into one commit: writes only rows whose counters change.
_REDERIVE = f"""
UPDATE node SET waiting = t.waiting, skipped = t.skipped
  FROM (SELECT n.idx, coalesce(c.waiting, 0) AS waiting, coalesce(c.skipped, 0) AS skipped
          FROM node n LEFT JOIN
               (SELECT e.child, sum(p.status NOT IN ({N_COMPLETED}, {N_SKIPPED})) AS waiting,
                       sum({_SKIPPED}) AS skipped
                  FROM node p CROSS JOIN edge e ON e.graph = :graph AND e.parent = p.idx
                 WHERE p.run = :run GROUP BY e.child) c ON c.child = n.idx
         WHERE n.run = :run AND (n.waiting, n.skipped) IS NOT (coalesce(c.waiting, 0), coalesce(c.skipped, 0))) t
 WHERE node.run = :run AND node.idx = t.idx
"""


def derive(tx: Transaction, run: int, graph: int, total: int) -> bool:
    """Derive the run, or its next part. Return whether it is complete."""
    if total <= AT_ONCE:
        tx.db.execute(_REDERIVE, {"run": run, "graph": graph})
        tx.db.execute(_READY, {"run": run, "first": 0, "end": total})
        return True
    ((derived,),) = tx.all("SELECT derived FROM run WHERE key = ?", (run,))
    phase, at = derived >> _PHASE, derived & ((1 << _PHASE) - 1)
    if phase == 1:
        following = _count_in(tx, run, graph, at)
    else:
        end = min(at + AT_ONCE, total)
        tx.db.execute(_READY if phase else _CLEAR, {"run": run, "first": at, "end": end})
        following = end if end < total else None
    if following is None:
        phase, following = phase + 1, 0
    tx.db.execute("UPDATE run SET derived = ? WHERE key = ?", (phase << _PHASE | following, run))
    return bool(phase == 3)


def _count_in(tx: Transaction, run: int, graph: int, at: int) -> int | None:
    """Count the parents of the next edges. Return the edge to continue with, or None after the last."""
    parent, child = divmod(at - 1, _NODES)
    last = tx.one(_LAST_EDGE, (graph, parent, child))
    end = last or (_NODES, 0)
    scope = {"parent": parent, "child": child, "last_parent": end[0], "last_child": end[1]}
    tx.db.execute(_COUNT_IN, {"run": run, "graph": graph} | scope)
    return None if last is None else last[0] * _NODES + last[1] + 1
