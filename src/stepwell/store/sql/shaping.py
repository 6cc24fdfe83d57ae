"""Ops that change what a run is: graphs, creation, gates, rewrites, deletion."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ...graph import suspect_lane
from ...ids import RunId
from ...model import (
    CHUNK,
    LOAD_LEASE,
    AddGraph,
    AddNodes,
    Create,
    Created,
    Delete,
    Deleted,
    Finish,
    Gate,
    GateTaken,
    GraphAdded,
    Receipt,
    Refusal,
    Refused,
    Rewrite,
    Rewritten,
    RunStatus,
)
from ..port import illegal_move
from .codes import (
    A_SUPERSEDED,
    G_HELD,
    G_OPEN,
    G_SHUT,
    KIND_CODE,
    N_COMPLETED,
    N_FAILED,
    N_INTERRUPTED,
    N_PENDING,
    N_READY,
    N_SKIPPED,
    N_TERMINAL,
    NODE_CODE,
    ORDINALS,
    R_PENDING,
    RUN_CODE,
    RUN_STATUS,
)
from .ending import Transaction, news, note_gates, note_runs
from .forking import hold_forks
from .payloads import Packer, forget, forget_references, is_large, keep

_LAYOUT = """
INSERT OR IGNORE INTO layout (graph, idx, id, parents, lane, rank, removed)
SELECT :graph, :start + j.key, j.value ->> 0, json_array_length(j.value, '$[2]'), lane.key, j.value ->> 3, j.value ->> 4
  FROM json_each(:rows) j CROSS JOIN lane ON lane.name = j.value ->> 1
"""
_EDGES = """
INSERT OR IGNORE INTO edge (graph, parent, child)
SELECT :graph, p.value, :start + j.key FROM json_each(:rows) j CROSS JOIN json_each(j.value, '$[2]') p
"""
_NEEDS = (
    "INSERT OR IGNORE INTO need (graph, child, ancestor) SELECT :graph, value ->> 0, value ->> 1 FROM json_each(:needs)"
)


def add_graph(tx: Transaction, op: AddGraph) -> Receipt:
    known = "SELECT key, loaded, total FROM graph WHERE digest = ?"
    row = tx.one(known, (op.digest,))
    if row is None:
        tx.db.execute(
            "INSERT INTO graph (digest, workflow, signature, total, registered_at) VALUES (?, ?, ?, ?, ?)",
            (op.digest, op.workflow, op.signature, op.total, tx.now),
        )
        row = (tx.db.last_insert_rowid(), 0, op.total)
        tx.db.execute("INSERT INTO document (graph, data) VALUES (?, ?)", (row[0], op.document))
    key, loaded, total = row
    if op.start > loaded:
        return Refused(Refusal.INCOMPLETE, f"the nodes before {op.start} are not there yet")
    rows = op.rows[loaded - op.start :]
    if rows:
        _add_layout(tx, key, loaded, AddGraph(*op[:6], rows))
    return GraphAdded(op.digest, loaded + len(rows), total)


def _add_layout(tx: Transaction, graph: int, start: int, op: AddGraph) -> None:
    lanes = {row.lane for row in op.rows}
    lanes |= {suspect_lane(lane) for lane in lanes}
    named = json.dumps([[lane, int(lane.endswith("!"))] for lane in sorted(lanes)])
    tx.db.execute(
        "INSERT OR IGNORE INTO lane (name, careful) SELECT value ->> 0, value ->> 1 FROM json_each(?)", (named,)
    )
    rows = json.dumps([(row.id, row.lane, row.parents, row.rank, int(row.removed)) for row in op.rows])
    parameters = {"graph": graph, "start": start, "rows": rows}
    tx.db.execute(_LAYOUT, parameters)
    tx.db.execute(_EDGES, parameters)
    needs = [(child, ancestor) for child, row in enumerate(op.rows, start) for ancestor in row.needs]
    if needs:
        tx.db.execute(_NEEDS, {"graph": graph, "needs": json.dumps(needs)})
    tx.db.execute(
        "UPDATE graph SET loaded = loaded + ?, roots = roots + ?, needy = max(needy, ?) WHERE key = ?",
        (len(op.rows), sum(not row.parents for row in op.rows), bool(needs), graph),
    )


_CREATING = """
INSERT INTO temp.creating
SELECT j.key, j.value ->> 0, j.value ->> 1, j.value ->> 2, g.key, g.loaded = g.total,
       substr(:bytes, j.value ->> 4, j.value ->> 5), j.value ->> 6, j.value ->> 7, j.value ->> 8, j.value ->> 9,
       j.value ->> 10, unhex(j.value ->> 11),
       coalesce((SELECT key FROM run WHERE id = j.value ->> 0),
                (SELECT key FROM run WHERE idempotency_key = j.value ->> 10))
  FROM json_each(:ops) j LEFT JOIN graph g ON g.digest = j.value ->> 3
