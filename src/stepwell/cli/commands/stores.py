"""The commands about stores: copy, migrate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import typer

from ...engine.procedures.copy_runs import copy_runs
from ...errors import InputError, StoreError
from ...stores import open_store, public
from ..connect import Connection, store_exists
from ..exits import ExitCode
from ..show.words import count, plain
from ..streams import json_text, say

if TYPE_CHECKING:
    from ...answers.runs import CopyRecord

_WORDS = {
    "copied": "copied and audited",
    "moved": "moved and audited",
    "there": "there already",
    "left": "left where they are",
    "refused": "not copied",
}


def copy(
    connection: Connection,
    source: str,
    target: str,
    *,
    runs: Sequence[str] | None,
    unfinished: bool,
    trust: bool,
    wait: float,
    as_json: bool,
) -> None:
    if not store_exists(source):
        raise StoreError(f"store {public(source)}: there is no such file")
    done = []
    with closing(open_store(source)) as here, closing(open_store(target)) as there:
        for each in copy_runs(here, there, only=runs or (), unfinished=unfinished, trust=trust, wait_seconds=wait):
            done.append(each)
            if not as_json and (each.outcome in ("moved", "refused") or each.detail):
                detail = f": {each.detail}" if each.detail else ""
                say(f"{each.run_id}  {plain(each.workflow)}  {_WORDS[each.outcome]}{detail}")
    if as_json:
        record: CopyRecord = {"from": here.url, "to": there.url, "runs": [each.to_dict() for each in done]}
        say(json_text(record))
    else:
        outcomes = Counter(each.outcome for each in done)
        nodes, attempts = sum(each.nodes for each in done), sum(each.attempts for each in done)
        message = ", ".join(f"{number} {_WORDS[outcome]}" for outcome, number in sorted(outcomes.items()))
        say(
            f"{count(len(done), 'run')}: {message or 'nothing to copy'} ({count(nodes, 'node')}, {count(attempts, 'attempt')})"
        )
    if any(each.outcome == "refused" for each in done):
        raise typer.Exit(ExitCode.CONFLICT)


def migrate(connection: Connection, *, show: bool) -> None:
    url = connection.settings.store
    if not url.startswith(("postgresql://", "postgres://")):
        raise InputError(f"store {public(url)}: only a postgresql:// store has a schema to migrate")
    if show:
        from ...stores.postgres.address import parse
        from ...stores.postgres.schema import script

        say(script(parse(url).schema))
        return
    store = open_store(url)
    store.close()
    say(f"{store.url} has the schema of this version")
