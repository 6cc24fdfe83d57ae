"""Applies a few settlements or grants with direct statements.

The rules are those for sets (`settling`, `ending`, `claiming`), and the same tests run both. A set costs temporary tables and
JSON, which pays off only with more than a handful of items. With sets alone a node of a chain takes 1.5 times the processor
time (bench/HISTORY.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ....base.ids import ClaimId, RunId, attempt_id, split_attempt_id
from ....core.model import AttemptStatus, Claim, GateState, NodeStatus, OnFailure, RunStatus, Settle
from ....core.model.receipts import Grant, Receipt, RunNews, Settled
from ....core.model.status import settled_as
from ....core.store.rules.codes import (
    A_FAILED,
    A_RUNNING,
    A_TIMED_OUT,
    ATTEMPT_CODE,
    ENDS,
    G_OPEN,
    G_SHUT,
    GATE,
    KIND_CODE,
    N_COMPLETED,
    N_FAILED,
    N_INTERRUPTED,
    N_PENDING,
    N_READY,
    N_RUNNING,
    N_SKIPPED,
    N_TERMINAL,
    NODE_CODE,
    ORDINALS,
    R_CANCELLING,
    R_COMPLETED,
    R_RUNNING,
    RUN_STATUS,
)
from ....core.store.rules.payloads import LARGE, error_type, is_large
from ....core.store.rules.verdicts import Conclusion, conclude
from ..payloads import pack
from .attempts import NEW_CLAIM
from .ending import ANY_STOPS, Transaction, news

FEW = 4

_ATTEMPT = f"""
SELECT a.key, a.idx, a.number, a.status, r.stopping,
       r.heals OR (r.fork IS NOT NULL AND (SELECT l.removed FROM layout l WHERE l.graph = r.graph AND l.idx = a.idx)),
       ({ANY_STOPS}), r.key, r.id, r.graph, r.workflow, r.urgency, r.due_at, r.marked, r.status, r.gate, r.purpose, r.open,
       r.active, r.failed, r.seq, r.on_failure, r.tolerated, r.parent
  FROM claim c CROSS JOIN attempt a ON a.key = c.key * {ORDINALS} + ?2 CROSS JOIN run r ON r.key = a.run WHERE c.id = ?1
"""
_END = "UPDATE attempt SET status = ?, ended_at = ?, output = ?, error = ?, outcome = ?, record = ? WHERE key = ?"
MOVE = "UPDATE node SET status = ?, due_at = ?, reason = ?, failures = failures + ? WHERE run = ? AND idx = ?"
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
_COUNT_SKIPPED = """
UPDATE node SET skipped = skipped + 1 WHERE run = ?1 AND idx IN (SELECT child FROM edge WHERE graph = ?2 AND parent = ?3)
"""
_RELEASED = f"""
SELECT n.lane, count(*) FROM edge CROSS JOIN node n ON n.run = ?1 AND n.idx = edge.child AND n.status = {N_READY}
 WHERE edge.graph = ?2 AND edge.parent = ?3 GROUP BY n.lane
"""
_MARK = "INSERT OR IGNORE INTO ready (lane, graph, workflow, urgency, run) VALUES (?, ?, ?, ?, ?)"
MARK_NODE = f"""
INSERT OR IGNORE INTO ready (lane, graph, workflow, urgency, run)
SELECT n.lane, r.graph, r.workflow, r.urgency, r.key FROM run r CROSS JOIN node n ON n.run = r.key
 WHERE r.key = ? AND n.idx = ? AND r.gate = {G_OPEN}
"""
_COUNT = "UPDATE run SET open = ?, active = ?, failed = ?, seq = ?, marked = ?, derived = 0 WHERE key = ?"
_COMPLETE_RUN = f"""
UPDATE run SET open = 0, active = 0, seq = ?, marked = NULL, derived = 0, status = {R_COMPLETED}, gate = {G_SHUT}, ended_at = ?,
               cancel_at = NULL
 WHERE key = ?