"""
_CREATE = f"""
INSERT INTO run (id, workflow, target, graph, status, on_failure, input, seed, urgency, idempotency_key, timeout,
                 gate, purpose, expires_at, total, loaded, open, active, seq, created_at, deadline_at, fork)
SELECT c.id, c.workflow, c.target, c.graph, {R_PENDING}, c.on_failure, c.input, c.seed, c.urgency, c.idempotency_key,
       c.timeout, iif(g.total <= {CHUNK}, {G_OPEN}, {G_HELD}), iif(g.total <= {CHUNK}, NULL, 'load'),
       iif(g.total <= {CHUNK}, NULL, :now + {LOAD_LEASE}), g.total, min(g.total, {CHUNK}),
       iif(g.total <= {CHUNK}, g.total, 0), iif(g.total <= {CHUNK}, g.roots, 0), 1, :now, :now + c.timeout, c.fork
  FROM temp.creating c CROSS JOIN graph g ON g.key = c.graph
 WHERE c.existing IS NULL AND c.complete ORDER BY c.ord
"""
_ADD_NODES = f"""
INSERT INTO node (run, idx, status, waiting, live, lane, urgency, rank)
SELECT r.key, l.idx, iif(l.parents = 0, {N_READY}, {N_PENDING}), l.parents, l.parents, l.lane, r.urgency, l.rank
"""
_CREATE_NODES = f"""{_ADD_NODES}
  FROM temp.creating c CROSS JOIN run r ON r.id = c.id CROSS JOIN layout l ON l.graph = c.graph AND l.idx < {CHUNK}
 WHERE c.existing IS NULL AND c.complete
"""
_NOTE_CREATED = f"""
INSERT INTO journal (run, seq, at, kind)
SELECT r.key, 1, :now, {KIND_CODE["created"]}
  FROM temp.creating c CROSS JOIN run r ON r.id = c.id WHERE c.existing IS NULL AND c.complete
"""
_CREATED = """
SELECT c.graph, c.complete, r.id, r.workflow = c.workflow AND r.input = c.input, c.existing IS NOT NULL, r.loaded, r.total
  FROM temp.creating c LEFT JOIN run r ON r.key = coalesce(c.existing, (SELECT key FROM run WHERE id = c.id))
 ORDER BY c.ord
"""
_NEW_FORKS = "SELECT id FROM temp.creating WHERE existing IS NULL AND complete AND fork IS NOT NULL"


def create(tx: Transaction, ops: Sequence[Create]) -> list[Receipt]:
    packer = Packer(tx.db)
    rows = [
        (
            op.run_id,
            op.workflow,
            op.target,
            op.digest,
            *packer.add(op.input),
            str(op.seed),
            op.on_failure,
            -op.priority,
            op.timeout,
            op.idempotency_key,
            None if op.fork is None else op.fork.hex(),
        )
        for op in ops
    ]
    tx.db.execute("DELETE FROM temp.creating")
    tx.db.execute(_CREATING, {"ops": json.dumps(rows), "bytes": packer.joined})
    tx.db.execute(_CREATE, {"now": tx.now})
    if tx.db.changes():
        tx.db.execute(_CREATE_NODES)
        tx.db.execute(_NOTE_CREATED, {"now": tx.now})
        if any(op.fork is not None for op in ops):
            hold_forks(tx, [run for (run,) in tx.all(_NEW_FORKS)])
    found = tx.all(_CREATED)
    return [_created(tx, op, *row) for op, row in zip(ops, found, strict=True)]


def _created(
    tx: Transaction,
    op: Create,
    graph: int | None,
    complete: int | None,
    run: str | None,
    same: int | None,
    existed: int,
    loaded: int,
    total: int,
) -> Receipt:
    if existed or run is None:
        forget(tx.db, op.input)
    if run is None:
        return Refused(Refusal.UNKNOWN if graph is None else Refusal.INCOMPLETE, f"graph {op.digest}")
    if existed and not same:
        return Refused(Refusal.CONFLICT, run)
    return Created(RunId(run), bool(existed), loaded, total)


_NEXT_NODES = f"""{_ADD_NODES}
  FROM run r CROSS JOIN layout l ON l.graph = r.graph AND l.idx >= r.loaded AND l.idx < r.loaded + {CHUNK}
 WHERE r.key = ?
