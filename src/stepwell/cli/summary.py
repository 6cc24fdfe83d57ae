"""How a run ended, and what it is for."""

from __future__ import annotations

import sys

from rich.text import Text

from ..model import ListNodes, NodeStatus, RunRow, RunStatus
from ..runner import Engine
from ..runner.run import NodeView
from ..store import reader
from .records import in_order, result_of, seconds_of
from .screen import TABLE_UP_TO, coloured, console, counted, node_table, print_json
from .words import duration

_MARKS = {
    RunStatus.COMPLETED: ("✓", "bold green"),
    RunStatus.FAILED: ("✗", "bold red"),
    RunStatus.CANCELLED: ("■", "yellow"),
}
_TELLING = (NodeStatus.FAILED, NodeStatus.INTERRUPTED, NodeStatus.RUNNING, NodeStatus.WAITING)


def print_end(engine: Engine, row: RunRow) -> None:
    """The status, and the nodes in a table, or counted when there are many."""
    to = console(err=True)
    nodes = telling_nodes(engine, row)
    to.print()
    if nodes:
        to.print(node_table(nodes))
        to.print()
    mark, style = _MARKS.get(row.status, ("•", ""))
    counts = counted(reader.count_nodes(engine.store, row.id))
    to.print(Text(f"{mark} ", style=style) + coloured(row.status) + Text(f" in {duration(seconds_of(row))}: ") + counts)


def print_result(engine: Engine, row: RunRow) -> None:
    """The result as JSON on stdout, alone. A terminal is spared the result of a run that has none."""
    result = result_of(engine, row)
    nothing = result is None or (isinstance(result, dict) and all(value is None for value in result.values()))
    if not (nothing and sys.stdout.isatty()):
        print_json(result)


def telling_nodes(engine: Engine, row: RunRow) -> list[NodeView]:
    """All nodes of a small run; of a large one those that failed or are at work."""
    run = engine.get(row.id)
    if row.nodes <= TABLE_UP_TO:
        return in_order(engine, row, run.nodes())
    (rows,) = engine.store.read([ListNodes(row.id, limit=TABLE_UP_TO, statuses=_TELLING)])
    return in_order(engine, row, [run.node(node.id) for node in rows])
