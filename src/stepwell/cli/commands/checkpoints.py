"""`stepwell checkpoints`: the checkpoints of a run that have names, and how it stood at any of them."""

from __future__ import annotations

from collections.abc import Iterable

from ...base.clock import utc_text
from ...base.codec import text as text_of
from ...history.replay.checkpoint import Checkpoint, Label
from ..connect import Connection
from ..find import find_run, find_step
from ..show.words import count, plain
from ..streams import json_text, say

ROWS = 40
"""Work items that are shown one by one; --json has all."""


def checkpoints(connection: Connection, text: str, at: str | None, *, as_json: bool) -> None:
    with connection.store() as store:
        run = connection.engine(store).get(find_run(store, text).id)
        if at is None:
            _list(connection, run.id, run.checkpoints(), as_json=as_json)
        else:
            checkpoint = run.checkpoint(find_step(run, at))
            say(json_text(checkpoint.data())) if as_json else _show(checkpoint)


def _list(connection: Connection, run_id: str, given_labels: Iterable[Label], *, as_json: bool) -> None:
    from ..show.screen import console, table

    labels = list(given_labels)
    if as_json:
        say(json_text([label.to_dict() for label in labels]))
        return
    if not labels:
        say(
            f"no body of run {run_id} has given a checkpoint a name; `{connection.command(f'checkpoints {run_id} SEQ')}`"
        )
        say("shows how it stood at any entry of its journal, counted from 1")
        return
    made = table("label", "seq", "node", "attempt", "when", wrapped=("label", "node"))
    for each in labels:
        made.add_row(plain(each.label), f"{each.step:,}", plain(each.node), str(each.attempt), utc_text(each.time))
    console().print(made)


def _show(checkpoint: Checkpoint) -> None:
    from ..show.screen import coloured, console, table

    named = "" if checkpoint.label is None else f", {plain(checkpoint.label)!r}"
    say(f"run {checkpoint.run_id} at {checkpoint.step:,}{named}, {utc_text(checkpoint.time)}")
    say(f"state    {plain(text_of(checkpoint.state)) if checkpoint.state is not None else 'none is declared'}")
    say(f"effects  {count(len(checkpoint.effects), 'effect')} recorded by then")
    say(f"key      {checkpoint.idempotency_key}")
    if not checkpoint.frontier:
        say("frontier empty: nothing was ready, running or waiting")
        return
    made = table("frontier", "status", "attempt", "level", wrapped=("frontier",))
    for item in checkpoint.frontier[:ROWS]:
        made.add_row(plain(item.node), coloured(item.status), str(item.attempt), str(item.level))
    console().print(made)
    if len(checkpoint.frontier) > ROWS:
        say(f"and {len(checkpoint.frontier) - ROWS:,} more; --json shows all")
