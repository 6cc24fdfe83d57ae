"""All nodes of a run at once, as people see them: columns, because a run may have 100,000 nodes."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import TypeVar

from ...core.graph import Outline
from ...core.model import AttemptColumns, NodeColumns, NodeStatus
from .views import NodeView

Columns = TypeVar("Columns", NodeColumns, AttemptColumns)


class Overview:
    """Nodes in the order people read: by level, then as declared. Each list has a value for every node, by its place.

    Nodes that `nodes` lacks are left out: not all are wanted, or the run is being loaded or deleted.
    """

    def __init__(self, outline: Outline, nodes: NodeColumns, attempts: AttemptColumns, now: int) -> None:
        """`now`: until when attempts that still run have run."""
        self.outline, self.now = outline, now
        self.removed: list[tuple[str, NodeStatus]] = []
        """Names and statuses of nodes that only earlier versions of the graph had."""
        if outline.removed:
            gone = [(index, nodes.statuses[row]) for row, index in enumerate(nodes.indexes) if index in outline.removed]
            self.removed = [(outline.former(index), status) for index, status in gone]
            nodes, attempts = _without(nodes, outline.removed), _without(attempts, outline.removed)
        self._add_nodes(nodes)
        self._add_attempts(attempts)

    def _add_nodes(self, nodes: NodeColumns) -> None:
        outline, size = self.outline, len(self.outline)
        rows = array("q", [-1]) * size  # arrays, since lists of numbers in another order are slow to walk
        for row, declared in enumerate(map(outline.places.__getitem__, nodes.ids)):
            rows[declared] = row
        known = range(size) if len(nodes.ids) == size else [place for place, row in enumerate(rows) if row >= 0]
        order = sorted(known, key=outline.levels.__getitem__)
        rows = array("q", map(rows.__getitem__, order))
        self.indexes = array("q", map(nodes.indexes.__getitem__, rows))
        self.statuses = [*map(nodes.statuses.__getitem__, rows)]
        self.reasons = [*map(nodes.reasons.__getitem__, rows)]
        self.names = [*map(outline.names.__getitem__, order)]
        self.jobs = [*map(outline.jobs.__getitem__, order)]
        places = _inverse(order, size)
        lists = [tuple(map(places.__getitem__, own)) for own in outline.lists]
        if len(order) < size:
            lists = [tuple(place for place in own if place >= 0) for own in lists]
        self.parents = [lists[outline.list_of[declared]] for declared in order]
        """Places; members of a fan-out share one tuple."""

    def _add_attempts(self, attempts: AttemptColumns) -> None:
        self.attempt_statuses = attempts.statuses
        """Of all attempts; `attempts_of` finds those of nodes."""
        self.attempts_began = attempts.started
        self.attempts_ended = array("q", [self.now if end is None else end for end in attempts.ended])
        self._first, self.tries, self.began, self.ended, self.spent = (array("q", [0]) * len(self) for _ in range(5))
        """By place: the first attempt, how many, when the first began and the last ended, how long they took together."""
        first, tries, began, ended, spent = self._first, self.tries, self.began, self.ended, self.spent
        places = _inverse(self.indexes, max((max(self.indexes, default=-1), *attempts.indexes[-1:])) + 1)
        rows = zip(attempts.indexes, self.attempts_began, self.attempts_ended, strict=True)
        for row, (index, start, end) in enumerate(rows):
            place = places[index]
            if place < 0:  # of a node that came while the columns were read
                continue
            if not tries[place]:
                first[place], began[place] = row, start
            tries[place] += 1
            spent[place] += end - start
            ended[place] = max(ended[place], end)

    def __len__(self) -> int:
        return len(self.indexes)

    def attempts_of(self, places: Iterable[int]) -> list[int]:
        """Where the attempts of these nodes are in the columns of attempts."""
        first, tries = self._first, self.tries
        return [row for place in places for row in range(first[place], first[place] + tries[place])]


def columns_of(views: Sequence[NodeView]) -> tuple[NodeColumns, AttemptColumns]:
    """The columns of nodes that were read as rows."""
    nodes = sorted((row.index, row.id, row.status, row.reason) for row in (view.row for view in views))
    rows = (attempt.row for view in views for attempt in view.attempts)
    attempts = sorted((row.index, row.number, row.status, row.started_at, row.ended_at) for row in rows)
    of_nodes = NodeColumns._make((0, *zip(*nodes, strict=True), None)) if nodes else NodeColumns()
    of_attempts = AttemptColumns(0, *zip(*attempts, strict=True)) if attempts else AttemptColumns()
    return of_nodes, of_attempts


def _without(columns: Columns, removed: frozenset[int]) -> Columns:
    kept = [index not in removed for index in columns.indexes]
    fields = {name: tuple(compress(getattr(columns, name), kept)) for name in columns._fields[1:-1]}
    return columns._replace(**fields)  # type: ignore[arg-type]


def _inverse(numbers: Iterable[int], size: int) -> array[int]:
    """By number: its place among the numbers; -1 if it is not there."""
    places = array("q", [-1]) * size
    for place, number in enumerate(numbers):
        places[number] = place
    return places
