"""Runs and nodes as the JSON that `answers` describes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...base.codec import decode, sha256
from ...base.words import iso
from ...core.graph import Outline
from ...core.kernel.children import root_id
from ...core.model import RUN_VERBS, JournalRow, LineRow, NodeRow, NodeStatus, RunRow
from ...core.model.lines import LogLine, Progress
from ...core.model.origin import origin_of
from ...core.store import reader
from ...history.comparing import Comparison, NodeFacts, Side
from ...history.differences import Difference
from ..reports.grouping import Grouping
from .stored import StoredRun
from .views import AttemptView, NodeError, NodeView

if TYPE_CHECKING:
    from ...answers import nodes, reports, runs
    from .control import Touched

INLINE_BYTES = 16 * 1024
"""Outputs up to this size are in the lists of the HTTP API."""


def run_change(row: RunRow) -> runs.RunChange:
    return {
        "id": row.id,
        "workflow": row.workflow,
        "status": row.status,
        "reason": row.reason,
        "error": row.error,
        "seq": row.seq,
        "nodes_total": row.nodes,
        "nodes_open": row.open,
        "nodes_failed": row.failed,
        "tags": dict(row.tags),
        "parent": row.parent,
        "root": root_id(row.id, row.depth),
        "depth": row.depth,
        "created_at": iso(row.created_at),
        "started_at": iso(row.started_at),
        "ended_at": iso(row.ended_at),
    }


def run_record(run: StoredRun) -> runs.RunRecord:
    row = run.row
    return {
        **run_change(row),
        "nodes_total": run.size,
        "target": row.target,
        "priority": row.priority,
        "idempotency_key": row.idempotency_key,
        "deadline_at": iso(row.deadline_at),
        "seconds": run.seconds,
        "origin": _origin_record(run),
        "parent_node": run.ancestors[-1].node if run.ancestors else None,
        "path": run.path,
    }


def _origin_record(run: StoredRun) -> runs.OriginRecord | None:
    origin = origin_of(run.row)
    if origin is None:
        return None
    before = None if origin.before is None else run.graph.order[origin.before]
    return {"run": origin.run_id, "seq": origin.seq, "node": before}


def run_detail(run: StoredRun) -> runs.RunDetail:
    row, counts, source = run.row, run.counts(), run.outline.source
    return {
        **run_record(run),
        "input": decode(row.input),
        "digest": row.digest,
        "document": None if source is None else {"digest": source.digest, "version": run.document_version},
        "heals": row.heals,
        "counts": {status: counts.get(status, 0) for status in NodeStatus},
        "forks": [fork.id for fork in reader.forks(run.store, row)],
        "ancestors": [
            {"run": above.run_id, "workflow": above.workflow, "node": above.node, "name": above.name}
            for above in run.ancestors
        ],
    }


def run_report(run: StoredRun, *, tracebacks: bool) -> runs.RunReport:
    views = run.nodes()
    return {
        **run_detail(run),
        "result": run.result(),
        "metrics": run.metrics().to_dict(),
        "nodes": [node_summary(run, node, tracebacks=tracebacks) for node in run.declared(views)],
        "removed_nodes": [node_summary(run, node, tracebacks=tracebacks) for node in run.removed(views)],
    }


def node_record(run: StoredRun, row: NodeRow, child: str | None) -> nodes.NodeRecord:
    """`child`: the run that performs it."""
    return {
        "id": row.id,
        "name": run.graph.in_order[row.index].name,
        "index": row.index,
        "status": row.status,
        "reason": row.reason,
        "attempts": row.attempt,
        "failures": row.failures,
        "queue": row.lane.queue,
        "due_at": iso(row.due_at),
        "child": child,
    }


def node_summary(run: StoredRun, node: NodeView, *, tracebacks: bool = False) -> nodes.NodeSummary:
    attempts, progress = node.attempts, node.progress
    return {
        **node_record(run, node.row, node.child),
        "started_at": iso(attempts[0].row.started_at) if attempts else None,
        "ended_at": iso(attempts[-1].row.ended_at) if attempts else None,
        "seconds": node.seconds,
        "error": _error_record(node.error, traceback=tracebacks),
        "progress": None if progress is None else progress_record(progress),
    }


def progress_record(progress: Progress) -> nodes.ProgressRecord:
    return {
        "done": progress.done,
        "total": progress.total,
        "message": progress.message,
        "fraction": progress.fraction,
    }


def _error_record(error: NodeError | None, *, traceback: bool) -> nodes.ErrorRecord | None:
    if error is None:
        return None
    return {"type": error.type, "message": error.message, "traceback": error.traceback if traceback else None}


def node_detail(run: StoredRun, index: int, *, inline_bytes: int | None = None) -> nodes.NodeDetail:
    """One node. `inline_bytes`: leave out an output that is larger."""
    (view,) = run.nodes(index)
    spec, keys = run.graph.in_order[index], run.idempotency_keys
    return {
        **node_summary(run, view, tracebacks=True),
        "run": run.row.id,
        "seq": run.row.seq,
        "job": spec.job,
        "depends_on": [*spec.depends_on],
        "level": run.graph.level(spec.id),
        "condition": spec.when,
        "join": spec.join,
        "config": dict(spec.args),
        "idempotency_key": keys.of_node(index, view.row.generation),
        "own_idempotency_key": keys.is_own(index),
        "attempt_list": [attempt_record(attempt) for attempt in view.attempts],
        "output": next(iter(output_records(run, (index,), inline_bytes=inline_bytes)), None),
    }


def attempt_detail(attempt: AttemptView) -> nodes.AttemptDetail:
    return {**attempt_record(attempt), "ancestry": attempt.ancestry}


def attempt_record(attempt: AttemptView) -> nodes.AttemptRecord:
    outcome = attempt.outcome
    return {
        "id": attempt.id,
        "number": attempt.number,
        "status": attempt.status,
        "worker": attempt.worker,
        "started_at": iso(attempt.row.started_at),
        "ended_at": iso(attempt.row.ended_at),
        "seconds": attempt.seconds,
        "idempotency_key": attempt.idempotency_key,
        "config": outcome.pop("config", None),
        "outcome": outcome,
        "error": _error_record(attempt.error, traceback=True),
    }


def output_records(
    run: StoredRun, indexes: tuple[int, ...], *, inline_bytes: int | None = None
) -> list[nodes.OutputRecord]:
    outputs = reader.get_outputs(run.store, run.row.id, indexes)
    specs = run.graph.in_order
    records: list[nodes.OutputRecord] = []
    for index in indexes:
        if index in outputs:
            data, spec = outputs[index], specs[index]
            inline = inline_bytes is None or len(data) <= inline_bytes
            records.append(
                {
                    "node": spec.id,
                    "name": spec.name,
                    "size": len(data),
                    "sha256": sha256(data),
                    "href": f"/api/v1/runs/{run.row.id}/nodes/{spec.id}/output",
                    "value": decode(data) if inline else None,
                    "inline": inline,
                }
            )
    return records


def journal_record(row: JournalRow, order: tuple[str, ...]) -> nodes.JournalRecord:
    return {
        "seq": row.seq,
        "at": iso(row.at),
        "kind": row.kind,
        "node": None if row.index is None or row.index >= len(order) else order[row.index],
        "attempt": row.attempt,
        "status": row.status,
    }


def line_record(run: StoredRun, row: LineRow, line: LogLine) -> nodes.LineRecord:
    spec = run.graph.in_order[row.node]
    return {
        "run": run.row.id,
        "node_id": spec.id,
        "node": spec.name,
        "attempt": row.number,
        "index": row.index,
        "time": iso(line.at),
        "level": line.level,
        "logger": line.logger,
        "message": line.text,
    }


def why_detail(run: StoredRun, node: str | None, store: str | None = None) -> reports.WhyDetail:
    """`store`: the URL that the advice names, instead of that of the store."""
    why = run.why(node)
    return {
        **(why if store is None else replace(why, store=store)).to_dict(),
        "config": None if node is None else config_record(run, run.index_of(node)),
    }


def config_record(run: StoredRun, index: int) -> reports.ConfigRecord | None:
    spec = run.graph.in_order[index]
    if not spec.templated:
        return None
    (view,) = run.nodes(index)
    rendered = [attempt.outcome["config"] for attempt in view.attempts if "config" in attempt.outcome]
    return {"written": dict(spec.args), "rendered": rendered[-1] if rendered else None}


def steered_run(row: RunRow, verb: str, touched: Sequence[Touched] | None) -> runs.SteeredRun:
    """What a request did; with `touched`, what it would do."""
    return {
        "run": row.id,
        "status": row.status,
        "becomes": RUN_VERBS[verb].becomes,
        "dry_run": touched is not None,
        "nodes": [
            {"id": node.id, "name": node.name, "status": node.status, "becomes": node.becomes} for node in touched or ()
        ],
    }


def audit_record(row: RunRow, problems: list[str]) -> reports.AuditRecord:
    return {"run": row.id, "status": row.status, "journal_entries": row.seq, "problems": problems}


def comparison_record(comparison: Comparison, page: slice = slice(None)) -> reports.ComparisonRecord:
    """`page`: which of its nodes."""
    different = {pair.id for pair in comparison.different}
    groups = Grouping(Outline(comparison.second.graph.document.decode())).count(different) if different else {}
    return {
        "same_outputs": comparison.same_outputs,
        "same_deltas": comparison.same_deltas,
        "first": _side_record(comparison.first),
        "second": _side_record(comparison.second),
        "input": _change_records(comparison.input),
        "graph": _change_records(comparison.graph),
        "nodes": [
            {
                "id": pair.id,
                "name": pair.name,
                "differs": [*pair.differs],
                "first": _facts_record(pair.first),
                "second": _facts_record(pair.second),
                "ratio": pair.ratio,
                "output": _change_records(pair.output),
                "delta": _change_records(pair.delta),
            }
            for pair in comparison.pairs[page]
        ],
        "size": len(comparison.pairs),
        "different": len(different),
        "groups": groups,
        "next": None,
    }


def _change_records(changes: Iterable[Difference]) -> list[reports.ChangeRecord]:
    return [{"path": change.path, "first": change.first, "second": change.second} for change in changes]


def _side_record(side: Side) -> reports.SideRecord:
    return {
        "run": side.run_id,
        "workflow": side.workflow,
        "status": side.status,
        "seconds": side.seconds,
        "input": decode(side.input),
        "digest": side.graph.digest,
    }


def _facts_record(facts: NodeFacts | None) -> reports.NodeFactsRecord | None:
    if facts is None:
        return None
    return {
        "status": facts.status,
        "attempts": facts.attempts,
        "seconds": facts.seconds,
        "output_sha256": facts.output,
        "delta_sha256": facts.delta,
    }
