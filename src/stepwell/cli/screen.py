"""What people see: consoles, colours, tables. Rich is loaded here, so import this only when there is something to show."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.table import Table
from rich.text import Text

from ..model import NodeStatus
from ..model.lines import Progress
from .records import json_text
from .stored import StoredNode
from .words import count, how_far, one_line

TABLE_UP_TO = 40
"""Nodes that are still worth a table."""

_LINES_UP_TO = 60
_BAR = 20
_STYLES = {
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


def console(*, err: bool = False) -> Console:
    """A console. What is no terminal gets long lines, so that nothing is cut off in a file or a pipe."""
    stream = sys.stderr if err else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else 1_000
    return Console(stderr=err, width=width, highlight=False, emoji=False)


def coloured(status: str) -> Text:
    return Text(status, style=_STYLES.get(status, ""))


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


def node_table(nodes: Sequence[StoredNode]) -> Table:
    notes = [_note(node) for node in nodes]
    columns = ("node", "status", "attempts", "seconds", *(("note",) if any(notes) else ()))
    made = table(*columns, right=("attempts", "seconds"), wrapped=("node", "note"))
    for node, note in zip(nodes, notes, strict=True):
        seconds = node.seconds
        tries = str(len(node.attempts) or "")
        took = "" if seconds is None else f"{seconds:.2f}"
        cells = (Text(node.name), coloured(node.row.status), tries, took, note)
        made.add_row(*cells[: len(columns)])
    return made


def _note(node: StoredNode) -> Text:
    """Why a node stands as it does, as far as a line can say it."""
    if node.progress is not None and node.row.status is NodeStatus.RUNNING:
        return Text.assemble((_bar(node.progress), "blue"), how_far(node.progress))
    if node.error is None:
        return Text(node.row.reason or "", style="dim")
    return Text(one_line(str(node.error)), style="red")


def _bar(progress: Progress) -> str:
    if progress.fraction is None:
        return ""
    full = int(_BAR * progress.fraction)
    return "━" * full + "─" * (_BAR - full) + " "


def counted(counts: Mapping[NodeStatus, int]) -> Text:
    """`9,998 completed, 2 failed`"""
    parts = [
        Text.assemble(f"{counts[status]:,} ", (status.lower().replace("_", " "), _STYLES[status]))
        for status in NodeStatus
        if counts.get(status)
    ]
    return Text(", ").join(parts)


def print_json(value: Any) -> None:
    """JSON on stdout; on a terminal in colours, and not more than a screenful or two."""
    text = json_text(value)
    if not sys.stdout.isatty():
        print(text)
        return
    lines = text.splitlines()
    shown = JSONHighlighter()(Text("\n".join(lines[:_LINES_UP_TO])))
    console().print(shown, soft_wrap=True)
    if len(lines) > _LINES_UP_TO:
        console(err=True).print(
            f"[dim]... {count(len(lines) - _LINES_UP_TO, 'more line')}; send it to a file to have them all"
        )
