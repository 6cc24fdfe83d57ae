"""Ends attempts, for whatever reason: settled, lost, released or fenced. All take the same path.

The temporary table `ending` holds one row per attempt. A fixed series of statements then updates all attempts, nodes,
children, counts and journals at once. Python decides nothing, except to leave out statements that would find nothing to do.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import apsw

from ....base.ids import RunId
from ....core.model import ENDED, NODE_FAILED, RunNews
from ....core.store.rules.codes import (
    A_FAILED,
    A_TIMED_OUT,
    ENDS,
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
    N_SKIPPED,
    N_TERMINAL,
    R_CANCELLED,
    R_COMPLETED,
    R_PAUSED,
    RUN_STATUS,
)
from ....core.store.rules.verdicts import Conclusion, conclude
from ..lanes import Lanes

ANY_STOPS = "SELECT 1 FROM run INDEXED BY run_stopping WHERE stopping AND status < 4 LIMIT 1"


class Transaction:
    """A connection inside a transaction, and the one time at which all of it happens."""

    __slots__ = ("db", "execute", "lanes", "nothing_stops", "now")

    def __init__(self, cursor: apsw.Cursor, now: int, lanes: Lanes) -> None:
        self.db = cursor.connection
        self.now = now
        self.lanes = lanes
        self.nothing_stops = False
        """It is known that no run in the file is to stop."""
        self.execute = cursor.execute
        """Runs a statement on the one cursor, which is faster than one per statement. The next call discards unread rows."""

    def one(self, statement: str, parameters: Any = ()) -> Any:
        """The first row, or None."""
        return self.execute(statement, parameters).fetchone()

    def all(self, statement: str, parameters: Any = ()) -> list[Any]:
        return self.execute(statement, parameters).fetchall()

    def json(self, statement: str, parameters: Any = ()) -> Any:
        """The result of a statement that packs all its rows into one JSON value, to read it in one step."""
        row = self.execute(statement, parameters).fetchone()
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
  error_type TEXT,
  outcome BLOB,
  due_at  INTEGER,
  loss    INTEGER,
  lane    INTEGER,            -- the lane it moves to, if it does
  reason  TEXT,
  moving  INTEGER             -- the gate stood open
);
-- Without a key: it must be what is scanned in a join.
CREATE TEMP TABLE lowered (run INTEGER, child INTEGER, by INTEGER, skipped INTEGER);
CREATE TEMP TABLE granted (
  ord INTEGER PRIMARY KEY, run INTEGER, idx INTEGER, number INTEGER, graph INTEGER, failures INTEGER, losses INTEGER
);
CREATE TEMP TABLE changing (
  ord INTEGER PRIMARY KEY, idx INTEGER, status INTEGER, reason TEXT, fresh INTEGER, anew INTEGER, was INTEGER, attempt INTEGER,
  ok INTEGER
);
CREATE TEMP TABLE creating (
  ord INTEGER PRIMARY KEY, id TEXT, workflow TEXT, target TEXT, graph INTEGER, complete INTEGER, input BLOB, seed TEXT,
  on_failure TEXT, urgency INTEGER, timeout INTEGER, idempotency_key TEXT, fork BLOB, origin TEXT, tags TEXT,
  parent TEXT, parent_node INTEGER, depth INTEGER, existing INTEGER
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
INSERT INTO temp.lowered (run, child, by, skipped)
SELECT e.run, edge.child, count(*), sum(e.node = {N_SKIPPED})
  FROM temp.ending e CROSS JOIN edge ON edge.graph = e.graph AND edge.parent = e.idx
 WHERE e.verdict = 1 AND e.node IN ({N_COMPLETED}, {N_SKIPPED}) AND e.moving
 GROUP BY e.run, edge.child
"""
_LOWER_CHILDREN = f"""
UPDATE node
   SET waiting = waiting - l.by, skipped = node.skipped + l.skipped,
       status = CASE WHEN waiting = l.by AND status = {N_PENDING} THEN {N_READY} ELSE status END
  FROM temp.lowered l WHERE node.run = l.run AND node.idx = l.child
"""
# A child in `lowered` that is READY has just become so.
_COUNT = f"""
UPDATE run
   SET seq = seq + t.ended, open = open - t.closed, failed = failed + t.newly_failed,
       active = active - t.closed + coalesce(u.released, 0), derived = 0
  FROM (SELECT run, count(*) AS ended, sum(node >= {N_TERMINAL}) AS closed,
               sum(node IN ({N_FAILED}, {N_INTERRUPTED})) AS newly_failed
          FROM temp.ending WHERE verdict = 1 GROUP BY run) t
       LEFT JOIN (SELECT l.run, count(*) AS released
                    FROM temp.lowered l CROSS JOIN node n ON n.run = l.run AND n.idx = l.child
                   WHERE n.status = {N_READY} GROUP BY l.run) u ON u.run = t.run
 WHERE run.key = t.run
"""
_MARK_CHILDREN = f"""
INSERT OR IGNORE INTO ready (lane, graph, workflow, urgency, run)
SELECT n.lane, r.graph, r.workflow, r.urgency, r.key
  FROM temp.lowered l CROSS JOIN node n ON n.run = l.run AND n.idx = l.child AND n.status = {N_READY}
       CROSS JOIN run r ON r.key = l.run
"""
_NOTE = f"""
INSERT INTO journal (run, seq, at, kind, idx, number, status)
SELECT e.run, r.seq + 1 - row_number() OVER (PARTITION BY e.run ORDER BY e.ord DESC), :now, e.status + {ENDS},
       e.idx, e.number, e.node
  FROM temp.ending e CROSS JOIN run r ON r.key = e.run WHERE e.verdict = 1
"""


