"""One settlement, a few lines of bodies, and a claim that is granted a few nodes: what every node of a chain costs.

The same rules as for many (`ending`, `moving`), which the same tests compare, as direct statements: sets have a price that
only pays off when there is more than a handful in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....ids import ClaimId, RunId, attempt_id, split_attempt_id
from ....model import (
    Append,
    Claim,
    Grant,
    NodeStatus,
    Receipt,
    Settle,
    Settled,
    settled_as,
)
from ...rules.codes import (
    A_FAILED,
    A_RUNNING,
    A_TIMED_OUT,
    ATTEMPT_CODE,
    ENDS,
    G_OPEN,
    KIND_CODE,
    N_COMPLETED,
    N_FAILED,
    N_INTERRUPTED,
    N_PENDING,
    N_READY,
    N_RUNNING,
    N_TERMINAL,
    NODE_CODE,
    ORDINALS,
    R_CANCELLING,
    R_PENDING,
    R_RUNNING,
)
from ...rules.payloads import LARGE, is_large
from ..payloads import pack
from .ending import Transaction, conclude_one

FEW = 4

_ATTEMPT = f"""
SELECT a.key, a.run, a.idx, a.number, a.status, r.graph, r.stopping,
       r.heals OR (r.fork IS NOT NULL AND (SELECT l.removed FROM layout l WHERE l.graph = r.graph AND l.idx = a.idx)),
       r.workflow, r.urgency, r.due_at, r.marked, r.id, r.status, r.gate, r.purpose, r.open, r.active, r.failed, r.seq,
       r.on_failure, r.tolerated
  FROM claim c CROSS JOIN attempt a ON a.key = c.key * {ORDINALS} + ?2 CROSS JOIN run r ON r.key = a.run WHERE c.id = ?1
"""
_END = "UPDATE attempt SET status = ?, ended_at = ?, output = ?, error = ?, outcome = ?, record = ? WHERE key = ?"
_MOVE = "UPDATE node SET status = ?, due_at = ?, reason = NULL, failures = failures + ? WHERE run = ? AND idx = ?"
_CHILDREN = """
SELECT n.idx, n.waiting, n.status, n.lane FROM edge CROSS JOIN node n ON n.run = ?1 AND n.idx = edge.child
 WHERE edge.graph = ?2 AND edge.parent = ?3 LIMIT 2
"""
_LOWER_ONE = "UPDATE node SET waiting = waiting - 1 WHERE run = ? AND idx = ?"
_RELEASE_ONE = f"UPDATE node SET waiting = 0, status = {N_READY} WHERE run = ? AND idx = ?"
_LOWER = f"""
UPDATE node SET waiting = waiting - 1, status = iif(waiting = 1 AND status = {N_PENDING}, {N_READY}, status)
 WHERE run = ?1 AND idx IN (SELECT child FROM edge WHERE graph = ?2 AND parent = ?3)
"""
_RELEASED = f"""
SELECT n.lane, count(*) FROM edge CROSS JOIN node n ON n.run = ?1 AND n.idx = edge.child AND n.status = {N_READY}
 WHERE edge.graph = ?2 AND edge.parent = ?3 GROUP BY n.lane
"""
_MARK = "INSERT OR IGNORE INTO ready (lane, graph, workflow, urgency, run) VALUES (?, ?, ?, ?, ?)"
_MARK_NODE = f"""
INSERT OR IGNORE INTO ready (lane, graph, workflow, urgency, run)
SELECT n.lane, r.graph, r.workflow, r.urgency, r.key FROM run r CROSS JOIN node n ON n.run = r.key
 WHERE r.key = ? AND n.idx = ? AND r.gate = {G_OPEN}
