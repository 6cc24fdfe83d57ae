"""`stepwell logs`: what the bodies of a run logged and printed, now or as they do."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import datetime

import typer

from ...base.clock import SECOND
from ...core.model import LineRow
from ...core.model.lines import LogLine
from ...core.store import reader
from ...engine.runs.records import line_record
from ...engine.runs.stored import NewLines, StoredRun
from ...errors import InputError
from ..connect import Connection
from ..find import find_node, find_run
from ..show.words import local, plain
from ..streams import json_text, say

LOOK_EVERY = 0.2
SHARE_OF_TIME = 0.05
"""Polling must not slow down the work, so a large run is polled less often."""

_COLOURS = ((50, "red"), (40, "red"), (30, "yellow"), (20, None))


def logs(
    connection: Connection, text: str, node: str | None, *, attempt: int | None, follow: bool, as_json: bool
) -> None:
    if attempt is not None and attempt < 1:
        raise InputError(f"--attempt {attempt}: attempts are numbered from 1")
    with connection.store() as store:
        run = StoredRun(store, find_run(store, text))
        lines = NewLines(run, None if node is None else find_node(run, node), attempt)
        if follow:
            _follow(lines, as_json=as_json)
            return
        page = lines.next()
        if as_json:
            say(json_text([line_record(run, row, line) for row, line in page]))
        else:
            _print(run, page)
            if not page:
                chosen = " like that" if node or attempt else ""
                typer.echo(f"run {run.row.id} has no lines{chosen}", err=True)


def _follow(lines: NewLines, *, as_json: bool) -> None:
    """Print new lines until the run has ended. Asks for the status first, so that the last lines are still printed."""
    run = lines.run
    while True:
        row = reader.get_run(run.store, run.row.id)
        ended = row is None or row.status.terminal
        began = time.monotonic()
        page = lines.next()
        if as_json:
            for entry, line in page:
                say(json.dumps(line_record(run, entry, line)))
        else:
            _print(run, page)
        if ended:
            return
        time.sleep(max(LOOK_EVERY, (time.monotonic() - began) / SHARE_OF_TIME))


def _print(run: StoredRun, page: Sequence[tuple[LineRow, LogLine]]) -> None:
    """One line each: time, node and attempt, level, logger and message. Continuation lines are indented."""
    specs = run.graph.in_order
    for row, line in page:
        moment = f"{local(line.at)}.{datetime.fromtimestamp(line.at / SECOND).microsecond // 1_000:03}"
        colour = next((colour for severity, colour in _COLOURS if line.severity >= severity), "bright_black")
        who = f"{specs[row.node].name} #{row.number}"
        said = plain(line.text).rstrip().replace("\n", "\n    ")
        head = typer.style(f"{moment}  {plain(who)}", dim=True)
        level = typer.style(f"{plain(line.level):<8}", fg=colour, bold=True if line.severity >= 50 else None)
        by = typer.style(f"{plain(line.logger)}:", dim=True)
        say(f"{head}  {level} {by} {typer.style(said, fg=colour) if colour else said}")
