"""Graphs and runs: adding, creating and deleting them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ....base.ids import RunId
from ....core.model import ENDED, Receipt, Refusal, Refused, ops, receipts
from ....core.store.rules.codes import (
    G_HELD,
    G_OPEN,
    G_SHUT,
    KIND_CODE,
    N_PENDING,
    N_READY,
    ORDINALS,
    R_PENDING,
    RUN_STATUS,
)
from ..limits import LIMITS
from ..payloads import Packer, keep
from .attempts import of_run
from .ending import Transaction, mark_ready, unmark_ready
from .forking import hold_forks

_LAYOUT = """
INSERT OR IGNORE INTO layout (graph, idx, id, parents, lane, rank, removed)
SELECT :graph, :start + j.key, j.value ->> 0, json_array_length(j.value, '$[2]'), j.value ->> 1, j.value ->> 3, j.value ->> 4
  FROM json_each(:rows) j
"""
_EDGES = """
INSERT OR IGNORE INTO edge (graph, parent, child)
SELECT :graph, p.value, :start + j.key FROM json_each(:rows) j CROSS JOIN json_each(j.value, '$[2]') p
"""
_NEEDS = """
INSERT OR IGNORE INTO need (graph, child, ancestor) SELECT :graph, value ->> 0, value ->> 1 FROM json_each(:needs)
"""


def add_graph(tx: Transaction, op: ops.AddGraph) -> Receipt:
    row = tx.one("SELECT key, loaded, total FROM graph WHERE digest = ?", (op.digest,))
    if op.start > (0 if row is None else row[1]):
        return Refused(Refusal.INCOMPLETE, f"the nodes before {op.start} are not there yet")
    if row is None:
        graph = "INSERT INTO graph (digest, workflow, signature, total, registered_at) VALUES (?, ?, ?, ?, ?)"
        tx.db.execute(graph, (op.digest, op.workflow, op.signature, op.total, tx.now))
        row = (tx.db.last_insert_rowid(), 0, op.total)
        tx.db.execute("INSERT INTO document (graph, data) VALUES (?, ?)", (row[0], op.document or b""))
    key, loaded, total = row
    tx.db.execute("UPDATE graph SET registered_at = ? WHERE key = ?", (tx.now, key))
    rows = op.rows[loaded - op.start :]
    if rows:
        _add_layout(tx, key, loaded, rows)
    return receipts.GraphAdded(op.digest, loaded + len(rows), total)


def _add_layout(tx: Transaction, graph: int, start: int, added: Sequence[ops.LayoutRow]) -> None:
    lanes = {row.lane for row in added}
    tx.lanes.add(tx.db, lanes)
    keys = {lane: tx.lanes.key(tx.db, lane) for lane in lanes}
    rows = json.dumps([(row.id, keys[row.lane], row.parents, row.rank, int(row.removed)) for row in added])
    parameters = {"graph": graph, "start": start, "rows": rows}
    tx.db.execute(_LAYOUT, parameters)
    tx.db.execute(_EDGES, parameters)
    needs = [(child, ancestor) for child, row in enumerate(added, start) for ancestor in row.needs]
    if needs:
        tx.db.execute(_NEEDS, {"graph": graph, "needs": json.dumps(needs)})
    counted = "UPDATE graph SET loaded = loaded + ?, roots = roots + ?, has_needs = max(has_needs, ?) WHERE key = ?"
    tx.db.execute(counted, (len(added), sum(not row.parents for row in added), bool(needs), graph))


_CREATING = """
INSERT INTO temp.creating
SELECT j.key, j.value ->> 0, j.value ->> 1, j.value ->> 2, g.key, g.loaded = g.total,
       substr(:bytes, j.value ->> 4, j.value ->> 5), j.value ->> 6, j.value ->> 7, j.value ->> 8, j.value ->> 9,
       j.value ->> 10, unhex(j.value ->> 11), j.value ->> 12, j.value ->> 13, j.value ->> 14, j.value ->> 15, j.value ->> 16,
       coalesce((SELECT key FROM run WHERE id = j.value ->> 0),
                (SELECT key FROM run WHERE workflow = j.value ->> 1 AND idempotency_key = j.value ->> 10))
  FROM json_each(:ops) j LEFT JOIN graph g ON g.digest = j.value ->> 3
