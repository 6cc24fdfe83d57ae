"""A timeline of a run: a line for each node, as wide as the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

from ...clock import SECOND
from ...model import AttemptStatus
from ...words import duration
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


def timeline(rows: Sequence[Row], now: int, width: int, *, whole: bool) -> Timeline | None:
    """The attempts over time; None if there is nothing to compare."""
    active = [row for row in rows if any(node.attempts for node in row.nodes)]
    if len(active) < 2:
        return None
    spans = [attempt.row for row in active for node in row.nodes for attempt in node.attempts]
    begin = min(attempt.started_at for attempt in spans)
    total = max(attempt.ended_at or now for attempt in spans) - begin
    if total <= 0:
        return None
    chosen = active
    if not whole and len(active) > ROWS_UP_TO:
        longest = sorted(range(len(active)), key=lambda place: (-_length(active[place], now), place))
        chosen = sorted((active[place] for place in longest[:ROWS_UP_TO]), key=_begin)
    room = min(width // NAME_SHARE, max(cell_len(row.name) for row in chosen))
    cells = width - room - 2
    bars = [TimeSpan(shortened(row.name, room), _pieces(row, begin, total, now, cells)) for row in chosen]
    return Timeline(bars, " " * (room + 2) + _axis(total / SECOND, cells), len(active) - len(chosen))


def _begin(row: Row) -> int:
    return min(attempt.row.started_at for node in row.nodes for attempt in node.attempts)


def _length(row: Row, now: int) -> int:
    return max(attempt.row.ended_at or now for node in row.nodes for attempt in node.attempts) - _begin(row)


def _pieces(row: Row, begin: int, total: int, now: int, cells: int) -> list[tuple[str, str]]:
    """Bad attempts are drawn first, so that a cell which stands for several attempts shows the outcome."""
    line = [""] * cells
    attempts = sorted(
        (attempt.row for node in row.nodes for attempt in node.attempts),
        key=lambda attempt: (attempt.status in _GOOD, attempt.started_at),
    )
    for attempt in attempts:
        first = min(cells - 1, (attempt.started_at - begin) * cells // total)
        last = max(first + 1, min(cells, ((attempt.ended_at or now) - begin) * cells // total))
        kind = "running" if attempt.status is AttemptStatus.RUNNING else "good" if attempt.status in _GOOD else "bad"
        line[first:last] = [kind] * (last - first)
    if len(row.nodes) == 1:
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
