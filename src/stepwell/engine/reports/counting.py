"""How many runs there are, by status, workflow or time, within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.words import iso
from ...core.model import CountRuns, ListRuns, RunStatus
from ...core.store import Store, reader

if TYPE_CHECKING:
    from ...answers.runs import CountBy, RunCount, RunCountsRecord

MOST = 100_000
"""Runs that are counted at most, of each status."""
COUNT_BY: tuple[CountBy, ...] = ("status", "workflow", "hour", "day")


def count_runs(store: Store, runs: ListRuns, by: CountBy) -> RunCountsRecord:
    """By status, each has its own bound: the few that failed are counted exactly beside the many that completed."""
    parts = [(status,) for status in runs.statuses or RunStatus] if by == "status" else [runs.statuses]
    found = reader.count_runs(store, *(CountRuns(runs._replace(statuses=part), by, MOST) for part in parts))
    counts: list[RunCount] = [
        {"value": key if by in ("status", "workflow") else iso(int(key)), "count": count, "exact": part.exact}
        for part in found
        for key, count in part.counts
    ]
    return {
        "by": by,
        "counts": counts,
        "total": sum(each["count"] for each in counts),
        "exact": all(part.exact for part in found),
    }
