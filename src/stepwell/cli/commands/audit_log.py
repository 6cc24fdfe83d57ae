"""`stepwell audit-log`: who did it."""

from __future__ import annotations

from datetime import timedelta

import typer

from ...core.store import Store, reader
from ...history.audit_log import AuditEntry
from ..connect import Connection
from ..find import find_run
from ..show.words import ago, parse_age, plain
from ..streams import json_text, say


def audit_log(
    connection: Connection,
    text: str | None,
    *,
    who: str | None,
    action: str | None,
    since: str | None,
    limit: int,
    as_json: bool,
) -> None:
    with connection.store() as store:
        age = None if since is None else timedelta(seconds=parse_age(since))
        run = None if text is None else _run_id(store, text)
        entries = connection.engine(store).audit_log(run, who=who, action=action, since=age, limit=limit)
        now = store.now()
    if as_json:
        say(json_text([entry.to_dict() for entry in entries]))
    elif entries:
        _print(entries, now)
    else:
        typer.echo("the audit log has no such entry", err=True)


def _run_id(store: Store, text: str) -> str:
    """A run by the beginning of its id; a deleted one, which cannot be found any more, by all of it."""
    there = (
        reader.get_run(store, text) is not None or next(reader.all_runs(store, prefix=text, limit=1), None) is not None
    )
    return find_run(store, text).id if there else text


def _print(entries: list[AuditEntry], now: int) -> None:
    from ..show.screen import console, table

    made = table("when", "who", "with", "what", "of", "reason", wrapped=("who", "of", "reason"))
    for entry in entries:
        token = "" if entry.token is None else f" ({entry.token})"
        options = ", ".join(f"{name} {value}" for name, value in entry.options.items())
        what = f"{entry.action} ({options})" if options else entry.action
        target = f"{entry.kind} {entry.target}"
        row = (ago(int(entry.at * 1_000_000), now), entry.who + token, entry.via, what, target, entry.reason or "")
        made.add_row(*map(plain, row))
    console().print(made)
