"""Runs copied from another store."""

from __future__ import annotations

import json
from typing import Any

from ....base.ids import split_attempt_id
from ....core.model import (
    LOAD_LEASE,
    AttemptRow,
    AttemptStatus,
    GateState,
    JournalRow,
    Receipt,
    Refusal,
    Refused,
    Restore,
    Restored,
    RunRow,
)
from ....core.store.rules import codes
from ....core.store.rules.verdicts import refuse_restore
from ..payloads import held_form, keep
from .attempts import add_claim
from .ending import Transaction, mark_ready
from .gates import NODE_COUNTS
from .leases import next_due

_INSERT = f"""
INSERT INTO run (id, workflow, target, graph, status, on_failure, input, seed, urgency, idempotency_key, timeout,
                 gate, purpose, total, loaded, open, active, seq, created_at, deadline_at, fork, origin, tags,
                 parent, parent_node, depth)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {codes.G_HELD}, 'restore', ?, 0, 0, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_NODE = """
INSERT OR IGNORE INTO node (run, idx, status, waiting, skipped, lane, rank, attempt, failures, losses, due_at, reason,
                            generation, postponed, wakes)
SELECT ?1, l.idx, ?3, ?4, ?5, ?6, l.rank, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14
  FROM layout l WHERE l.graph = ?15 AND l.idx = ?2
"""
_ATTEMPT = """
INSERT OR IGNORE INTO attempt (key, run, idx, number, status, claim, worker, started_at, ended_at, output, error, outcome)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_JOURNAL = """
INSERT OR IGNORE INTO journal (run, seq, at, kind, idx, number, status, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_LINE = f"""
INSERT OR IGNORE INTO line (attempt, idx, at, kind, data)
SELECT key * {codes.ORDINALS} + ?, ?, ?, ?, ? FROM claim WHERE id = ?
"""
_FORMER = "INSERT OR IGNORE INTO former_graph (run, graph) SELECT ?, key FROM graph WHERE digest = ?"
_FINISH = f"""
UPDATE run
   SET status = :status, gate = :gate, purpose = NULL, expires_at = NULL, stopping = :stopping, seq = :seq, heals = :heals,
       tolerated = :tolerated, error = :error, started_at = :started_at, ended_at = :ended_at, deadline_at = :deadline_at,
       reason = :reason, loaded = total, open = t.open, active = t.active, failed = t.failed
  FROM ({NODE_COUNTS}) t WHERE key = :run
