"""`stepwell show` and `audit`: one run, as people see it, and whether its rows agree."""

from __future__ import annotations

import typer

from ...runner.records import full_record
from ...runner.stored import StoredRun
from ..connect import Connection
from ..find import find_run
from ..show.words import count, plain
from ..streams import json_text, say


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
