"""`stepwell show RUN NODE`: one node, its attempts, its config as written and as rendered, what it returned."""

from __future__ import annotations

from typing import Any

from ...base.codec import decode
from ...base.codec import text as json_line
from ...core.store import reader
from ...engine.runs.stored import StoredRun
from ...engine.runs.views import AttemptView
from ..streams import say
from .words import duration, iso, one_line, plain

MAX_SHOWN = 2_000
"""Characters of an output or a config; --json has all of it."""


def node_data(run: StoredRun, index: int) -> dict[str, Any]:
    """One node: its job, its attempts with their rendered configs, and its output."""
    (view,) = run.nodes(index)
    spec = run.graph.in_order[index]
    outputs = reader.get_outputs(run.store, run.row.id, (index,))
    output = decode(outputs[index]) if index in outputs else None
    return {
        "run": run.row.id,
        "id": view.id,
        "name": view.name,
        "status": view.status,
        "reason": view.reason,
        "job": spec.job,
        "config": dict(spec.args),
        "attempts": [_attempt_data(attempt) for attempt in view.attempts],
        "output": output,
    }


def _attempt_data(attempt: AttemptView) -> dict[str, Any]:
    error, outcome = attempt.error, attempt.outcome
    return {
        "number": attempt.number,
        "status": attempt.status,
        "started_at": iso(attempt.row.started_at),
        "seconds": attempt.seconds,
        "config": outcome.pop("config", None),
        "outcome": outcome,
        "error": None if error is None else error._replace(traceback=None)._asdict(),
    }


def print_node(data: dict[str, Any]) -> None:
    job = f"  {data['job']}" if data["job"] else ""
    say(plain(f"{data['id']}  {data['status']}{job}"))
    if data["reason"]:
        say(plain(f"  {data['reason']}"))
    if data["config"]:  # as written, and as rendered for its latest attempt
        say(plain(f"config  {_cut(json_line(data['config']))}"))
        rendered = [attempt["config"] for attempt in data["attempts"] if attempt["config"] is not None]
        for config in rendered[-1:]:
            say(plain(f"rendered  {_cut(json_line(config))}"))
    for attempt in data["attempts"]:
        say(plain(f"attempt {attempt['number']}  {attempt['status']}  {duration(attempt['seconds'])}"))
        if attempt["error"] is not None:
            say(plain(f"  {attempt['error']['type']}: {one_line(attempt['error']['message'])}"))
        if attempt["outcome"]:
            say(plain(f"  outcome {_cut(json_line(attempt['outcome']))}"))
    if data["output"] is not None:
        say(plain(f"output  {_cut(json_line(data['output']))}"))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}... ({len(text):,} characters; --json has all)"
