"""`stepwell ls`: runs, the newest first or in another order, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from ...base.clock import microseconds
from ...core.model import ListRuns, RunRow, RunStatus
from ...core.store import Store, reader
from ...engine.reports.counting import COUNT_BY, count_runs
from ...engine.reports.ordering import in_order
from ...engine.runs.records import run_record
from ...engine.runs.stored import StoredRun
from ...engine.trees import with_children
from ...errors import InputError
from ...history.why.pauses import pause_of
from ..connect import Connection
from ..find import find_run, tag_of
from ..show.words import ago, duration, parse_age, plain
from ..streams import json_text, say

PAGE = 1_000
SHORT_ID = 12
"""Hex digits of a run id that encode its time; more are shown for runs of the same millisecond."""


def ls(
    connection: Connection,
    *,
    workflow: str | None,
    status: str | None,
    tag: Sequence[str] | None,
    since: str | None,
    until: str | None,
    prefix: str | None,
    fork_of: str | None,
    search: str | None,
    error: str | None,
    parent: str | None,
    children: bool,
    order: str,
    count: str | None,
    limit: int,
    as_json: bool,
) -> None:
    tags = tuple(sorted(map(tag_of, tag or ())))
    with connection.store() as store:
        asked = ListRuns(
            workflow=workflow,
            statuses=() if status is None else (_status(status),),
            tags=tags,
            since=_ago(store, since),
            until=_ago(store, until),
            prefix=prefix,
            origin=None if fork_of is None else find_run(store, fork_of).id,
            text=search,
            error=error,
        )
        asked = with_children(asked, None if parent is None else find_run(store, parent).id, children=children)
        if count is not None:
            return _count(store, asked, count, as_json=as_json)
        runs = [StoredRun(store, row) for row in _listed(store, in_order(asked, order), limit)]
        if as_json:
            say(json_text([run_record(run) for run in runs]))
        elif runs:
            _print_runs(runs, store.now())
        else:
            chosen = " like that" if asked != ListRuns(roots=asked.roots) else ""
            typer.echo(f"no runs{chosen} in {connection.where}", err=True)


def _ago(store: Store, text: str | None) -> int | None:
    return None if text is None else store.now() - microseconds(parse_age(text))


def _status(given: str) -> RunStatus:
    try:
        return RunStatus(given.upper())
    except ValueError:
        raise InputError(f"--status {given}: there are {', '.join(RunStatus)}") from None


def _count(store: Store, asked: ListRuns, by: str, *, as_json: bool) -> None:
    if by not in COUNT_BY:
        raise InputError(f"--count {by}: there are {', '.join(COUNT_BY)}")
    found = count_runs(store, asked, by)
    if as_json:
        return say(json_text(found))
    for each in found["counts"]:
        say(f"{plain(each['value'])}  {'' if each['exact'] else 'at least '}{each['count']:,}")


def _listed(store: Store, asked: ListRuns, limit: int) -> list[RunRow]:
    rows: list[RunRow] = []
    while len(rows) < limit:
        page = reader.list_runs(store, asked._replace(limit=min(PAGE, limit - len(rows))))
        rows += page.runs
        if page.cursor is None:
            break
        asked = asked._replace(before=page.cursor)
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
        if row.status.paused:
            status.append(f": {pause_of(row).reason}")
        made.add_row(plain(shown), plain(row.workflow), status, _nodes(run), began, duration(run.seconds))
    console().print(made)


def _nodes(run: StoredRun) -> str:
    row, size = run.row, run.size
    if row.failed:
        return f"{row.failed:,} of {size:,} failed"
    return f"{size:,}" if row.status.completed else f"{max(0, size - row.open):,} of {size:,} ended"
