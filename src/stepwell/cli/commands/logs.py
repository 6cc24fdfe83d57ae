"""`stepwell logs`: what the bodies of a run logged and printed, now or as they do."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias

import typer

from ...base.clock import SECOND
from ...core.model import LineRow
from ...core.model.lines import LogLine
from ...core.store import reader
from ...engine.runs.log_search import LEVELS, LinePlace, LogSearch, NewLines
from ...engine.runs.records import line_record
from ...engine.runs.stored import StoredRun
from ...errors import InputError
from ..connect import Connection
from ..find import find_node, find_run
from ..show.words import local, plain
from ..streams import json_text, say

LOOK_EVERY = 0.2
SHARE_OF_TIME = 0.05
"""Polling must not slow down the work, so a large run is polled less often."""

Page: TypeAlias = Sequence[tuple[LineRow, LogLine]]
_COLOURS = ((50, "red"), (40, "red"), (30, "yellow"), (20, None))


def logs(
    connection: Connection,
    text: str,
    node: str | None,
    *,
    attempt: int | None,
    level: str | None,
    search: str | None,
    tail: int | None,
    follow: bool,
    as_json: bool,
) -> None:
    if attempt is not None and attempt < 1:
        raise InputError(f"--attempt {attempt}: attempts are numbered from 1")
    if tail is not None and tail < 1:
        raise InputError(f"--tail {tail}: expected 1 or more")
    known = next((each for each in LEVELS if each == (level or "").upper()), None)
    if level is not None and known is None:
        raise InputError(f"--level {level}: expected one of {', '.join(LEVELS)}")
    with connection.store() as store:
        run = StoredRun(store, find_run(store, text))
        wanted = LogSearch(None if node is None else find_node(run, node), attempt, known, search or None)
        lines, page = _begin(run, wanted, tail)
        if follow:
            _follow(lines, page, as_json=as_json)
        elif as_json:
            say(json_text([line_record(run, row, line) for row, line in page]))
        else:
            _print(run, page)
            if not page:
                chosen = " like that" if node or attempt or level or search else ""
                typer.echo(f"run {run.row.id} has no lines{chosen}", err=True)


def _begin(run: StoredRun, wanted: LogSearch, tail: int | None) -> tuple[NewLines, Page]:
    """All lines, or the last so many, read from the end; and what finds those that are new from then on."""
    if tail is None:
        lines = NewLines(run, wanted)
        return lines, lines.next()
    lines = NewLines(run, wanted._replace(since=run.store.now()))
    lines.next()
    page: Page = []
    before: LinePlace | None = None
    while len(page) < tail:
        older, before = wanted.page(run, before, tail - len(page), newest_first=True)
        page = [*older, *page]
        if before is None:
            break
    lines.skip(page)
    return lines, page


def _follow(lines: NewLines, page: Page, *, as_json: bool) -> None:
    """Print these, and new lines until the run has ended. The status is read first, so that the last lines are printed."""
    run = lines.run
    while True:
        row = reader.get_run(run.store, run.row.id)
        ended = row is None or row.status.terminal
        began = time.monotonic()
        page = [*page, *lines.next()]
        seconds = time.monotonic() - began
        if as_json:
            for entry, line in page:
                say(json.dumps(line_record(run, entry, line)))
        else:
            _print(run, page)
        if ended:
            return
        page = []
        time.sleep(max(LOOK_EVERY, seconds / SHARE_OF_TIME))


def _print(run: StoredRun, page: Page) -> None:
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