_HOLD_BACK = f"""
UPDATE node SET status = {N_PENDING}
  FROM temp.ending e CROSS JOIN run r ON r.key = e.run AND r.heals > 0 AND r.gate = {G_OPEN}
 WHERE e.verdict = 1 AND e.node = {N_READY} AND node.run = e.run AND node.idx = e.idx
   AND node.status = {N_READY} AND node.waiting > 0
"""
# Only for healed runs, so rarely. A node that is also in `lowered` was counted twice.
_RECOUNT = f"""
UPDATE run SET active = (SELECT count(*) FROM node n WHERE n.run = run.key AND n.status BETWEEN {N_READY} AND {N_TERMINAL - 1})
 WHERE heals > 0 AND key IN (SELECT run FROM temp.ending WHERE verdict = 1 AND node = {N_READY})
"""


_MARK_AGAIN = f"""
INSERT OR IGNORE INTO ready (lane, graph, workflow, urgency, run)
SELECT n.lane, r.graph, r.workflow, r.urgency, r.key
  FROM temp.ending e CROSS JOIN node n ON n.run = e.run AND n.idx = e.idx AND n.status = {N_READY}
       CROSS JOIN run r ON r.key = e.run AND r.gate = {G_OPEN}
 WHERE e.verdict = 1 AND e.node = {N_READY}
"""


# Separate from the counts because it updates an index.
_NOTE_ERRORS = f"""
UPDATE run SET error = e.error_type
  FROM (SELECT run, error_type, min(ord) FROM temp.ending
         WHERE verdict = 1 AND node IN ({N_FAILED}, {N_INTERRUPTED}) AND error_type IS NOT NULL GROUP BY run) e
 WHERE run.key = e.run AND run.error IS NULL
"""


def note_errors(tx: Transaction) -> None:
    """Keep the first error of each run in which a node in the table `ending` has failed."""
    tx.execute(_NOTE_ERRORS)


def run_again(tx: Transaction) -> None:
    """Let nodes that ended READY be claimed again, unless a heal has given them an open parent while they ran."""
    tx.execute(_HOLD_BACK)
    tx.execute(_RECOUNT)
    tx.execute(_MARK_AGAIN)


def apply_ending(tx: Transaction) -> None:
    """End the attempts in the table `ending`, and update children, counts and journals."""
    now = {"now": tx.now}
    tx.execute(_END_ATTEMPTS, now)
    tx.execute(_MOVE_NODES)
    tx.execute("DELETE FROM temp.lowered")
    tx.execute(_FIND_CHILDREN)
    if tx.db.changes():
        tx.execute(_LOWER_CHILDREN)
        tx.execute(_MARK_CHILDREN)
    tx.execute(_COUNT)
    tx.execute(_NOTE, now)


def ended_runs(tx: Transaction) -> list[int]:
    return tx.json("SELECT json_group_array(DISTINCT run) FROM temp.ending WHERE verdict = 1") or []


_NEWS = """
SELECT json_group_array(json_array(key, id, status, gate, purpose, open, active, failed, seq, on_failure, tolerated))
  FROM (SELECT * FROM run WHERE key IN (SELECT value FROM json_each(?)) ORDER BY key)
"""
_END_RUNS = f"""
UPDATE run SET status = :status, gate = {G_SHUT}, ended_at = :now, cancel_at = NULL, seq = seq + 1, marked = NULL
 WHERE key IN (SELECT value FROM json_each(:runs))
"""
_PAUSE = f"""
UPDATE run SET status = {R_PAUSED}, gate = {G_SHUT}, reason = ?, seq = seq + 1 WHERE key IN (SELECT value FROM json_each(?))
"""
_CLOSE = f"""
UPDATE run SET gate = {G_HELD}, token = NULL, purpose = :purpose, arguments = x'', expires_at = :now, stopping = 1,
               reported_until = 0,
               reason = coalesce(:reason, reason), seq = seq + 1
 WHERE key IN (SELECT value FROM json_each(:runs))
"""
_NOTE_RUNS = """
INSERT INTO journal (run, seq, at, kind, status, detail)
SELECT key, seq, ?, ?, ?, ? FROM run WHERE key IN (SELECT value FROM json_each(?))
"""


