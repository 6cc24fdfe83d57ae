"""Consoles, colours and tables. This loads Rich, so import it only when there is something to print."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.table import Table
from rich.text import Text

from ...engine.show.styles import ENDLESS, coloured, counted, glyph, how_far_bar
from ..streams import json_text, results, say
from .words import count

__all__ = ["ENDLESS", "coloured", "console", "counted", "glyph", "how_far_bar", "print_json", "table"]

_LINES_UP_TO = 60


def console(*, err: bool = False) -> Console:
    """A console. Without a terminal, lines are not wrapped unless COLUMNS is set."""
    stream = sys.stderr if err else results()
    width = None if stream.isatty() or "COLUMNS" in os.environ else ENDLESS
    return Console(file=None if err else stream, stderr=err, width=width, highlight=False, emoji=False)


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
