"""Gates: taking one, rewriting nodes while it is held, opening or shutting it."""

from __future__ import annotations

import json

from ....core.model import Receipt, Refusal, Refused, ops, receipts
from ....core.store.rules import codes
from ....core.store.rules.verdicts import GateFacts, illegal_move, refuse_gate
from ..payloads import held_form, keep
from .deriving import derive
from .ending import Transaction, hold_ended, mark_ready, news, note_gates, note_runs, unmark_ready
from .leases import next_due

_HOLD = f"""
UPDATE run SET gate = {codes.G_HELD}, token = :token, purpose = :purpose, arguments = :arguments, expires_at = :expires,
               reported_until = 0, stopping = max(stopping, :stop), seq = seq + 1,
               derived = 0
 WHERE key = :run
"""


def gate(tx: Transaction, op: ops.Gate) -> Receipt:
    columns = "key, status, gate, token, purpose, expires_at, last_token"
    row = tx.one(f"SELECT {columns} FROM run WHERE id = ?", (op.run_id,))
    if row is None:
        return Refused(Refusal.UNKNOWN, op.run_id)
    key, status, state, *rest = row
    facts = GateFacts(codes.RUN_STATUS[status], codes.GATE[state], *rest)
    refused = refuse_gate(op, facts, tx.now)
    if refused is not None:
        return refused
    if not facts.held_by(op.token):
        parameters = {"run": key, "token": op.token, "purpose": op.purpose, "arguments": op.arguments}
        tx.db.execute(_HOLD, parameters | {"expires": tx.now + op.lease, "stop": op.stop})
        note_gates(tx, [key], op.purpose)
    return receipts.GateTaken(news(tx, [key])[key])


_OPEN, _ACTIVE = f"< {codes.N_TERMINAL}", f"BETWEEN {codes.N_READY} AND {codes.N_TERMINAL - 1}"
_FAILED = f"IN ({codes.N_FAILED}, {codes.N_INTERRUPTED})"
NODE_COUNTS = f"""
SELECT total(status {_OPEN}) AS open, total(status {_ACTIVE}) AS active, total(status {_FAILED}) AS failed
  FROM node WHERE run = :run
"""
# A node that does not exist, or comes a second time in the op, is refused like one that has changed.
_CHANGING = """
INSERT INTO temp.changing
SELECT j.key, j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, n.status, n.attempt,
       n.status IS j.value ->> 5 AND n.attempt IS j.value ->> 6 AND j.value ->> 7
  FROM json_each(:rows) j LEFT JOIN node n ON n.run = :run AND n.idx = j.value ->> 0
"""
_CHANGE = f"""
UPDATE node
   SET status = c.status, reason = c.reason, due_at = NULL,
       failures = iif(c.fresh, 0, node.failures), losses = iif(c.fresh, 0, node.losses),
       postponed = iif(c.fresh, 0, node.postponed), wakes = iif(c.anew, 0, node.wakes),
       generation = node.generation + (c.was = {codes.N_COMPLETED}),
       lane = iif(c.fresh, (SELECT l.lane FROM layout l WHERE l.graph = :graph AND l.idx = node.idx), node.lane)
  FROM temp.changing c WHERE c.ok AND c.status <> c.was AND node.run = :run AND node.idx = c.idx
"""
_SUPERSEDE = f"""
UPDATE attempt SET status = {codes.A_SUPERSEDED}
 WHERE status = {codes.A_COMPLETED} AND key IN
   (SELECT n.last FROM temp.changing c CROSS JOIN node n ON n.run = :run AND n.idx = c.idx
     WHERE c.ok AND c.was = {codes.N_COMPLETED} AND c.status <> c.was)
"""
_COUNT_CHANGES = f"""
UPDATE run SET seq = run.seq + t.changes, open = run.open + t.open, active = run.active + t.active,
               failed = run.failed + t.failed, derived = iif(t.changes, 0, run.derived)
  FROM (SELECT count(*) AS changes,
               total((status {_OPEN}) - (was {_OPEN})) AS open,
               total((status {_ACTIVE}) - (was {_ACTIVE})) AS active,
               total((status {_FAILED}) - (was {_FAILED})) AS failed
          FROM temp.changing WHERE ok AND status <> was) t
 WHERE run.key = :run
"""
_NOTE_CHANGES = f"""
INSERT INTO journal (run, seq, at, kind, idx, number, status)
SELECT :run, (SELECT seq FROM run WHERE key = :run) + 1 - row_number() OVER (ORDER BY ord DESC), :now,
       {codes.KIND_CODE["rewrote"]}, idx, attempt, status
  FROM temp.changing WHERE ok AND status <> was
"""


