"""The commands that only look: ls, show, graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import typer

from ..codec import text
from ..errors import InputError
from ..graph import Graph
from ..graph.draw import to_dot, to_mermaid
from ..model import ListRuns, RunRow, RunStatus
from ..runner import Engine
from ..store import reader
from .inputs import graph_of_target
from .opening import Place, find_run
from .records import error_of, full_record, graph_record, json_text, run_record, seconds_of
from .words import ago, count, duration, local

PAGE = 1_000
SHORT_ID = 12
"""Hex digits of a run id that stand for its time; two runs of one millisecond are shown with more."""


def ls(place: Place, *, workflow: str | None, status: str | None, limit: int, as_json: bool) -> None:
    statuses = () if status is None else (_status(status),)
    with place.starter() as engine:
        rows = _newest(engine, workflow, statuses, limit)
        if as_json:
            print(json_text([run_record(row) for row in rows]))
        elif rows:
            _print_runs(rows, engine.store.now())
        else:
            chosen = " like that" if workflow or status else ""
            typer.echo(f"no runs{chosen} in {place.url}", err=True)


def show(place: Place, text: str, *, tracebacks: bool, as_json: bool) -> None:
    with place.starter() as engine:
        row = find_run(engine, text)
        if as_json:
            print(json_text(full_record(engine, row, tracebacks=tracebacks)))
        else:
            _print_run(engine, row, tracebacks=tracebacks)


def graph(place: Place, what: str, pairs: Sequence[str], form: Literal["mermaid", "dot", "json"]) -> None:
    workflow, found, statuses = _graph(place, what, pairs)
    if form == "json":
        print(json_text(graph_record(workflow, found, statuses)))
    else:
        print((to_dot if form == "dot" else to_mermaid)(found, statuses), end="")


def _graph(place: Place, what: str, pairs: Sequence[str]) -> tuple[str, Graph, dict[str, str] | None]:
    """A run id may have a colon in it, as a target has; where there is such a run, it is meant."""
    with place.starter() as engine:
        if ":" not in what or reader.get_run(engine.store, what) is not None:
            row = find_run(engine, what)
            nodes = reader.all_nodes(engine.store, row.id)
            return row.workflow, engine.graph_of(row), {node.id: node.status for node in nodes}
    return *graph_of_target(what, pairs), None


def _status(given: str) -> RunStatus:
    try:
        return RunStatus(given.upper())
    except ValueError:
        raise InputError(f"--status {given}: there are {', '.join(RunStatus)}") from None


def _newest(engine: Engine, workflow: str | None, statuses: tuple[RunStatus, ...], limit: int) -> list[RunRow]:
    rows: list[RunRow] = []
    before: int | None = None
    while len(rows) < limit:
        page = reader.list_runs(engine.store, ListRuns(min(PAGE, limit - len(rows)), before, workflow, statuses))
        rows += page.runs
        before = page.cursor
        if before is None:
            break
    return rows


def _print_runs(rows: Sequence[RunRow], now: int) -> None:
    from .screen import coloured, console, table

    length = SHORT_ID
    while len({row.id[:length] for row in rows}) < len(rows):
        length += 1
    made = table("run", "workflow", "status", "nodes", "began", "took", right=("took",), wrapped=("run", "workflow"))
    for row in rows:
        # An id that a person chose is shown whole.
        shown = row.id[:length] if len(row.id) == 32 else row.id
        taken = duration(seconds_of(row))
        began = ago(row.started_at or row.created_at, now)
        made.add_row(shown, row.workflow, coloured(row.status), _nodes(row), began, taken)
    console().print(made)


def _nodes(row: RunRow) -> str:
    if row.failed:
        return f"{row.failed:,} of {row.nodes:,} failed"
    return f"{row.nodes:,}" if row.status is RunStatus.COMPLETED else f"{row.nodes - row.open:,} of {row.nodes:,} ended"


def _print_run(engine: Engine, row: RunRow, *, tracebacks: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from .screen import coloured, console, counted, node_table
    from .summary import telling_nodes

    to = console()
    taken = duration(seconds_of(row))
    to.print(Text(row.workflow, style="bold") + "  " + coloured(row.status) + (f"  {taken}" if taken else ""))
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column(overflow="fold")
    for name, value in _facts(row).items():
        facts.add_row(name, Text(value))
    facts.add_row("nodes", counted(reader.count_nodes(engine.store, row.id)))
    to.print(facts)
    nodes = telling_nodes(engine, row)
    if nodes:
        to.print()
        to.print(node_table(nodes))
    if len(nodes) < row.nodes:
        to.print(f"[dim]{count(row.nodes, 'node')}: those that failed or are at work are shown; --json has all[/]")
    for node in nodes if tracebacks else ():
        error = error_of(node)
        if error is not None:
            to.print(Text(f"\n{node.name}", style="bold"))
            to.print(Text((error.traceback or str(error)).rstrip()), soft_wrap=True)


def _facts(row: RunRow) -> dict[str, str]:
    found = {"run": row.id, "target": row.target, "input": text_of(row), "reason": row.reason}
    times = {"created": row.created_at, "started": row.started_at, "ended": row.ended_at, "deadline": row.deadline_at}
    shown = {name: value for name, value in found.items() if value}
    return shown | {name: local(time) for name, time in times.items() if time is not None}


def text_of(row: RunRow) -> str:
    return row.input.decode() if row.input != text({}).encode() else ""
