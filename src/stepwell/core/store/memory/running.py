"""Ops that move a run forward: claim, settle, append, leases, sweep. The rules every store must follow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ....base.ids import AttemptId, RunId, split_attempt_id
from ...model import (
    GateState,
    Lane,
    LineRow,
    Receipt,
    Refusal,
    Refused,
    ops,
    receipts,
    settled_as,
    suspects,
)
from ...model.status import (
    ACTIVE_NODES,
    FAILED_NODES,
    SATISFIED_NODES,
    AttemptStatus,
    NodeStatus,
    RunStatus,
    was_skipped,
)
from ..rules.payloads import error_type
from ..rules.verdicts import Conclusion
from ..rules.verdicts import conclude as conclusion
from .state import LIMITS, AttemptState, MemoryState, NodeState, RunState, WorkerState


def settle(state: MemoryState, group: Sequence[ops.Settle], now: int) -> list[Receipt]:
    """A set of settlements, judged against the gates as they stand before it."""
    found = [state.attempt(*split_attempt_id(op.attempt)) for op in group]
    moving = {attempt.run.id: attempt.run.gate is GateState.OPEN for attempt in found if attempt}
    verdicts = [_settle_one(op, attempt, moving, now) for op, attempt in zip(group, found, strict=True)]
    accepted = [a for a, verdict in zip(found, verdicts, strict=True) if a and verdict == "accepted"]
    hold_back(accepted)
    touched = {attempt.run.id: attempt.run for attempt in accepted}
    for run in touched.values():
        conclude(run, now)
    return [_settled(op, attempt, verdict) for op, attempt, verdict in zip(group, found, verdicts, strict=True)]


def _settled(op: ops.Settle, attempt: AttemptState | None, verdict: str) -> Receipt:
    if verdict == "illegal":
        return Refused(Refusal.STATUS, f"{op.status} -> {op.node}")
    if attempt is None or verdict == "fenced":
        return Refused(Refusal.FENCED)
    return receipts.Settled(verdict == "repeated", attempt.run.news())


def _settle_one(op: ops.Settle, attempt: AttemptState | None, moving: dict[RunId, bool], now: int) -> str:
    if not op.legal:
        return "illegal"
    if attempt is None:
        return "fenced"
    if attempt.status is not AttemptStatus.RUNNING:
        same = all(getattr(attempt, name) == getattr(op, name) for name in ("status", "output", "error", "outcome"))
        return "repeated" if same else "fenced"
    run, node = attempt.run, attempt.run.nodes[attempt.index]
    attempt.output, attempt.error, attempt.outcome = op.output, op.error, op.outcome
    for index, (kind, data) in enumerate(op.lines, ops.RECORDED):
        run.lines[op.attempt, index] = LineRow(op.attempt, index, now, kind, data, attempt.index, attempt.number)
    parked = op.status is AttemptStatus.PARKED
    status = _settled_as(op.node, run, node, parked=parked)
    due_at = now + (op.delay or 0) if status is NodeStatus.WAITING and not parked else None
    if parked and status is NodeStatus.WAITING:
        status = NodeStatus.WAITING if node.wakes == op.wakes else NodeStatus.READY
        node.wakes += op.child is not None
    end(attempt, op.status, status, now)
    node.due_at = due_at
    if op.status in (AttemptStatus.FAILED, AttemptStatus.TIMED_OUT):
        node.failures += not op.postponed
        node.postponed += op.postponed
    node.reason = op.reason if status is NodeStatus.SKIPPED else None
    if status.satisfies and moving[run.id]:
        for child in run.graph.children.get(node.index, ()):
            lower(run, run.nodes[child], skipped=status is NodeStatus.SKIPPED)
    return "accepted"


def _settled_as(asked: NodeStatus, run: RunState, node: NodeState, *, parked: bool = False) -> NodeStatus:
    stopping, cancelling = run.stopping, run.status.stopping
    return settled_as(asked, stopping=stopping, cancelling=cancelling, removed=node.layout.removed, parked=parked)


def end(attempt: AttemptState, status: AttemptStatus, node_status: NodeStatus, now: int) -> None:
    """An attempt ends and its node moves with it. The journal calls it by what became of the attempt."""
    run, node = attempt.run, attempt.run.nodes[attempt.index]
    attempt.status, attempt.ended_at = status, now
    change(run, node, node_status)
    if node_status in FAILED_NODES and run.error is None:
        run.error = error_type(attempt.error)
    node.reason = None
    kind: Any = status.lower()
    run.note(now, kind, node.index, attempt.number, node_status)


def change(run: RunState, node: NodeState, status: NodeStatus) -> None:
    """Move a node and keep the run's counts equal to what a recount would say."""
    run.open += node.status.terminal - status.terminal
    run.active += (status in ACTIVE_NODES) - (node.status in ACTIVE_NODES)
    run.failed += (status in FAILED_NODES) - (node.status in FAILED_NODES)
    node.status = status


