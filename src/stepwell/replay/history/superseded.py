"""Outputs that counted once and do not any more, for those attempts that stood on them.

What completed below a node is superseded with it. But a heal may have parted the two: then only the node is asked for again,
and what the other was given is no longer what the run has there.
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
    """The superseded outputs of a run, each from the `seq` it was there to the `seq` that took it away."""

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
        """What counted at `seq` above a node, as the graph was then, and does not any more."""
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