"""
_LOADED = f"""
UPDATE run SET gate = {G_OPEN}, purpose = NULL, expires_at = NULL, open = total,
               active = (SELECT roots FROM graph WHERE key = run.graph)
 WHERE key = ? AND loaded = total
"""


def add_nodes(tx: Transaction, op: AddNodes) -> Receipt:
    row = tx.one("SELECT key, purpose, loaded, total FROM run WHERE id = ?", (op.run_id,))
    if row is None:
        return Refused(Refusal.UNKNOWN, op.run_id)
    key, purpose, loaded, total = row
    if op.start > loaded:
        return Refused(Refusal.INCOMPLETE, f"the nodes before {op.start} are not there yet")
    if op.start == loaded and purpose == "load":
        tx.db.execute(_NEXT_NODES, (key,))
        loaded = min(loaded + CHUNK, total)
        tx.db.execute("UPDATE run SET loaded = ? WHERE key = ?", (loaded, key))
        tx.db.execute(_LOADED, (key,))
        hold_forks(tx, [op.run_id])
        return Created(op.run_id, False, loaded, total)
    return Created(op.run_id, op.start < loaded, loaded, total)


_HOLD = f"""
UPDATE run SET gate = {G_HELD}, token = :token, purpose = :purpose, arguments = :arguments, expires_at = :expires,
               stopping = max(stopping, :stop), seq = seq + 1
 WHERE key = :run
"""


def gate(tx: Transaction, op: Gate) -> Receipt:
    found = "SELECT key, status, gate, token, purpose, expires_at FROM run WHERE id = ?"
    row = tx.one(found, (op.run_id,))
    if row is None:
        return Refused(Refusal.UNKNOWN, op.run_id)
    key, status, state, token, purpose, expires_at = row
    held = state == G_HELD
    if held and token == op.token:
        return GateTaken(news(tx, [key])[key])
    if held and purpose in ("load", "delete"):
        return Refused(Refusal.INCOMPLETE, purpose)
    if op.allowed and RUN_STATUS[status] not in op.allowed:
        return Refused(Refusal.STATUS, RUN_STATUS[status])
    if op.resume and (not held or purpose != op.purpose):
        return Refused(Refusal.STATUS, RUN_STATUS[status])
    if held and token is not None and expires_at > tx.now:
        return Refused(Refusal.GATE_HELD, purpose)
    if held and not op.resume:
        return Refused(Refusal.INCOMPLETE, purpose)
    parameters = {"run": key, "token": op.token, "purpose": op.purpose, "arguments": op.arguments}
    tx.db.execute(_HOLD, parameters | {"expires": tx.now + op.lease, "stop": op.stop})
    note_gates(tx, [key], op.purpose)
    return GateTaken(news(tx, [key])[key])


# A node that does not exist, or is named a second time, is not what the kernel saw either.
_CHANGING = """
INSERT INTO temp.changing
SELECT j.key, j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, n.status, n.attempt,
       n.status IS j.value ->> 4 AND n.attempt IS j.value ->> 5 AND j.value ->> 6
  FROM json_each(:rows) j LEFT JOIN node n ON n.run = :run AND n.idx = j.value ->> 0
"""
_CHANGE = f"""
UPDATE node
   SET status = c.status, reason = c.reason, due_at = NULL,
       failures = iif(c.fresh, 0, node.failures), losses = iif(c.fresh, 0, node.losses),
       generation = node.generation + (c.was = {N_COMPLETED}),
       lane = iif(c.fresh, (SELECT l.lane FROM layout l WHERE l.graph = :graph AND l.idx = node.idx), node.lane)
  FROM temp.changing c WHERE c.ok AND c.status <> c.was AND node.run = :run AND node.idx = c.idx
"""
_SUPERSEDE = f"""
UPDATE attempt SET status = {A_SUPERSEDED}
  FROM temp.changing c WHERE c.ok AND c.was = {N_COMPLETED} AND c.status <> c.was
   AND attempt.run = :run AND attempt.idx = c.idx AND attempt.slot = 0