def lower(run: RunState, child: NodeState, *, skipped: bool) -> None:
    """One parent of this child is satisfied, perhaps by being skipped; when all are, the child is READY."""
    child.waiting -= 1
    child.skipped += skipped
    if child.waiting == 0 and child.status is NodeStatus.PENDING:
        change(run, child, NodeStatus.READY)


def hold_back(ended: Iterable[AttemptState]) -> None:
    """A node that is to run again waits for a parent that a heal gave it while it ran."""
    for attempt in ended:
        run, node = attempt.run, attempt.run.nodes[attempt.index]
        if run.gate is GateState.OPEN and node.status is NodeStatus.READY and node.waiting:
            change(run, node, NodeStatus.PENDING)


def conclude(run: RunState, now: int) -> None:
    """What follows for the run itself, after its nodes have moved."""
    on_failure = run.created.on_failure
    match conclusion(run.gate, run.status, on_failure, run.open, run.active, run.failed, run.tolerated):
        case Conclusion.COMPLETED:
            run.status, run.ended_at = RunStatus.COMPLETED, now
            shut_gate(run, now)
            run.note(now, "run", None, None, RunStatus.COMPLETED)
        case Conclusion.PAUSED:
            run.status, run.gate, run.reason = RunStatus.PAUSED, GateState.SHUT, ops.NODE_FAILED
            run.note(now, "run", None, None, RunStatus.PAUSED)
        case Conclusion.FAILING:
            close_gate(run, "failed", now)
        case Conclusion.CANCELLED:
            run.status, run.ended_at, run.cancel_at = RunStatus.CANCELLED, now, None
            shut_gate(run, now)
            run.note(now, "run", None, None, RunStatus.CANCELLED)
        case Conclusion.NOTHING:
            pass


def shut_gate(run: RunState, now: int) -> None:
    """The gate of a run that has ended. That of a child run is held by nobody, until its end is handed on."""
    run.gate = GateState.SHUT
    if run.created.parent is not None:
        run.gate, run.token, run.purpose, run.arguments, run.expires_at = GateState.HELD, None, ops.ENDED, b"", now
        run.reported_until = 0


def close_gate(run: RunState, purpose: str, now: int, arguments: bytes = b"") -> None:
    """The gate is held by nobody: whoever sees it first finishes what it is held for."""
    run.gate, run.token, run.purpose, run.arguments, run.expires_at = GateState.HELD, None, purpose, arguments, now
    run.stopping, run.reported_until = purpose == "failed", 0
    run.note(now, "gate", None, None, purpose)


def append(state: MemoryState, group: Sequence[ops.Append], now: int) -> list[Receipt]:
    found: list[Receipt] = []
    for op in group:
        attempt = state.attempt(*split_attempt_id(op.attempt))
        if attempt is None or attempt.status is not AttemptStatus.RUNNING:
            found.append(Refused(Refusal.FENCED))
            continue
        line = LineRow(op.attempt, op.index, now, op.kind, op.data, attempt.index, attempt.number)
        if op.index < 0:
            attempt.run.lines[op.attempt, op.index] = line
        else:
            attempt.run.lines.setdefault((op.attempt, op.index), line)
        found.append(receipts.Appended())
    return found