def news(tx: Transaction, runs: Collection[int], *, moved: Collection[int] = ()) -> dict[int, RunNews]:
    """The state of these runs, after those in `moved`, whose nodes have changed, were completed, failed or paused if due."""
    keys = json.dumps(sorted(runs))
    rows = tx.json(_NEWS, (keys,))
    if _conclude(tx, [row for row in rows if row[0] in moved]):
        rows = tx.json(_NEWS, (keys,))
    return {
        key: RunNews(RunId(run_id), RUN_STATUS[status], GATE[gate], purpose, opened, active, failed, seq)
        for key, run_id, status, gate, purpose, opened, active, failed, seq, _, _ in rows
    }


def _conclude(tx: Transaction, rows: list[Any]) -> bool:
    """Complete, pause, fail or cancel the runs whose counts say so. True if any changed."""
    found: dict[Conclusion, list[int]] = {}
    for key, _, status, gate, _, opened, active, failed, _, on_failure, tolerated in rows:
        follows = conclude(GATE[gate], RUN_STATUS[status], on_failure, opened, active, failed, tolerated)
        if follows is not Conclusion.NOTHING:
            found.setdefault(follows, []).append(key)
    if completed := found.get(Conclusion.COMPLETED):
        _end_runs(tx, completed, R_COMPLETED)
    if pausing := found.get(Conclusion.PAUSED):
        tx.execute(_PAUSE, (NODE_FAILED, json.dumps(pausing)))
        note_runs(tx, pausing, R_PAUSED)
    if failing := found.get(Conclusion.FAILING):
        close_gates(tx, failing, "failed")
    if cancelled := found.get(Conclusion.CANCELLED):
        _end_runs(tx, cancelled, R_CANCELLED)
    return bool(found)


def _end_runs(tx: Transaction, runs: list[int], status: int) -> None:
    unmark_ready(tx, runs)
    tx.execute(_END_RUNS, {"now": tx.now, "runs": json.dumps(runs), "status": status})
    hold_ended(tx, runs)
    tx.execute("DELETE FROM held WHERE run IN (SELECT value FROM json_each(?))", (json.dumps(runs),))
    note_runs(tx, runs, status)


_HOLD_ENDED = f"""
UPDATE run SET gate = {G_HELD}, token = NULL, purpose = '{ENDED}', arguments = x'', expires_at = :now, reported_until = 0
 WHERE parent IS NOT NULL AND key IN (SELECT value FROM json_each(:runs))
"""


def hold_ended(tx: Transaction, runs: list[int]) -> None:
    """Hold the gates of those of these ended runs that perform nodes, until somebody hands their ends on."""
    tx.execute(_HOLD_ENDED, {"now": tx.now, "runs": json.dumps(runs)})


_MARK_READY = f"""
INSERT OR IGNORE INTO ready (lane, graph, workflow, urgency, run)
SELECT l.key, r.graph, r.workflow, r.urgency, r.key
  FROM json_each(?) j CROSS JOIN run r ON r.key = j.value AND r.gate = {G_OPEN} CROSS JOIN lane l
 WHERE EXISTS (SELECT 1 FROM node n INDEXED BY node_ready WHERE n.run = r.key AND n.lane = l.key AND n.status = {N_READY})
"""
_UNMARK_READY = """
DELETE FROM ready WHERE (lane, graph, workflow, urgency, run) IN
  (SELECT l.key, r.graph, r.workflow, r.urgency, r.key
     FROM json_each(?) j CROSS JOIN run r ON r.key = j.value CROSS JOIN lane l)
"""


def mark_ready(tx: Transaction, runs: list[int]) -> None:
    """Let claims find the READY nodes of those of these runs whose gates are open."""
    tx.execute(_MARK_READY, (json.dumps(runs),))


def unmark_ready(tx: Transaction, runs: list[int]) -> None:
    """Let claims find nothing of these runs. Marks that are missed here are deleted by the claim that finds them."""
    tx.execute(_UNMARK_READY, (json.dumps(runs),))


def close_gates(tx: Transaction, runs: list[int], purpose: str, reason: str | None = None) -> None:
    """Close the gates without a holder: whoever sees one first finishes the work it is held for."""
    tx.execute(_CLOSE, {"now": tx.now, "runs": json.dumps(runs), "purpose": purpose, "reason": reason})
    note_gates(tx, runs, purpose)


def note_runs(tx: Transaction, runs: list[int], status: int) -> None:
    tx.execute(_NOTE_RUNS, (tx.now, KIND_CODE["run"], status, None, json.dumps(runs)))


def note_gates(tx: Transaction, runs: list[int], purpose: str) -> None:
    tx.execute(_NOTE_RUNS, (tx.now, KIND_CODE["gate"], None, purpose, json.dumps(runs)))
