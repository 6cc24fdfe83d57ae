"""How a run ended, and its result."""

from __future__ import annotations

from rich.text import Text

from ...engine.runs.stored import StoredRun
from ...engine.show.drawing import Screen, print_tree
from ...engine.show.run import PAGE, details_of
from ...engine.show.styles import glyph
from ...engine.show.tree import row_of, tree
from ..streams import results
from .screen import coloured, console, counted, print_json
from .words import duration


def print_end(run: StoredRun) -> None:
    """The nodes as a tree, or of a large run those that failed, and how many ended in which way."""
    to = console(err=True)
    nodes = run.overview(PAGE)
    places = range(len(nodes))
    rows = tree(nodes, fold=False) if run.row.nodes <= PAGE else [row_of(nodes, (place,)) for place in places]
    to.print()
    if rows:
        print_tree(Screen(to), rows, nodes, details_of(run, nodes, rows))
        to.print()
    status = run.row.status
    taken = "" if run.seconds is None else f" in {duration(run.seconds)}"
    to.print(Text.assemble(glyph(status), " ", coloured(status), f"{taken}: ", counted(run.counts())))


def print_result(run: StoredRun) -> None:
    """The result as JSON on stdout, alone. A terminal is spared the result of a run that has none."""
    result = run.result()
    nothing = result is None or (isinstance(result, dict) and all(value is None for value in result.values()))
    if not (nothing and results().isatty()):
        print_json(result)
