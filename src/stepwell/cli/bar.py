"""Progress on a terminal: a bar that stays in its place. What bodies print appears above it."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ..runner.capture import prick_ears
from .progress import Display, Tally, elapsed
from .screen import console
from .words import how_far


class Bar:
    def __init__(self) -> None:
        self._tally: Tally | None = None
        self._began = time.monotonic()
        self._spinner = Spinner("dots", style="blue")
        self._live = Live(
            console=console(err=True),
            refresh_per_second=10,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
            get_renderable=self._render,
        )

    def __enter__(self) -> Display:
        self._live.start()
        prick_ears()  # what bodies print is recorded as they print it, not as it is drawn above the bar
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def update(self, tally: Tally) -> None:
        self._tally = tally

    def _render(self) -> RenderableType:
        tally = self._tally
        if tally is None:
            return self._spinner
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            self._spinner,
            ProgressBar(
                total=max(1, tally.total),
                completed=tally.done,
                width=40,
                complete_style="red" if tally.failed else "green",
            ),
            Text(f"{tally.done:,}/{tally.total:,}", style="bold"),
            Text(elapsed(time.monotonic() - self._began), style="dim"),
        )
        counts = Text("  ").join(
            [
                _amount(tally.done, "done", "green"),
                _amount(tally.running, "running", "blue"),
                _amount(tally.waiting, "waiting", "yellow"),
                _amount(tally.failed, "failed", "bold red"),
            ]
        )
        names = Text("  " + ", ".join(tally.at_work), style="dim", no_wrap=True, overflow="ellipsis")
        return Group(bar, Text("  ") + counts, *([_node_bars(tally)] if tally.bars else []), names)


def _node_bars(tally: Tally) -> Table:
    """A small bar for every node that says how far it is; without a total it moves to and fro."""
    grid = Table.grid(padding=(0, 1))
    for name, progress in tally.bars:
        share = progress.fraction
        grid.add_row(
            Text(f"  {name}", style="dim", no_wrap=True, overflow="ellipsis"),
            ProgressBar(total=1.0, completed=share or 0.0, pulse=share is None, width=20, complete_style="blue"),
            Text(how_far(progress), style="dim", no_wrap=True, overflow="ellipsis"),
        )
    return grid


def _amount(number: int, word: str, style: str) -> Text:
    return Text(f"{number:,} {word}", style=style if number else "dim")