"""
_COUNT = "UPDATE run SET open = ?, active = ?, failed = ?, seq = ?, marked = ?, derived = 0 WHERE key = ?"
_NOTE = "INSERT INTO journal (run, seq, at, kind, idx, number, status) VALUES (?, ?, ?, ?, ?, ?, ?)"


def settle_one(tx: Transaction, op: Settle) -> Receipt | None:
    """Settle an attempt that runs; None when it does not, is postponed, a payload is large, or the run was healed, so that its
    node may be gone: then the way for many decides."""
    if op.postponed:
        return None
    output, error, outcome = op.output, op.error, op.outcome
    if (output and is_large(output)) or (error and is_large(error)) or (outcome and is_large(outcome)):
        return None
    record = pack(op.lines) if op.lines else None
    if record is not None and len(record) >= LARGE:
        return None
    row = tx.one(_ATTEMPT, split_attempt_id(op.attempt))
    if row is None or row[4] != A_RUNNING or row[7]:
        return None
    key, run, idx, number, _, graph, stopping, _, workflow, urgency, due, marked = row[:12]
    run_id, run_status, gate, purpose, opened, active, failed, seq, *policy = row[12:]
    asked = settled_as(op.node, stopping=bool(stopping), cancelling=run_status == R_CANCELLING)
    node, status = NODE_CODE[asked], ATTEMPT_CODE[op.status]
    tx.execute(_END, (status, tx.now, output, error, outcome, record, key))
    due_at = tx.now + (op.delay or 0) if asked is NodeStatus.WAITING else None
    tx.execute(_MOVE, (node, due_at, status in (A_FAILED, A_TIMED_OUT), run, idx))
    if due_at is not None and (due is None or due_at < due):
        tx.execute("UPDATE run SET due_at = ? WHERE key = ?", (due_at, run))
    if node == N_COMPLETED and gate == G_OPEN:
        for lane, released in _lower(tx, run, graph, idx):
            active += released
            if lane != marked:
                tx.execute(_MARK, (lane, graph, workflow, urgency, run))
                marked = lane
    elif node == N_READY:
        tx.execute(_MARK_NODE, (run, idx))
    if node >= N_TERMINAL:
        opened, active = opened - 1, active - 1
    failed, seq = failed + (node in (N_FAILED, N_INTERRUPTED)), seq + 1
    tx.execute(_COUNT, (opened, active, failed, seq, marked, run))
    tx.execute(_NOTE, (run, seq, tx.now, status + ENDS, idx, number, node))
    counted = (run, run_id, run_status, gate, purpose, opened, active, failed, seq, *policy)
    return Settled(False, conclude_one(tx, counted))


def _lower(tx: Transaction, run: int, graph: int, parent: int) -> Sequence[tuple[int, int]]:
    """Lower the children of a completed node; by lane, how many became READY."""
    children = tx.all(_CHILDREN, (run, graph, parent))
    if not children:
        return ()
    if len(children) == 1:
        ((child, waiting, status, lane),) = children
        released = waiting == 1 and status == N_PENDING
        tx.execute(_RELEASE_ONE if released else _LOWER_ONE, (run, child))
        return ((lane, 1),) if released else ()
    tx.execute(_LOWER, (run, graph, parent))
    return tx.all(_RELEASED, (run, graph, parent))


_APPEND = f"""
INSERT OR IGNORE INTO line (attempt, idx, at, kind, data)
SELECT a.key, ?3, ?4, ?5, ?6 FROM claim c CROSS JOIN attempt a ON a.key = c.key * {ORDINALS} + ?2
 WHERE c.id = ?1 AND a.status = {A_RUNNING}
"""


def append_few(tx: Transaction, ops: Sequence[Append]) -> bool:
    """Append lines that are small and new, of attempts that run; False: the way for many decides on those that were left."""
    if len(ops) > FEW or any(op.index < 0 or is_large(op.data) for op in ops):
        return False
    for op in ops:
        tx.execute(_APPEND, (*split_attempt_id(op.attempt), op.index, tx.now, op.kind, op.data))
        if not tx.db.changes():
            return False
    return True


class Candidate(NamedTuple):
    """A READY node that a claim may take."""

    run: int
    run_id: str
    idx: int
    number: int
    failures: int
    losses: int
    has_needs: int
    generation: int
    heals: int
    seq: int
    """Of its run."""
    first: int
    """Nothing of its run has been started before."""
    postponed: int


_START_ATTEMPT = (
    f"INSERT INTO attempt (key, run, idx, number, status, worker, started_at) VALUES (?, ?, ?, ?, {A_RUNNING}, ?, ?)"
)
_START_NODE = f"UPDATE node SET status = {N_RUNNING}, attempt = ? WHERE run = ? AND idx = ?"
_CLAIM = """
INSERT INTO claim (id) SELECT ?1 WHERE EXISTS (SELECT 1 FROM worker WHERE id = ?2 AND lease_until > ?3) ON CONFLICT DO NOTHING
"""
_COUNT_STARTS = "UPDATE run SET seq = ? WHERE key = ?"
_START_RUN = f"""
UPDATE run SET started_at = coalesce(started_at, ?),
               status = CASE status WHEN {R_PENDING} THEN {R_RUNNING} ELSE status END
 WHERE key = ?
"""


def grant_few(tx: Transaction, op: Claim, candidates: list[Candidate]) -> tuple[int, list[Grant]] | None:
    """Start an attempt at each candidate; the key of the claim, and the grants without their inputs.

    None, and nothing has happened: the claim was granted before, or the worker has no lease.
    """
    tx.execute(_CLAIM, (op.claim_id, op.worker, tx.now))
    if not tx.db.changes():
        return None
    claim = tx.db.last_insert_rowid()
    counts = {node.run: node.seq for node in candidates}
    for ordinal, node in enumerate(candidates):
        tx.execute(_START_ATTEMPT, (claim * ORDINALS + ordinal, node.run, node.idx, node.number, op.worker, tx.now))
        tx.execute(_START_NODE, (node.number, node.run, node.idx))
        counts[node.run] = seq = counts[node.run] + 1
        tx.execute(_NOTE, (node.run, seq, tx.now, KIND_CODE["claimed"], node.idx, node.number, None))
    for run, seq in counts.items():
        tx.execute(_COUNT_STARTS, (seq, run))
    # Apart: it touches an index, which would be written with every node.
    for run in {node.run for node in candidates if node.first}:
        tx.execute(_START_RUN, (tx.now, run))
    return claim, [grant_of(op.claim_id, ordinal, node) for ordinal, node in enumerate(candidates)]


def grant_of(claim: ClaimId, ordinal: int, node: Candidate) -> Grant:
    return Grant(
        attempt_id(claim, ordinal),
        RunId(node.run_id),
        node.idx,
        node.number,
        node.failures,
        node.losses,
        generation=node.generation,
        heals=node.heals,
        postponed=node.postponed,
    )
