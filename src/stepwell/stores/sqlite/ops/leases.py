"""Workers and their leases: enlist, renew, dismiss; and sweep, which does what has become due."""

from __future__ import annotations

import json
from typing import Any

from ....base.ids import AttemptId, RunId, attempt_id, split_attempt_id
from ....core.model import (
    MAX_LOSSES,
    SUSPECT_AFTER,
    WORKER_LOST,
    WORKER_LOST_ERROR,
    Receipt,
    Refusal,
    Refused,
    RunNews,
    ops,
    receipts,
)
from ....core.store.living import holder_may_live
from ....core.store.rules import codes
from .attempts import RUNNING, let_go
from .ending import Transaction, apply_ending, close_gates, ended_runs, news, note_errors, run_again

_COLUMNS = "(attempt, run, idx, number, graph, verdict, status, node, error, error_type, loss, lane, reason, moving)"


def enlist(tx: Transaction, op: ops.Enlist) -> Receipt:
    worker = "INSERT OR REPLACE INTO worker (id, lease_until, renewed_at, info, lease) VALUES (?, ?, ?, ?, ?)"
    tx.db.execute(worker, (op.worker, tx.now + op.lease, tx.now, op.info, op.lease))
    return receipts.Enlisted(tx.now + op.lease)


# The worker does not hold what it claimed before its last renewal: it never got the answer to that claim.
_STRAY = f"""
INSERT INTO temp.ending {_COLUMNS}
SELECT a.key, a.run, a.idx, a.number, r.graph, 1, {codes.A_RELEASED},
       CASE WHEN r.stopping OR l.removed THEN {codes.N_CANCELLED} ELSE {codes.N_READY} END, NULL, NULL, 0, NULL, NULL, 0
  FROM held h CROSS JOIN run r ON r.key = h.run CROSS JOIN {RUNNING.format(run="h.run")} AND a.worker = h.worker
       CROSS JOIN layout l ON l.graph = r.graph AND l.idx = a.idx
 WHERE h.worker = :worker AND a.started_at < :heard_at
   AND a.key NOT IN (SELECT c.key * {codes.ORDINALS} + (j.value ->> 1)
                       FROM json_each(:held) j CROSS JOIN claim c ON c.id = j.value ->> 0)
 ORDER BY a.key
"""


def renew(tx: Transaction, op: ops.Renew) -> Receipt:
    row = tx.one("SELECT lease_until, renewed_at FROM worker WHERE id = ?", (op.worker,))
    if row is None or row[0] <= tx.now:
        return Refused(Refusal.LEASE_EXPIRED)
    released = 0
    if op.held is not None:
        held = json.dumps([split_attempt_id(attempt) for attempt in op.held])
        heard_at = row[1] if op.since is None else min(row[1], op.since)
        released, _ = _end(tx, _STRAY, {"worker": op.worker, "heard_at": heard_at, "held": held})
    let_go(tx, [op.worker])
    until = tx.now + op.lease
    renewed = "UPDATE worker SET lease_until = ?, renewed_at = ?, lease = ? WHERE id = ?"
    tx.db.execute(renewed, (until, tx.now, op.lease, op.worker))
    return receipts.Renewed(until, stops(tx, op.worker), released)


_RUNS_TO_STOP = (
    "SELECT h.run FROM held h CROSS JOIN run r ON r.key = h.run AND r.stopping AND r.active WHERE h.worker = ?"
)
_STOPS = f"""
SELECT a.claim, a.key % {codes.ORDINALS}
  FROM held h CROSS JOIN run r ON r.key = h.run AND r.stopping AND r.active
       CROSS JOIN {RUNNING.format(run="h.run")} AND a.worker = h.worker
 WHERE h.worker = ? ORDER BY a.key LIMIT ?
"""


def runs_to_stop(tx: Transaction, worker: str) -> list[int]:
    """The runs that are to stop in which a worker may hold attempts."""
    return [run for (run,) in tx.all(_RUNS_TO_STOP, (worker,))]


