"""Runs, nodes and graphs as JSON. The keys are a promise: scripts read them. New ones may come, none changes or goes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ...codec import decode
from ...graph import Graph
from ...model import LineRow, NodeStatus
from ...model.lines import LogLine, Progress
from ...model.origin import origin_of
from ...store import reader
from ..stored import StoredError, StoredNode, StoredRun
from ..streams import results
from .words import iso

_OBEYED = re.compile(r"[\x7f-\x9f]")
"""Control characters that JSON may hold as they are, and terminals obey."""


def json_text(value: Any) -> str:
    """JSON for stdout, in characters that it can carry."""
    utf8 = (results().encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, indent=2, ensure_ascii=not utf8)
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def run_record(run: StoredRun) -> dict[str, Any]:
    """A run as `ls --json` lists it."""
    row = run.row
    return {
        "id": row.id,
        "workflow": row.workflow,
        "target": row.target,
        "status": row.status,
        "reason": row.reason,
        "priority": row.priority,
        "idempotency_key": row.idempotency_key,
        "nodes_total": run.size,
        "nodes_open": row.open,
        "nodes_failed": row.failed,
        "created_at": iso(row.created_at),
        "started_at": iso(row.started_at),
        "ended_at": iso(row.ended_at),
        "deadline_at": iso(row.deadline_at),
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


def full_record(run: StoredRun, *, tracebacks: bool) -> dict[str, Any]:
    """A run as `show --json` shows it."""
    counts = run.counts()
    return {
        **run_record(run),
        "input": decode(run.row.input),
        "digest": run.row.digest,
        "counts": {status: counts.get(status, 0) for status in NodeStatus},
        "result": run.result(),
        "heals": run.row.heals,
        "metrics": run.metrics().to_dict(),
        "forks": [fork.id for fork in reader.forks(run.store, run.row)],
        "nodes": [_node_record(node, tracebacks=tracebacks) for node in run.nodes()],
        "removed_nodes": [_node_record(node, tracebacks=tracebacks) for node in run.removed_nodes()],
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


def _node_record(node: StoredNode, *, tracebacks: bool) -> dict[str, Any]:
    first, last = (node.attempts[0], node.attempts[-1]) if node.attempts else (None, None)
    return {
        "id": node.row.id,
        "name": node.name,
        "status": node.row.status,
        "reason": node.row.reason,
        "attempts": len(node.attempts),
        "started_at": None if first is None else iso(first.started_at),
        "ended_at": None if last is None else iso(last.ended_at),
        "due_at": iso(node.row.due_at),
        "seconds": node.seconds,
        "error": None if node.error is None else _error_record(node.error, tracebacks=tracebacks),
        "progress": None if node.progress is None else _progress_record(node.progress),
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


def _progress_record(progress: Progress) -> dict[str, Any]:
    return {**progress._asdict(), "fraction": progress.fraction}


def _error_record(error: StoredError, *, tracebacks: bool) -> dict[str, Any]:
    return {"type": error.type, "message": error.message, "traceback": error.traceback if tracebacks else None}
