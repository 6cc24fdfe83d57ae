"""The commands that only look: ls, show, audit, graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ...clock import SECOND
from ...errors import DefinitionError, InputError
from ...graph import Graph, to_dot, to_frozen, to_mermaid
from ...model import ListRuns, RunRow, RunStatus
from ...runner.records import full_record, graph_record, run_record
from ...runner.stored import StoredRun
from ...store import Store, reader
from ..connect import Connection
from ..find import find_run
from ..show.advice import pause_told
from ..show.words import ago, count, duration, plain
from ..streams import json_text, results, say

if TYPE_CHECKING:
    from ..inputs import Pairs

PAGE = 1_000
SHORT_ID = 12
"""Hex digits of a run id that stand for its time; two runs of one millisecond are shown with more."""


def ls(connection: Connection, *, workflow: str | None, status: str | None, limit: int, as_json: bool) -> None:
    statuses = () if status is None else (_status(status),)
    with connection.store() as store:
        runs = [StoredRun(store, row) for row in _newest(store, workflow, statuses, limit)]
        if as_json:
            say(json_text([run_record(run) for run in runs]))
        elif runs:
            _print_runs(runs, store.now())
        else:
            chosen = " like that" if workflow or status else ""
            typer.echo(f"no runs{chosen} in {connection.settings.store}", err=True)


def show(connection: Connection, text: str, *, traceback: bool, whole: bool, as_json: bool) -> None:
    with connection.store() as store:
        run = StoredRun(store, find_run(store, text))
        if as_json:
            say(json_text(full_record(run, tracebacks=traceback)))
            return
        from ..show.run import print_run

        print_run(connection, run, tracebacks=traceback, whole=whole)


def audit(connection: Connection, text: str, *, as_json: bool) -> None:
    from ...runner.reports.audit import audit_run

    with connection.store() as store:
        run = find_run(store, text)
        problems = audit_run(store, run.id)
    if as_json:
        say(json_text({"run": run.id, "status": run.status, "journal_entries": run.seq, "problems": problems}))
    elif problems:
        typer.echo(f"run {run.id}: {count(len(problems), 'invariant')} broken", err=True)
        say("\n".join(f"- {plain(problem)}" for problem in problems))
    else:
        looked_at = f"{count(run.nodes, 'node')} and {run.seq} journal entries"
        say(f"run {run.id}, {run.status}: every invariant holds, over {looked_at}")
    if problems:
        raise typer.Exit(1)


def graph(
    connection: Connection,
    what: str,
    *,
    mermaid: bool,
    dot: bool,
    frozen: bool,
    svg: str | None,
    as_json: bool,
    inputs: Pairs,
) -> None:
    if mermaid + dot + frozen + as_json + (svg is not None) > 1:
        raise typer.BadParameter("only one of --mermaid, --dot, --svg, --frozen and --json can be chosen")
    if frozen:
        return _print_frozen(connection, what)
    workflow, found, statuses = _graph(connection, what, inputs)
    if svg is not None:
        _draw(what, found, statuses, svg)
    elif as_json:
        say(json_text(graph_record(workflow, found, statuses)))
    else:
        say((to_dot if dot else to_mermaid)(found, statuses), end="")


def _print_frozen(connection: Connection, text: str) -> None:
    with connection.store() as store:
        run = StoredRun(store, find_run(store, text))
        say(json_text(to_frozen(run.graph, run.row.created_at / SECOND)))


def _draw(what: str, found: Graph, statuses: Mapping[str, str] | None, file: str) -> None:
    """An SVG into a file; `-` is stdout."""
    from ...graph.svg import MAX_SVG_NODES, to_svg

    if len(found) > MAX_SVG_NODES:
        raise InputError(
            f"{what} has {len(found):,} nodes, and a picture of more than {MAX_SVG_NODES:,} cannot be read; `stepwell show` "
            f"folds what is alike, `--dot` and `--json` are for programs that draw large graphs"
        )
    drawn = to_svg(found, statuses).encode()
    if file == "-":
        results().buffer.write(drawn)  # whatever encoding stdout has: SVG is UTF-8
        results().flush()
        return
    try:
        Path(file).write_bytes(drawn)
    except OSError as error:
        raise InputError(f"--svg {file}: it cannot be written: {error.strerror or error}") from None
    typer.echo(f"drew {count(len(found), 'node')} into {file}", err=True)


def _graph(connection: Connection, what: str, pairs: Pairs) -> tuple[str, Graph, Mapping[str, str] | None]:
    """A run id may have a colon in it, as a target has: what is no target may be a run."""
    no_target: DefinitionError | None = None
    if ":" in what:
        from ..inputs import graph_of_target

        try:
            return *graph_of_target(what, pairs), None
        except DefinitionError as error:
            no_target = error
    with connection.store() as store:
        if no_target is not None and reader.get_run(store, what) is None:
            raise no_target
        run = StoredRun(store, find_run(store, what))
        removed = run.graph.removed
        nodes = (node for node in reader.all_nodes(store, run.row.id) if node.index not in removed)
        found = Graph(list(run.graph)) if removed else run.graph
        return run.row.workflow, found, {node.id: node.status for node in nodes}


def _status(given: str) -> RunStatus:
    try:
        return RunStatus(given.upper())
    except ValueError:
        raise InputError(f"--status {given}: there are {', '.join(RunStatus)}") from None


def _newest(store: Store, workflow: str | None, statuses: tuple[RunStatus, ...], limit: int) -> list[RunRow]:
    rows: list[RunRow] = []
    before: int | None = None
    while len(rows) < limit:
        page = reader.list_runs(store, ListRuns(min(PAGE, limit - len(rows)), before, workflow, statuses))
        rows += page.runs
        before = page.cursor
        if before is None:
            break
    return rows


def _print_runs(runs: Sequence[StoredRun], now: int) -> None:
    from ..show.screen import coloured, console, table

    length = SHORT_ID
    while len({run.row.id[:length] for run in runs}) < len(runs):
        length += 1
    made = table("run", "workflow", "status", "nodes", "began", "took", right=("took",), wrapped=("workflow",))
    for run in runs:
        row = run.row
        # An id that a person chose is shown whole.
        shown = row.id[:length] if len(row.id) == 32 else row.id
        began = ago(row.started_at or row.created_at, now)
        status = coloured(row.status)
        if row.status is RunStatus.PAUSED:
            status.append(f": {pause_told(row)}")
        made.add_row(plain(shown), plain(row.workflow), status, _nodes(run), began, duration(run.seconds))
    console().print(made)


def _nodes(run: StoredRun) -> str:
    row, size = run.row, run.size
    if row.failed:
        return f"{row.failed:,} of {size:,} failed"
    return f"{size:,}" if row.status is RunStatus.COMPLETED else f"{max(0, size - row.open):,} of {size:,} ended"