def stops(tx: Transaction, worker: str, limit: int = 10_000) -> tuple[AttemptId, ...]:
    return tuple(attempt_id(claim, ordinal) for claim, ordinal in tx.all(_STOPS, (worker, limit)))


# The node runs again, unless it must not (careful), or has lost too many workers. If a run performs it, no body was running.
_LOSE = f"""
INSERT INTO temp.ending {_COLUMNS}
SELECT a.key, a.run, a.idx, a.number, r.graph, 1, {codes.A_LOST},
       CASE WHEN r.stopping OR l.removed THEN {codes.N_CANCELLED} WHEN n.wakes THEN {codes.N_READY}
            WHEN home.careful THEN {codes.N_INTERRUPTED}
            WHEN n.losses + 1 >= {MAX_LOSSES} THEN {codes.N_FAILED} ELSE {codes.N_READY} END,
       :error, :error_type, 1,
       CASE WHEN r.stopping OR l.removed OR n.wakes OR home.careful THEN NULL
            WHEN n.losses + 1 < {SUSPECT_AFTER} OR n.losses + 1 >= {MAX_LOSSES} THEN NULL
            ELSE (SELECT key FROM lane WHERE (queue, body, careful, suspect) = (home.queue, home.body, home.careful, 1)) END,
       CASE WHEN r.stopping OR l.removed THEN 'worker_lost' WHEN n.wakes THEN NULL
            WHEN home.careful OR n.losses + 1 >= {MAX_LOSSES} THEN 'worker_lost' END, 0
  FROM worker w CROSS JOIN held h ON h.worker = w.id CROSS JOIN run r ON r.key = h.run
       CROSS JOIN {RUNNING.format(run="h.run")} AND a.worker = w.id
       CROSS JOIN layout l ON l.graph = r.graph AND l.idx = a.idx CROSS JOIN lane home ON home.key = l.lane
 WHERE (w.id = :worker OR (:worker IS NULL AND w.lease_until <= :now))
   AND (:run IS NULL OR r.id = :run)
 ORDER BY w.lease_until, w.id, a.key LIMIT :limit
"""


def dismiss(tx: Transaction, op: ops.Dismiss) -> Receipt:
    lost, _ = _lose(tx, op.worker, -1, None)
    tx.db.execute("DELETE FROM held WHERE worker = ?", (op.worker,))
    tx.db.execute("DELETE FROM worker WHERE id = ?", (op.worker,))
    return receipts.Dismissed(lost)


def _lose(tx: Transaction, worker: str | None, limit: int, run: str | None) -> tuple[int, dict[int, RunNews]]:
    error = {"error": WORKER_LOST_ERROR, "error_type": WORKER_LOST}
    return _end(tx, _LOSE, {"worker": worker, "now": tx.now, "limit": limit, "run": run} | error)


def _end(tx: Transaction, statement: str, parameters: dict[str, Any]) -> tuple[int, dict[int, RunNews]]:
    """End the attempts that the statement selects. Return how many there were, and the news of their runs."""
    tx.db.execute("DELETE FROM temp.ending")
    tx.db.execute(statement, parameters)
    count = tx.db.changes()
    if not count:
        return 0, {}
    apply_ending(tx)
    note_errors(tx)
    run_again(tx)
    runs = ended_runs(tx)
    return count, news(tx, runs, moved=runs)


