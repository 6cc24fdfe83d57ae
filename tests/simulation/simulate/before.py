"""What a commit may do is judged by what was true before it, recorded without the code that is judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepwell.base.ids import split_attempt_id
from stepwell.core.model import (
    Append,
    Appended,
    AttemptStatus,
    Gate,
    GateState,
    GateTaken,
    NodeStatus,
    Op,
    Settle,
    Settled,
    Sweep,
)
from stepwell.core.store.memory.state import MemoryState
from tests.simulation.simulate.workload import speaks

ASKED = ("Rewrite", "Delete")
"""Ops that may leave a terminal status, because somebody asked."""


class Violation(AssertionError):
    """An invariant does not hold."""


class Before:
    """The facts that the ops of a batch depend on."""

    def __init__(self, state: MemoryState, ops: Sequence[Op]) -> None:
        self.running = {op.attempt: _is_running(state, op.attempt) for op in ops if isinstance(op, Settle | Append)}
        self.gates = {
            op.run_id: (run.gate, run.token, run.expires_at)
            for op in ops
            if isinstance(op, Gate) and (run := state.runs.get(op.run_id)) is not None
        }
        self.terminal = {run.id: run.status for run in state.runs.values() if run.status.terminal}
        self.due: dict[tuple[str, int], int] = {}
        self.leases: dict[str, int] = {}
        self.held: dict[int, str] = {}
        if any(isinstance(op, Sweep) for op in ops):
            self.leases = {worker.id: worker.lease_until for worker in state.workers.values()}
            for run in state.runs.values():
                for node in run.nodes:
                    if node.status is NodeStatus.WAITING and node.due_at is not None:
                        self.due[run.id, node.index] = node.due_at
                for attempt in run.attempts:
                    if attempt.status is AttemptStatus.RUNNING:
                        self.held[id(attempt)] = attempt.worker

    def compare(self, state: MemoryState, ops: Sequence[Op], answer: Sequence[Any], now: int) -> None:
        for op, receipt in zip(ops, answer, strict=True):
            if isinstance(op, Settle) and isinstance(receipt, Settled) and not receipt.repeated:
                if not self.running[op.attempt]:
                    raise Violation(f"{op.attempt} was not the current attempt of its node and was accepted")
                self.running[op.attempt] = False
                body_ended = op.status is AttemptStatus.COMPLETED and not op.wakes
                if body_ended and not self._has_lines(state, receipt.run.run_id, op.attempt):
                    raise Violation(f"{op.attempt} completed and not all that its body said is there")
            if isinstance(op, Append) and isinstance(receipt, Appended) and not self.running[op.attempt]:
                raise Violation(f"{op.attempt} had ended and a line of it was accepted")
            if isinstance(op, Gate) and isinstance(receipt, GateTaken):
                gate, token, expires_at = self.gates[op.run_id]
                late = expires_at is None or expires_at <= now
                if gate is GateState.HELD and token is not None and token != op.token and not late:
                    raise Violation(f"the gate of {op.run_id} was taken from a holder who was not late")
        self._nothing_early(state, now)
        if not any(type(op).__name__ in ASKED for op in ops):
            for run_id, status in self.terminal.items():
                if state.runs[run_id].status is not status:
                    raise Violation(
                        f"{run_id} was {status} and became {state.runs[run_id].status} although nobody asked"
                    )

    def _has_lines(self, state: MemoryState, run_id: str, attempt: str) -> bool:
        """A simulated body says something when it begins and when it ends, unless it is one that says nothing."""
        claim, ordinal = split_attempt_id(attempt)
        silent = not speaks(state.claims[claim][ordinal].index)
        return silent or all((attempt, number) in state.runs[run_id].lines for number in range(2))

    def _nothing_early(self, state: MemoryState, now: int) -> None:
        for (run_id, index), due_at in self.due.items():
            node = state.runs[run_id].nodes[index]
            if node.status is NodeStatus.READY and due_at > now:
                raise Violation(f"node {index} of {run_id} was woken before it was due")
        for run in state.runs.values() if self.held else ():
            for attempt in run.attempts:
                worker = self.held.get(id(attempt))
                if worker is not None and attempt.status is AttemptStatus.LOST and self.leases.get(worker, 0) > now:
                    raise Violation(f"an attempt of {worker} is lost although its lease has not run out")


def _is_running(state: MemoryState, attempt: str) -> bool:
    claim, ordinal = split_attempt_id(attempt)
    found = state.claims.get(claim, {}).get(ordinal)
    return found is not None and found.status is AttemptStatus.RUNNING
