"""Ops that change what a run is: graphs, creation, gates, rewrites, deletion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...model import (
    PARENT_PAUSED,
    AttemptStatus,
    GateState,
    LineRow,
    NodeStatus,
    Receipt,
    Refusal,
    Refused,
    RunStatus,
    ops,
    receipts,
)
from ..rules.grouping import once_each
from ..rules.verdicts import illegal_move, refuse_gate, refuse_switch
from .running import change, close_gate, conclude, rederive, shut_gate
from .state import LIMITS, AttemptState, GraphState, MemoryState, NodeState, RunState


def add_graph(state: MemoryState, op: ops.AddGraph, now: int) -> Receipt:
    graph = state.graphs.get(op.digest)
    if graph is None and op.start:
        return Refused(Refusal.INCOMPLETE, f"the nodes before {op.start} are not there yet")
    if graph is None:
        state.graphs_stored += 1
        graph = GraphState(op.digest, op.workflow, op.signature, op.document or b"", op.total, state.graphs_stored)
        state.graphs[op.digest] = graph
    if op.start > len(graph.rows):
        return Refused(Refusal.INCOMPLETE, f"the nodes before {op.start} are not there yet")
    graph.stored_at = now
    for row in op.rows[len(graph.rows) - op.start :]:
        graph.rows.append(row)
        for parent in row.parents:
            graph.children.setdefault(parent, []).append(len(graph.rows) - 1)
    return receipts.GraphAdded(op.digest, len(graph.rows), graph.total)


def create(state: MemoryState, group: Sequence[ops.Create], now: int) -> list[Receipt]:
    return [refuse_create(state, op) or create_one(state, op, now) for op in group]


def refuse_create(state: MemoryState, op: ops.Create) -> Refused | None:
    """Why this run cannot be created."""
    existing = _existing(state, op)
    if existing is not None:
        same = (existing.created.workflow, existing.created.input) == (op.workflow, op.input)
        return None if same else Refused(Refusal.CONFLICT, existing.id)
    graph = state.graphs.get(op.digest)
    if graph is None or not graph.complete:
        return Refused(Refusal.UNKNOWN if graph is None else Refusal.INCOMPLETE, f"graph {op.digest}")
    return None


def _existing(state: MemoryState, op: ops.Create) -> RunState | None:
    return state.runs.get(op.run_id) or state.run_of_key(op.workflow, op.idempotency_key)


def create_one(state: MemoryState, op: ops.Create, now: int, *, paused: bool = False) -> Receipt:
    """`paused`: it is a child of a run that is paused."""
    existing = _existing(state, op)
    if existing is not None:
        return receipts.Created(existing.id, True, len(existing.nodes), existing.graph.total)
    graph = state.graphs[op.digest]
    state.admissions += 1
    deadline = None if op.timeout is None else now + op.timeout
    run = state.runs[op.run_id] = RunState(state.admissions, op, graph, now, deadline, expires_at=now + ops.LOAD_LEASE)
    if paused:
        run.status, run.reason = RunStatus.PAUSED, PARENT_PAUSED
    run.note(now, "created", None, None, None)
    _load(run, now)
    return receipts.Created(op.run_id, False, len(run.nodes), graph.total)


def add_nodes(state: MemoryState, op: ops.AddNodes, now: int) -> Receipt:
    run = state.runs.get(op.run_id)
    if run is None:
        return Refused(Refusal.UNKNOWN, op.run_id)
    repeated = op.start < len(run.nodes)
    if op.start > len(run.nodes):
        return Refused(Refusal.INCOMPLETE, f"the nodes before {op.start} are not there yet")
    if not repeated and run.purpose == "load":
        _load(run, now)
    return receipts.Created(run.id, repeated, len(run.nodes), run.graph.total)


def _load(run: RunState, now: int) -> None:
    """Add the next chunk of nodes; after the last, open the gate, or hold it for what a fork shares."""
    start = len(run.nodes)
    for index, row in enumerate(run.graph.rows[start : start + LIMITS.nodes], start):
        status = NodeStatus.PENDING if row.parents else NodeStatus.READY
        run.nodes.append(NodeState(index, row, status, len(row.parents), row.lane))
    if len(run.nodes) == run.graph.total:
        run.gate = GateState.SHUT if run.status.paused else GateState.OPEN
        run.purpose = run.expires_at = None
        run.recount()
        if run.created.fork is not None:
            close_gate(run, "fork", now, run.created.fork)


def arrange(state: MemoryState, op: ops.SwitchGraph, now: int) -> Receipt:
    run, graph = state.runs.get(op.run_id), state.graphs.get(op.digest)
    if run is None or graph is None:
        return Refused(Refusal.UNKNOWN, op.run_id if run is None else f"graph {op.digest}")
    loaded = len(run.nodes)
    refused = refuse_switch(op, run.gate_facts(), complete=graph.complete, total=graph.total, loaded=loaded)
    if refused is not None:
        return refused
    if run.graph is not graph:
        run.note(now, "healed", None, None, f"{run.graph.digest} {graph.digest}")
        run.former_graphs.add(run.graph.digest)
        run.graph = graph
        run.heals += 1
        for node, row in zip(run.nodes, graph.rows, strict=False):
            node.layout = row
            node.lane = row.lane._replace(suspect=node.lane.suspect)
    if op.start == len(run.nodes):
        for index, row in enumerate(graph.rows[op.start : op.start + LIMITS.nodes], op.start):
            run.nodes.append(NodeState(index, row, NodeStatus.PENDING, len(row.parents), row.lane))
            run.open += 1
    return receipts.GraphSwitched(len(run.nodes), graph.total)


def share(state: MemoryState, op: ops.Share, now: int) -> Receipt:
    run, origin = state.runs.get(op.run_id), state.runs.get(op.origin)
    if run is None or origin is None:
        return Refused(Refusal.UNKNOWN, op.run_id if run is None else op.origin)
    if run.gate is not GateState.HELD or run.token != op.token:
        return Refused(Refusal.GATE_LOST)
    theirs = {(attempt.index, attempt.number): attempt for attempt in origin.attempts}
    ended = (AttemptStatus.COMPLETED, AttemptStatus.SUPERSEDED)
    shared, repeated = 0, op.claim_id in state.claims
    effects: dict[str, list[LineRow]] = {}
    for line in origin.lines.values():
        if line.kind in ("effect", "payload", "checkpoint"):
            effects.setdefault(line.attempt, []).append(line)
    for ordinal, row in enumerate(once_each(op.rows)):
        found = theirs.get(row)
        node = run.nodes[row[0]] if 0 <= row[0] < len(run.nodes) else None
        if found is None or node is None or found.status not in ended:
            continue
        shared += 1
        if not repeated and node.attempt == 0 and node.status in (NodeStatus.PENDING, NodeStatus.READY):
            ours = AttemptState(op.claim_id, ordinal, run, node.index, 1, found.worker, found.started_at)
            _share_one(run, node, found, ours, effects.get(found.id, ()), now)
            state.claims.setdefault(op.claim_id, {})[ordinal] = ours
    return receipts.Shared(shared)


def _share_one(
    run: RunState, node: NodeState, theirs: AttemptState, ours: AttemptState, effects: Iterable[LineRow], now: int
) -> None:
    ours.status, ours.ended_at = AttemptStatus.COMPLETED, theirs.ended_at
    ours.output, ours.outcome = theirs.output, theirs.outcome
    run.attempts.append(ours)
    node.attempt = 1
    change(run, node, NodeStatus.COMPLETED)
    run.note(now, "shared", node.index, 1, NodeStatus.COMPLETED)
    for line in effects:
        run.lines[ours.id, line.index] = line._replace(attempt=ours.id, number=1)


def gate(state: MemoryState, op: ops.Gate, now: int) -> Receipt:
    run = state.runs.get(op.run_id)
    if run is None:
        return Refused(Refusal.UNKNOWN, op.run_id)
    facts = run.gate_facts()
    refused = refuse_gate(op, facts, now)
    if refused is not None:
        return refused
    if facts.held_by(op.token):
        return receipts.GateTaken(run.news())
    run.gate, run.token, run.purpose, run.arguments = GateState.HELD, op.token, op.purpose, op.arguments
    run.expires_at, run.reported_until = now + op.lease, 0
    run.stopping = run.stopping or op.stop
    run.note(now, "gate", None, None, op.purpose)
    return receipts.GateTaken(run.news())


def rewrite(state: MemoryState, op: ops.Rewrite, now: int) -> Receipt:
    run = state.runs.get(op.run_id)
    if run is None:
        return Refused(Refusal.UNKNOWN, op.run_id)
    if run.gate is not GateState.HELD or run.token != op.token:
        return Refused(Refusal.GATE_LOST)
    illegal = illegal_move(op, run.status)
    if illegal is not None:
        return Refused(Refusal.STATUS, illegal)
    first = {row.index: row for row in reversed(op.rows)}
    completed = {attempt.index: attempt for attempt in run.attempts if attempt.status is AttemptStatus.COMPLETED}
    changed = [row.index for row in op.rows if row is not first[row.index] or not _apply(run, row, completed, now)]
    if changed:
        return Refused(Refusal.CHANGED, ",".join(map(str, changed)))
    if op.finish is not None:
        _finish(run, op.finish, now)
    return receipts.Rewritten(run.news())


def _apply(run: RunState, row: ops.NodeChange, completed: Mapping[int, AttemptState], now: int) -> bool:
    """Change one node if it still is what the kernel saw. Its completion, if it has one, no longer counts."""
    node = run.nodes[row.index] if 0 <= row.index < len(run.nodes) else None
    if node is None or (node.status, node.attempt) != (row.was, row.was_attempt):
        return False
    if row.status is row.was:
        return True
    node.generation += node.status is NodeStatus.COMPLETED
    change(run, node, row.status)
    node.reason, node.due_at = row.reason, None
    if row.fresh:
        node.failures = node.postponed = node.losses = 0
        node.lane = node.layout.lane
    if row.anew:
        node.wakes = 0
    if row.index in completed:
        completed[row.index].status = AttemptStatus.SUPERSEDED
    run.note(now, "rewrote", row.index, node.attempt, row.status)
    return True


def _finish(run: RunState, finish: ops.Finish, now: int) -> None:
    run.last_token = run.token
    run.token, run.purpose, run.arguments, run.expires_at = None, None, b"", None
    moved = run.status is not finish.status
    run.status, run.reason = finish.status, finish.reason
    if finish.input is not None:
        run.created = run.created._replace(input=finish.input)
    if moved:
        run.ended_at = now if finish.status.terminal else None
    run.cancel_at = now + (finish.grace or 0) if finish.status.stopping else None
    run.note(now, "run", None, None, finish.status)
    if finish.open_gate:
        run.gate, run.stopping = GateState.OPEN, False
        if moved and run.created.timeout is not None:  # somebody asked for it to go on, and it has its time again
            run.deadline_at = now + run.created.timeout
        rederive(run)
    else:
        run.gate = GateState.SHUT
        if moved and finish.status.terminal:
            shut_gate(run, now)
        run.recount()
    run.tolerated = run.failed if finish.tolerate else min(run.tolerated, run.failed)
    run.error = run.error if run.failed else None
    conclude(run, now)


def delete(state: MemoryState, op: ops.Delete) -> Receipt:
    run = state.runs.get(op.run_id)
    if run is None:
        return receipts.Deleted(True)
    if run.purpose == ops.ENDED:
        return Refused(Refusal.INCOMPLETE, ops.ENDED)
    if run.purpose not in ("delete", "restore") and not run.status.terminal:
        return Refused(Refusal.STATUS, run.status)
    run.gate, run.purpose, run.token, run.arguments, run.expires_at = GateState.HELD, "delete", None, b"", 0
    del run.nodes[max(0, len(run.nodes) - op.limit) :]
    for attempt in run.attempts:
        if attempt.index >= len(run.nodes):
            state.forget(attempt)
    run.attempts = [attempt for attempt in run.attempts if attempt.index < len(run.nodes)]
    run.lines = {key: line for key, line in run.lines.items() if line.node < len(run.nodes)}
    del run.journal[max(0, len(run.journal) - ops.ENTRIES_A_NODE * op.limit) :]
    if run.nodes or run.journal:
        return receipts.Deleted(False)
    del state.runs[op.run_id]
    return receipts.Deleted(True)


def delete_graph(state: MemoryState, op: ops.DeleteGraph) -> Receipt:
    graph = state.graphs.get(op.digest)
    if graph is None:
        return receipts.Deleted(True)
    if state.uses(op.digest):
        return Refused(Refusal.STATUS, "in use")
    del graph.rows[max(0, len(graph.rows) - op.limit) :]
    if graph.rows:
        graph.children = {
            parent: [child for child in children if child < len(graph.rows)]
            for parent, children in graph.children.items()
        }
        return receipts.Deleted(False)
    del state.graphs[op.digest]
    return receipts.Deleted(True)