def claim(state: MemoryState, op: ops.Claim, now: int) -> Receipt:
    worker = state.workers.get(op.worker)
    if worker is None or worker.lease_until <= now:
        return Refused(Refusal.LEASE_EXPIRED)
    if op.claim_id not in state.claims:
        taken: list[tuple[RunState, NodeState]] = []
        for lane, limit in dict(op.lanes).items():
            taken += list(_ready(state, op, lane))[: max(0, min(limit, LIMITS.nodes) - len(taken))]
        if taken:
            state.claims[op.claim_id] = {
                ordinal: _start(op, ordinal, run, node, now) for ordinal, (run, node) in enumerate(taken)
            }
    current = [a for a in state.claims.get(op.claim_id, {}).values() if a.status is AttemptStatus.RUNNING]
    runs = {} if op.serves is None else {attempt.run.id: attempt.run.row() for attempt in current}
    return receipts.Claimed(tuple(_grant(attempt) for attempt in current), tuple(runs[run] for run in sorted(runs)))


def _ready(state: MemoryState, op: ops.Claim, lane: Lane) -> Iterable[tuple[RunState, NodeState]]:
    """READY nodes of a lane by priority, admission of the run, and the order of the graph."""
    serves = None if op.serves is None else set(op.serves)
    for run in sorted(state.runs.values(), key=lambda run: (-run.created.priority, run.admission)):
        pair = (run.created.workflow, run.graph.digest)
        if run.gate is not GateState.OPEN or (run.id not in op.runs if serves is None else pair not in serves):
            continue
        ready = (node for node in run.nodes if node.status is NodeStatus.READY and node.lane == lane)
        yield from ((run, node) for node in sorted(ready, key=lambda node: node.layout.rank))


def _start(op: ops.Claim, ordinal: int, run: RunState, node: NodeState, now: int) -> AttemptState:
    node.attempt += 1
    change(run, node, NodeStatus.RUNNING)
    if run.status is RunStatus.PENDING:
        run.status = RunStatus.RUNNING
    if run.started_at is None:
        run.started_at = now
    attempt = AttemptState(op.claim_id, ordinal, run, node.index, node.attempt, op.worker, now)
    run.attempts.append(attempt)
    run.note(now, "claimed", node.index, node.attempt, None)
    return attempt


def _grant(attempt: AttemptState) -> receipts.Grant:
    run, node = attempt.run, attempt.run.nodes[attempt.index]
    outputs = ((need, output_of(run, need)) for need in sorted(node.layout.needs))
    return receipts.Grant(
        attempt.id,
        run.id,
        node.index,
        attempt.number,
        node.failures,
        node.losses,
        tuple((need, output) for need, output in outputs if output is not None),
        node.generation,
        run.heals,
        node.postponed,
        node.skipped,
        node.wakes,
    )


def output_of(run: RunState, index: int) -> bytes | None:
    for attempt in run.attempts:
        if attempt.index == index and attempt.status is AttemptStatus.COMPLETED:
            return attempt.output
    return None


def enlist(state: MemoryState, op: ops.Enlist, now: int) -> Receipt:
    state.workers[op.worker] = WorkerState(op.worker, now + op.lease, now, op.info, op.lease)
    return receipts.Enlisted(now + op.lease)


