"""How statuses look: colours, glyphs, and names that fit."""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from ...core.model import LOOKS, NodeStatus
from ...core.model.lines import Progress
from .words import how_far

ENDLESS = 1_000
"""The width without a terminal: nothing is cut in a file or a pipe."""

_BAR = 20

_ASCII = str.maketrans(
    {
        "·": ".", "○": "o", "▶": ">", "◌": "~", "✓": "+", "✗": "x", "⊘": "/", "–": "-", "■": "#",
        "├": "|", "└": "`", "─": "-", "│": "|", "━": "=", "╸": ">", "╍": "x", "⋮": ":", "×": "x", "…": "~",
    }
)  # fmt: skip


def coloured(status: str) -> Text:
    return Text(status, style=style_of(status))


def style_of(status: str) -> str:
    return LOOKS[status].style if status in LOOKS else ""


def glyph(status: str) -> Text:
    return Text(LOOKS[status].symbol if status in LOOKS else "?", style=style_of(status))


def in_ascii(text: str) -> str:
    """The same in characters that every terminal has."""
    return text.translate(_ASCII)


def shortened(text: str, room: int) -> str:
    """A text in `room` cells; a longer one is cut in the middle, because both ends of a name matter."""
    if cell_len(text) <= room:
        return set_cell_size(text, room)
    head = set_cell_size(text, (room - 1) // 2)
    tail = set_cell_size(text[::-1], room - 1 - cell_len(head))[::-1]
    return f"{head}…{tail}"


def how_far_bar(progress: Progress) -> str:
    """A small bar and the figures, for one line."""
    if progress.fraction is None:
        return how_far(progress)
    full = int(_BAR * progress.fraction)
    return f"{'━' * full}{'─' * (_BAR - full)} {how_far(progress)}"


def counted(counts: Mapping[NodeStatus, int]) -> Text:
    """`9,998 completed, 2 failed`"""
    parts = [
        Text.assemble(f"{counts[status]:,} ", (status.lower().replace("_", " "), style_of(status)))
        for status in NodeStatus
        if counts.get(status)
    ]
    return Text(", ").join(parts)
