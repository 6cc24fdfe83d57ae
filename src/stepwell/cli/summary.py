"""How a run ended, and what it was for."""

from __future__ import annotations

import sys

from rich.text import Text

from ..model import RunStatus
from .screen import TABLE_UP_TO, coloured, console, counted, node_table, print_json
from .stored import StoredRun
from .words import duration

_MARKS = {
    RunStatus.COMPLETED: ("✓", "bold green"),
    RunStatus.FAILED: ("✗", "bold red"),
    RunStatus.CANCELLED: ("■", "yellow"),
}


def print_end(run: StoredRun) -> None:
    """The nodes in a table, if it is not too long, and how many ended in which way."""
    to = console(err=True)
    nodes = run.telling_nodes(TABLE_UP_TO)
    to.print()
    if nodes:
        to.print(node_table(nodes))
        to.print()
    status = run.row.status
    mark, style = _MARKS.get(status, ("•", ""))  # somebody may have retried it this very moment
    taken = f" in {duration(run.seconds)}: "
    to.print(Text.assemble((f"{mark} ", style), coloured(status), taken, counted(run.counts())))


def print_result(run: StoredRun) -> None:
    """The result as JSON on stdout, alone. A terminal is spared the result of a run that has none."""
    result = run.result()
    nothing = result is None or (isinstance(result, dict) and all(value is None for value in result.values()))
    if not (nothing and sys.stdout.isatty()):
        print_json(result)
