"""How long a run, or a node, usually takes: what is slower than that deserves a look."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from ...base.clock import SECOND
from ...base.ids import NodeId
from ...core.model import AttemptStatus, GetAttemptColumns, ListRuns, RunRow, RunStatus
from ..runs.stored import StoredRun

if TYPE_CHECKING:
    from ...answers.reports import UsualTimes

LATEST = 20
"""Runs that are looked at."""


def usual_times(run: StoredRun, node: NodeId | None = None) -> UsualTimes:
    """Of the latest other runs of the workflow that completed; of a node, its attempts that completed in them."""
    asked = ListRuns(LATEST + 1, workflow=run.row.workflow, statuses=(RunStatus.COMPLETED,))
    (page,) = run.store.read([asked])
    rows = [row for row in page.runs if row.id != run.row.id][:LATEST]
    taken = [_of_run(row) for row in rows] if node is None else _of_node(run, rows, node)
    times = [each / SECOND for each in taken]
    return {
        "count": len(times),
        "median_seconds": median(times) if times else None,
        "longest_seconds": max(times, default=None),
    }


def _of_run(row: RunRow) -> int:
    return (row.ended_at or 0) - (row.started_at or row.created_at)


def _of_node(run: StoredRun, rows: list[RunRow], node: NodeId) -> list[int]:
    """A node has its own number in each graph, and is not in all of them."""
    indexes = [(row, run.load(row.digest).index.get(node)) for row in rows]
    queries = [GetAttemptColumns(row.id, indexes=(index,)) for row, index in indexes if index is not None]
    return [
        ended - started
        for columns in run.store.read(queries)
        for status, started, ended in zip(columns.statuses, columns.started, columns.ended, strict=True)
        if status is AttemptStatus.COMPLETED and ended is not None
    ]
