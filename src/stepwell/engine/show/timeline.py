"""A timeline of a run: a line for each node, as wide as the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

from ...base.clock import SECOND
from ...base.words import duration
from ...core.model import AttemptStatus
from ..runs.overview import Overview
from .styles import shortened
from .tree import Row

ROWS_UP_TO = 20
"""How many of the longest rows are shown of a large run."""

NAME_SHARE = 3
"""Names take at most one part in this many of the width."""

_GOOD = (AttemptStatus.COMPLETED, AttemptStatus.SUPERSEDED)
_LINES = {"good": "━", "running": "╸", "bad": "╍", "between": "·"}


class TimeSpan(NamedTuple):
    """One row: pieces of a line, each good, running, bad, between or empty."""

    name: str
    pieces: list[tuple[str, str]]


class Timeline(NamedTuple):
    bars: list[TimeSpan]
    axis: str
    left_out: int


def timeline(rows: Sequence[Row], nodes: Overview, width: int, *, whole: bool) -> Timeline | None:
    """The attempts over time; None if there is nothing to compare."""
    spans = [(row, span) for row in rows if (span := _span(row, nodes)) is not None]
    if len(spans) < 2:
        return None
    begin = min(first for _, (first, _) in spans)
    total = max(last for _, (_, last) in spans) - begin
    if total <= 0:
        return None
    chosen = spans
    if not whole and len(spans) > ROWS_UP_TO:
        longest = sorted(range(len(spans)), key=lambda place: (spans[place][1][0] - spans[place][1][1], place))
        chosen = sorted((spans[place] for place in longest[:ROWS_UP_TO]), key=lambda each: each[1][0])
    room = min(width // NAME_SHARE, max(cell_len(row.name) for row, _ in chosen))
    cells = width - room - 2
    bars = [TimeSpan(shortened(row.name, room), _pieces(row, nodes, begin, total, cells)) for row, _ in chosen]
    return Timeline(bars, " " * (room + 2) + _axis(total / SECOND, cells), len(spans) - len(chosen))


def _span(row: Row, nodes: Overview) -> tuple[int, int] | None:
    """From when to when its nodes had attempts."""
    places = [place for place in row.places if nodes.tries[place]]
    if not places:
        return None
    return min(map(nodes.began.__getitem__, places)), max(map(nodes.ended.__getitem__, places))


def _pieces(row: Row, nodes: Overview, begin: int, total: int, cells: int) -> list[tuple[str, str]]:
    """Bad attempts are drawn first, so that a cell which stands for several attempts shows the outcome."""
    line = [""] * cells
    good = set()  # equal ones, of which a large row has many, are drawn once
    others = []
    statuses, began, ended = nodes.attempt_statuses, nodes.attempts_began, nodes.attempts_ended
    for attempt in nodes.attempts_of(row.places):
        status = statuses[attempt]
        span = (began[attempt] - begin) * cells // total, (ended[attempt] - begin) * cells // total
        if status in _GOOD:
            good.add(span)
        else:
            others.append((began[attempt], span, "running" if status is AttemptStatus.RUNNING else "bad"))
    drawn_first = [(span, kind) for _, span, kind in sorted(others)]
    for (start, end), kind in [*drawn_first, *((span, "good") for span in good)]:
        first = min(cells - 1, start)
        last = max(first + 1, min(cells, end))
        line[first:last] = [kind] * (last - first)
    if len(row.places) == 1:
        drawn = [place for place, kind in enumerate(line) if kind]
        line[drawn[0] : drawn[-1]] = [kind or "between" for kind in line[drawn[0] : drawn[-1]]]
    pieces: list[tuple[str, str]] = []
    for kind in line:
        if pieces and pieces[-1][1] == kind:
            pieces[-1] = (pieces[-1][0] + _LINES.get(kind, " "), kind)
        else:
            pieces.append((_LINES.get(kind, " "), kind))
    return pieces


def _axis(seconds: float, cells: int) -> str:
    """The start, the middle if there is room, and the end."""
    end, middle = duration(seconds), duration(seconds / 2)
    if cells < len(end) + len(middle) + 12:
        return f"0 s{end:>{max(0, cells - 3)}}"
    left = cells // 2 - 3
    return f"0 s{middle:>{left - 3 + len(middle)}}{end:>{cells - left - len(middle)}}"
