"""Nodes that are performed by runs: handing a node over to a child run, and waking it when that has ended."""

from __future__ import annotations

from ....base.ids import split_attempt_id
from ...model import AttemptStatus, GateState, NodeStatus, Receipt, ops, receipts
from .running import change, conclude, settle
from .shaping import create_one, refuse_create
from .state import MemoryState


def hand_over(state: MemoryState, op: ops.Settle, child: ops.Create, now: int) -> Receipt:
    """An attempt hands its node over to a child run: both, or neither."""
    attempt = state.attempt(*split_attempt_id(op.attempt))
    running = attempt is not None and attempt.status is AttemptStatus.RUNNING
    refused = refuse_create(state, child) if running and op.legal else None
    (receipt,) = [refused] if refused is not None else settle(state, [op], now)
    if running and attempt is not None and isinstance(receipt, receipts.Settled):
        run = attempt.run
        if not run.nodes[attempt.index].status.terminal:
            create_one(state, child, now, paused=run.status.paused)
    return receipt


def wake(state: MemoryState, op: ops.Wake, now: int) -> Receipt:
    ended = state.runs.get(op.ended or "")
    if ended is not None and ended.purpose == ops.ENDED:
        ended.gate, ended.purpose, ended.expires_at = GateState.SHUT, None, None
    run = state.runs.get(op.run_id)
    node = None if run is None or not 0 <= op.index < len(run.nodes) else run.nodes[op.index]
    if run is None or node is None:
        return receipts.Woken(None, None)
    if node.status is NodeStatus.RUNNING:
        node.wakes += node.wakes > 0
    elif node.row().parked and not run.stopping and run.gate is not GateState.OPEN:
        node.due_at = now
    elif node.row().parked:
        again = NodeStatus.PENDING if node.waiting else NodeStatus.READY
        change(run, node, NodeStatus.CANCELLED if run.stopping else again)
        node.reason = "run_cancelled" if run.stopping else None
        run.note(now, "woken", node.index, node.attempt, node.status)
        conclude(run, now)
    return receipts.Woken(run.news(), node.lane.queue if node.status is NodeStatus.READY else None)
