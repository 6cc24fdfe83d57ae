"""A progress bar on a terminal, where output of bodies appears above it."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Self

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ...engine.bodies.capture import refresh_capture
from .progress import NAMES_UP_TO, Display, Tally, elapsed
from .screen import console
from .words import how_far


class Bar(Display):
    def __init__(self) -> None:
        self._tally: Tally | None = None
        self._began = time.monotonic()
        self._spinner = Spinner("dots", style="blue")
        self._console = console(err=True)
        self._live = Live(
            console=self._console,
            refresh_per_second=10,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
            get_renderable=self._render,
        )

    def __enter__(self) -> Self:
        self._live.start()
        refresh_capture()  # so that output of bodies is recorded before the bar redraws it
        return self

    def __exit__(self, *raised: object) -> None:
        self._live.stop()

    def update(self, tally: Tally) -> None:
        self._tally = tally

    def _render(self) -> RenderableType:
        tally = self._tally
        if tally is None:
            return self._spinner
        reached, taken = f"{tally.done:,}/{tally.total:,}", elapsed(time.monotonic() - self._began)
        columns = self._console.width
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            self._spinner,
            ProgressBar(
                total=max(1, tally.total),
                completed=tally.done,
                width=max(4, min(60, columns // 2, columns - len(reached) - len(taken) - 5)),
                complete_style="red" if tally.failed else "green",
            ),
            Text(reached, style="bold"),
            Text(taken, style="dim"),
        )
        counts = Text("  ").join(
            Text(f"{number:,} {word}", style=style if number else "dim")
            for number, word, style in (
                (tally.done, "done", "green"),
                (tally.running, "running", "blue"),
                (tally.waiting, "waiting", "yellow"),
                (tally.failed, "failed", "bold red"),
            )
            if number or word == "done"
        )
        if tally.paused:
            counts += Text("  paused", style="bold yellow")
        names = _fitting(tally.at_work, columns - 2)
        bars = [_node_bars(tally)] if tally.bars else []
        return Group(bar, _line(Text("  ") + counts), *bars, _line(Text(f"  {names}", style="dim")))


def _node_bars(tally: Tally) -> Table:
    """A small bar for every node that reports progress; without a total it pulses."""
    grid = Table.grid(padding=(0, 1))
    for name, progress in tally.bars:
        share = progress.fraction
        grid.add_row(
            Text(f"  {name}", style="dim", no_wrap=True, overflow="ellipsis"),
            ProgressBar(total=1.0, completed=share or 0.0, pulse=share is None, width=20, complete_style="blue"),
            Text(how_far(progress), style="dim", no_wrap=True, overflow="ellipsis"),
        )
    return grid


def _line(text: Text) -> Text:
    """Keeps a text on one line, or the bar would jump."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _fitting(names: Sequence[str], room: int) -> str:
    """As many whole names as there is room for.

    >>> _fitting(["validate", "check_fraud", "check_inventory"], 30)
    'validate, check_fraud, …'
    """
    for number in range(min(len(names), NAMES_UP_TO), 1, -1):
        text = ", ".join(names[:number]) + (", …" if number < len(names) else "")
        if cell_len(text) <= room:
            return text
    return ", ".join(names[:1]) + (", …" if len(names) > 1 else "")
