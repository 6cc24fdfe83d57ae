"""`stepwell show` and `audit`: one run, as people see it, and whether its rows agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ...runner.runs.records import full_record
from ...runner.runs.stored import StoredRun
from ..connect import Connection
from ..documents import is_file, load_file, stored_document
from ..find import find_node, find_run
from ..show.words import count, plain
from ..streams import json_text, say

if TYPE_CHECKING:
    from ...define.document import Document
    from ...store import Store


def show(connection: Connection, text: str, node: str | None, *, traceback: bool, whole: bool, as_json: bool) -> None:
    if is_file(text):
        from ..show.document import print_document

        return print_document(load_file(connection, text), None, as_json=as_json)
    with connection.store() as store:
        stored = stored_document(connection, store, text)
        if stored is not None:
            return _show_stored(connection, store, stored, as_json=as_json)
        run = StoredRun(store, find_run(store, text))
        if node is not None:
            from ..show.node import node_data, print_node

            data = node_data(run, find_node(run, node))
            say(json_text(data)) if as_json else print_node(data)
            return
        if as_json:
            say(json_text(full_record(run, tracebacks=traceback)))
            return
        from ...runner.show.run import print_run
        from ..show.screen import console

        print_run(console(), run, connection.command, tracebacks=traceback, whole=whole)


def _show_stored(connection: Connection, store: Store, document: Document, *, as_json: bool) -> None:
    from ..show.document import print_document

    version = connection.engine(store).documents.version_of(document.name, document.digest)
    print_document(document, version, as_json=as_json)


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
