"""`stepwell failures`: why nodes of a run failed, with what failed alike on one line."""

from __future__ import annotations

import typer

from ...engine.reports import failures as reports
from ...engine.runs.stored import StoredRun
from ..connect import Connection
from ..find import find_run
from ..show.words import one_line, plain
from ..streams import json_text, say


def failures(connection: Connection, text: str, *, as_json: bool) -> None:
    with connection.store() as store:
        found = reports.failures(StoredRun(store, find_run(store, text)))
    if as_json:
        return say(json_text(found))
    for group in found["groups"]:
        error = f"{group['type']}: {group['message']}" if group["type"] else group["message"]
        say(plain(f"{group['count']:>6,} x {one_line(error)}"))
    if not found["groups"]:
        typer.echo(f"no node of run {found['run']} has failed", err=True)
