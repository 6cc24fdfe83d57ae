"""Switching a run to another graph."""

from __future__ import annotations

from ....core.model import GraphSwitched, Receipt, Refusal, Refused, SwitchGraph
from ....core.store.rules.codes import GATE, KIND_CODE, N_PENDING, RUN_STATUS
from ....core.store.rules.verdicts import GateFacts, refuse_switch
from ..limits import LIMITS
from .ending import Transaction, unmark_ready

_SWITCH_GRAPH = """
UPDATE run SET graph = ?, total = ?, heals = heals + 1, seq = seq + 1, derived = 0, marked = NULL WHERE key = ?
"""
_FORMER = "INSERT OR IGNORE INTO former_graph (run, graph) VALUES (?, ?)"
_NOTE = """
INSERT INTO journal (run, seq, at, kind, detail)
SELECT r.key, r.seq, :now, :kind, :old || ' ' || :new FROM run r WHERE r.key = :run
"""
# The new graph may give existing nodes another lane or rank. A suspect stays one, in its new queue.
_REPLACE = """
UPDATE node SET rank = l.rank, lane = iif(was.suspect, suspect.key, l.lane)
  FROM layout l CROSS JOIN lane home ON home.key = l.lane
       CROSS JOIN lane suspect
                  ON (suspect.queue, suspect.body, suspect.careful, suspect.suspect) = (home.queue, home.body, home.careful, 1),
       lane was
 WHERE node.run = :run AND l.graph = :graph AND l.idx = node.idx AND was.key = node.lane
   AND (l.rank, l.lane) IS NOT (node.rank, node.lane)
"""
_ADD = f"""
INSERT INTO node (run, idx, status, waiting, lane, rank)
SELECT r.key, l.idx, {N_PENDING}, l.parents, l.lane, l.rank
  FROM run r CROSS JOIN layout l ON l.graph = r.graph AND l.idx >= r.loaded AND l.idx < r.loaded + {LIMITS.nodes}
 WHERE r.key = ?
"""


_RUN = """
SELECT r.key, r.loaded, g.key, g.digest, r.status, r.gate, r.token, r.purpose, r.expires_at, r.last_token
  FROM run r JOIN graph g ON g.key = r.graph WHERE r.id = ?
"""


def arrange(tx: Transaction, op: SwitchGraph) -> Receipt:
    row = tx.one(_RUN, (op.run_id,))
    graph = tx.one("SELECT key, loaded, total FROM graph WHERE digest = ?", (op.digest,))
    if row is None or graph is None:
        return Refused(Refusal.UNKNOWN, op.run_id if row is None else f"graph {op.digest}")
    key, loaded, old, digest, status, state, *rest = row
    new, stored, total = graph
    facts = GateFacts(RUN_STATUS[status], GATE[state], *rest)
    refused = refuse_switch(op, facts, complete=stored == total, total=total, loaded=loaded)
    if refused is not None:
        return refused
    if old != new:
        unmark_ready(tx, [key])
        tx.db.execute(_SWITCH_GRAPH, (new, total, key))
        tx.db.execute(_FORMER, (key, old))
        noted = {"run": key, "now": tx.now, "kind": KIND_CODE["healed"], "old": digest, "new": op.digest}
        tx.db.execute(_NOTE, noted)
        tx.db.execute(_REPLACE, {"run": key, "graph": new})
    if op.start == loaded and loaded < total:
        tx.db.execute(_ADD, (key,))
        added = tx.db.changes()
        tx.db.execute("UPDATE run SET loaded = loaded + ?1, open = open + ?1 WHERE key = ?2", (added, key))
        loaded += added
    return GraphSwitched(loaded, total)
