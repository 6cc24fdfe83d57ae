"""Planted bugs in how nodes are claimed, settled and lost, and runs fail, are cancelled and retried; see `mutants`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from stepwell.base.ids import AttemptId, split_attempt_id
from stepwell.core.kernel import plans
from stepwell.core.model import (
    Appended,
    AttemptStatus,
    Finish,
    GateState,
    LineRow,
    NodeChange,
    NodeStatus,
    RunStatus,
    Settled,
)
from stepwell.core.store.memory import running, shaping
from stepwell.core.store.memory.state import MemoryState, WorkerState
from stepwell.engine.scheduling import batches, outbox, scheduler
from stepwell.engine.worker import timetable
from tests.simulation.simulate.planted import planted


@planted("the fence is not checked")
def _no_fence() -> Any:
    original = running._settle_one

    def settle(op: Any, attempt: Any, moving: Any, now: int) -> str:
        if attempt is not None and attempt.status is AttemptStatus.LOST:
            attempt.status = AttemptStatus.RUNNING
        return original(op, attempt, moving, now)

    return patch.object(running, "_settle_one", settle)


@planted("the fence compares numbers")
def _fence_by_number() -> Any:
    def attempt(self: MemoryState, claim: str, ordinal: int) -> Any:
        exact = self.claims.get(claim, {}).get(ordinal)
        if exact is None or exact.status is AttemptStatus.RUNNING:
            return exact
        newer = [a for a in exact.run.attempts if a.index == exact.index and a.number >= exact.number]
        return max(newer, key=lambda a: a.number)

    return patch.object(MemoryState, "attempt", attempt)


@planted("a counter is lowered twice")
def _double_decrement() -> Any:
    original = running.lower

    def lower(run: Any, child: Any, *, skipped: bool) -> None:
        original(run, child, skipped=skipped)
        if child.waiting > 0:
            original(run, child, skipped=skipped)

    return patch.object(running, "lower", lower)


@planted("a repeated settlement releases the children again")
def _repeat_releases() -> Any:
    original = running._settle_one

    def settle(op: Any, attempt: Any, moving: Any, now: int) -> str:
        verdict = original(op, attempt, moving, now)
        if verdict == "repeated" and attempt.status is AttemptStatus.COMPLETED:
            for child in attempt.run.graph.children[attempt.index]:
                running.lower(attempt.run, attempt.run.nodes[child], skipped=False)
        return verdict

    return patch.object(running, "_settle_one", settle)


@planted("a commit that raised is believed, and not sent again")
def _settle_before_durable() -> Any:
    original = scheduler.Scheduler.failed

    def failed(self: Any, batch: Any, error: BaseException) -> Any:
        told = original(self, batch, error)
        self._again.clear()
        return told

    return patch.object(scheduler.Scheduler, "failed", failed)


@planted("what a body said last is left out of its settlement's batch")
def _lines_lost() -> Any:
    original = scheduler.Scheduler._compose

    def compose(self: Any, now: int) -> Any:
        batch = original(self, now)
        first = sum(len(submission.ops) for submission in batch.submissions)
        del batch.ops[first : first + batch.lines]
        batch.lines = 0
        return batch

    return patch.object(scheduler.Scheduler, "_compose", compose)


@planted("a worker takes nodes of all queues")
def _every_queue() -> Any:
    original = scheduler.Scheduler.__init__

    def init(self: Any, worker: Any, limits: Any, new_claim_id: Any, queues: Any = None) -> None:
        original(self, worker, limits, new_claim_id)

    return patch.object(scheduler.Scheduler, "__init__", init)


@planted("a late worker may still append")
def _append_unfenced() -> Any:
    def append(state: Any, ops: Any, now: int) -> Any:
        for op in ops:
            attempt = state.attempt(*split_attempt_id(op.attempt))
            if attempt is not None:
                line = LineRow(op.attempt, op.index, now, op.kind, op.data, attempt.index, attempt.number)
                attempt.run.lines.setdefault((op.attempt, op.index), line)
        return [Appended()] * len(ops)

    return patch.object(running, "append", append)


@planted("the sweeper goes by the worker's clock")
def _sweep_by_worker_clock() -> Any:
    original = running.sweep

    def sweep(state: Any, op: Any, now: int) -> Any:
        return original(state, op, now + 3_000_000)

    return patch.object(running, "sweep", sweep)


@planted("cancel does not fence")
def _cancel_no_fence() -> Any:
    return patch.object(running, "_fence_cancelled", lambda state, now: [])


@planted("a retried node keeps its attempt id")
def _reuse_attempt() -> Any:
    original = running._start

    def start(op: Any, ordinal: int, run: Any, node: Any, now: int) -> Any:
        attempt = original(op, ordinal, run, node, now)
        if attempt.number > 1:
            earlier = next(a for a in run.attempts if a.index == node.index)
            earlier.run.attempts.remove(attempt)
            earlier.status, earlier.ended_at, earlier.worker = AttemptStatus.RUNNING, None, op.worker
            return earlier
        return attempt

    return patch.object(running, "_start", start)


@planted("the gate is ignored by a settlement")
def _gate_ignored() -> Any:
    original = running.settle

    def settle(state: Any, ops: Any, now: int) -> Any:
        receipts = original(state, ops, now)
        for receipt in receipts:
            if isinstance(receipt, Settled) and not receipt.repeated:
                run = state.runs[receipt.run.run_id]
                if run.gate is not GateState.OPEN:
                    for node in run.nodes:
                        parents = [run.nodes[p].status for p in node.layout.parents]
                        if node.status is NodeStatus.PENDING and all(p is NodeStatus.COMPLETED for p in parents):
                            running.change(run, node, NodeStatus.READY)
        return receipts

    return patch.object(running, "settle", settle)


@planted("the open count is off by one")
def _open_off_by_one() -> Any:
    original = running.change

    def change(run: Any, node: Any, status: Any) -> None:
        original(run, node, status)
        if status is NodeStatus.WAITING:
            run.open -= 1

    return patch.object(running, "change", change)


@planted("a lost at-most-once node runs again")
def _interrupt_reruns() -> Any:
    original = running.lose

    def lose(attempt: Any, now: int) -> None:
        node = attempt.run.nodes[attempt.index]
        layout = node.layout
        node.layout = layout._replace(lane=layout.lane._replace(careful=False))
        original(attempt, now)
        node.layout = layout

    return patch.object(running, "lose", lose)


@planted("a retry starts before it is due")
def _early_retry() -> Any:
    original = running._wake_due

    def wake(state: Any, limit: int, now: int) -> Any:
        return original(state, limit, now + 500_000)

    return patch.object(running, "_wake_due", wake)


@planted("a node fails and its run goes on for ever")
def _no_conclusion() -> Any:
    original = running.conclude

    def conclude(run: Any, now: int) -> None:
        if not run.failed:
            original(run, now)

    return patch.object(running, "conclude", conclude)


@planted("opening the gate trusts the old counters")
def _no_rederive() -> Any:
    def rederive(run: Any) -> None:
        for node in run.nodes:
            if node.status is NodeStatus.PENDING and node.waiting == 0:
                node.status = NodeStatus.READY
        run.recount()

    return patch.object(shaping, "rederive", rederive)


@planted("a renewal releases what is still on its way")
def _stray_in_flight() -> Any:
    original = scheduler.Scheduler.holding

    def holding(self: Any) -> Any:
        found = original(self)
        return tuple(self.held) if found is None else found

    return patch.object(scheduler.Scheduler, "holding", holding)


@planted("a renewal forgets what waits to be settled")
def _holding_forgets() -> Any:
    def holding(self: Any) -> tuple[AttemptId, ...]:
        return tuple(self.held)

    return patch.object(scheduler.Scheduler, "holding", holding)


@planted("retry also runs what completed")
def _retry_all() -> Any:
    def retry(nodes: Any) -> Any:
        changes = [
            NodeChange(row.index, row.status, row.attempt, NodeStatus.PENDING, None, fresh=True)
            for row in nodes
            if row.status.terminal
        ]
        return plans.Plan(changes, Finish(RunStatus.RUNNING, open_gate=True))

    return patch.object(plans, "retry", retry)


@planted("a gate is taken from a living holder")
def _gate_stolen() -> Any:
    original = shaping.gate

    def gate(state: Any, op: Any, now: int) -> Any:
        run = state.runs.get(op.run_id)
        if run is not None and run.token != op.token:
            run.token = None
        return original(state, op, now)

    return patch.object(shaping, "gate", gate)


@planted("a gate is resumed for a purpose it is no longer held for")
def _gate_resumed() -> Any:
    original = shaping.gate

    def gate(state: Any, op: Any, now: int) -> Any:
        return original(state, op._replace(resume=False), now)

    return patch.object(shaping, "gate", gate)


@planted("a claim is granted before it is recorded")
def _start_after_body() -> Any:
    original = running._start

    def start(op: Any, ordinal: int, run: Any, node: Any, now: int) -> Any:
        attempt = original(op, ordinal, run, node, now)
        running.change(run, node, NodeStatus.READY)
        return attempt

    return patch.object(running, "_start", start)


@planted("outputs are handed to the wrong parameter")
def _wrong_inputs() -> Any:
    original = running._grant

    def grant(attempt: Any) -> Any:
        found = original(attempt)
        if len(found.inputs) < 2:
            return found
        (first, a), (second, b), *rest = found.inputs
        return found._replace(inputs=((first, b), (second, a), *rest))

    return patch.object(running, "_grant", grant)


@planted("hints are the truth: nobody looks again")
def _no_watch() -> Any:
    @contextlib.contextmanager
    def blind() -> Iterator[None]:
        def watched(self: Any, now: int) -> None:
            self.watch_at = now + 10**12

        def swept(self: Any, now: int, next_due_in: int | None, share: float = 1) -> None:
            self.sweep_at = now + 10**12

        with patch.object(timetable.Timetable, "watched", watched), patch.object(timetable.Timetable, "swept", swept):
            yield

    return blind()


@planted("the journal leaves something out")
def _journal_gap() -> Any:
    original = running.lose

    def lose(attempt: Any, now: int) -> None:
        original(attempt, now)
        attempt.run.journal.pop()
        attempt.run.seq -= 1

    return patch.object(running, "lose", lose)


@planted("an expired lease may claim")
def _expired_claims() -> Any:
    original = running.claim

    def claim(state: Any, op: Any, now: int) -> Any:
        worker = state.workers.get(op.worker)
        if worker is None:
            state.workers[op.worker] = WorkerState(op.worker, now + 1, now, b"")
            receipt = original(state, op, now)
            del state.workers[op.worker]
            return receipt
        return original(state, op, now)

    return patch.object(running, "claim", claim)


@planted("a batch that cannot be applied is sent again as it is")
def _no_halves() -> Any:
    def rejected(self: Any, batch: Any, error: Exception, now: int) -> Any:
        self._in_flight = None
        self._again.appendleft(batch)
        return [], None

    return patch.object(scheduler.Scheduler, "rejected", rejected)


@planted("what cannot be stored is forgotten")
def _forget_unstorable() -> Any:
    return patch.object(outbox.Isolation, "not_settled", lambda *_: None)


@planted("of a batch that cannot be applied one half is dropped")
def _drop_half() -> Any:
    original = batches.CommitBatch.halves

    def halves(self: Any) -> Any:
        found = original(self)
        return None if found is None else (found[1],)

    return patch.object(batches.CommitBatch, "halves", halves)


@planted("what is kept apart does not stand under the lease")
def _apart_from_the_lease() -> Any:
    return patch.object(outbox.Isolation, "attempts", lambda self: iter(()))
