"""Attempts that end, for whatever reason: settled, lost, released or fenced. One path for all of them.

The temporary table `ending` holds one row for each; statements then move all their attempts, nodes, children, counts
and journals at once. Nothing here is decided in Python: a statement that would find nothing to do may be left out.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import apsw

from ...ids import RunId
from ...model import GateState, RunNews
from .codes import (
    A_FAILED,
    A_TIMED_OUT,
    G_HELD,
    G_OPEN,
    G_SHUT,
    GATE,
    KIND_CODE,
    N_COMPLETED,
    N_FAILED,
    N_INTERRUPTED,
    N_PENDING,
    N_READY,
    N_TERMINAL,
    R_CANCELLED,
    R_CANCELLING,
    R_COMPLETED,
    RUN_STATUS,
)


class Transaction(NamedTuple):
    """A connection inside a transaction, and the time all of it happens at."""

    db: apsw.Connection
    now: int

    def json(self, statement: str, parameters: Any = ()) -> Any:
        """A result that the statement packed into one JSON value: one step, however many rows."""
        row = self.db.execute(statement, parameters).fetchone()
        return None if row is None or row[0] is None else json.loads(row[0])


TEMPORARY_TABLES = """
CREATE TEMP TABLE ending (
  ord     INTEGER PRIMARY KEY,
  attempt INTEGER,
  run     INTEGER,
  idx     INTEGER,
  number  INTEGER,
  graph   INTEGER,
  verdict INTEGER,            -- 0 fenced, 1 accepted, 2 repeated
  status  INTEGER,
  node    INTEGER,
  output  BLOB,
  error   BLOB,
  outcome BLOB,
  due_at  INTEGER,
  loss    INTEGER,
  lane    INTEGER,            -- the lane it moves to, if it does
  reason  TEXT,
  moving  INTEGER             -- the gate stood open
);
CREATE TEMP TABLE lowered (run INTEGER, child INTEGER, by INTEGER, PRIMARY KEY (run, child)) WITHOUT ROWID;
CREATE TEMP TABLE granted (
  ord INTEGER PRIMARY KEY, run INTEGER, idx INTEGER, number INTEGER, graph INTEGER, failures INTEGER, losses INTEGER
);
CREATE TEMP TABLE changing (
  ord INTEGER PRIMARY KEY, idx INTEGER, status INTEGER, reason TEXT, fresh INTEGER, was INTEGER, attempt INTEGER, ok INTEGER
);
CREATE TEMP TABLE creating (
  ord INTEGER PRIMARY KEY, id TEXT, workflow TEXT, target TEXT, graph INTEGER, complete INTEGER, input BLOB, seed TEXT,
  on_failure TEXT, urgency INTEGER, timeout INTEGER, idempotency_key TEXT, existing INTEGER
);
"""

_END_ATTEMPTS = """
UPDATE attempt
   SET status = e.status, ended_at = :now, output = e.output, error = e.error, outcome = e.outcome
  FROM temp.ending e WHERE e.verdict = 1 AND attempt.key = e.attempt
"""
_MOVE_NODES = f"""
UPDATE node
   SET status = e.node, due_at = e.due_at, reason = e.reason, losses = node.losses + e.loss,
       lane = coalesce(e.lane, node.lane), failures = node.failures + (e.status IN ({A_FAILED}, {A_TIMED_OUT}))
  FROM temp.ending e WHERE e.verdict = 1 AND node.run = e.run AND node.idx = e.idx
"""
_FIND_CHILDREN = f"""
INSERT INTO temp.lowered (run, child, by)
SELECT e.run, edge.child, count(*)
  FROM temp.ending e CROSS JOIN edge ON edge.graph = e.graph AND edge.parent = e.idx
 WHERE e.verdict = 1 AND e.node = {N_COMPLETED} AND e.moving
 GROUP BY e.run, edge.child
"""
_LOWER_CHILDREN = f"""
UPDATE node
   SET waiting = waiting - l.by,
       status = CASE WHEN waiting = l.by AND status = {N_PENDING} THEN {N_READY} ELSE status END
  FROM temp.lowered l WHERE node.run = l.run AND node.idx = l.child
"""
# A child that was lowered and is READY became so just now.
_COUNT = f"""
UPDATE run
   SET seq = seq + t.ended, open = open - t.closed, failed = failed + t.newly_failed, active = active - t.closed + t.released
  FROM (SELECT run, count(*) AS ended, sum(node >= {N_TERMINAL}) AS closed,
               sum(node IN ({N_FAILED}, {N_INTERRUPTED})) AS newly_failed,
               (SELECT count(*) FROM temp.lowered l CROSS JOIN node n ON n.run = l.run AND n.idx = l.child
                 WHERE l.run = e.run AND n.status = {N_READY}) AS released
          FROM temp.ending e WHERE verdict = 1 GROUP BY run) t
 WHERE run.key = t.run
