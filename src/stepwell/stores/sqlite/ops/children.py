"""Nodes that are performed by runs: handing a node over to a child run, and waking it when that has ended."""

from __future__ import annotations

from ....base.ids import split_attempt_id
from ....core.model import ENDED, PARENT_PAUSED, Create, Receipt, Settle, Wake
from ....core.model.receipts import Created, Settled, Woken
from ....core.store.rules.codes import (
    A_RUNNING,
    G_OPEN,
    G_SHUT,
    KIND_CODE,
    N_CANCELLED,
    N_PENDING,
    N_READY,
    N_RUNNING,
    N_TERMINAL,
    N_WAITING,
    ORDINALS,
    RUN_STATUS,
)
from ....core.store.rules.values import refuse_values
from .creating import create, refuse_create
from .ending import Transaction, news
from .leases import next_due
from .settling import settle
from .single import MARK_NODE, MOVE, NOTE

_RUNNING = f"""
SELECT a.run, a.idx, r.status
  FROM claim c CROSS JOIN attempt a ON a.key = c.key * {ORDINALS} + ?2 CROSS JOIN run r ON r.key = a.run
 WHERE c.id = ?1 AND a.status = {A_RUNNING}
"""
_HAND_OVER = f"UPDATE node SET wakes = wakes + 1 WHERE run = ? AND idx = ? AND status < {N_TERMINAL}"
_PAUSE = f"UPDATE run SET status = ?, reason = ?, gate = iif(gate = {G_OPEN}, {G_SHUT}, gate) WHERE id = ?"


def hand_over(tx: Transaction, op: Settle, child: Create) -> Receipt:
    """An attempt hands its node over to a child run: both, or neither."""
    running = tx.one(_RUNNING, split_attempt_id(op.attempt))
    refused = refuse_values(child) or (refuse_create(tx, child) if running is not None and op.legal else None)
    (receipt,) = [refused] if refused is not None else settle(tx, [op])
    if running is None or not isinstance(receipt, Settled):
        return receipt
    run, index, status = running
    tx.execute(_HAND_OVER, (run, index))
    if tx.db.changes():
        (created,) = create(tx, [child])
        if RUN_STATUS[status].paused and isinstance(created, Created) and not created.existed:
            tx.execute(_PAUSE, (status, PARENT_PAUSED, child.run_id))
    return receipt


_SHUT_ENDED = f"UPDATE run SET gate = {G_SHUT}, purpose = NULL, expires_at = NULL WHERE id = ? AND purpose = '{ENDED}'"
_NODE = """
SELECT r.key, r.gate, r.stopping, r.seq, n.status, n.attempt, n.waiting, n.lane,
       n.wakes > 0, n.wakes > 0 AND n.due_at IS NULL
  FROM run r CROSS JOIN node n ON n.run = r.key AND n.idx = ?2 WHERE r.id = ?1
"""
_COUNT = "UPDATE run SET seq = seq + 1, open = open - ?, active = active - ?, derived = 0 WHERE key = ?"


def wake(tx: Transaction, op: Wake) -> Receipt:
    if op.ended is not None:
        tx.execute(_SHUT_ENDED, (op.ended,))
    row = tx.one(_NODE, (op.run_id, op.index))
    if row is None:
        return Woken(None, None)
    run, gate, stopping, seq, status, number, waiting, lane, performed, undated = row
    moved = []
    if status == N_RUNNING and performed:
        tx.execute("UPDATE node SET wakes = wakes + 1 WHERE run = ? AND idx = ?", (run, op.index))
    elif status == N_WAITING and undated and not stopping and gate != G_OPEN:
        tx.execute(MOVE, (N_WAITING, tx.now, None, 0, run, op.index))
        next_due(tx, [run])
    elif status == N_WAITING and undated:
        status = N_CANCELLED if stopping else N_PENDING if waiting else N_READY
        tx.execute(MOVE, (status, None, "run_cancelled" if stopping else None, 0, run, op.index))
        tx.execute(_COUNT, (status == N_CANCELLED, status != N_READY, run))
        tx.execute(NOTE, (run, seq + 1, tx.now, KIND_CODE["woken"], op.index, number, status))
        if status == N_READY:
            tx.execute(MARK_NODE, (run, op.index))
        moved = [run]
    return Woken(news(tx, [run], moved=moved)[run], tx.lanes.lane(tx.db, lane).queue if status == N_READY else None)
