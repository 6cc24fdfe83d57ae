"""Reading rows of runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...core.model import ListEnded, Page, RunRow
from ...core.store.rules.codes import GATE, RUN_CODE, RUN_STATUS
from ...core.store.rules.paging import page_of
from .ops.ending import Transaction
from .payloads import resolve

RUN = """
SELECT r.key, r.id, r.workflow, r.target, g.digest, r.status, r.on_failure, r.input, r.seed, r.urgency, r.idempotency_key,
       r.gate, r.purpose, r.stopping, r.total, r.open, r.active, r.failed, r.seq, r.created_at, r.started_at, r.ended_at,
       r.deadline_at, r.reason, r.heals, r.fork, r.tolerated, r.origin, r.tags, r.timeout
  FROM run r JOIN graph g ON g.key = r.graph
"""


def indexed_by(index: str) -> str:
    return RUN.replace("run r", f"run r INDEXED BY {index}")


def run_rows(tx: Transaction, runs: Sequence[str]) -> tuple[RunRow, ...]:
    """In the order of their ids."""
    found = tx.all(f"{RUN} WHERE r.id IN (SELECT value FROM json_each(?)) ORDER BY r.id", (json.dumps(runs),))
    return tuple(run_row(tx, row) for row in found)


def run_row(tx: Transaction, row: Any) -> RunRow:
    run, *head, status, on_failure, payload, seed, urgency, key, gate, purpose, stopping = row[:14]
    *counts, tags, timeout = row[14:]
    values = (
        *head, RUN_STATUS[status], on_failure, resolve(tx.db, run, payload) or b"", int(seed), -urgency, key, GATE[gate],
        purpose, bool(stopping), *counts, tuple(map(tuple, json.loads(tags))) if tags else (), timeout, False,
    )  # fmt: skip
    return RunRow._make(values)


def ended_runs(tx: Transaction, query: ListEnded) -> Page[RunRow]:
    chosen = "" if query.workflow is None else "AND r.workflow = ?"
    codes = ",".join(str(RUN_CODE[status]) for status in query.statuses)
    chosen += f" AND r.status IN ({codes})" if codes else ""
    statement = f"""
{indexed_by("run_ended")} WHERE r.ended_at >= ? AND (r.ended_at, r.key) > (?, ?) {chosen} ORDER BY r.ended_at, r.key LIMIT ?"""
    after = (query.since, -1) if query.after is None else query.after
    named = () if query.workflow is None else (query.workflow,)
    rows = tx.all(statement, (query.since, *after, *named, query.limit))
    found = [(row[0], run_row(tx, row)) for row in rows]
    page = page_of(found, query.limit, lambda each: (each[1].ended_at, each[0]))
    return Page((run for _, run in page), page.cursor)