"""
_UNMARK = """
DELETE FROM ready WHERE lane IN (SELECT key FROM lane) AND graph = ? AND workflow = ? AND urgency = ? AND run = ?
"""
NOTE = "INSERT INTO journal (run, seq, at, kind, idx, number, status) VALUES (?, ?, ?, ?, ?, ?, ?)"


@dataclass(slots=True)
class _Counts:
    """A run while a few of its attempts are settled. Its counts are written once, at the end."""

    key: int
    id: RunId
    graph: int
    workflow: str
    urgency: int
    due_at: int | None
    marked: int | None
    status: int
    gate: int
    purpose: str | None
    open: int
    active: int
    failed: int
    seq: int
    on_failure: OnFailure
    tolerated: int
    parent: str | None


def settle_few(tx: Transaction, ops: Sequence[Settle]) -> list[Receipt] | None:
    """Settle one attempt, or a few that completed.

    None if it changed nothing, because there are more ops, an attempt is not running, parks its node or asks to be tried
    later, a payload is large, or the run was healed, so that a node may be gone.
    """
    if len(ops) > FEW or (len(ops) > 1 and not all(op.status is AttemptStatus.COMPLETED for op in ops)):
        return None
    rows = []
    for op in ops:
        rare = op.postponed or op.status is AttemptStatus.PARKED or _is_large(op)
        row = None if rare else tx.one(_ATTEMPT, split_attempt_id(op.attempt))
        if row is None or row[3] != A_RUNNING or row[5] or not op.legal:
            return None
        rows.append(row)
    runs: dict[int, _Counts] = {}
    for op, (key, idx, number, _, stopping, _, _, run, *counts) in zip(ops, rows, strict=True):
        if run not in runs:
            runs[run] = _Counts(run, *counts)
        _settle(tx, op, runs[run], (key, idx, number), stopping=bool(stopping))
    tx.nothing_stops = all(row[6] is None for row in rows)
    news = {run: _write_counts(tx, counts) for run, counts in runs.items()}
    return [Settled(False, news[row[7]]) for row in rows]


def _is_large(op: Settle) -> bool:
    if any(payload and is_large(payload) for payload in (op.output, op.error, op.outcome)):
        return True
    return bool(op.lines) and len(pack(op.lines)) >= LARGE


def _settle(tx: Transaction, op: Settle, run: _Counts, attempt: tuple[int, int, int], *, stopping: bool) -> None:
    key, idx, number = attempt
    asked = settled_as(op.node, stopping=stopping, cancelling=run.status == R_CANCELLING)
    node, status = NODE_CODE[asked], ATTEMPT_CODE[op.status]
    record = pack(op.lines) if op.lines else None
    tx.execute(_END, (status, tx.now, op.output, op.error, op.outcome, record, key))
    due_at = tx.now + (op.delay or 0) if asked is NodeStatus.WAITING else None
    tx.execute(
        MOVE, (node, due_at, op.reason if node == N_SKIPPED else None, status in (A_FAILED, A_TIMED_OUT), run.key, idx)
    )
    if due_at is not None and (run.due_at is None or due_at < run.due_at):
        tx.execute("UPDATE run SET due_at = ? WHERE key = ?", (due_at, run.key))
    if node in (N_COMPLETED, N_SKIPPED) and run.gate == G_OPEN:
        if node == N_SKIPPED:
            tx.execute(_COUNT_SKIPPED, (run.key, run.graph, idx))
        for lane, released in _lower(tx, run.key, run.graph, idx):
            run.active += released
            if lane != run.marked:
                tx.execute(_MARK, (lane, run.graph, run.workflow, run.urgency, run.key))
                run.marked = lane
    elif node == N_READY:
        tx.execute(MARK_NODE, (run.key, idx))
    if node >= N_TERMINAL:
        run.open, run.active = run.open - 1, run.active - 1
    if node in (N_FAILED, N_INTERRUPTED):
        run.failed += 1
        tx.execute("UPDATE run SET error = ? WHERE key = ? AND error IS NULL", (error_type(op.error), run.key))
    run.seq += 1
    tx.execute(NOTE, (run.key, run.seq, tx.now, status + ENDS, idx, number, node))


def _write_counts(tx: Transaction, run: _Counts) -> RunNews:
    """Write the counts of a run, and complete, fail or pause it if they say so."""
    gate, status = GATE[run.gate], RUN_STATUS[run.status]
    follows = conclude(gate, status, run.on_failure, run.open, run.active, run.failed, run.tolerated)
    if follows is Conclusion.COMPLETED and run.parent is None:
        gate, status, run.seq = GateState.SHUT, RunStatus.COMPLETED, run.seq + 1
        tx.execute(_UNMARK, (run.graph, run.workflow, run.urgency, run.key))
        tx.execute(_COMPLETE_RUN, (run.seq, tx.now, run.key))
        tx.execute("DELETE FROM held WHERE run = ?", (run.key,))
        tx.execute(NOTE, (run.key, run.seq, tx.now, KIND_CODE["run"], None, None, R_COMPLETED))
    else:
        tx.execute(_COUNT, (run.open, run.active, run.failed, run.seq, run.marked, run.key))
        if follows is not Conclusion.NOTHING:
            tx.nothing_stops = False
            return news(tx, [run.key], moved=[run.key])[run.key]
    return RunNews(run.id, status, gate, run.purpose, run.open, run.active, run.failed, run.seq)


def _lower(tx: Transaction, run: int, graph: int, parent: int) -> Sequence[tuple[int, int]]:
    """Count down the open parents of a completed node's children. Returns how many became READY, by lane."""
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
    """The `seq` of its run."""
    first: int
    """Whether no node of its run was started before, or the run is PENDING."""
    postponed: int
    skipped: int
    wakes: int


