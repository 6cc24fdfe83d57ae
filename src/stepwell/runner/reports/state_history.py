"""Follows the state of a run through its journal."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any

from ...codec import encode_checked
from ...define import StateType
from ...errors import StateError
from ...graph import Graph
from ...ids import RunId
from ...kernel.audit import Folded
from ...kernel.folding import FoldStep, start
from ...model import AttemptRow, AttemptStatus, JournalRow
from ..bodies.visible_state import fold_steps, step_of

AHEAD = 256
"""Deltas that are folded again for each new one. Nodes complete roughly in order, so a new one seldom belongs far back."""


class StateHistory:
    """The state so far as canonical JSON; only what an entry touches is folded again.

    Deltas are folded in the order of the graph, not of completion. So the state before the last few is kept, and the rest is
    folded onto it.
    """

    def __init__(
        self, run_id: RunId, graph: Graph, state: StateType | None, attempts: Iterable[AttemptRow], folded: Folded
    ) -> None:
        self._run_id = run_id
        self._graph = graph
        self._state = state
        self._outputs = {(row.index, row.number): row.output for row in attempts if row.output is not None}
        self._places: list[tuple[int, int]] = []
        self._steps: list[FoldStep] = []
        self._forget_base()
        self._text: bytes | None = None
        for (index, number), status in folded.attempts.items():
            if status is AttemptStatus.COMPLETED:
                self._add(index, number)

    def follow(self, entry: JournalRow, folded: Folded) -> None:
        """A node has at most one delta, that of its completed attempt; a node that is to run again has none."""
        if entry.index is None or entry.kind == "claimed":
            return
        self._drop(entry.index)
        number = entry.attempt or 1
        if folded.attempts.get((entry.index, number)) is AttemptStatus.COMPLETED:
            self._add(entry.index, number)

    def text(self) -> bytes:
        if self._text is None:
            self._text = encode_checked(None if self._state is None else self._values(self._state))
        return self._text

    def _add(self, index: int, number: int) -> None:
        output = self._outputs.get((index, number))
        step = None if output is None or self._state is None else step_of(self._graph, index, output)
        if step is None or index in self._graph.removed:
            return
        place = self._graph.ranks[index], index
        at = bisect_left(self._places, place)
        self._places.insert(at, place)
        self._steps.insert(at, step)
        self._changed(at)

    def _drop(self, index: int) -> None:
        place = self._graph.ranks[index], index
        at = bisect_left(self._places, place)
        if at < len(self._places) and self._places[at] == place:
            del self._places[at], self._steps[at]
            self._changed(at)

    def _changed(self, at: int) -> None:
        self._text = None
        if at < self._folded:
            self._forget_base()

    def _forget_base(self) -> None:
        self._base: Mapping[str, Any] = {} if self._state is None else start(self._state.channels)
        self._folded = 0

    def _values(self, state: StateType) -> Mapping[str, Any]:
        try:
            if len(self._steps) - self._folded > 2 * AHEAD:
                until = len(self._steps) - AHEAD
                self._base = fold_steps(self._run_id, state, self._base, self._steps[self._folded : until])
                self._folded = until
            return fold_steps(self._run_id, state, self._base, self._steps[self._folded :])
        except StateError:  # a field may be invalid for a while: only the whole fold counts
            self._forget_base()
            return fold_steps(self._run_id, state, self._base, self._steps)