_FENCE = f"""
INSERT INTO temp.ending {_COLUMNS}
SELECT a.key, a.run, a.idx, a.number, r.graph, 1, {codes.A_CANCELLED}, {codes.N_CANCELLED}, NULL, NULL, 0, NULL, NULL, 0
  FROM run r INDEXED BY run_cancel CROSS JOIN {RUNNING.format(run="r.key")}
 WHERE r.cancel_at <= :now AND (:run IS NULL OR r.id = :run)
 ORDER BY r.key, a.key LIMIT :limit
"""
_DUE_RUNS = f"""
SELECT json_group_array(key) FROM (SELECT key FROM run INDEXED BY run_due
 WHERE gate = {codes.G_OPEN} AND due_at IS NOT NULL AND due_at <= :now AND (:run IS NULL OR id = :run)
 ORDER BY due_at, key LIMIT :limit)
"""
_WAKING = f"""
INSERT INTO temp.granted (run, idx, number)
SELECT n.run, n.idx, n.attempt FROM json_each(:runs) j CROSS JOIN node n INDEXED BY node_due ON n.run = j.value
 WHERE n.status = {codes.N_WAITING} AND n.due_at <= :now
 ORDER BY n.due_at, n.run, n.idx LIMIT :limit
"""
_MARK_WOKEN = f"""
INSERT OR IGNORE INTO ready (lane, graph, workflow, urgency, run)
SELECT n.lane, r.graph, r.workflow, r.urgency, r.key
  FROM temp.granted g CROSS JOIN node n ON n.run = g.run AND n.idx = g.idx AND n.status = {codes.N_READY}
       CROSS JOIN run r ON r.key = g.run
"""
_NEXT_OF_RUNS = f"""
UPDATE run SET due_at = (SELECT min(n.due_at) FROM node n INDEXED BY node_due
                          WHERE n.run = run.key AND n.status = {codes.N_WAITING} AND n.due_at IS NOT NULL)
 WHERE key IN (SELECT value FROM json_each(?))
"""
_WAKE = f"""
UPDATE node SET status = iif(waiting > 0, {codes.N_PENDING}, {codes.N_READY}), due_at = NULL
  FROM temp.granted g WHERE node.run = g.run AND node.idx = g.idx
"""
# A heal may have added a parent while the node waited; then it stays PENDING.
_COUNT_WOKEN = f"""
UPDATE run SET seq = seq + t.woken, active = active - t.held_back
  FROM (SELECT g.run, count(*) AS woken, sum(n.status = {codes.N_PENDING}) AS held_back
          FROM temp.granted g CROSS JOIN node n ON n.run = g.run AND n.idx = g.idx GROUP BY g.run) t
 WHERE run.key = t.run
"""
_NOTE_WOKEN = f"""
INSERT INTO journal (run, seq, at, kind, idx, number, status)
SELECT g.run, r.seq + 1 - row_number() OVER (PARTITION BY g.run ORDER BY g.ord DESC), :now, {codes.KIND_CODE["woken"]},
       g.idx, g.number, {codes.N_READY}
  FROM temp.granted g CROSS JOIN run r ON r.key = g.run
"""
_OVERDUE = f"""
SELECT key FROM run
 WHERE gate = {codes.G_OPEN} AND deadline_at IS NOT NULL AND deadline_at <= :now AND (:run IS NULL OR id = :run)
 ORDER BY deadline_at, key LIMIT :limit
"""
_LEFT_HELD = f"""
SELECT key, id, purpose, arguments FROM run
 WHERE gate = {codes.G_HELD} AND expires_at <= :now AND iif(:run IS NULL, reported_until <= :now, id = :run)
 ORDER BY key LIMIT :limit
"""
_REPORTED = "UPDATE run SET reported_until = ? WHERE key IN (SELECT value FROM json_each(?))"
_NEXT_DUE = f"""
SELECT min(t) FROM (
  SELECT (SELECT min(lease_until) FROM worker) AS t
  UNION ALL SELECT min(due_at) FROM run WHERE gate = {codes.G_OPEN} AND due_at IS NOT NULL
  UNION ALL SELECT min(deadline_at) FROM run WHERE gate = {codes.G_OPEN} AND deadline_at IS NOT NULL
  UNION ALL SELECT min(max(expires_at, reported_until)) FROM run WHERE gate = {codes.G_HELD}
  UNION ALL SELECT min(cancel_at) FROM run WHERE cancel_at IS NOT NULL)
"""


