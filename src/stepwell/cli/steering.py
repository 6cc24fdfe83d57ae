"""The commands that change what becomes of a run, without working on it: pause, freeze, import; and what any would do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from ..errors import GraphError, InputError
from ..model import NodeStatus, RunRow, RunStatus
from ..runner import Engine, Run
from ..runner.control import Touched
from ..runner.versions import changes
from ..store import reader
from .advising import advise, advised, next_steps
from .exits import ExitCode, complain
from .opening import Place
from .records import json_text
from .stored import check_node, find_run
from .words import count, plain

SHOWN_UP_TO = 100
"""Nodes that a dry run lists one by one; `--json` lists all of them."""

_BECOMES = {
    "retry": RunStatus.RUNNING,
    "reattempt": RunStatus.RUNNING,
    "cancel": RunStatus.CANCELLED,
    "pause": RunStatus.PAUSED,
    "resume": RunStatus.RUNNING,
}


@advised
def pause(place: Place, text: str) -> None:
    with place.store() as store:
        run = Engine(store, runner=None).get(find_run(store, text).id).pause()
        row = run.row
        running = reader.count_nodes(store, run.id).get(NodeStatus.RUNNING, 0)
    end = f"; {count(running, 'node')} at work may end, and what it did is kept" if running else ""
    typer.echo(f"run {run.id} is {row.status}: nothing more is started{end}")
    advise(place, next_steps(row))


@advised
def freeze(place: Place, text: str) -> None:
    with place.store() as store:
        run = Engine(store, runner=None).get(find_run(store, text).id).freeze()
    typer.echo(f"run {run.id} keeps the graph it has, whatever becomes of its class")


@advised
def import_graph(place: Place, text: str, file: str) -> None:
    data = _content(file)
    with place.store() as store:
        run = Engine(store, runner=None).get(find_run(store, text).id)
        before = run.graph
        try:
            run.import_graph(data)
        except GraphError as error:
            complain(f"{file}: {count(len(error.problems), 'problem')}; nothing was changed")
            for problem in error.problems:
                typer.echo(f"  - {plain(str(problem))}", err=True)
            raise typer.Exit(ExitCode.USAGE) from None
        row, after = run.row, run.graph
    if after == before:
        typer.echo(f"run {run.id} has this graph already, and keeps it")
        return
    typer.echo(f"run {run.id} goes on with the graph of {file}: {count(len(after), 'node')} ({changes(before, after)})")
    advise(place, next_steps(row))


@advised
def dry_run(place: Place, text: str, verb: str, *, node: str | None = None, as_json: bool) -> None:
    """Which nodes a command would change, and into what. Nothing is changed."""
    with place.store() as store:
        row = find_run(store, text)
        run = Engine(store, runner=None).get(row.id)
        if node is not None:
            check_node(run, node)
        touched = _preview(run, verb, node)
        running = reader.count_nodes(store, row.id).get(NodeStatus.RUNNING, 0)
    if as_json:
        nodes = [each._asdict() for each in touched]
        print(
            json_text({"run": row.id, "status": row.status, "becomes": _BECOMES[verb], "dry_run": True, "nodes": nodes})
        )
        return
    if touched:
        _print_touched(touched)
    typer.echo(_summary(row, verb, len(touched), running))


def _preview(run: Run, verb: str, node: str | None) -> list[Touched]:
    match verb:
        case "retry":
            return run.retry(dry_run=True)
        case "reattempt":
            return run.reattempt(node or "", dry_run=True)
        case "cancel":
            return run.cancel(dry_run=True)
        case "pause":
            return run.pause(dry_run=True)
        case _:
            return run.resume(dry_run=True)


def _print_touched(touched: Sequence[Touched]) -> None:
    from .screen import coloured, console, table

    made = table("node", "is", "becomes", wrapped=("node",))
    for each in touched[:SHOWN_UP_TO]:
        named = each.name if each.name == each.id else f"{each.name} ({each.id})"
        made.add_row(plain(named), coloured(each.status), coloured(each.becomes))
    console().print(made)
    if len(touched) > SHOWN_UP_TO:
        typer.echo(f"and {count(len(touched) - SHOWN_UP_TO, 'more node')}; --json lists all of them")


def _summary(row: RunRow, verb: str, touched: int, running: int) -> str:
    nodes = f"{count(touched, 'node')} would change" if touched else "no node would change"
    end = f", {running:,} at work may end" if verb == "pause" and running else ""
    return f"run {row.id} is {row.status} and would be {_BECOMES[verb]}: {nodes}{end}; nothing has been done"


def _content(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{file}: it cannot be read: {error.strerror or error}") from None
