"""The commands replay and export."""

from __future__ import annotations

from os.path import isfile  # which a name that no file can have does not trouble
from typing import TYPE_CHECKING

import typer

from ...engine import Run
from ...engine.reports.replay import NOTHING_REPEATABLE, Replayed, replay_cassette
from ...history.replay.loading import load_cassette
from ..connect import Connection
from ..exits import ExitCode, complain
from ..find import find_run
from ..show.words import count, plain
from ..streams import json_text, say

if TYPE_CHECKING:
    from ...client import Client


def replay(connection: Connection, what: str, *, as_json: bool) -> None:
    if isfile(what) or what.endswith(".json"):
        report = replay_cassette(load_cassette(what), jobs=connection.settings.jobs, handlers=connection.handlers())
    else:
        with connection.store() as store:
            run = connection.engine(store).get(find_run(store, what).id)
            client = _without_code(connection)
            report = run.replay() if client is None else client.replay(run)
    if as_json:
        say(json_text(report.to_dict()))
    else:
        _tell(report)
    if not report.executed:
        complain(NOTHING_REPEATABLE)
        raise typer.Exit(ExitCode.RUN_FAILED)


def export(connection: Connection, text: str, file: str, *, missing_code_ok: bool) -> None:
    with connection.store() as store:
        run = connection.engine(store).get(find_run(store, text).id)
        client = _without_code(connection)
        path = (
            run.export(file, missing_code_ok=missing_code_ok)
            if client is None
            else client.export(run, file, missing_code_ok=missing_code_ok)
        )
        named = "" if connection.settings.jobs else "".join(f" --jobs {module}" for module in _modules(run))
    say(f"wrote {path}; `{connection.command(f'replay {path}{named}')}` replays it with the code as it is then")


def _without_code(connection: Connection) -> Client | None:
    """The server that is asked, if no module is allowed here: then its workers have the code."""
    server = connection.server
    return None if server is None or connection.settings.jobs else connection.client(server)


def _modules(run: Run) -> list[str]:
    """Modules that must be allowed to replay a cassette of this run, three at most."""
    target = run.row.target
    addresses = [spec.job for spec in run.graph if spec.job is not None] if target is None else [target]
    return sorted({address.partition(":")[0] for address in addresses if ":" in address})[:3]


def _tell(report: Replayed) -> None:
    executed, effects = count(len(report.executed), "node"), count(report.effects, "effect")
    say(f"run {report.run_id} replayed in {report.seconds:.3f} s: {executed} executed, {effects} served")
    reasons: dict[str, list[str]] = {}
    for node, reason in report.stubbed.items():
        reasons.setdefault(reason, []).append(node)
    for reason, nodes in reasons.items():
        more = f" and {len(nodes) - 10:,} more" if len(nodes) > 10 else ""
        say(f"  stubbed, {reason}: {plain(', '.join(nodes[:10]))}{more}")
