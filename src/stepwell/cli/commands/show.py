"""`stepwell show`, `why` and `audit`: one run for people, why it has its status, and whether its rows are consistent."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import typer

from ...base.codec import text as json_line
from ...engine.runs.records import audit_record, config_record, node_detail, run_report, why_detail
from ...engine.runs.stored import StoredRun
from ..connect import Connection
from ..documents import is_file, load_file, stored_document
from ..find import find_node, find_run
from ..show.words import count, one_line, plain
from ..streams import json_text, say

if TYPE_CHECKING:
    from ...answers.workflows import DocumentRecord
    from ...define.document import Document


def show(connection: Connection, text: str, node: str | None, *, traceback: bool, whole: bool, as_json: bool) -> None:
    if is_file(text):
        return _print_document(load_file(connection, text), None, as_json=as_json)
    with connection.store() as store:
        stored = stored_document(connection, store, text)
        if stored is not None:
            version = connection.engine(store).parts.documents.version_of(stored.name, stored.digest)
            return _print_document(stored, version, as_json=as_json)
        run = StoredRun(store, find_run(store, text))
        if node is not None:
            from ..show.node import print_node

            detail = node_detail(run, find_node(run, node))
            say(json_text(detail)) if as_json else print_node(detail)
            return
        if as_json:
            say(json_text(run_report(run, tracebacks=traceback)))
            return
        from ...engine.show.run import print_run
        from ..show.screen import console

        gc.disable()  # looking for garbage among 100,000 nodes takes longer than showing them, and the process ends soon
        print_run(console(), run, connection.command, tracebacks=traceback, whole=whole)


def _print_document(document: Document, version: int | None, *, as_json: bool) -> None:
    """A document, what it takes, and its nodes."""
    if as_json:
        record: DocumentRecord = {"digest": document.digest, "version": version, "document": document.canonical}
        say(json_text(record))
        return
    named = document.name if version is None else f"{document.name}@{version}"
    say(plain(f"{named}  {count(len(document.nodes), 'node')}  {document.digest[:12]}"))
    if document.description:
        say(plain(one_line(document.description)))
    for name, field in (document.input or {}).get("properties", {}).items():
        default = f" = {json_line(field['default'])}" if isinstance(field, dict) and "default" in field else ""
        kind = field.get("type", "anything") if isinstance(field, dict) else "anything"
        say(plain(f"  input.{name}: {kind}{default}"))
    for node in document.nodes:
        after = f"  after {', '.join(node.dependencies)}" if node.dependencies else ""
        say(plain(f"  {node.id}  {node.handler}{after}"))


def audit(connection: Connection, text: str, *, as_json: bool) -> None:
    from ...engine.reports.audit import audit_run

    with connection.store() as store:
        run = find_run(store, text)
        problems = audit_run(store, run.id)
    if as_json:
        say(json_text(audit_record(run, problems)))
    elif problems:
        typer.echo(f"run {run.id}: {count(len(problems), 'invariant')} broken", err=True)
        say("\n".join(f"- {plain(problem)}" for problem in problems))
    else:
        looked_at = f"{count(run.nodes, 'node')} and {run.seq} journal entries"
        say(f"run {run.id}, {run.status}: every invariant holds, over {looked_at}")
    if problems:
        raise typer.Exit(1)


def why(connection: Connection, text: str, node: str | None, *, as_json: bool) -> None:
    with connection.store() as store:
        run = StoredRun(store, find_run(store, text))
        if node is not None:
            find_node(run, node)
        if as_json:
            say(json_text(why_detail(run, node)))
            return
        say(run.why(node).text(command=connection.command))
        config = None if node is None else config_record(run, run.index_of(node))
    if config is not None:
        say(f"  config {plain(json_line(config['written']))}")
        if config["rendered"] is not None:
            say(f"  rendered {plain(json_line(config['rendered']))}")