"""
_COUNT_CHANGES = f"""
UPDATE run SET seq = run.seq + t.changes, open = run.open + t.open, active = run.active + t.active,
               failed = run.failed + t.failed
  FROM (SELECT count(*) AS changes,
               total((status < {N_TERMINAL}) - (was < {N_TERMINAL})) AS open,
               total((status BETWEEN {N_READY} AND {N_TERMINAL - 1}) - (was BETWEEN {N_READY} AND {N_TERMINAL - 1})) AS active,
               total((status IN ({N_FAILED}, {N_INTERRUPTED})) - (was IN ({N_FAILED}, {N_INTERRUPTED}))) AS failed
          FROM temp.changing WHERE ok AND status <> was) t
 WHERE run.key = :run
"""
_NOTE_CHANGES = f"""
INSERT INTO journal (run, seq, at, kind, idx, number, status)
SELECT :run, (SELECT seq FROM run WHERE key = :run) + 1 - row_number() OVER (ORDER BY ord DESC), :now,
       {KIND_CODE["rewrote"]}, idx, attempt, status
  FROM temp.changing WHERE ok AND status <> was
"""


def rewrite(tx: Transaction, op: Rewrite) -> Receipt:
    row = tx.one("SELECT key, graph, status, gate, token FROM run WHERE id = ?", (op.run_id,))
    if row is None:
        return Refused(Refusal.UNKNOWN, op.run_id)
    key, graph, status, state, token = row
    if state != G_HELD or token != op.token:
        return Refused(Refusal.GATE_LOST)
    illegal = illegal_move(op, RUN_STATUS[status])
    if illegal is not None:
        return Refused(Refusal.STATUS, illegal)
    if op.rows:
        changed = _change(tx, key, graph, op)
        if changed:
            return Refused(Refusal.CHANGED, ",".join(map(str, changed)))
    if op.finish is None:
        return Rewritten(news(tx, [key])[key])
    _finish(tx, key, graph, op.finish)
    return Rewritten(news(tx, [key], moved=[key])[key])


def _change(tx: Transaction, run: int, graph: int, op: Rewrite) -> list[int]:
    """Change the nodes that still are what the kernel saw; the others are returned."""
    first = {row.index: row for row in reversed(op.rows)}
    rows = [
        (
            row.index,
            NODE_CODE[row.status],
            row.reason,
            row.fresh,
            NODE_CODE[row.was],
            row.was_attempt,
            row is first[row.index],
        )
        for row in op.rows
    ]
    tx.db.execute("DELETE FROM temp.changing")
    tx.db.execute(_CHANGING, {"run": run, "rows": json.dumps(rows)})
    tx.db.execute(_CHANGE, {"run": run, "graph": graph})
    tx.db.execute(_SUPERSEDE, {"run": run})
    tx.db.execute(_COUNT_CHANGES, {"run": run})
    tx.db.execute(_NOTE_CHANGES, {"run": run, "now": tx.now})
    changed: list[int] = tx.json(
        "SELECT json_group_array(idx) FROM (SELECT * FROM temp.changing WHERE NOT ok ORDER BY ord)"
    )
    return changed


_REDERIVE = f"""
UPDATE node SET waiting = t.waiting, live = t.live
  FROM (SELECT e.child, sum(p.status NOT IN ({N_COMPLETED}, {N_SKIPPED})) AS waiting, sum(p.status <> {N_SKIPPED}) AS live
          FROM node p CROSS JOIN edge e ON e.graph = :graph AND e.parent = p.idx WHERE p.run = :run GROUP BY e.child) t
 WHERE node.run = :run AND node.idx = t.child
"""
# A heal may have taken all its parents from a node.
_ORPHANS = """
UPDATE node SET waiting = 0, live = 0
  FROM layout l
 WHERE l.graph = :graph AND l.parents = 0 AND node.run = :run AND node.idx = l.idx AND node.waiting + node.live > 0
"""
_READY = f"""
UPDATE node SET status = iif(waiting = 0, {N_READY}, {N_PENDING})
 WHERE run = ? AND status = iif(waiting = 0, {N_PENDING}, {N_READY})
"""
_RECOUNT = f"""
UPDATE run
   SET open = t.open, active = t.active, failed = t.failed, tolerated = iif(:tolerate, t.failed, min(tolerated, t.failed))
  FROM (SELECT total(status < {N_TERMINAL}) AS open, total(status BETWEEN {N_READY} AND {N_TERMINAL - 1}) AS active,
               total(status IN ({N_FAILED}, {N_INTERRUPTED})) AS failed FROM node WHERE run = :run) t
 WHERE run.key = :run
