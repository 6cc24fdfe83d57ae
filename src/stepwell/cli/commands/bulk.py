"""`stepwell bulk VERB`: the same request to many runs. First what it would do, then it is done to the runs that were shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from ...errors import InputError
from ..connect import Connection
from ..exits import ExitCode
from ..find import LONGEST_SEQ, find_run, tag_of
from ..show.words import count, parse_age, plain
from ..streams import json_text, say

if TYPE_CHECKING:
    from ...answers.runs import BulkOutcome, BulkRecord

SHOWN_UP_TO = 100
"""Runs that are listed one by one; `--json` lists all of them."""


def bulk(
    connection: Connection,
    verb: str,
    *,
    tag: Sequence[str] | None,
    since: str | None,
    until: str | None,
    fork_of: str | None,
    parent: str | None,
    limit: int,
    yes: bool,
    dry_run: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    which = {
        "tag": dict(map(tag_of, tag or ())),
        "since": _ago(since),
        "until": _ago(until),
        **{name: value for name, value in asked.items() if value is not None and value is not False},
    }
    if isinstance(at := which.get("at"), str) and at.isascii() and at.isdigit() and len(at) <= LONGEST_SEQ:
        which["at"] = int(at)
    with connection.store() as store:
        for name, run in (("fork_of", fork_of), ("parent", parent)):
            if run is not None:
                which[name] = find_run(store, run).id
        preview = connection.engine(store).preview_bulk(verb, limit=limit, **which)
        record = preview.record
        if not as_json:
            _print_preview(record)
        if not dry_run and record["done"]:
            _confirm(verb, record, yes=yes)
            record = preview.apply()
    if as_json:
        say(json_text(record))
    elif not record["dry_run"]:
        _print_outcome(record)
    if not record["dry_run"] and record["done"] < record["matched"]:
        raise typer.Exit(ExitCode.CONFLICT)


def _ago(text: str | None) -> Any:
    from datetime import timedelta

    return None if text is None else timedelta(seconds=parse_age(text))


def _confirm(verb: str, record: BulkRecord, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(f"nothing was done: --yes has {verb} done to these runs, --dry-run only shows them")
    if not typer.confirm(f"{verb} {count(record['done'], 'run')}?", err=True):
        say("nothing was done")
        raise typer.Exit


def _print_preview(record: BulkRecord) -> None:
    if record["runs"]:
        _print_runs(record["runs"])
    refused = f"; {count(record['refused'], 'run')} would refuse it" if record["refused"] else ""
    nodes = count(record["nodes"], "node")
    say(f"{record['verb']} would change {nodes} of {count(record['done'], 'run')}{refused}")
    if record["more"]:
        say("more runs match than these: --limit takes up to 1,000 of them, and the same command again the rest")


def _print_runs(outcomes: Sequence[BulkOutcome]) -> None:
    from ..show.screen import coloured, console, table

    rows = table("run", "is", "nodes that would change", right=("nodes that would change",))
    for each in outcomes[:SHOWN_UP_TO]:
        told = plain(each["detail"] or "") if each["nodes"] is None else f"{each['nodes']:,}"
        rows.add_row(plain(each["run"]), coloured(each["status"] or ""), told)
    console().print(rows)
    if len(outcomes) > SHOWN_UP_TO:
        say(f"and {count(len(outcomes) - SHOWN_UP_TO, 'more run')}; --json lists all of them")


def _print_outcome(record: BulkRecord) -> None:
    refused = f"; {record['refused']:,} refused it" if record["refused"] else ""
    changed = f"; {record['changed']:,} changed meanwhile and were left alone" if record["changed"] else ""
    say(f"{record['verb']} was requested of {count(record['done'], 'run')}{refused}{changed}")
    for each in record["runs"]:
        if each["outcome"] != "done":
            say(f"  {plain(each['run'])}: {plain(each['detail'] or '')}")
        elif each["fork"] is not None:
            say(f"  {plain(each['run'])}: forked as {plain(each['fork'])}")
