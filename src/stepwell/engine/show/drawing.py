"""Draws on a terminal: facts, and the nodes of a run as a tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...base.clock import SECOND
from ...base.words import count, duration, error_line
from ...core.model import AttemptStatus, NodeStatus
from ..runs.overview import Overview
from ..runs.views import NodeView
from .styles import ENDLESS, coloured, glyph, how_far_bar, in_ascii, shortened
from .tree import Gap, Row

_LABEL = 8
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


class Screen:
    """A console that draws only what its encoding has."""

    def __init__(self, to: Console) -> None:
        self._to = to
        self._plain = not to.encoding.lower().startswith("utf")
        self.width = to.width
        self.endless = to.width >= ENDLESS

    def print(self, line: Text | None = None) -> None:
        """Print one line without wrapping it; the caller cuts it."""
        if line is None:
            self._to.print()
            return
        line.rstrip()
        line.plain = _harmless(line.plain)
        if self._plain:
            line.plain = in_ascii(line.plain)
        self._to.print(line, soft_wrap=True)

    def facts(self, facts: Iterable[tuple[str, Text | str]]) -> None:
        if self.endless:
            for name, value in facts:
                self.print(Text(f"{name:<{_LABEL}}  {value}"))
            return
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", min_width=_LABEL)
        grid.add_column(overflow="fold")
        for name, value in facts:
            grid.add_row(name, Text(_harmless(value)) if isinstance(value, str) else value)
        if grid.row_count:
            self._to.print(grid)


def _harmless(text: str) -> str:
    """Without control characters, which a terminal would obey: names and messages may hold anything."""
    return _CONTROLS.sub("\ufffd", text)


def print_tree(screen: Screen, shown: Sequence[Row | Gap], nodes: Overview, details: Mapping[int, NodeView]) -> None:
    """Rows in columns: place in the tree, status, time, notes. `details`: by place, more of nodes with a row of their own."""
    rows = [row for row in shown if isinstance(row, Row)]
    deepest = max(12, screen.width // 3)
    named = [cell_len(_lead(row.lead, deepest)) + 2 + cell_len(row.name) for row in rows]
    widest = min(max(named, default=0), max(20, screen.width // 2))
    numbers = (f"{len(row.places):,} × " if len(row.places) > 1 else "" for row in rows)
    states = [Text.assemble(number, coloured(row.status)) for number, row in zip(numbers, rows, strict=True)]
    state_width = max(map(cell_len, (state.plain for state in states)), default=0)
    times = [_took(row, nodes) for row in rows]
    time_width = max(map(len, times), default=0)
    columns = dict(zip(map(id, rows), zip(states, times, strict=True), strict=True))
    for row in shown:
        if isinstance(row, Gap):
            screen.print(Text(f"{_lead(row.lead, deepest)}⋮ {_more(row)}", style="dim"))
            continue
        state, took = columns[id(row)]
        state.pad_right(state_width - cell_len(state.plain))
        lead = _lead(row.lead, deepest)
        name = shortened(row.name, widest - len(lead) - 2)
        line = Text.assemble((lead, "dim"), glyph(row.status), f" {name}  ", state, "  ", f"{took:>{time_width}}")
        detail = details.get(row.places[0]) if len(row.places) == 1 else None
        note = Text(", ".join(_notes(row, nodes, detail)), style="dim")
        error = None if detail is None or detail.error is None else error_line(*detail.error[:2])
        _print_with_notes(screen, line, note, f"{_lead(row.rail, deepest)}  ", error)


def _print_with_notes(screen: Screen, line: Text, note: Text, rail: str, error: str | None) -> None:
    """Notes go behind a node if there is room, else below it; errors always below."""
    beside = line.cell_len + 2 + note.cell_len <= screen.width
    screen.print(Text.assemble(line, "  ", note) if beside and note else line)
    below = [] if beside or not note else [note]
    below += [] if error is None else [Text(error, style="red")]
    for each in below:
        told = Text.assemble((rail, "dim"), each)
        told.truncate(screen.width, overflow="ellipsis")
        screen.print(told)


def _lead(lead: str, deepest: int) -> str:
    """Very deep branches are not indented any further."""
    return lead if len(lead) <= deepest else f"… {lead[-(deepest - 2) :]}"


def _took(row: Row, nodes: Overview) -> str:
    """The total time of a node's attempts; for several nodes, the shortest and the longest."""
    times = [nodes.spent[place] for place in row.places if nodes.tries[place]]
    if not times:
        return ""
    shortest, longest = duration(min(times) / SECOND), duration(max(times) / SECOND)
    return shortest if shortest == longest else f"{shortest} .. {longest}"


def _notes(row: Row, nodes: Overview, detail: NodeView | None) -> list[str]:
    most = max(nodes.tries[place] for place in row.places)
    notes = []
    child = None if detail is None else detail.child
    if detail is not None and child is not None:
        notes.append(f"run {child}")
        most -= sum(attempt.status is AttemptStatus.PARKED for attempt in detail.attempts)
    if most > 1:
        notes.append(f"{most} attempts" if len(row.places) == 1 else f"up to {most} attempts")
    if detail is not None:
        due = detail.row.due_at
        if detail.status is NodeStatus.WAITING and due is not None:
            notes.append(f"again in {duration(max(0, due - nodes.now) / SECOND)}")
        if detail.progress is not None and detail.status is NodeStatus.RUNNING:
            notes.append(how_far_bar(detail.progress))
    reason, *others = {nodes.reasons[place] for place in row.places}
    if reason and not others and not (detail is not None and detail.error):
        why, separator, named = reason.partition(": ")  # reasons name nodes by id; people know them by name
        notes.append(f"{why}{separator}{nodes.outline.name(named)}")
    return [*notes, row.note] if row.note else notes


def _more(gap: Gap) -> str:
    message = ", ".join(f"{gap.counts[status]:,} {status}" for status in NodeStatus if gap.counts[status])
    return f"{count(gap.counts.total(), 'more node')}: {message}"