"""
_CREATE = f"""
INSERT INTO run (id, workflow, target, graph, status, on_failure, input, seed, urgency, idempotency_key, timeout,
                 gate, purpose, expires_at, total, loaded, open, active, seq, created_at, deadline_at, fork, origin, tags,
                 parent, parent_node, depth)
SELECT c.id, c.workflow, c.target, c.graph, {R_PENDING}, c.on_failure, c.input, c.seed, c.urgency, c.idempotency_key,
       c.timeout, iif(g.total <= {LIMITS.nodes}, {G_OPEN}, {G_HELD}), iif(g.total <= {LIMITS.nodes}, NULL, 'load'),
       iif(g.total <= {LIMITS.nodes}, NULL, :now + {ops.LOAD_LEASE}), g.total, min(g.total, {LIMITS.nodes}),
       iif(g.total <= {LIMITS.nodes}, g.total, 0), iif(g.total <= {LIMITS.nodes}, g.roots, 0), 1, :now, :now + c.timeout,
       c.fork, c.origin, c.tags, c.parent, c.parent_node, c.depth
  FROM temp.creating c CROSS JOIN graph g ON g.key = c.graph
 WHERE c.existing IS NULL AND c.complete ORDER BY c.ord
"""
_ADD_NODES = f"""
INSERT INTO node (run, idx, status, waiting, lane, rank)
SELECT r.key, l.idx, iif(l.parents = 0, {N_READY}, {N_PENDING}), l.parents, l.lane, l.rank
"""
_CREATE_NODES = f"""{_ADD_NODES}
  FROM temp.creating c CROSS JOIN run r ON r.id = c.id CROSS JOIN layout l ON l.graph = c.graph AND l.idx < {LIMITS.nodes}
 WHERE c.existing IS NULL AND c.complete
"""
_NOTE_CREATED = f"""
INSERT INTO journal (run, seq, at, kind)
SELECT r.key, 1, :now, {KIND_CODE["created"]}
  FROM temp.creating c CROSS JOIN run r ON r.id = c.id WHERE c.existing IS NULL AND c.complete
"""
_MARK_CREATED = f"""
INSERT INTO ready (lane, graph, workflow, urgency, run)
SELECT DISTINCT n.lane, r.graph, r.workflow, r.urgency, r.key
  FROM temp.creating c CROSS JOIN run r ON r.id = c.id AND r.gate = {G_OPEN}
       CROSS JOIN node n INDEXED BY node_ready ON n.run = r.key AND n.status = {N_READY}
 WHERE c.existing IS NULL AND c.complete
"""
_TAG_CREATED = """
INSERT OR IGNORE INTO tag (name, value, run)
SELECT t.value ->> 0, t.value ->> 1, r.key
  FROM temp.creating c CROSS JOIN json_each(c.tags) t CROSS JOIN run r ON r.id = c.id
 WHERE c.existing IS NULL AND c.complete
"""
_CREATED = """
SELECT r.key, c.graph, c.complete, r.id, r.workflow = c.workflow AND r.input = c.input, c.existing IS NOT NULL, r.loaded,
       r.total
  FROM temp.creating c LEFT JOIN run r ON r.key = coalesce(c.existing, (SELECT key FROM run WHERE id = c.id))
 ORDER BY c.ord