"""
_FINISH = f"""
UPDATE run
   SET token = NULL, purpose = NULL, arguments = x'', expires_at = NULL, status = :status, reason = :reason,
       ended_at = iif(status = :status, ended_at, :ended), cancel_at = :cancel, seq = seq + 1,
       gate = iif(:open, {G_OPEN}, {G_SHUT}), stopping = iif(:open, 0, stopping),
       deadline_at = iif(:open AND timeout IS NOT NULL AND status <> :status, :now + timeout, deadline_at)
 WHERE key = :run
"""


def _finish(tx: Transaction, run: int, graph: int, finish: Finish) -> None:
    cancelling = finish.status is RunStatus.CANCELLING
    tx.db.execute(
        _FINISH,
        {
            "run": run,
            "status": RUN_CODE[finish.status],
            "reason": finish.reason,
            "ended": tx.now if finish.status.terminal else None,
            "cancel": tx.now + (finish.grace or 0) if cancelling else None,
            "open": finish.open_gate,
            "now": tx.now,
        },
    )
    note_runs(tx, [run], RUN_CODE[finish.status])
    if finish.input is not None:
        _change_input(tx, run, finish.input)
    if finish.open_gate:
        tx.db.execute(_REDERIVE, {"graph": graph, "run": run})
        tx.db.execute(_ORPHANS, {"graph": graph, "run": run})
        tx.db.execute(_READY, (run,))
    tx.db.execute(_RECOUNT, {"run": run, "tolerate": finish.tolerate})


def _change_input(tx: Transaction, run: int, payload: bytes) -> None:
    kept = keep(tx.db, payload) if is_large(payload) else payload  # before the old one goes: it may be the same
    forget_references(tx.db, "SELECT input AS value FROM run WHERE key = ?", (run,))
    tx.db.execute("UPDATE run SET input = ? WHERE key = ?", (kept, run))


def delete(tx: Transaction, op: Delete) -> Receipt:
    row = tx.one("SELECT key, status, purpose FROM run WHERE id = ?", (op.run_id,))
    if row is None:
        return Deleted(True)
    key, status, purpose = row
    if purpose != "delete" and not RUN_STATUS[status].terminal:
        return Refused(Refusal.STATUS, RUN_STATUS[status])
    tx.db.execute(
        f"UPDATE run SET gate = {G_HELD}, purpose = 'delete', token = NULL, arguments = x'', expires_at = 0,"
        " loaded = max(0, loaded - ?) WHERE key = ?",
        (op.limit, key),
    )
    ((first, last),) = tx.all("SELECT max(idx) + 1 - ?, max(idx) FROM node WHERE run = ?", (op.limit, key))
    if last is not None:
        _delete_nodes(tx, key, first)
    if last is not None and first > 0:
        return Deleted(False)
    forget_references(tx.db, "SELECT input AS value FROM run WHERE key = ?", (key,))
    tx.db.execute("DELETE FROM journal WHERE run = ?", (key,))
    tx.db.execute("DELETE FROM run WHERE key = ?", (key,))
    return Deleted(True)


def _delete_nodes(tx: Transaction, run: int, first: int) -> None:
    """Forget the nodes from `first` on, with their attempts, lines, claims and large payloads."""
    attempts = "SELECT key FROM attempt WHERE run = ?1 AND idx >= ?2"
    payloads = " UNION ALL ".join(
        f"SELECT {column} AS value FROM attempt WHERE run = ?1 AND idx >= ?2"
        for column in ("output", "error", "outcome")
    )
    forget_references(tx.db, payloads, (run, first))
    forget_references(tx.db, f"SELECT data AS value FROM line WHERE attempt IN ({attempts})", (run, first))
    claims = tx.json(f"SELECT json_group_array(DISTINCT key / {ORDINALS}) FROM ({attempts})", (run, first))
    tx.db.execute(f"DELETE FROM line WHERE attempt IN ({attempts})", (run, first))
    tx.db.execute("DELETE FROM attempt WHERE run = ? AND idx >= ?", (run, first))
    tx.db.execute(
        "DELETE FROM claim WHERE key IN (SELECT value FROM json_each(?)) AND NOT EXISTS (SELECT 1 FROM attempt"
        f" WHERE attempt.key BETWEEN claim.key * {ORDINALS} AND claim.key * {ORDINALS} + {ORDINALS - 1})",
        (json.dumps(claims),),
    )
    tx.db.execute("DELETE FROM node WHERE run = ? AND idx >= ?", (run, first))
