"""The failed nodes of a run, grouped by the class and the message of their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.model import FAILED_NODES, ListNodes
from ..runs.stored import StoredRun

if TYPE_CHECKING:
    from ...answers.failures import FailureGroup, FailuresRecord

MOST_NODES = 2_000
"""Failed nodes that are looked at, at most."""
NAMED = 100
"""Nodes that a group names."""
LONGEST = 2_000
"""Characters of a message; what is alike so far is alike."""


def failures(run: StoredRun) -> FailuresRecord:
    (rows,) = run.read(ListNodes(run.row.id, limit=MOST_NODES, statuses=tuple(sorted(FAILED_NODES))))
    seq = run.row.seq
    groups: dict[tuple[str | None, str], FailureGroup] = {}
    views = run.some_nodes([row.index for row in rows if row.index not in run.outline.removed])
    for view in views:
        error = view.error
        kind, message = (None, view.reason or "") if error is None else (error.type, error.message[:LONGEST])
        group = groups.setdefault((kind, message), {"type": kind, "message": message, "count": 0, "nodes": []})
        group["count"] += 1
        if len(group["nodes"]) < NAMED:
            group["nodes"].append(view.id)
    return {
        "run": run.row.id,
        "seq": seq,
        "count": len(views),
        "exact": rows.cursor is None,
        "groups": sorted(groups.values(), key=lambda group: -group["count"]),
    }
