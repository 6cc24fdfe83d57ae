"""What people see: consoles, colours, tables. Rich is loaded here, so import this only when there is something to show."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.table import Table
from rich.text import Text

from ...model import NodeStatus
from ...model.lines import Progress
from ..streams import json_text, results, say
from .words import count, how_far

ENDLESS = 1_000
"""Columns where there is no terminal: nothing is cut off in a file or a pipe."""

_LINES_UP_TO = 60
_BAR = 20
STYLES = {
    "PENDING": "dim",
    "READY": "cyan",
    "RUNNING": "blue",
    "WAITING": "yellow",
    "PAUSED": "yellow",
    "CANCELLING": "yellow",
    "COMPLETED": "green",
    "FAILED": "bold red",
    "UPSTREAM_FAILED": "dark_orange",
    "SKIPPED": "dim",
    "CANCELLED": "dim",
    "INTERRUPTED": "magenta",
}

_GLYPHS = {
    "PENDING": "·",
    "READY": "○",
    "RUNNING": "▶",
    "WAITING": "◌",
    "COMPLETED": "✓",
    "FAILED": "✗",
    "UPSTREAM_FAILED": "⊘",
    "SKIPPED": "–",
    "CANCELLED": "■",
    "INTERRUPTED": "!",
}
_ASCII = str.maketrans(
    {
        "·": ".", "○": "o", "▶": ">", "◌": "~", "✓": "+", "✗": "x", "⊘": "/", "–": "-", "■": "#",
        "├": "|", "└": "`", "─": "-", "│": "|", "━": "=", "╸": ">", "╍": "x", "⋮": ":", "×": "x", "…": "~",
    }
)  # fmt: skip


def console(*, err: bool = False) -> Console:
    """A console. What is no terminal gets long lines, unless COLUMNS says how long they may be."""
    stream = sys.stderr if err else results()
    width = None if stream.isatty() or "COLUMNS" in os.environ else ENDLESS
    return Console(file=None if err else stream, stderr=err, width=width, highlight=False, emoji=False)


def coloured(status: str) -> Text:
    return Text(status, style=STYLES.get(status, ""))


def glyph(status: str) -> Text:
    return Text(_GLYPHS.get(status, "?"), style=STYLES.get(status, ""))


def in_ascii(text: str) -> str:
    """What we draw with, in characters that every terminal has."""
    return text.translate(_ASCII)


def shortened(text: str, room: int) -> str:
    """A text in so many cells; a longer one is cut in the middle, because both ends of a name tell what it is."""
    if cell_len(text) <= room:
        return set_cell_size(text, room)
    head = set_cell_size(text, (room - 1) // 2)
    tail = set_cell_size(text[::-1], room - 1 - cell_len(head))[::-1]
    return f"{head}…{tail}"


def table(*columns: str, right: Iterable[str] = (), wrapped: Iterable[str] = ()) -> Table:
    """A table without a frame. Where the terminal is too narrow, the `wrapped` columns give way."""
    made = Table(box=box.SIMPLE_HEAD, header_style="dim", padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for column in columns:
        justify: Literal["right", "left"] = "right" if column in right else "left"
        gives_way = column in wrapped
        made.add_column(
            column, justify=justify, overflow="fold", no_wrap=not gives_way, min_width=8 if gives_way else None
        )
    return made


def how_far_bar(progress: Progress) -> str:
    """A small bar and the figures, for one line."""
    if progress.fraction is None:
        return how_far(progress)
    full = int(_BAR * progress.fraction)
    return f"{'━' * full}{'─' * (_BAR - full)} {how_far(progress)}"


def counted(counts: Mapping[NodeStatus, int]) -> Text:
    """`9,998 completed, 2 failed`"""
    parts = [
        Text.assemble(f"{counts[status]:,} ", (status.lower().replace("_", " "), STYLES[status]))
        for status in NodeStatus
        if counts.get(status)
    ]
    return Text(", ").join(parts)


def print_json(value: Any) -> None:
    """JSON on stdout; on a terminal in colours, and not more than a screenful or two."""
    text = json_text(value)
    if not results().isatty():
        say(text)
        return
    lines = text.splitlines()
    shown = JSONHighlighter()(Text("\n".join(lines[:_LINES_UP_TO])))
    console().print(shown, soft_wrap=True)
    if len(lines) > _LINES_UP_TO:
        console(err=True).print(
            f"[dim]... {count(len(lines) - _LINES_UP_TO, 'more line')}; send it to a file to have them all"
        )
