"""The commands that end and remove runs: cancel, gc."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from ...base.clock import microseconds
from ...core.model import TERMINAL_RUNS, Delete, Deleted, ListRuns, Op, PutRecord, RunRow, RunStatus, Sweep
from ...core.store import Store, reader
from ...engine.procedures.gates import delete
from ...engine.procedures.procedure import carry_out
from ...engine.runs.records import run_record
from ...engine.runs.stored import StoredRun
from ...errors import RunConflict
from ...history.audit_log import count_before, noted, prune
from ..connect import Connection
from ..find import find_run
from ..show.advice import advised
from ..show.words import ago, count, parse_age, plain
from ..streams import json_text, say

if TYPE_CHECKING:
    from ...answers.runs import DeletedRuns

PATIENCE = 2.0
"""Seconds after the grace within which a run that is cancelled should have ended."""

NODES_AT_ONCE = 200
_SHOWN_UP_TO = 20
_PAGE = 5_000


@advised
def cancel(connection: Connection, text: str, *, grace_seconds: float) -> None:
    with connection.store() as store:
        row = find_run(store, text)
        connection.engine(store).get(row.id).cancel(grace_seconds=grace_seconds)
        say(f"run {row.id} is {_when_cancelled(store, row, grace_seconds)}")


def _when_cancelled(store: Store, row: RunRow, grace: float) -> RunStatus:
    """Wait until the running bodies have stopped. There may be no worker left for this run, so sweep here."""
    give_up_at = time.monotonic() + grace + PATIENCE
    while True:
        status = reader.require_run(store, row.id).status
        if status.terminal or time.monotonic() > give_up_at:
            return status
        time.sleep(0.05)
        store.commit([Sweep()])


def gc(connection: Connection, *, older_than: str, keep: int, audit_log: str, dry_run: bool, as_json: bool) -> None:
    from ...engine.procedures.collect_graphs import collect_graphs, unneeded_graphs

    age, entry_age = parse_age(older_than), parse_age(audit_log)
    with connection.store() as store:
        now = store.now()
        newest = {row.id for row in islice(_roots(store), keep)}
        rows = [row for row in _roots(store, ended_before=now - microseconds(age)) if row.id not in newest]
        if not dry_run:
            rows = _deleted(store, rows, noted("gc", "store", "runs", older_than=older_than, keep=keep))
        graphs = sum(1 for _ in unneeded_graphs(store)) if dry_run else collect_graphs(store)
        entries = (count_before if dry_run else prune)(store, time.time_ns() // 1_000 - microseconds(entry_age))
        if as_json:
            record: DeletedRuns = {
                "dry_run": dry_run,
                "deleted": 0 if dry_run else len(rows),
                "runs": [run_record(StoredRun(store, row)) for row in rows],
                "graphs": graphs,
                "audit_log": entries,
            }
            say(json_text(record))
            return
    for row in rows[:_SHOWN_UP_TO]:
        say(f"{row.status:<9}  {row.id}  {plain(row.workflow)}  ended {ago(row.ended_at or now, now)}")
    if len(rows) > _SHOWN_UP_TO:
        say(f"and {count(len(rows) - _SHOWN_UP_TO, 'more run')}")
    done = "would delete" if dry_run else "deleted"
    unused = f", and {count(graphs, 'graph')} that no run has" if graphs else ""
    log = f", and {entries:,} {'entry' if entries == 1 else 'entries'} of the audit log" if entries else ""
    say(f"{done} {count(len(rows), 'run')} that ended more than {older_than} ago{unused}{log}")


def _roots(store: Store, *, ended_before: int | None = None) -> Iterator[RunRow]:
    """Runs that have ended, the newest first. Child runs go with their roots."""
    ended = reader.all_runs(store, *TERMINAL_RUNS, ended_before=ended_before, limit=_PAGE)
    return (row for row in ended if row.parent is None)


def _deleted(store: Store, rows: Sequence[RunRow], entries: Sequence[PutRecord]) -> list[RunRow]:
    """Delete runs with their child runs, many small ones in a commit, and return them. One that was retried meanwhile is kept.

    `entries`: what the audit log gets of it, once, with the first run that is deleted.
    """
    gone: list[RunRow] = []
    for batch in _batches(rows):
        asked = [ListRuns(1, parent=row.id) for row in batch]
        trees = {row for row, page in zip(batch, store.read(asked), strict=True) if page.runs}
        for row in trees:
            with suppress(RunConflict):
                carry_out(store, delete(row.id, entries))
                gone.append(row)
        batch = [row for row in batch if row not in trees]
        while batch:
            ops: list[Op] = []
            for row in batch:
                ops += [Delete(row.id), *entries]
            receipts = store.commit(ops)[:: 1 + len(entries)]
            answers = [
                (row, receipt) for row, receipt in zip(batch, receipts, strict=True) if isinstance(receipt, Deleted)
            ]
            gone += [row for row, receipt in answers if receipt.finished]
            batch = [row for row, receipt in answers if not receipt.finished]
    return gone


def _batches(rows: Sequence[RunRow]) -> Iterator[list[RunRow]]:
    """Keeps commits small, because other writers wait for each of them."""
    batch: list[RunRow] = []
    for row in rows:
        if batch and sum(each.nodes for each in batch) + row.nodes > NODES_AT_ONCE:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
