"""Forks: runs that start with results of another run."""

from __future__ import annotations

import json

from ....core.model import Receipt, Refusal, Refused, Share, Shared
from ....core.store.rules import codes
from ....core.store.rules.grouping import once_each
from ..payloads import share_references
from .attempts import add_claim, numbered
from .ending import Transaction, note_gates

_HOLD = f"""
UPDATE run SET gate = {codes.G_HELD}, token = NULL, purpose = 'fork', arguments = fork, expires_at = :now,
               seq = seq + 1, reported_until = 0
 WHERE fork IS NOT NULL AND gate = {codes.G_OPEN} AND loaded = total AND id IN (SELECT value FROM json_each(:runs))
RETURNING key
"""


def hold_forks(tx: Transaction, runs: list[str]) -> None:
    """Hold the gates of those that are forks and completely loaded, until they have the results they share."""
    keys = [key for (key,) in tx.all(_HOLD, {"now": tx.now, "runs": json.dumps(runs)})]
    if keys:
        note_gates(tx, keys, "fork")


_NUMBERED = numbered(":origin", "j.value ->> 0", "j.value ->> 1")
_THEIRS = f"""
  FROM json_each(:rows) j CROSS JOIN attempt a ON a.key = {_NUMBERED}
 WHERE a.status IN ({codes.A_COMPLETED}, {codes.A_SUPERSEDED})
   AND EXISTS (SELECT 1 FROM node n WHERE n.run = :run AND n.idx = a.idx
"""
_COPY = f"""
INSERT INTO attempt (key, run, idx, number, status, claim, worker, started_at, ended_at, output, outcome, record)
SELECT :claim * {codes.ORDINALS} + j.key, :run, a.idx, 1, {codes.A_COMPLETED}, :id, a.worker, a.started_at, a.ended_at,
       a.output, a.outcome, a.record
{_THEIRS} AND n.attempt = 0 AND n.status IN ({codes.N_PENDING}, {codes.N_READY}))
"""
_OURS = f"FROM attempt a WHERE a.key >= :claim * {codes.ORDINALS} AND a.key < (:claim + 1) * {codes.ORDINALS}"
_LINES = f"""
INSERT INTO line (attempt, idx, at, kind, data)
SELECT :claim * {codes.ORDINALS} + j.key, l.idx, l.at, l.kind, l.data
  FROM json_each(:rows) j CROSS JOIN attempt ours ON ours.key = :claim * {codes.ORDINALS} + j.key
       CROSS JOIN attempt a ON a.key = {_NUMBERED}
       CROSS JOIN line l ON l.attempt = a.key AND l.kind IN ('effect', 'payload', 'checkpoint')
"""
_MOVE = f"""
UPDATE node SET status = {codes.N_COMPLETED}, attempt = 1, last = ours.key
  FROM (SELECT a.key, a.idx {_OURS}) ours WHERE node.run = :run AND node.idx = ours.idx
"""
# Some of the nodes that are now COMPLETED were READY.
_COUNT = f"""
UPDATE run SET seq = seq + :shared, open = open - :shared,
               active = (SELECT count(*) FROM node n
                          WHERE n.run = :run AND n.status BETWEEN {codes.N_READY} AND {codes.N_WAITING})
 WHERE key = :run
"""
_NOTE = f"""
INSERT INTO journal (run, seq, at, kind, idx, number, status)
SELECT :run, (SELECT seq FROM run WHERE key = :run) + 1 - row_number() OVER (ORDER BY a.key DESC), :now,
       {codes.KIND_CODE["shared"]}, a.idx, 1, {codes.N_COMPLETED} {_OURS}
"""


def share(tx: Transaction, op: Share) -> Receipt:
    row = tx.one("SELECT key, gate, token FROM run WHERE id = ?", (op.run_id,))
    origin = tx.one("SELECT key FROM run WHERE id = ?", (op.origin,))
    if row is None or origin is None:
        return Refused(Refusal.UNKNOWN, op.run_id if row is None else op.origin)
    run, state, token = row
    if state != codes.G_HELD or token != op.token:
        return Refused(Refusal.GATE_LOST)
    given = {"run": run, "origin": origin[0], "rows": json.dumps(once_each(op.rows))}
    ((found,),) = tx.all(f"SELECT count(*) {_THEIRS})", given)
    if tx.one("SELECT 1 FROM claim WHERE id = ?", (op.claim_id,)) is None:
        _copy(tx, op, given)
    return Shared(found)


def _copy(tx: Transaction, op: Share, given: dict[str, object]) -> None:
    claim = {"claim": add_claim(tx, op.claim_id)}
    tx.db.execute(_COPY, given | claim | {"id": op.claim_id})
    shared = tx.db.changes()
    if not shared:
        tx.db.execute("DELETE FROM claim WHERE id = ?", (op.claim_id,))
        return
    tx.db.execute(_LINES, given | claim)
    shared_with = {"run": given["run"], "origin": given["origin"]} | claim
    for column in ("output", "outcome"):
        share_references(tx.db, f"SELECT a.{column} AS value {_OURS}", shared_with)
    lines = f"SELECT l.data AS value FROM line l WHERE l.attempt IN (SELECT a.key {_OURS})"
    share_references(tx.db, lines, shared_with)
    run = {"run": given["run"]}
    tx.db.execute(_MOVE, run | claim)
    tx.db.execute(_COUNT, run | {"shared": shared})
    tx.db.execute(_NOTE, run | claim | {"now": tx.now})
