"""Runs, nodes and graphs as JSON. The keys are a promise: scripts read them. New ones may come, none changes or goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...base.codec import decode
from ...base.words import iso
from ...core.graph import Graph
from ...core.model import LineRow, NodeStatus
from ...core.model.lines import LogLine
from ...core.model.origin import origin_of
from ...core.store import reader
from ...history.comparing import Comparison, NodeFacts, Side
from .stored import StoredRun
from .views import NodeView


def run_record(run: StoredRun) -> dict[str, Any]:
    """A run as `ls --json` lists it."""
    row = run.row
    same = ("id", "workflow", "target", "status", "reason", "priority", "idempotency_key")
    times = ("created_at", "started_at", "ended_at", "deadline_at")
    return {
        **{name: getattr(row, name) for name in same},
        "tags": dict(row.tags),
        "nodes_total": run.size,
        "nodes_open": row.open,
        "nodes_failed": row.failed,
        **{name: iso(getattr(row, name)) for name in times},
        "seconds": run.seconds,
        "origin": _origin_record(run),
    }


def _origin_record(run: StoredRun) -> dict[str, Any] | None:
    """Of a fork: the run it was made from, the `seq` that one had, and the node it began with, if one was named."""
    origin = origin_of(run.row)
    if origin is None:
        return None
    before = None if origin.before is None else run.graph.order[origin.before]
    return {"run": origin.run_id, "seq": origin.seq, "node": before}


def document_record(run: StoredRun) -> dict[str, Any] | None:
    """Of a run of a document: which one, and its version if that was saved."""
    source = run.graph.source
    return None if source is None else {"digest": source.digest, "version": run.document_version}


def full_record(run: StoredRun, *, tracebacks: bool) -> dict[str, Any]:
    """A run as `show --json` shows it."""
    counts, nodes = run.counts(), run.nodes()
    return {
        **run_record(run),
        "input": decode(run.row.input),
        "digest": run.row.digest,
        "document": document_record(run),
        "counts": {status: counts.get(status, 0) for status in NodeStatus},
        "result": run.result(),
        "heals": run.row.heals,
        "metrics": run.metrics().to_dict(),
        "forks": [fork.id for fork in reader.forks(run.store, run.row)],
        "nodes": [_node_record(node, tracebacks=tracebacks) for node in run.declared(nodes)],
        "removed_nodes": [_node_record(node, tracebacks=tracebacks) for node in run.removed(nodes)],
    }


def graph_record(workflow: str, graph: Graph, statuses: Mapping[str, str] | None) -> dict[str, Any]:
    """A graph as `graph --json` shows it; `status` is null where there is no run."""
    return {
        "workflow": workflow,
        "digest": graph.digest,
        "signature": graph.signature,
        "nodes": [
            {
                "id": spec.id,
                "name": spec.name,
                "kind": spec.kind,
                "job": spec.job,
                "depends_on": list(spec.depends_on),
                "level": graph.level(spec.id),
                "status": (statuses or {}).get(spec.id),
            }
            for spec in graph.in_order
        ],
    }


def _node_record(node: NodeView, *, tracebacks: bool) -> dict[str, Any]:
    error, progress = node.error, node.progress
    if error is not None and not tracebacks:
        error = error._replace(traceback=None)
    return {
        "id": node.id,
        "name": node.name,
        "status": node.status,
        "reason": node.reason,
        "attempts": len(node.attempts),
        "started_at": iso(node.attempts[0].row.started_at) if node.attempts else None,
        "ended_at": iso(node.attempts[-1].row.ended_at) if node.attempts else None,
        "due_at": iso(node.row.due_at),
        "seconds": node.seconds,
        "error": None if error is None else error._asdict(),
        "progress": None if progress is None else {**progress._asdict(), "fraction": progress.fraction},
    }


def line_record(run: StoredRun, row: LineRow, line: LogLine) -> dict[str, Any]:
    """A line as `logs --json` lists it."""
    spec = run.graph.in_order[row.node]
    return {
        "run": run.row.id,
        "node_id": spec.id,
        "node": spec.name,
        "attempt": row.number,
        "time": iso(line.at),
        "level": line.level,
        "logger": line.logger,
        "message": line.text,
    }


def comparison_record(found: Comparison) -> dict[str, Any]:
    """Two runs side by side, as `diff --json` shows them."""
    return {
        "same_outputs": found.same_outputs,
        "same_deltas": found.same_deltas,
        "first": _side_record(found.first),
        "second": _side_record(found.second),
        "input": [change._asdict() for change in found.input],
        "graph": [change._asdict() for change in found.graph],
        "nodes": [
            {
                "id": pair.id,
                "name": pair.name,
                "differs": list(pair.differs),
                "first": _facts_record(pair.first),
                "second": _facts_record(pair.second),
                "ratio": pair.ratio,
                "output": [change._asdict() for change in pair.output],
                "delta": [change._asdict() for change in pair.delta],
            }
            for pair in found.pairs
        ],
    }


def _side_record(side: Side) -> dict[str, Any]:
    return {
        "run": side.run_id,
        "workflow": side.workflow,
        "status": side.status,
        "seconds": side.seconds,
        "input": decode(side.input),
        "digest": side.graph.digest,
    }


def _facts_record(facts: NodeFacts | None) -> dict[str, Any] | None:
    names = ("status", "attempts", "seconds", "output_sha256", "delta_sha256")
    return None if facts is None else dict(zip(names, facts, strict=True))