def renew(state: MemoryState, op: ops.Renew, now: int) -> Receipt:
    worker = state.workers.get(op.worker)
    if worker is None or worker.lease_until <= now:
        return Refused(Refusal.LEASE_EXPIRED)
    heard_at = worker.renewed_at if op.since is None else min(worker.renewed_at, op.since)
    stray = [
        attempt
        for attempt in (() if op.held is None else _running_under(state, op.worker))
        if attempt.started_at < heard_at and attempt.id not in set(op.held or ())
    ]
    for attempt in stray:
        status = _settled_as(NodeStatus.READY, attempt.run, attempt.run.nodes[attempt.index])
        end(attempt, AttemptStatus.RELEASED, status, now)
    hold_back(stray)
    for run in {attempt.run.id: attempt.run for attempt in stray}.values():
        conclude(run, now)
    worker.lease_until, worker.renewed_at, worker.lease = now + op.lease, now, op.lease
    return receipts.Renewed(worker.lease_until, stops(state, op.worker), len(stray))


def stops(state: MemoryState, worker: str) -> tuple[AttemptId, ...]:
    return tuple(attempt.id for attempt in _running_under(state, worker) if attempt.run.stopping)


def dismiss(state: MemoryState, op: ops.Dismiss, now: int) -> Receipt:
    held = _running_under(state, op.worker)
    for attempt in held:
        lose(attempt, now)
    hold_back(held)
    for run in {attempt.run.id: attempt.run for attempt in held}.values():
        conclude(run, now)
    state.workers.pop(op.worker, None)
    return receipts.Dismissed(len(held))


def lose(attempt: AttemptState, now: int) -> None:
    """The worker is gone. The node runs again, unless it promised not to, or it has taken too many workers with it."""
    run, node = attempt.run, attempt.run.nodes[attempt.index]
    attempt.error = suspects.WORKER_LOST_ERROR
    node.losses += 1
    if run.stopping or node.layout.removed:
        status, reason = NodeStatus.CANCELLED, "worker_lost"
    elif node.wakes:  # no body of it was running
        status, reason = NodeStatus.READY, None
    elif node.layout.lane.careful:
        status, reason = NodeStatus.INTERRUPTED, "worker_lost"
    elif node.losses >= suspects.MAX_LOSSES:
        status, reason = NodeStatus.FAILED, "worker_lost"
    else:
        status, reason = NodeStatus.READY, None
        if node.losses >= suspects.SUSPECT_AFTER:
            node.lane = node.lane._replace(suspect=True)
    end(attempt, AttemptStatus.LOST, status, now)
    node.reason = reason


def _running_under(state: MemoryState, worker: str) -> list[AttemptState]:
    """In the order in which they were claimed."""
    return [
        attempt
        for granted in state.claims.values()
        for attempt in granted.values()
        if attempt.worker == worker and attempt.status is AttemptStatus.RUNNING
    ]


def sweep(state: MemoryState, op: ops.Sweep, now: int) -> Receipt:
    if op.run is None:
        _forgive_an_outage(state, now)
    runs = [run for run in state.runs.values() if op.run in (None, run.id)]
    lost = _lose_expired(state, op, now)
    hold_back(lost)
    touched = {attempt.run.id: attempt.run for attempt in lost}
    touched |= {run.id: run for run in _fence_cancelled(runs, op.limit, now)}
    for run in touched.values():
        conclude(run, now)
    woken = _wake_due(runs, op.limit, now)
    touched |= {run.id: run for run in woken}
    overdue = [run for run in runs if run.gate is GateState.OPEN and (run.deadline_at or NEVER) <= now]
    for run in sorted(overdue, key=lambda run: (run.deadline_at, run.admission))[: op.limit]:
        run.reason = "deadline"
        close_gate(run, "failed", now)
        touched[run.id] = run
    news = tuple(run.news() for run in sorted(touched.values(), key=lambda run: run.admission))
    alive = sum(worker.lease_until > now for worker in state.workers.values())
    return receipts.Swept(len(lost), len(woken), news, _left_held(runs, op, now), _next_due(state), alive)


NEVER = 2**63


