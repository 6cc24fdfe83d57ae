"""The commands that end and remove runs: cancel, gc."""

from __future__ import annotations

import time
from collections.abc import Iterator

import typer

from ..clock import microseconds
from ..model import RunRow, RunStatus, Sweep
from ..runner import Engine
from ..store import reader
from .opening import Place, find_run
from .records import run_record
from .words import ago, count, parse_age

ENDED = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)
_SHOWN_UP_TO = 20
_PATIENCE = 2.0


def cancel(place: Place, text: str, *, grace: float) -> None:
    with place.starter() as engine:
        row = find_run(engine, text)
        engine.cancel(row.id, grace)
        status = _when_cancelled(engine, row, grace)
    typer.echo(f"run {row.id} is {status}")


def _when_cancelled(engine: Engine, row: RunRow, grace: float) -> RunStatus:
    """Wait for what runs to stop. Perhaps nobody works on this run any more, so the sweeping is done here."""
    give_up_at = time.monotonic() + grace + _PATIENCE
    while True:
        status = reader.require_run(engine.store, row.id).status
        if status.terminal or time.monotonic() > give_up_at:
            return status
        time.sleep(0.05)
        engine.store.commit([Sweep()])


def gc(place: Place, *, older_than: str, keep: int, dry_run: bool, as_json: bool) -> None:
    age = parse_age(older_than)
    with place.starter() as engine:
        now = engine.store.now()
        rows = list(_old(engine, now - microseconds(age), keep))
        if not dry_run:
            for row in rows:
                engine.delete(row.id)
    if as_json:
        record = {"dry_run": dry_run, "deleted": 0 if dry_run else len(rows), "runs": [run_record(row) for row in rows]}
        print(json_text(record))
        return
    for row in rows[:_SHOWN_UP_TO]:
        typer.echo(f"{row.status:<9}  {row.id}  {row.workflow}  ended {ago(row.ended_at or now, now)}")
    if len(rows) > _SHOWN_UP_TO:
        typer.echo(f"and {count(len(rows) - _SHOWN_UP_TO, 'more run')}")
    typer.echo(
        f"{'would delete' if dry_run else 'deleted'} {count(len(rows), 'run')} that ended more than {older_than} ago"
    )


def _old(engine: Engine, ended_before: int, keep: int) -> Iterator[RunRow]:
    for place, row in enumerate(reader.all_runs(engine.store, *ENDED)):
        if place >= keep and row.ended_at is not None and row.ended_at < ended_before:
            yield row