"""


def restore(tx: Transaction, op: Restore) -> Receipt:
    row = op.run
    graph = tx.one("SELECT key, loaded, total FROM graph WHERE digest = ?", (row.digest,))
    found = tx.one("SELECT key, purpose, created_at, seed FROM run WHERE id = ?", (row.id,))
    of_key = tx.one(
        "SELECT id FROM run WHERE workflow = ? AND idempotency_key = ?", (row.workflow, row.idempotency_key)
    )
    if found is not None and found[1] != "restore" and (found[2], int(found[3])) == (row.created_at, row.seed):
        return Restored(_count(tx, "node", found[0]), True)  # this run was restored before
    refused = refuse_restore(
        op,
        graph_complete=None if graph is None else graph[1] == graph[2],
        restoring=None if found is None else found[1] == "restore",
        key_taken=found is None and of_key is not None,
    )
    if refused is not None:
        return refused
    if (early := _first_too_early(tx, -1 if found is None else found[0], op)) is not None:
        return Refused(Refusal.INCOMPLETE, f"attempt {early.number} of node {early.index} comes before its node")
    run = _insert(tx, row, graph[0], graph[2]) if found is None else found[0]
    tx.db.execute("UPDATE run SET expires_at = ? WHERE key = ?", (tx.now + LOAD_LEASE, run))
    _add(tx, run, graph[0], op)
    nodes, entries = _count(tx, "node", run), _count(tx, "journal", run)
    tx.db.execute("UPDATE run SET loaded = ? WHERE key = ?", (nodes, run))
    if not op.finish:
        return Restored(nodes, False)
    if nodes < graph[2] or entries < row.seq:
        return Refused(Refusal.INCOMPLETE, f"{nodes} nodes and {entries} entries are there")
    _finish(tx, run, row)
    return Restored(nodes, True)


def _first_too_early(tx: Transaction, run: int, op: Restore) -> AttemptRow | None:
    """The first attempt whose node is not there, or is older than its completion. Nobody would find such an attempt."""
    asked = json.dumps(sorted({attempt.index for attempt in op.attempts}))
    stored = "SELECT idx, attempt FROM node WHERE run = ? AND idx IN (SELECT value FROM json_each(?))"
    latest = dict(tx.all(stored, (run, asked))) | {node.index: node.attempt for node in op.nodes}
    for attempt in op.attempts:
        number = latest.get(attempt.index)
        if number is None or (attempt.status is AttemptStatus.COMPLETED and attempt.number != number):
            return attempt
    return None


def _count(tx: Transaction, table: str, run: int) -> int:
    ((count,),) = tx.all(f"SELECT count(*) FROM {table} WHERE run = ?", (run,))
    return int(count)


def _insert(tx: Transaction, row: RunRow, graph: int, total: int) -> int:
    status, tags = codes.RUN_CODE[row.status], json.dumps(row.tags) if row.tags else None
    values = (
        row.id, row.workflow, row.target, graph, status, row.on_failure, held_form(row.input), str(row.seed), -row.priority,
        row.idempotency_key, row.timeout, total, row.created_at, row.deadline_at, row.fork, row.origin, tags, row.parent,
        row.parent_node, row.depth,
    )  # fmt: skip
    tx.db.execute(_INSERT, values)
    run = tx.db.last_insert_rowid()
    keep(tx.db, run, row.input)
    tx.db.executemany("INSERT INTO tag (name, value, run) VALUES (?, ?, ?)", [(*tag, run) for tag in row.tags])
    return run


def _add(tx: Transaction, run: int, graph: int, op: Restore) -> None:
    tx.lanes.add(tx.db, {node.lane for node in op.nodes})
    for node in op.nodes:
        lane = tx.lanes.key(tx.db, node.lane)
        counts = (node.attempt, node.failures, node.losses, node.due_at, node.reason)
        more = (node.generation, node.postponed, node.wakes)
        status = codes.NODE_CODE[node.status]
        tx.db.execute(_NODE, (run, node.index, status, node.waiting, node.skipped, lane, *counts, *more, graph))
    for attempt in op.attempts:
        _add_attempt(tx, run, attempt)
    tx.db.executemany(_JOURNAL, [(run, *_journal_values(entry)) for entry in op.journal])
    for line in op.lines:
        keep(tx.db, run, line.data)
        claim, ordinal = split_attempt_id(line.attempt)
        tx.db.execute(_LINE, (ordinal, line.index, line.at, line.kind, held_form(line.data), claim))
    tx.db.executemany(_FORMER, [(run, digest) for digest in op.former_graphs])


def _add_attempt(tx: Transaction, run: int, row: AttemptRow) -> None:
    claim, ordinal = split_attempt_id(row.id)
    found = tx.one("SELECT key FROM claim WHERE id = ?", (claim,))
    key = (add_claim(tx, claim) if found is None else found[0]) * codes.ORDINALS + ordinal
    payloads = (row.output, row.error, row.outcome)
    keep(tx.db, run, *payloads)
    held = (None if each is None else held_form(each) for each in payloads)
    slot = (run, row.index, row.number, codes.ATTEMPT_CODE[row.status])
    times = (row.started_at, row.ended_at)
    tx.db.execute(_ATTEMPT, (key, *slot, claim, row.worker, *times, *held))
    latest = "UPDATE node SET last = ? WHERE run = ? AND idx = ? AND attempt = ?"
    tx.db.execute(latest, (key, run, row.index, row.number))


def _journal_values(entry: JournalRow) -> tuple[object, ...]:
    """The table holds a status as a number in `status`, anything else as text in `detail`."""
    numbers: dict[Any, int] = codes.RUN_CODE if entry.kind == "run" else codes.NODE_CODE
    status = None if entry.kind in ("gate", "healed") else numbers.get(entry.status)
    detail = entry.status if status is None else None
    return entry.seq, entry.at, codes.KIND_CODE[entry.kind], entry.index, entry.attempt, status, detail


def _finish(tx: Transaction, run: int, row: RunRow) -> None:
    stopping = row.stopping and row.gate is not GateState.OPEN
    changed = {"status": codes.RUN_CODE[row.status], "gate": codes.GATE_CODE[row.gate], "stopping": stopping}
    tx.db.execute(_FINISH, row._asdict() | changed | {"run": run})
    mark_ready(tx, [run])
    next_due(tx, [run])