def sweep(tx: Transaction, op: ops.Sweep) -> Receipt:
    within = {"now": tx.now, "limit": op.limit, "run": op.run}
    if op.run is None:
        _forgive_an_outage(tx)
    lost, touched = _lose(tx, None, op.limit, op.run)
    if op.run is None:
        _forget_workers(tx)
    touched |= _end(tx, _FENCE, within)[1]
    woken = _wake_due(tx, within)
    keys = set(touched) | (set(tx.json("SELECT json_group_array(DISTINCT run) FROM temp.granted")) if woken else set())
    overdue = [run for (run,) in tx.all(_OVERDUE, within)]
    if overdue:
        close_gates(tx, overdue, "failed", "deadline")
        keys.update(overdue)
    standing = tuple(news(tx, keys).values()) if keys else ()
    _expire_gates_of_the_dead(tx)
    left = tx.all(_LEFT_HELD, within)
    if left:
        tx.db.execute(_REPORTED, (tx.now + ops.HAND_OUT, json.dumps([key for key, *_ in left])))
    ((next_due,),) = tx.all(_NEXT_DUE)
    ((alive,),) = tx.all("SELECT count(*) FROM worker WHERE lease_until > ?", (tx.now,))
    held = tuple(receipts.HeldGate(RunId(run), purpose, arguments) for _, run, purpose, arguments in left)
    return receipts.Swept(lost, woken, standing, held, next_due, alive)


def _forget_workers(tx: Transaction) -> None:
    """Delete the workers whose leases have expired, once all their attempts are lost."""
    expired = [worker for (worker,) in tx.all("SELECT id FROM worker WHERE lease_until <= ?", (tx.now,))]
    if expired:
        let_go(tx, expired)
        held = "SELECT 1 FROM held h WHERE h.worker = worker.id"
        tx.db.execute(f"DELETE FROM worker WHERE lease_until <= ? AND NOT EXISTS ({held})", (tx.now,))


_FORGIVE = "UPDATE worker SET lease_until = :now + lease WHERE lease_until > :before AND lease_until <= :now"


def _forgive_an_outage(tx: Transaction) -> None:
    """If nobody could renew or sweep for a while, extend the leases that ran out meanwhile."""
    row = tx.one("SELECT at FROM swept")
    if row is None:
        tx.db.execute("INSERT INTO swept (at) VALUES (?)", (tx.now,))
        return
    (before,) = row
    tx.db.execute("UPDATE swept SET at = ?", (tx.now,))
    if tx.now - before > ops.OUTAGE:
        tx.db.execute(_FORGIVE, {"now": tx.now, "before": before})


def _expire_gates_of_the_dead(tx: Transaction) -> None:
    """Let somebody else finish what a dead holder of a gate began. A holder that lives after all is fenced."""
    held = f"SELECT key, token FROM run WHERE gate = {codes.G_HELD} AND token IS NOT NULL AND expires_at > ?"
    for key, token in tx.all(held, (tx.now,)):
        if not holder_may_live(token):
            tx.db.execute("UPDATE run SET expires_at = ? WHERE key = ?", (tx.now, key))


def _wake_due(tx: Transaction, due: dict[str, Any]) -> int:
    runs = tx.json(_DUE_RUNS, due)
    if not runs:
        return 0
    keys = json.dumps(runs)
    tx.db.execute("DELETE FROM temp.granted")
    tx.db.execute(_WAKING, due | {"runs": keys})
    woken = tx.db.changes()
    if woken:
        tx.db.execute(_WAKE)
        tx.db.execute(_COUNT_WOKEN)
        tx.db.execute(_NOTE_WOKEN, {"now": tx.now})
        tx.db.execute(_MARK_WOKEN)
    next_due(tx, runs)
    return woken


def next_due(tx: Transaction, runs: list[int]) -> None:
    """Set when these runs next have a node that is due."""
    tx.db.execute(_NEXT_OF_RUNS, (json.dumps(runs),))
