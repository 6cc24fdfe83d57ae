"""Runs that come from another store."""

from __future__ import annotations

from ....base.ids import split_attempt_id
from ...model import LOAD_LEASE, Create, GateState, Receipt, Refusal, Refused, Restore, Restored, RunRow
from ..rules.verdicts import refuse_restore
from .state import AttemptState, MemoryState, NodeState, RunState


def restore(state: MemoryState, op: Restore, now: int) -> Receipt:
    graph, run = state.graphs.get(op.run.digest), state.runs.get(op.run.id)
    if (
        run is not None
        and run.purpose != "restore"
        and (run.created_at, run.created.seed) == (op.run.created_at, op.run.seed)
    ):
        return Restored(len(run.nodes), True)  # it is this run: it was asked before
    refused = refuse_restore(
        op,
        graph_complete=None if graph is None else graph.complete,
        restoring=None if run is None else run.purpose == "restore",
        key_taken=run is None and state.run_of_key(op.run.workflow, op.run.idempotency_key) is not None,
    )
    if refused is not None or graph is None:
        return refused or Refused(Refusal.UNKNOWN, op.run.digest)
    if run is None:
        state.admissions += 1
        run = state.runs[op.run.id] = RunState(
            state.admissions, Create.like(op.run), graph, op.run.created_at, op.run.deadline_at
        )
        run.status, run.purpose = op.run.status, "restore"
    run.expires_at = now + LOAD_LEASE
    _add(state, run, op)
    if not op.finish:
        return Restored(len(run.nodes), False)
    if len(run.nodes) < graph.total or len(run.journal) < op.run.seq:
        return Refused(Refusal.INCOMPLETE, f"{len(run.nodes)} nodes and {len(run.journal)} entries are there")
    _finish(run, op.run)
    return Restored(len(run.nodes), True)


def _add(state: MemoryState, run: RunState, op: Restore) -> None:
    for row in op.nodes[max(0, len(run.nodes) - (op.nodes[0].index if op.nodes else 0)) :]:
        if row.index == len(run.nodes):
            fields = row._asdict() | {"layout": run.graph.rows[row.index]}
            del fields["id"]
            run.nodes.append(NodeState(**fields))
    for attempt in op.attempts:
        claim, ordinal = split_attempt_id(attempt.id)
        granted = state.claims.setdefault(claim, {})
        if ordinal not in granted:
            fields = attempt._asdict() | {"claim": claim, "ordinal": ordinal, "run": run}
            del fields["id"]
            granted[ordinal] = AttemptState(**fields)
            run.attempts.append(granted[ordinal])
    for entry in op.journal:
        if entry.seq == len(run.journal) + 1:
            run.journal.append(entry)
    for line in op.lines:
        run.lines.setdefault((line.attempt, line.index), line)
    run.former_graphs.update(op.former_graphs)


_KEPT = ("status", "gate", "seq", "heals", "tolerated", "error", "started_at", "ended_at", "deadline_at", "reason")


def _finish(run: RunState, row: RunRow) -> None:
    for name in _KEPT:
        setattr(run, name, getattr(row, name))
    run.purpose = run.expires_at = None
    run.stopping = row.stopping and run.gate is not GateState.OPEN
    run.recount()
