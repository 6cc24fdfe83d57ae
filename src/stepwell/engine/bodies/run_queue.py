"""Runs in the order in which their nodes are claimed: by priority, then the one known longest."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice

from ...base.ids import RunId

QueueKey = tuple[int, int, RunId]
"""Minus the priority, a number that grows with each new run, and the id of the run."""


class RunQueue:
    """A set of runs, kept in order."""

    __slots__ = ("_order", "_places")

    def __init__(self) -> None:
        self._places: dict[RunId, QueueKey] = {}
        self._order: list[QueueKey] = []

    def add(self, place: QueueKey) -> None:
        if place[2] not in self._places:
            self._places[place[2]] = place
            insort(self._order, place)

    def discard(self, run: RunId) -> None:
        place = self._places.pop(run, None)
        if place is not None:
            del self._order[bisect_left(self._order, place)]

    def __bool__(self) -> bool:
        return bool(self._order)

    def __contains__(self, run: RunId) -> bool:
        return run in self._places

    def __iter__(self) -> Iterator[RunId]:
        return (run for _, _, run in self._order)

    def first(self, count: int) -> tuple[RunId, ...]:
        order = self._order
        return (order[0][2],) if len(order) == 1 else tuple([run for _, _, run in order[:count]])


def first_of(queues: Sequence[RunQueue], count: int) -> tuple[RunId, ...]:
    """The first `count` runs of several queues together, each once."""
    if len(queues) == 1:
        return queues[0].first(count)
    merged = dict.fromkeys(run for _, _, run in merge(*(queue._order for queue in queues)))
    return tuple(islice(merged, count))
