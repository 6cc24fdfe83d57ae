"""The attempts of a run as columns, with the moment from which each of them was waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...base.words import iso
from ...core.model import AttemptColumns, AttemptStatus, GetAttemptColumns
from ..reports.graphs import FindGrouping
from .stored import StoredRun

if TYPE_CHECKING:
    from ...answers.attempts import AttemptTable

Place = tuple[int, int]
"""The node and the number of an attempt."""
_DONE = (AttemptStatus.COMPLETED, AttemptStatus.SUPERSEDED, AttemptStatus.RELEASED)
"""With what a parent may have ended for those that wait for it: an attempt that skips its node is RELEASED."""


def attempt_table(
    run: StoredRun, group: FindGrouping, after: Place = (-1, 0), limit: int = 10_000
) -> tuple[AttemptTable, Place | None]:
    """Attempts of a run, without `next`, and the last of them if there may be more. `group` gives the groups of its graph."""
    columns = run.attempt_columns(GetAttemptColumns(run.row.id, after, limit, details=True))
    waiting = _Waits(run, columns)
    graph, row, grouping = run.graph, run.row, group(run.row.digest, run.row.id)
    nodes, workers = list(dict.fromkeys(columns.indexes)), list(dict.fromkeys(columns.workers))
    place_of = {index: place for place, index in enumerate(nodes)}
    worker_of = {worker: place for place, worker in enumerate(workers)}
    specs = [graph.in_order[index] for index in nodes]
    outermost, places = grouping.outermost, grouping.outline.places
    groups = [outermost[places[spec.id]] if spec.id in places else None for spec in specs]
    since = row.created_at
    return {
        "run": row.id,
        "seq": columns.seq,
        "since": iso(since),
        "nodes": {
            "ids": [spec.id for spec in specs],
            "names": [spec.name for spec in specs],
            "levels": [graph.level(spec.id) if spec.id in places else 0 for spec in specs],
            "groups": [None if group is None else group.id for group in groups],
        },
        "workers": list(map(str, workers)),
        "node": [place_of[index] for index in columns.indexes],
        "number": list(columns.numbers),
        "status": list(columns.statuses),
        "worker": [worker_of[worker] for worker in columns.workers],
        "waiting_us": [
            waiting.since(*attempt) - since
            for attempt in zip(columns.indexes, columns.numbers, columns.started, strict=True)
        ],
        "started_us": [at - since for at in columns.started],
        "ended_us": [None if at is None else at - since for at in columns.ended],
        "error": list(columns.errors),
        "next": None,
    }, columns.cursor


class _Waits:
    """From when attempts were waited for."""

    def __init__(self, run: StoredRun, columns: AttemptColumns) -> None:
        self._parents, self._created_at = run.graph.parents, run.row.created_at
        above = {parent for index in dict.fromkeys(columns.indexes) for parent in self._parents[index]}
        others = above - set(columns.indexes) | set(columns.indexes[:1])  # whose attempts are not all on this page
        parts = [columns]
        if others:
            parts.append(run.attempt_columns(GetAttemptColumns(run.row.id, indexes=tuple(sorted(others)), limit=2**40)))
        self._ended: dict[Place, int] = {}
        self._done: dict[int, list[int]] = {}
        """When attempts of a node completed, or skipped it."""
        for part in parts:
            for index, number, status, ended in zip(part.indexes, part.numbers, part.statuses, part.ended, strict=True):
                if ended is not None:
                    self._ended[index, number] = ended
                    if status in _DONE:
                        self._done.setdefault(index, []).append(ended)
        self._latest: dict[Sequence[int], int] = {}
        """By the parents: when the last of them completed. Members of a fan-out share them."""

    def since(self, index: int, number: int, started: int) -> int:
        before = self._ended.get((index, number - 1))
        if before is None:
            own = self._parents[index]
            latest = self._latest.get(own)
            if latest is None:
                latest = self._latest[own] = max((max(self._done.get(parent, (0,))) for parent in own), default=0)
            if latest > started:  # a parent was attempted again since
                done = (at for parent in own for at in self._done.get(parent, ()) if at <= started)
                latest = max(done, default=0)
            before = max(self._created_at, latest)
        return min(before, started)
