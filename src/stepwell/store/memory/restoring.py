"""Runs that come from another store."""

from __future__ import annotations

from ...ids import split_attempt_id
from ...model import LOAD_LEASE, Create, GateState, Receipt, Refusal, Refused, Restore, Restored, RunRow
from ..rules.verdicts import refuse_restore
from .state import AttemptRecord, NodeRecord, RunRecord, State


def restore(state: State, op: Restore, now: int) -> Receipt:
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
    )
    if refused is not None or graph is None:
        return refused or Refused(Refusal.UNKNOWN, op.run.digest)
    if run is None:
        state.admissions += 1
        run = state.runs[op.run.id] = RunRecord(
            state.admissions, _created(op.run), graph, op.run.created_at, op.run.deadline_at, op.run.on_failure
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


def _created(row: RunRow) -> Create:
    return Create(
        row.id,
        row.workflow,
        row.target,
        row.digest,
        row.input,
        row.seed,
        row.on_failure,
        row.priority,
        row.timeout,
        row.idempotency_key,
        row.fork,
        row.origin,
        row.tags,
    )


def _add(state: State, run: RunRecord, op: Restore) -> None:
    for row in op.nodes[max(0, len(run.nodes) - (op.nodes[0].index if op.nodes else 0)) :]:
        if row.index == len(run.nodes):
            layout = run.graph.rows[row.index]
            run.nodes.append(
                NodeRecord(
                    row.index,
                    layout,
                    row.status,
                    row.waiting,
                    row.live,
                    row.lane,
                    row.attempt,
                    row.failures,
                    row.losses,
                    row.due_at,
                    row.reason,
                    row.generation,
                    row.postponed,
                )
            )
    for attempt in op.attempts:
        claim, ordinal = split_attempt_id(attempt.id)
        granted = state.claims.setdefault(claim, {})
        if ordinal not in granted:
            granted[ordinal] = AttemptRecord(
                claim,
                ordinal,
                run,
                attempt.index,
                attempt.number,
                attempt.worker,
                attempt.started_at,
                attempt.status,
                attempt.ended_at,
                attempt.output,
                attempt.error,
                attempt.outcome,
            )
            run.attempts.append(granted[ordinal])
    for entry in op.journal:
        if entry.seq == len(run.journal) + 1:
            run.journal.append(entry)
    for line in op.lines:
        run.lines.setdefault((line.attempt, line.index), line)
    run.former_graphs.update(op.former_graphs)


def _finish(run: RunRecord, row: RunRow) -> None:
    run.status, run.gate, run.purpose, run.expires_at = row.status, row.gate, None, None
    run.stopping, run.seq, run.heals, run.tolerated = row.stopping, row.seq, row.heals, row.tolerated
    run.started_at, run.ended_at, run.deadline_at, run.reason = (
        row.started_at,
        row.ended_at,
        row.deadline_at,
        row.reason,
    )
    if run.gate is GateState.OPEN:
        run.stopping = False
    run.recount()
