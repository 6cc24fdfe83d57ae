"""Outputs that no longer count, for the attempts that were given them.

What completed below a node is superseded with it. But if a heal has separated the two, only the node runs again, and what the
other was given is no longer the output of the run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...graph import Graph
from ...kernel.folding import ancestors
from ...model import AttemptRow, AttemptStatus, JournalRow

Given = tuple[tuple[int, bytes], ...]
"""Outputs by index."""


class _Span(NamedTuple):
    since: int
    until: int
    output: bytes


class Superseded:
    """The superseded outputs of a run, each from the `seq` that added it to the `seq` that superseded it."""

    def __init__(self, attempts: Iterable[AttemptRow], journal: Iterable[JournalRow]) -> None:
        self._spans: dict[int, list[_Span]] = {}
        outputs = {
            (row.index, row.number): row.output
            for row in attempts
            if row.status is AttemptStatus.SUPERSEDED and row.output is not None
        }
        if outputs:
            self._read(outputs, journal)

    def _read(self, outputs: dict[tuple[int, int], bytes], journal: Iterable[JournalRow]) -> None:
        counted: dict[int, tuple[int, int]] = {}
        for entry in journal:
            if entry.index is None:
                continue
            if entry.kind in ("completed", "shared"):
                counted[entry.index] = entry.seq, entry.attempt or 1
            elif entry.kind in ("woken", "rewrote") and entry.index in counted:
                since, number = counted.pop(entry.index)
                output = outputs.get((entry.index, number))
                if output is not None:
                    self._spans.setdefault(entry.index, []).append(_Span(since, entry.seq, output))

    def above(self, graph: Graph, index: int, seq: int) -> Given:
        """The outputs above a node that counted at `seq` and no longer do."""
        then = [
            (place, span.output)
            for place, spans in sorted(self._spans.items())
            for span in spans
            if span.since <= seq < span.until
        ]
        if not then:
            return ()
        above = set(ancestors(graph, index))
        return tuple((place, output) for place, output in then if place in above)