"""
_NEW_FORKS = "SELECT id FROM temp.creating WHERE existing IS NULL AND complete AND fork IS NOT NULL"


def create(tx: Transaction, creations: Sequence[ops.Create]) -> list[Receipt]:
    _fill(tx, creations)
    tx.db.execute(_CREATE, {"now": tx.now})
    if tx.db.changes():
        tx.db.execute(_CREATE_NODES)
        tx.db.execute(_NOTE_CREATED, {"now": tx.now})
        tx.db.execute(_MARK_CREATED)
        if any(op.tags for op in creations):
            tx.db.execute(_TAG_CREATED)
        if any(op.fork is not None for op in creations):
            hold_forks(tx, [run for (run,) in tx.all(_NEW_FORKS)])
    return [_created(tx, op, row) for op, row in zip(creations, tx.all(_CREATED), strict=True)]


def _fill(tx: Transaction, creations: Sequence[ops.Create]) -> None:
    packer = Packer()
    rows = []
    for op in creations:
        tags = json.dumps(op.tags) if op.tags else None
        fork = None if op.fork is None else op.fork.hex()
        options = (str(op.seed), op.on_failure, -op.priority, op.timeout, op.idempotency_key, fork, op.origin, tags)
        above = (op.parent, op.parent_node, op.depth)
        rows.append((op.run_id, op.workflow, op.target, op.digest, *packer.add(op.input), *options, *above))
    tx.db.execute("DELETE FROM temp.creating")
    tx.db.execute(_CREATING, {"ops": json.dumps(rows), "bytes": packer.joined})


def refuse_create(tx: Transaction, op: ops.Create) -> Refused | None:
    """Why this run cannot be created."""
    _fill(tx, [op])
    return _refused(op, tx.one(_CREATED))


def _refused(op: ops.Create, row: Any) -> Refused | None:
    _, graph, complete, run, same, existed, *_ = row
    if existed:
        return None if same else Refused(Refusal.CONFLICT, run)
    if not complete:
        return Refused(Refusal.UNKNOWN if graph is None else Refusal.INCOMPLETE, f"graph {op.digest}")
    return None


def _created(tx: Transaction, op: ops.Create, row: Any) -> Receipt:
    refused = _refused(op, row)
    if refused is not None:
        return refused
    key, _, _, run, _, existed, loaded, total = row
    if not existed:
        keep(tx.db, key, op.input)
    return receipts.Created(RunId(run), bool(existed), loaded, total)


_NEXT_NODES = f"""{_ADD_NODES}
  FROM run r CROSS JOIN layout l ON l.graph = r.graph AND l.idx >= r.loaded AND l.idx < r.loaded + {LIMITS.nodes}
 WHERE r.key = ?
"""
# One that is not PENDING was created PAUSED, because its parent was, and stays so.
_LOADED = f"""
UPDATE run SET gate = iif(status = {R_PENDING}, {G_OPEN}, {G_SHUT}), purpose = NULL, expires_at = NULL, open = total,
               active = (SELECT roots FROM graph WHERE key = run.graph)
 WHERE key = ? AND loaded = total
"""


def add_nodes(tx: Transaction, op: ops.AddNodes) -> Receipt:
    row = tx.one("SELECT key, purpose, loaded, total FROM run WHERE id = ?", (op.run_id,))
    if row is None:
        return Refused(Refusal.UNKNOWN, op.run_id)
    key, purpose, loaded, total = row
    if op.start > loaded:
        return Refused(Refusal.INCOMPLETE, f"the nodes before {op.start} are not there yet")
    if op.start == loaded and purpose == "load":
        tx.db.execute(_NEXT_NODES, (key,))
        loaded = min(loaded + LIMITS.nodes, total)
        tx.db.execute("UPDATE run SET loaded = ? WHERE key = ?", (loaded, key))
        tx.db.execute(_LOADED, (key,))
        mark_ready(tx, [key])
        hold_forks(tx, [op.run_id])
        return receipts.Created(op.run_id, False, loaded, total)
    return receipts.Created(op.run_id, op.start < loaded, loaded, total)


_HOLD_FOR_DELETION = f"""
UPDATE run SET gate = {G_HELD}, purpose = 'delete', token = NULL, arguments = x'', expires_at = 0, loaded = max(0, loaded - ?)
 WHERE key = ?
"""
_DELETE_JOURNAL = """
DELETE FROM journal WHERE run = :run AND seq > (SELECT max(seq) FROM journal WHERE run = :run) - :limit
"""
_DELETE_CLAIMS = f"""
DELETE FROM claim WHERE id IN (SELECT value FROM json_each(?)) AND NOT EXISTS (SELECT 1 FROM attempt
 WHERE attempt.key BETWEEN claim.key * {ORDINALS} AND claim.key * {ORDINALS} + {ORDINALS - 1})