def rewrite(tx: Transaction, op: ops.Rewrite) -> Receipt:
    row = tx.one("SELECT key, graph, status, gate, token, total FROM run WHERE id = ?", (op.run_id,))
    if row is None:
        return Refused(Refusal.UNKNOWN, op.run_id)
    key, graph, status, state, token, total = row
    if state != codes.G_HELD or token != op.token:
        return Refused(Refusal.GATE_LOST)
    illegal = illegal_move(op, codes.RUN_STATUS[status])
    if illegal is not None:
        return Refused(Refusal.STATUS, illegal)
    if op.rows and (changed := _change(tx, key, graph, op)):
        return Refused(Refusal.CHANGED, ",".join(map(str, changed)))
    if op.finish is None:
        return receipts.Rewritten(news(tx, [key])[key])
    if op.finish.open_gate and not derive(tx, key, graph, total):
        return receipts.Rewritten(news(tx, [key])[key], finished=False)
    _finish(tx, key, op.finish)
    if op.finish.status.terminal and op.finish.status is not codes.RUN_STATUS[status]:
        hold_ended(tx, [key])
    return receipts.Rewritten(news(tx, [key], moved=[key])[key])


def _change(tx: Transaction, run: int, graph: int, op: ops.Rewrite) -> list[int]:
    """Change the nodes that are still as the kernel saw them; return the others."""
    first = {row.index: row for row in reversed(op.rows)}
    code = codes.NODE_CODE
    rows = [
        (
            *(row.index, code[row.status], row.reason, row.fresh, row.anew),
            *(code[row.was], row.was_attempt, row is first[row.index]),
        )
        for row in op.rows
    ]
    tx.db.execute("DELETE FROM temp.changing")
    tx.db.execute(_CHANGING, {"run": run, "rows": json.dumps(rows)})
    tx.db.execute(_CHANGE, {"run": run, "graph": graph})
    tx.db.execute(_SUPERSEDE, {"run": run})
    tx.db.execute(_COUNT_CHANGES, {"run": run})
    tx.db.execute(_NOTE_CHANGES, {"run": run, "now": tx.now})
    return [index for (index,) in tx.all("SELECT idx FROM temp.changing WHERE NOT ok ORDER BY ord")]


_RECOUNT = f"""
UPDATE run
   SET open = t.open, active = t.active, failed = t.failed, tolerated = iif(:tolerate, t.failed, min(tolerated, t.failed)),
       error = iif(t.failed, error, NULL)
  FROM ({NODE_COUNTS}) t WHERE run.key = :run
"""
_FINISH = f"""
UPDATE run
   SET last_token = token, token = NULL, purpose = NULL, arguments = x'', expires_at = NULL, status = :status, reason = :reason,
       ended_at = iif(status = :status, ended_at, :ended), cancel_at = :cancel, seq = seq + 1,
       gate = iif(:open, {codes.G_OPEN}, {codes.G_SHUT}), stopping = iif(:open, 0, stopping), derived = 0, marked = NULL,
       deadline_at = iif(:open AND timeout IS NOT NULL AND status <> :status, :now + timeout, deadline_at)
 WHERE key = :run
"""


def _finish(tx: Transaction, run: int, finish: ops.Finish) -> None:
    status = codes.RUN_CODE[finish.status]
    ended = tx.now if finish.status.terminal else None
    cancel = tx.now + (finish.grace or 0) if finish.status.stopping else None
    given = {"run": run, "now": tx.now, "status": status, "reason": finish.reason, "open": finish.open_gate}
    tx.db.execute(_FINISH, given | {"ended": ended, "cancel": cancel})
    note_runs(tx, [run], status)
    if finish.input is not None:
        keep(tx.db, run, finish.input)
        tx.db.execute("UPDATE run SET input = ? WHERE key = ?", (held_form(finish.input), run))
    tx.db.execute(_RECOUNT, {"run": run, "tolerate": finish.tolerate})
    if finish.open_gate:
        mark_ready(tx, [run])
        next_due(tx, [run])
    else:
        unmark_ready(tx, [run])
