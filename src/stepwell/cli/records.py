"""Runs and nodes as JSON. The keys are a promise: scripts read them. New ones may be added, none changes or goes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from ..clock import SECOND
from ..codec import decode
from ..graph import Graph
from ..model import SATISFIED_NODES, NodeStatus, RunRow
from ..runner import Engine
from ..runner.run import NodeError, NodeView
from ..store import reader
from .words import iso


def json_text(value: Any) -> str:
    """JSON for stdout, in characters that it can carry."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return json.dumps(value, indent=2, ensure_ascii=not utf8)


def run_record(row: RunRow) -> dict[str, Any]:
    """A run as `ls --json` lists it."""
    return {
        "id": row.id,
        "workflow": row.workflow,
        "target": row.target,
        "status": row.status,
        "reason": row.reason,
        "priority": row.priority,
        "idempotency_key": row.idempotency_key,
        "nodes_total": row.nodes,
        "nodes_open": row.open,
        "nodes_failed": row.failed,
        "created_at": iso(row.created_at),
        "started_at": iso(row.started_at),
        "ended_at": iso(row.ended_at),
        "deadline_at": iso(row.deadline_at),
        "seconds": seconds_of(row),
    }


def full_record(engine: Engine, row: RunRow, *, tracebacks: bool) -> dict[str, Any]:
    """A run as `show --json` shows it."""
    counts = reader.count_nodes(engine.store, row.id)
    return {
        **run_record(row),
        "input": decode(row.input),
        "digest": row.digest,
        "counts": {status: counts.get(status, 0) for status in NodeStatus},
        "result": result_of(engine, row),
        "nodes": [
            node_record(node, tracebacks=tracebacks) for node in in_order(engine, row, engine.get(row.id).nodes())
        ],
    }


def node_record(node: NodeView, *, tracebacks: bool) -> dict[str, Any]:
    error = error_of(node)
    first, last = (node.attempts[0], node.attempts[-1]) if node.attempts else (None, None)
    return {
        "id": node.id,
        "name": node.name,
        "status": node.status,
        "reason": node.reason,
        "attempts": len(node.attempts),
        "started_at": None if first is None else _iso(first.started_at),
        "ended_at": None if last is None else _iso(last.ended_at),
        "due_at": _iso(node.due_at),
        "seconds": node_seconds(node),
        "error": None if error is None else _error_record(error, tracebacks=tracebacks),
    }


def graph_record(workflow: str, graph: Graph, statuses: dict[str, str] | None) -> dict[str, Any]:
    """A graph as `graph --json` shows it; `status` is None where there is no run."""
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


def result_of(engine: Engine, row: RunRow) -> Any:
    """What a run is for: the output of its last node, or those of its last nodes by name (by id, if names repeat)."""
    graph = engine.graph_of(row)
    last = [index for index, children in enumerate(graph.children) if not children]
    outputs = reader.get_outputs(engine.store, row.id, tuple(last))
    found = {index: decode(outputs[index]) for index in last if outputs.get(index) is not None}
    if len(last) == 1:
        return found.get(last[0])
    specs = graph.in_order
    unique = len({specs[index].name for index in last}) == len(last)
    return {specs[index].name if unique else specs[index].id: found.get(index) for index in last}


def in_order(engine: Engine, row: RunRow, nodes: Iterable[NodeView]) -> list[NodeView]:
    """Nodes as people read them: level by level, and within a level as they were declared."""
    graph = engine.graph_of(row)
    declared = {spec.id: position for position, spec in enumerate(graph)}
    return sorted(nodes, key=lambda node: (graph.level(node.id), declared[node.id]))


def error_of(node: NodeView) -> NodeError | None:
    """What keeps a node from being completed. Errors that a later attempt made good are none."""
    return None if node.status in SATISFIED_NODES else node.error


def seconds_of(row: RunRow) -> float | None:
    """How long a run took, or None before its end."""
    return None if row.ended_at is None else (row.ended_at - (row.started_at or row.created_at)) / SECOND


def node_seconds(node: NodeView) -> float | None:
    """How long the ended attempts of a node took together."""
    ended = [attempt.seconds for attempt in node.attempts if attempt.seconds is not None]
    return round(sum(ended), 6) if ended else None


def _error_record(error: NodeError, *, tracebacks: bool) -> dict[str, Any]:
    return {"type": error.type, "message": error.message, "traceback": error.traceback if tracebacks else None}


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else iso(round(seconds * SECOND))