"""
_DELETE_PAYLOADS = """
DELETE FROM blob WHERE run = :run AND hash IN (SELECT hash FROM blob WHERE run = :run LIMIT :limit)
   AND NOT EXISTS (SELECT 1 FROM node WHERE run = :run)
"""
_LEFT = "SELECT 1 FROM journal WHERE run = :run UNION ALL SELECT 1 FROM blob WHERE run = :run LIMIT 1"


def delete(tx: Transaction, op: ops.Delete) -> Receipt:
    row = tx.one("SELECT key, status, purpose FROM run WHERE id = ?", (op.run_id,))
    if row is None:
        return receipts.Deleted(True)
    key, status, purpose = row
    if purpose == ENDED:
        return Refused(Refusal.INCOMPLETE, ENDED)
    if purpose not in ("delete", "restore") and not RUN_STATUS[status].terminal:
        return Refused(Refusal.STATUS, RUN_STATUS[status])
    tx.db.execute(_HOLD_FOR_DELETION, (op.limit, key))
    ((first, last),) = tx.all("SELECT max(idx) + 1 - ?, max(idx) FROM node WHERE run = ?", (op.limit, key))
    if last is not None:
        _delete_nodes(tx, key, first)
    tx.db.execute(_DELETE_JOURNAL, {"run": key, "limit": ops.ENTRIES_A_NODE * op.limit})
    tx.db.execute(_DELETE_PAYLOADS, {"run": key, "limit": op.limit})
    if (last is not None and first > 0) or tx.one(_LEFT, {"run": key}) is not None:
        return receipts.Deleted(False)
    unmark_ready(tx, [key])
    tx.db.execute("DELETE FROM held WHERE run = ?", (key,))
    tx.db.execute("DELETE FROM tag WHERE run = ?", (key,))
    tx.db.execute("DELETE FROM former_graph WHERE run = ?", (key,))
    tx.db.execute("DELETE FROM run WHERE key = ?", (key,))
    return receipts.Deleted(True)


def _delete_nodes(tx: Transaction, run: int, first: int) -> None:
    """Delete the nodes from `first` on, with their attempts, lines and claims."""
    attempts = tx.all(of_run("a.key, a.claim", where="AND {idx} >= :first"), {"run": run, "first": first})
    keys, claims = json.dumps([key for key, _ in attempts]), json.dumps([*{claim for _, claim in attempts}])
    tx.db.execute("DELETE FROM line WHERE attempt IN (SELECT value FROM json_each(?))", (keys,))
    tx.db.execute("DELETE FROM attempt WHERE key IN (SELECT value FROM json_each(?))", (keys,))
    tx.db.execute(_DELETE_CLAIMS, (claims,))
    tx.db.execute("DELETE FROM node WHERE run = ? AND idx >= ?", (run, first))


_IN_USE = "SELECT EXISTS (SELECT 1 FROM run WHERE graph = ?1) OR EXISTS (SELECT 1 FROM former_graph WHERE graph = ?1)"
_UNLOAD = """
UPDATE graph SET loaded = :left,
       roots = roots - (SELECT count(*) FROM layout WHERE graph = :graph AND idx >= :left AND parents = 0)
 WHERE key = :graph
"""


def delete_graph(tx: Transaction, op: ops.DeleteGraph) -> Receipt:
    row = tx.one("SELECT key, loaded FROM graph WHERE digest = ?", (op.digest,))
    if row is None:
        return receipts.Deleted(True)
    key, loaded = row
    ((in_use,),) = tx.all(_IN_USE, (key,))
    if in_use:
        return Refused(Refusal.STATUS, "in use")
    last = {"graph": key, "left": max(0, loaded - op.limit)}
    tx.db.execute(_UNLOAD, last)
    tx.db.execute("DELETE FROM edge WHERE graph = :graph AND parent >= :left", last)
    tx.db.execute("DELETE FROM need WHERE graph = :graph AND child >= :left", last)
    tx.db.execute("DELETE FROM layout WHERE graph = :graph AND idx >= :left", last)
    if last["left"]:
        return receipts.Deleted(False)
    tx.db.execute("DELETE FROM document WHERE graph = ?", (key,))
    tx.db.execute("DELETE FROM graph WHERE key = ?", (key,))
    return receipts.Deleted(True)