"""
_NOTE = """
INSERT INTO journal (run, seq, at, kind, idx, number, status)
SELECT e.run, r.seq + 1 - row_number() OVER (PARTITION BY e.run ORDER BY e.ord DESC), :now, :kind, e.idx, e.number, e.node
  FROM temp.ending e CROSS JOIN run r ON r.key = e.run WHERE e.verdict = 1
"""


def apply_ending(tx: Transaction, kind: str) -> None:
    """End what the table `ending` says, and count and note it."""
    now = {"now": tx.now}
    tx.db.execute(_END_ATTEMPTS, now)
    tx.db.execute(_MOVE_NODES)
    tx.db.execute("DELETE FROM temp.lowered")
    tx.db.execute(_FIND_CHILDREN)
    if tx.db.changes():
        tx.db.execute(_LOWER_CHILDREN)
    tx.db.execute(_COUNT)
    tx.db.execute(_NOTE, {"now": tx.now, "kind": KIND_CODE[kind]})


def ended_runs(tx: Transaction) -> list[int]:
    return tx.json("SELECT json_group_array(DISTINCT run) FROM temp.ending WHERE verdict = 1") or []


_NEWS = """
SELECT json_group_array(json_array(key, id, status, gate, purpose, open, active, failed, seq, on_failure))
  FROM (SELECT * FROM run WHERE key IN (SELECT value FROM json_each(?)) ORDER BY key)
"""
_COMPLETE = f"""
UPDATE run SET status = {R_COMPLETED}, gate = {G_SHUT}, ended_at = :now, seq = seq + 1
 WHERE key = :run AND gate = {G_OPEN} AND open = 0 AND failed = 0
"""
_CANCEL = f"""
UPDATE run SET status = {R_CANCELLED}, gate = {G_SHUT}, ended_at = :now, cancel_at = NULL, seq = seq + 1
 WHERE key = :run AND gate <> {G_OPEN} AND status = {R_CANCELLING} AND active = 0
"""
_CLOSE = f"""
UPDATE run SET gate = {G_HELD}, token = NULL, purpose = :purpose, arguments = x'', expires_at = :now, stopping = 1,
               reason = coalesce(:reason, reason), seq = seq + 1
 WHERE key = :run AND gate = {G_OPEN}
"""
_NOTE_RUN = """
INSERT INTO journal (run, seq, at, kind, status, detail) SELECT key, seq, ?, ?, ?, ? FROM run WHERE key = ?
"""


def news(tx: Transaction, runs: list[int]) -> dict[int, RunNews]:
    """How these runs stand, and what follows from that for the runs themselves: see `conclude` of the memory store."""
    rows = tx.json(_NEWS, (json.dumps(runs),))
    if any(_conclude(tx, *row) for row in rows):
        rows = tx.json(_NEWS, (json.dumps(runs),))
    return {
        key: RunNews(RunId(run_id), RUN_STATUS[status], GATE[gate], purpose, opened, active, failed, seq)
        for key, run_id, status, gate, purpose, opened, active, failed, seq, _ in rows
    }


def _conclude(
    tx: Transaction,
    run: int,
    _id: str,
    status: int,
    gate: int,
    _purpose: str | None,
    opened: int,
    active: int,
    failed: int,
    _seq: int,
    on_failure: str,
) -> bool:
    """True if the run itself changed."""
    if GATE[gate] is GateState.OPEN:
        if opened == 0 and failed == 0:
            tx.db.execute(_COMPLETE, {"now": tx.now, "run": run})
            note_run(tx, run, R_COMPLETED)
            return True
        if active == 0 or (failed and on_failure == "fail_fast"):
            close_gate(tx, run, "failed")
            return True
    elif status == R_CANCELLING and active == 0:
        tx.db.execute(_CANCEL, {"now": tx.now, "run": run})
        note_run(tx, run, R_CANCELLED)
        return True
    return False


def close_gate(tx: Transaction, run: int, purpose: str, reason: str | None = None) -> None:
    """The gate is held by nobody: whoever sees it first finishes what it is held for."""
    tx.db.execute(_CLOSE, {"now": tx.now, "run": run, "purpose": purpose, "reason": reason})
    note_gate(tx, run, purpose)


def note_run(tx: Transaction, run: int, status: int) -> None:
    tx.db.execute(_NOTE_RUN, (tx.now, KIND_CODE["run"], status, None, run))


def note_gate(tx: Transaction, run: int, purpose: str) -> None:
    tx.db.execute(_NOTE_RUN, (tx.now, KIND_CODE["gate"], None, purpose, run))
