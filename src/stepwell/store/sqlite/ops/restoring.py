"""Runs that come from another store."""

from __future__ import annotations

import json

from ....ids import split_attempt_id
from ....model import LOAD_LEASE, AttemptRow, JournalRow, Receipt, Refusal, Refused, Restore, Restored, RunRow
from ...rules.codes import (
    ATTEMPT_CODE,
    G_HELD,
    G_OPEN,
    GATE_CODE,
    KIND_CODE,
    N_FAILED,
    N_INTERRUPTED,
    N_READY,
    N_TERMINAL,
    NODE_CODE,
    ORDINALS,
    RUN_CODE,
)
from ...rules.payloads import is_large, reference
from ...rules.verdicts import refuse_restore
from ..payloads import keep
from .ending import Transaction, mark_ready
from .leases import next_due

_INSERT = f"""
INSERT INTO run (id, workflow, target, graph, status, on_failure, input, seed, urgency, idempotency_key, timeout, gate, purpose,
                 total, loaded, open, active, seq, created_at, deadline_at, fork, origin, tags)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {G_HELD}, 'restore', ?, 0, 0, 0, 0, ?, ?, ?, ?, ?)
"""
_NODE = """
INSERT OR IGNORE INTO node (run, idx, status, waiting, live, lane, rank, attempt, failures, losses, due_at, reason, generation,
                            postponed)
SELECT ?1, l.idx, ?3, ?4, ?5, ?6, l.rank, ?7, ?8, ?9, ?10, ?11, ?12, ?13 FROM layout l WHERE l.graph = ?14 AND l.idx = ?2
"""
_ATTEMPT = """
INSERT OR IGNORE INTO attempt (key, run, idx, number, status, worker, started_at, ended_at, output, error, outcome)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_JOURNAL = """
INSERT OR IGNORE INTO journal (run, seq, at, kind, idx, number, status, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_FINISH = f"""
UPDATE run
   SET status = :status, gate = :gate, purpose = NULL, expires_at = NULL, stopping = :stopping, seq = :seq, heals = :heals,
       tolerated = :tolerated, started_at = :started_at, ended_at = :ended_at, deadline_at = :deadline_at, reason = :reason,
       loaded = total, open = t.open, active = t.active, failed = t.failed
  FROM (SELECT total(status < {N_TERMINAL}) AS open, total(status BETWEEN {N_READY} AND {N_TERMINAL - 1}) AS active,
               total(status IN ({N_FAILED}, {N_INTERRUPTED})) AS failed FROM node WHERE run = :run) t
 WHERE key = :run
"""


def restore(tx: Transaction, op: Restore) -> Receipt:
    row = op.run
    graph = tx.one("SELECT key, loaded, total FROM graph WHERE digest = ?", (row.digest,))
    found = tx.one("SELECT key, purpose, created_at, seed FROM run WHERE id = ?", (row.id,))
    if found is not None and found[1] != "restore" and (found[2], int(found[3])) == (row.created_at, row.seed):
        return Restored(_count(tx, "node", found[0]), True)  # it is this run: it was asked before
    refused = refuse_restore(
        op,
        graph_complete=None if graph is None else graph[1] == graph[2],
        restoring=None if found is None else found[1] == "restore",
    )
    if refused is not None:
        return refused
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


def _count(tx: Transaction, table: str, run: int) -> int:
    ((count,),) = tx.all(f"SELECT count(*) FROM {table} WHERE run = ?", (run,))
    return int(count)


def _insert(tx: Transaction, row: RunRow, graph: int, total: int) -> int:
    tx.db.execute(
        _INSERT,
        (
            row.id,
            row.workflow,
            row.target,
            graph,
            RUN_CODE[row.status],
            row.on_failure,
            reference(row.input) if is_large(row.input) else row.input,
            str(row.seed),
            -row.priority,
            row.idempotency_key,
            row.timeout,
            total,
            row.created_at,
            row.deadline_at,
            row.fork,
            row.origin,
            json.dumps(row.tags) if row.tags else None,
        ),
    )
    run = tx.db.last_insert_rowid()
    keep(tx.db, run, row.input)
    tx.db.executemany("INSERT INTO tag (name, value, run) VALUES (?, ?, ?)", [(*tag, run) for tag in row.tags])
    return run


def _add(tx: Transaction, run: int, graph: int, op: Restore) -> None:
    tx.lanes.add(tx.db, {node.lane for node in op.nodes})
    for node in op.nodes:
        lane = tx.lanes.key(tx.db, node.lane)
        counts = (node.attempt, node.failures, node.losses, node.due_at, node.reason, node.generation, node.postponed)
        status = NODE_CODE[node.status]
        tx.db.execute(_NODE, (run, node.index, status, node.waiting, node.live, lane, *counts, graph))
    for attempt in op.attempts:
        _add_attempt(tx, run, attempt)
    tx.db.executemany(_JOURNAL, [(run, *_stored(entry)) for entry in op.journal])
    for line in op.lines:
        keep(tx.db, run, line.data)
        data = reference(line.data) if is_large(line.data) else line.data
        claim, ordinal = split_attempt_id(line.attempt)
        tx.db.execute(
            f"INSERT OR IGNORE INTO line (attempt, idx, at, kind, data) SELECT key * {ORDINALS} + ?, ?, ?, ?, ?"
            " FROM claim WHERE id = ?",
            (ordinal, line.index, line.at, line.kind, data, claim),
        )
    former = [(run, digest) for digest in op.former_graphs]
    tx.db.executemany(
        "INSERT OR IGNORE INTO former_graph (run, graph) SELECT ?, key FROM graph WHERE digest = ?", former
    )


def _add_attempt(tx: Transaction, run: int, row: AttemptRow) -> None:
    claim, ordinal = split_attempt_id(row.id)
    tx.db.execute("INSERT OR IGNORE INTO claim (id) VALUES (?)", (claim,))
    ((key,),) = tx.all("SELECT key FROM claim WHERE id = ?", (claim,))
    payloads = (row.output, row.error, row.outcome)
    keep(tx.db, run, *payloads)
    held = (reference(each) if each is not None and is_large(each) else each for each in payloads)
    times = (row.started_at, row.ended_at)
    code = ATTEMPT_CODE[row.status]
    tx.db.execute(_ATTEMPT, (key * ORDINALS + ordinal, run, row.index, row.number, code, row.worker, *times, *held))


def _stored(entry: JournalRow) -> tuple[object, ...]:
    """An entry as the table has it: a status as a number, anything else as it was."""
    codes: dict[str, int] = {
        str(status): code for status, code in (RUN_CODE if entry.kind == "run" else NODE_CODE).items()
    }
    known = entry.kind not in ("gate", "healed") and entry.status in codes
    status = codes[entry.status] if known and entry.status is not None else None
    detail = None if known else entry.status
    return entry.seq, entry.at, KIND_CODE[entry.kind], entry.index, entry.attempt, status, detail


def _finish(tx: Transaction, run: int, row: RunRow) -> None:
    given = row._asdict() | {"run": run, "status": RUN_CODE[row.status], "gate": GATE_CODE[row.gate]}
    gate = GATE_CODE[row.gate]
    names = ("seq", "heals", "tolerated", "started_at", "ended_at", "deadline_at", "reason", "run", "status", "gate")
    stopping = row.stopping and gate != G_OPEN
    tx.db.execute(_FINISH, {name: given[name] for name in names} | {"stopping": stopping})
    mark_ready(tx, [run])
    next_due(tx, [run])