START_ATTEMPT = (
    "INSERT INTO attempt (key, run, idx, number, status, claim, worker, started_at) "
    f"VALUES (?, ?, ?, ?, {A_RUNNING}, ?, ?, ?)"
)
_START_NODE = f"UPDATE node SET status = {N_RUNNING}, attempt = ?, last = ? WHERE run = ? AND idx = ?"
_CLAIM = f"""
INSERT INTO claim (id, key) SELECT ?1, {NEW_CLAIM} WHERE EXISTS (SELECT 1 FROM worker WHERE id = ?2 AND lease_until > ?3)
ON CONFLICT DO NOTHING RETURNING key
"""
_HOLD = "INSERT OR IGNORE INTO held (run, worker) VALUES (?, ?)"
_COUNT_STARTS = "UPDATE run SET seq = ? WHERE key = ?"
_START_RUN = f"""
UPDATE run SET seq = ?, started_at = coalesce(started_at, ?),
               status = max(status, {R_RUNNING})
 WHERE key = ?
"""


def grant_few(tx: Transaction, op: Claim, candidates: list[Candidate]) -> tuple[int, list[Grant]] | None:
    """Start an attempt at each candidate. Returns the key of the claim, and the grants without their inputs.

    None if it changed nothing, because the claim was granted before or the worker has no lease.
    """
    found = tx.one(_CLAIM, (op.claim_id, op.worker, tx.now))
    if found is None:
        return None
    (claim,) = found
    counts = {node.run: node.seq for node in candidates}
    for ordinal, node in enumerate(candidates):
        key = claim * ORDINALS + ordinal
        tx.execute(START_ATTEMPT, (key, node.run, node.idx, node.number, op.claim_id, op.worker, tx.now))
        tx.execute(_START_NODE, (node.number, key, node.run, node.idx))
        counts[node.run] = seq = counts[node.run] + 1
        tx.execute(NOTE, (node.run, seq, tx.now, KIND_CODE["claimed"], node.idx, node.number, None))
    first = {node.run for node in candidates if node.first}
    for run, seq in counts.items():
        tx.execute(_HOLD, (run, op.worker))
        if run in first:  # not with every claim, because it updates an index
            tx.execute(_START_RUN, (seq, tx.now, run))
        else:
            tx.execute(_COUNT_STARTS, (seq, run))
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
        skipped=node.skipped,
        wakes=node.wakes,
    )
