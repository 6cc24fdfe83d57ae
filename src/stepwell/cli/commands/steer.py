"""The commands that change what becomes of a run, without working on it: pause, freeze, import; and what any would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from ...core.model import FAILED_NODES, NODE_FAILED, RUN_VERBS, NodeStatus, RunRow
from ...core.store import reader
from ...core.store.living import living
from ...engine import Run
from ...engine.code.versions import changes
from ...engine.runs.control import Touched
from ...engine.runs.records import steered_run
from ...errors import GraphError
from ..connect import Connection
from ..documents import read_bytes
from ..exits import ExitCode, complain
from ..find import find_fork_point, find_node, find_run
from ..show.advice import advise, advised, next_steps
from ..show.words import count, plain
from ..streams import json_text, say

SHOWN_UP_TO = 100
"""Nodes that a dry run lists one by one; `--json` lists all of them."""

NAMED_UP_TO = 10
_HEALING = ("retry", "reattempt", "resume")
"""What makes a run follow its class first."""


@advised
def pause(connection: Connection, text: str) -> None:
    with connection.store() as store:
        run = connection.engine(store).get(find_run(store, text).id).pause()
        row = run.row
        running = reader.count_nodes(store, run.id).get(NodeStatus.RUNNING, 0)
        worked_on = bool(living(store))
    end = f"; {count(running, 'node')} at work may end, and what it did is kept" if running and worked_on else ""
    if running and not worked_on:
        end = f"; no worker is left that could end the {count(running, 'node')} it was at"
    say(f"run {run.id} is {row.status}: nothing more is started{end}")
    advise(connection, next_steps(row))


@advised
def freeze(connection: Connection, text: str) -> None:
    with connection.store() as store:
        run = connection.engine(store).get(find_run(store, text).id).freeze()
    say(f"run {run.id} keeps the graph it has, whatever becomes of its class")


@advised
def import_graph(connection: Connection, text: str, file: str) -> None:
    data = read_bytes(file)
    with connection.store() as store:
        run = connection.engine(store).get(find_run(store, text).id)
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
        say(f"run {run.id} has this graph already, and keeps it")
        return
    say(f"run {run.id} goes on with the graph of {file}: {count(len(after), 'node')} ({changes(before, after)})")
    if not after.trusted:
        say(
            "its code or arguments are new to the run: allow their modules where it is worked on, with --jobs or `jobs`"
        )
    advise(connection, next_steps(row))


@advised
def dry_run(
    connection: Connection, /, verb: str, text: str, node: str | None = None, *, as_json: bool, **given: Any
) -> None:
    """Which nodes a command would change, and into what. Nothing is changed."""
    with connection.store() as store:
        row = find_run(store, text)
        run = connection.engine(store).get(row.id)
        if node is not None:
            find_node(run._stored, node)
        touched = _preview(run, verb, node, given)
        running = reader.count_nodes(store, row.id).get(NodeStatus.RUNNING, 0)
        cut_off = _cut_off(run, row) if verb == "resume" and not as_json else []
    if as_json:
        say(json_text(steered_run(row, verb, touched)))
        return
    if touched:
        _print_touched(touched)
    say(_summary(row, verb, len(touched), running))
    if cut_off:
        say(_end_of_it(connection, row, cut_off))
    if verb in _HEALING:
        say(
            "this is about the run as it stands: its class was not looked at, and a change of it could change or refuse this"
        )


def _cut_off(run: Run, row: RunRow) -> list[str]:
    """Of a run that a failure paused: the names of the nodes that wait for one that failed."""
    if not row.status.paused or row.reason != NODE_FAILED:
        return []
    nodes = run.nodes()
    below = {node.id for node in nodes if node.status in FAILED_NODES}
    graph = run.graph
    for node in sorted(nodes, key=lambda node: graph.level(node.id)):
        if below.intersection(graph.nodes[node.id].depends_on):
            below.add(node.id)
    return [node.name for node in nodes if node.id in below and not node.status.terminal]


def _end_of_it(connection: Connection, row: RunRow, cut_off: Sequence[str]) -> str:
    named = ", ".join(map(plain, cut_off[:NAMED_UP_TO]))
    more = f" and {len(cut_off) - NAMED_UP_TO:,} more" if len(cut_off) > NAMED_UP_TO else ""
    return (
        f"what waits for a node that failed cannot run ({named}{more}: UPSTREAM_FAILED at the end), so the run will end "
        f"FAILED; `{connection.command(f'retry {row.id}')}` runs again what failed"
    )


def _preview(run: Run, verb: str, node: str | None, given: Mapping[str, Any]) -> list[Touched]:
    options = {name: given[name] for name in RUN_VERBS[verb].options or () if name in given}
    if "at" in options:
        options["at"] = find_fork_point(run, options["at"])
    touched: list[Touched] = getattr(run, verb)(*(() if node is None else (node,)), **options, dry_run=True)
    return touched


def _print_touched(touched: Sequence[Touched]) -> None:
    from ..show.screen import coloured, console, table

    made = table("node", "is", "becomes", wrapped=("node",))
    for each in touched[:SHOWN_UP_TO]:
        named = each.name if each.name == each.id else f"{each.name} ({each.id})"
        made.add_row(plain(named), coloured(each.status), coloured(each.becomes))
    console().print(made)
    if len(touched) > SHOWN_UP_TO:
        say(f"and {count(len(touched) - SHOWN_UP_TO, 'more node')}; --json lists all of them")


def _summary(row: RunRow, verb: str, touched: int, running: int) -> str:
    if verb == "fork":
        return f"a fork of run {row.id} would run {count(touched, 'node')} and share the others; nothing has been done"
    nodes = f"{count(touched, 'node')} would change" if touched else "no node would change"
    end = f", {running:,} at work may end" if verb == "pause" and running else ""
    return f"run {row.id} is {row.status} and would be {RUN_VERBS[verb].becomes}: {nodes}{end}; nothing has been done"