def _forgive_an_outage(state: MemoryState, now: int) -> None:
    """Nobody could renew or sweep for a while: leases that ran out meanwhile are given once more."""
    before, state.swept_at = state.swept_at, now
    if before is not None and now - before > ops.OUTAGE:
        for worker in state.workers.values():
            if before < worker.lease_until <= now:
                worker.lease_until = now + worker.lease


def _lose_expired(state: MemoryState, op: ops.Sweep, now: int) -> list[AttemptState]:
    """Attempts of workers whose lease ran out; a worker with none left is forgotten."""
    lost: list[AttemptState] = []
    for worker in sorted(state.workers.values(), key=lambda worker: (worker.lease_until, worker.id)):
        if worker.lease_until > now:
            break
        held = _running_under(state, worker.id)
        taken = [attempt for attempt in held if op.run in (None, attempt.run.id)][: op.limit - len(lost)]
        for attempt in taken:
            lose(attempt, now)
        lost += taken
        if len(taken) == len(held) and op.run is None:
            del state.workers[worker.id]
    return lost


def _fence_cancelled(runs: list[RunState], limit: int, now: int) -> list[RunState]:
    """Cancelled runs whose attempts had time enough to stop: what still runs can no longer write."""
    fenced = [
        attempt
        for run in sorted(runs, key=lambda run: run.admission)
        if run.cancel_at is not None and run.cancel_at <= now
        for attempt in run.attempts
        if attempt.status is AttemptStatus.RUNNING
    ][:limit]
    for attempt in fenced:
        end(attempt, AttemptStatus.CANCELLED, NodeStatus.CANCELLED, now)
    return [attempt.run for attempt in fenced]


def _wake_due(runs: list[RunState], limit: int, now: int) -> list[RunState]:
    due = sorted(
        (node.due_at, run.admission, node.index, run, node)
        for run in runs
        if run.gate is GateState.OPEN
        for node in run.nodes
        if node.status is NodeStatus.WAITING and node.due_at is not None and node.due_at <= now
    )[:limit]
    for _, _, _, run, node in due:
        change(run, node, NodeStatus.PENDING if node.waiting else NodeStatus.READY)
        node.due_at = None
        run.note(now, "woken", node.index, node.attempt, NodeStatus.READY)
    return [run for _, _, _, run, _ in due]


def _left_held(runs: list[RunState], op: ops.Sweep, now: int) -> tuple[receipts.HeldGate, ...]:
    left = [
        run
        for run in sorted(runs, key=lambda run: run.admission)
        if run.gate is GateState.HELD
        and (run.expires_at if run.expires_at is not None else NEVER) <= now
        and (op.run is not None or run.reported_until <= now)
    ][: op.limit]
    for run in left:
        run.reported_until = now + ops.HAND_OUT
    return tuple(receipts.HeldGate(run.id, run.purpose or "", run.arguments) for run in left)


def _next_due(state: MemoryState) -> int | None:
    times = [worker.lease_until for worker in state.workers.values()]
    for run in state.runs.values():
        if run.gate is GateState.OPEN:
            times += [
                node.due_at for node in run.nodes if node.status is NodeStatus.WAITING and node.due_at is not None
            ]
            times += [] if run.deadline_at is None else [run.deadline_at]
        elif run.gate is GateState.HELD and run.expires_at is not None:
            times.append(max(run.expires_at, run.reported_until))
        if run.cancel_at is not None:
            times.append(run.cancel_at)
    return min(times, default=None)


def rederive(run: RunState) -> None:
    """Compute both parent counters of every node from the rows, and from them which unstarted ones are READY."""
    for node in run.nodes:
        parents = [run.nodes[parent] for parent in node.layout.parents]
        node.waiting = sum(parent.status not in SATISFIED_NODES for parent in parents)
        node.skipped = sum(was_skipped(parent.status, parent.reason) for parent in parents)
        if node.status in (NodeStatus.PENDING, NodeStatus.READY):
            node.status = NodeStatus.PENDING if node.waiting else NodeStatus.READY
    run.recount()
