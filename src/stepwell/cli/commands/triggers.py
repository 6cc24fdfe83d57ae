"""`stepwell trigger`: schedules, webhooks and other triggers of runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ...base.clock import SECOND
from ...base.words import one_line, shown
from ...client.triggers import RemoteTrigger, RemoteTriggers
from ...engine.triggers import EngineTriggers, load_triggers
from ...errors import InputError
from ...triggers.book import StoredTrigger
from ...triggers.definition import Trigger
from ...triggers.firing import NotHere
from ...triggers.times import moment, time_text
from ..connect import Connection
from ..documents import Pairs, is_file
from ..show.words import plain
from ..streams import json_text, say

if TYPE_CHECKING:
    from ...answers.triggers import BackfillRecord, TriggerDetail


@contextmanager
def _triggers(connection: Connection, *, make: bool = False) -> Iterator[EngineTriggers | RemoteTriggers]:
    """The triggers of the store, or of the server; with `make` the store is made if need be."""
    with connection.store(make=make) as store:
        yield connection.engine(store).triggers


def ls(connection: Connection, *, as_json: bool) -> None:
    with _triggers(connection) as triggers:
        stored = triggers.all()
    if as_json:
        say(json_text([trigger.to_dict() for trigger in stored]))
        return
    if not stored:
        typer.echo("no triggers; `stepwell trigger add` stores one", err=True)
        return
    from ..show.screen import console, table

    made = table("trigger", "workflow", "when", "next", "is", wrapped=("when", "is"))
    for each in stored:
        made.add_row(each.name, plain(each.trigger.workflow), plain(each.trigger.form.words), *_standing(each))
    console().print(made)


def _standing(each: StoredTrigger | RemoteTrigger) -> tuple[str, str]:
    """When it fires next, and its state."""
    state = "paused" if each.paused else "active"
    if each.error is not None:
        state = f"in trouble: {one_line(plain(each.error))}"
    elif each.waiting:
        state += f", {each.waiting} waiting"
    return "".join(time_text(int(time * SECOND)) for time in each.next_fires()), state


def show(connection: Connection, name: str, *, count: int, as_json: bool) -> None:
    with _triggers(connection) as triggers:
        stored = triggers.get(name) if isinstance(triggers, EngineTriggers) else triggers.get(name, count)
        versions = len(triggers.versions(name))
    record: TriggerDetail = {**stored.to_dict(count), "versions": versions}
    if as_json:
        say(json_text(record))
        return
    from ..show.screen import print_json

    print_json(record)


def add(
    connection: Connection,
    what: str,
    workflow: str | None,
    *,
    cron: str | None,
    timezone: str | None,
    every: str | None,
    start: str | None,
    after: str | None,
    status: Sequence[str] | None,
    webhook: str | None,
    secret: str | None,
    inputs: Pairs,
    paused: bool,
    **policies: Any,
) -> None:
    if workflow is None and (is_file(what) or Path(what).exists()):
        wanted = load_triggers(what)
    elif workflow is None:
        raise InputError(f"{what}: name a workflow, as `stepwell trigger add {what} WORKFLOW --cron ...`, or a file")
    else:
        data: dict[str, Any] = {"name": what, "workflow": workflow, "cron": cron, "timezone": timezone, "every": every}
        data |= {"start": start, **policies}
        if after is not None:
            data["run_finished"] = {
                "workflow": after,
                **({"status": [each.upper() for each in status]} if status else {}),
            }
        if webhook is not None:
            data["webhook"] = {"scheme": webhook, "secret": secret}
        data["input"] = _given(inputs)
        wanted = [Trigger.of({key: value for key, value in data.items() if value is not None})]
    with _triggers(connection, make=True) as triggers:
        for trigger in wanted:
            stored = triggers.add(trigger, paused=True if paused else None)
            following = stored.next_fires()
            next_time = f", next {time_text(int(following[0] * SECOND))}" if following else ""
            say(f"{stored.name}@{stored.version} {'paused' if stored.paused else 'active'}{next_time}")
            if (missing := triggers.lacks(trigger)) is not None:
                typer.echo(f"warning: {missing}", err=True)


def _given(inputs: Pairs) -> dict[str, Any] | None:
    """Inputs as typed: each value is read as JSON if possible, else as text."""
    if not inputs:
        return None
    values: dict[str, Any] = {}
    for each in inputs:
        name, equals, text = each.partition("=")
        if not (name and equals):
            raise InputError(f"--input {each}: expected NAME=VALUE, as in --input day=7")
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text
    return values


def pause(connection: Connection, name: str) -> None:
    with _triggers(connection) as triggers:
        triggers.pause(name)
    say(f"{name} is paused")


def resume(connection: Connection, name: str) -> None:
    with _triggers(connection) as triggers:
        following = triggers.resume(name).next_fires()
    say(f"{name} is active{', next ' + time_text(int(following[0] * SECOND)) if following else ''}")


def fire(connection: Connection, name: str, *, inputs: Pairs, key: str | None) -> None:
    given = _given(inputs)
    with _triggers(connection) as triggers:
        try:
            say(triggers.fire(name, given, key=key))
        except NotHere as error:
            raise InputError(f"trigger {name!r}: {error}") from None


def backfill(connection: Connection, name: str, start: str, end: str, *, dry_run: bool, as_json: bool) -> None:
    with _triggers(connection) as triggers:
        times = [time_text(time) for time in triggers.backfill(name, _time(start), _time(end), dry_run=dry_run)]
    if as_json:
        record: BackfillRecord = {"times": times, "dry_run": dry_run}
        say(json_text(record))
    elif dry_run:
        say("\n".join(times))
    else:
        say(f"{len(times)} times are started by whoever serves")


def _time(text: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    named = None if time is None else moment((time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat())
    if named is None:
        raise InputError(f"expected a time, as 2026-03-01 or 2026-03-01T06:00:00+01:00, got {shown(text)}")
    return named


def rm(connection: Connection, name: str) -> None:
    with _triggers(connection) as triggers:
        triggers.remove(name)
    say(f"{name} is removed; its runs stay")
