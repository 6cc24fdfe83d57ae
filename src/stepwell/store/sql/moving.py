"""The hot ops: settle, claim, append."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...ids import attempt_id, split_attempt_id
from ...model import (
    CHUNK,
    RECORDED,
    Append,
    Appended,
    AttemptStatus,
    Claim,
    Claimed,
    Grant,
    NodeStatus,
    Receipt,
    Refusal,
    Refused,
    Settle,
    Settled,
    may_settle,
)
from .codes import (
    A_COMPLETED,
    A_FAILED,
    A_RUNNING,
    A_TIMED_OUT,
    ATTEMPT_CODE,
    G_OPEN,
    KIND_CODE,
    N_CANCELLED,
    N_COMPLETED,
    N_FAILED,
    N_READY,
    N_RUNNING,
    N_WAITING,
    NODE_CODE,
    ORDINALS,
    R_CANCELLING,
    R_PENDING,
    R_RUNNING,
)
from .ending import Transaction, apply_ending, hold_back, news
from .payloads import Packer, forget, forget_references, resolve
from .single import FEW, Candidate, append_few, grant_few, settle_one

# The node is no longer one of the graph. Only runs that were healed pay for the question.
_GONE = (
    "((r.heals OR r.fork IS NOT NULL) AND (SELECT l.removed FROM layout l WHERE l.graph = r.graph AND l.idx = a.idx))"
)
# In a run that is stopping, nothing waits or becomes ready again. A body that obeyed a stop which no longer holds,
# because the run was retried meanwhile, runs again.
_SETTLING = f"""
INSERT INTO temp.ending
SELECT j.key, a.key, a.run, a.idx, a.number, r.graph,
       CASE WHEN a.status = {A_RUNNING} THEN 1
            WHEN a.status = j.value ->> 2 AND a.output IS substr(:bytes, j.value ->> 4, j.value ->> 5)
             AND a.error IS substr(:bytes, j.value ->> 6, j.value ->> 7)
             AND a.outcome IS substr(:bytes, j.value ->> 8, j.value ->> 9) THEN 2
            ELSE 0 END,
       j.value ->> 2,
       CASE WHEN {_GONE} THEN iif(j.value ->> 3 = {N_COMPLETED}, {N_COMPLETED}, {N_CANCELLED})
            WHEN NOT r.stopping THEN iif(j.value ->> 3 = {N_CANCELLED}, {N_READY}, j.value ->> 3)
            WHEN j.value ->> 3 = {N_READY} THEN {N_CANCELLED}
            WHEN j.value ->> 3 <> {N_WAITING} THEN j.value ->> 3
            WHEN r.status = {R_CANCELLING} THEN {N_CANCELLED}
            ELSE {N_FAILED} END,
       substr(:bytes, j.value ->> 4, j.value ->> 5),
       substr(:bytes, j.value ->> 6, j.value ->> 7),
       substr(:bytes, j.value ->> 8, j.value ->> 9),
       CASE WHEN j.value ->> 3 = {N_WAITING} AND NOT r.stopping AND NOT {_GONE} THEN :now + (j.value ->> 10) END,
       0, NULL, NULL, r.gate = {G_OPEN}
  FROM json_each(:ops) j
       LEFT JOIN claim c ON c.id = j.value ->> 0
       LEFT JOIN attempt a ON a.key = c.key * {ORDINALS} + (j.value ->> 1)
       LEFT JOIN run r ON r.key = a.run
"""
# The same for completions that bring an output and nothing else: whatever its run is about, a node that completed has.
_COMPLETING = f"""
INSERT INTO temp.ending
SELECT j.key, a.key, a.run, a.idx, a.number, r.graph,
       CASE WHEN a.status = {A_RUNNING} THEN 1
            WHEN a.status = {A_COMPLETED} AND a.output IS substr(:bytes, j.value ->> 2, j.value ->> 3)
             AND a.error IS NULL AND a.outcome IS NULL THEN 2
            ELSE 0 END,
       {A_COMPLETED}, {N_COMPLETED}, substr(:bytes, j.value ->> 2, j.value ->> 3), NULL, NULL, NULL, 0, NULL, NULL,
       r.gate = {G_OPEN}
  FROM json_each(:ops) j
       LEFT JOIN claim c ON c.id = j.value ->> 0
       LEFT JOIN attempt a ON a.key = c.key * {ORDINALS} + (j.value ->> 1)
       LEFT JOIN run r ON r.key = a.run
"""
# They were counted as failures, as others that ended so.
_POSTPONE = f"""
UPDATE node SET failures = node.failures - 1, postponed = node.postponed + 1
  FROM temp.ending e
 WHERE e.verdict = 1 AND e.status IN ({A_FAILED}, {A_TIMED_OUT}) AND e.ord IN (SELECT value FROM json_each(?))
   AND node.run = e.run AND node.idx = e.idx
"""
_NO_ATTEMPT = ("", 0)
_AGAIN = (NodeStatus.READY, NodeStatus.CANCELLED)
"""What may mean that a node is to run again: a stop may have been taken back."""


def settle(tx: Transaction, ops: Sequence[Settle]) -> list[Receipt]:
    if len(ops) == 1 and may_settle(ops[0].status, ops[0].node):
        receipt = settle_one(tx, ops[0])
        if receipt is not None:
            return [receipt]
    legal = [may_settle(op.status, op.node) for op in ops]
    lines = [
        Append(op.attempt, index, kind, data)
        for op, allowed in zip(ops, legal, strict=True)
        if allowed and op.lines
        for index, (kind, data) in enumerate(op.lines, RECORDED)
    ]
    if lines:
        append(tx, lines)  # those of attempts that do not run are refused, as their settlements are
    tx.execute("DELETE FROM temp.ending")
    if all(map(_is_plain, ops)):
        _fill_with_completions(tx, ops)
    else:
        _fill(tx, ops, legal)
    apply_ending(tx)
    if postponed := [place for place, op in enumerate(ops) if op.postponed]:
        tx.execute(_POSTPONE, (json.dumps(postponed),))
    if any(op.node in _AGAIN for op in ops):
        hold_back(tx)
    verdicts = tx.json(
        "SELECT json_group_array(json_array(verdict, run)) FROM (SELECT * FROM temp.ending ORDER BY ord)"
    )
    moved = {run for verdict, run in verdicts if verdict == 1}
    runs = news(tx, moved | {run for verdict, run in verdicts if verdict == 2}, moved=moved)
    receipts: list[Receipt] = []
    for op, allowed, (verdict, run) in zip(ops, legal, verdicts, strict=True):
        if verdict:
            receipts.append(Settled(verdict == 2, runs[run]))
        elif allowed:
            receipts.append(Refused(Refusal.FENCED))
        else:
            receipts.append(Refused(Refusal.STATUS, f"{op.status} -> {op.node}"))
        if verdict != 1:
            forget(tx.db, op.output, op.error, op.outcome)
    return receipts


def _is_plain(op: Settle) -> bool:
    """A completion that brings an output and nothing else."""
    completed = op.status is AttemptStatus.COMPLETED and op.node is NodeStatus.COMPLETED
    return completed and op.error is None and op.outcome is None


def _fill_with_completions(tx: Transaction, ops: Sequence[Settle]) -> None:
    packer = Packer(tx.db)
    rows = [(*split_attempt_id(op.attempt), *packer.add(op.output)) for op in ops]
    tx.execute(_COMPLETING, {"ops": json.dumps(rows), "bytes": packer.joined})


def _fill(tx: Transaction, ops: Sequence[Settle], legal: Sequence[bool]) -> None:
    packer = Packer(tx.db)
    rows = [
        (
            *(split_attempt_id(op.attempt) if allowed else _NO_ATTEMPT),
            ATTEMPT_CODE[op.status],
            NODE_CODE[op.node],
            *packer.add(op.output),
            *packer.add(op.error),
            *packer.add(op.outcome),
            op.delay or 0,
        )
        for op, allowed in zip(ops, legal, strict=True)
    ]
    tx.execute(_SETTLING, {"ops": json.dumps(rows), "bytes": packer.joined, "now": tx.now})


_READY_IN_RUN = f"""
  FROM run r CROSS JOIN node n INDEXED BY node_ready
 WHERE r.id = :runs AND r.gate = {G_OPEN} AND n.status = {N_READY} AND n.lane = (SELECT key FROM lane WHERE name = :lane)
   AND n.urgency = r.urgency AND n.run = r.key
 LIMIT :limit
"""
_READY_IN_RUNS = f"""
  FROM (SELECT key, id, urgency, graph, heals, seq, started_at, status FROM run
         WHERE id IN (SELECT value FROM json_each(:runs)) AND gate = {G_OPEN}
         ORDER BY urgency, key LIMIT -1) r
       CROSS JOIN node n INDEXED BY node_ready
 WHERE n.status = {N_READY} AND n.lane = (SELECT key FROM lane WHERE name = :lane)
   AND n.urgency = r.urgency AND n.run = r.key
 LIMIT :limit
"""
_READY_SERVED = f"""
  FROM node n INDEXED BY node_ready CROSS JOIN run r ON r.key = n.run CROSS JOIN graph g ON g.key = r.graph
 WHERE n.status = {N_READY} AND n.lane = (SELECT key FROM lane WHERE name = :lane) AND r.gate = {G_OPEN}
   AND (:serves IS NULL
        OR json_array(r.workflow, g.digest) IN (SELECT json_array(value ->> 0, value ->> 1) FROM json_each(:serves)))
   AND (:runs IS NULL OR r.id IN (SELECT value FROM json_each(:runs)))
 ORDER BY n.urgency, n.run, n.rank
 LIMIT :limit
"""
_CANDIDATES = {
    ready: f"""
SELECT n.run, r.id, n.idx, n.attempt + 1, n.failures, n.losses, (SELECT needy FROM graph WHERE key = r.graph),
       n.generation, r.heals, r.seq, r.started_at IS NULL OR r.status = {R_PENDING}, n.postponed
{ready}"""
    for ready in (_READY_IN_RUN, _READY_IN_RUNS, _READY_SERVED)
}
_INTO_GRANTED = """
INSERT INTO temp.granted (run, idx, number, graph, failures, losses)
SELECT n.run, n.idx, n.attempt + 1, r.graph, n.failures, n.losses
"""
_START_ATTEMPTS = f"""
INSERT INTO attempt (key, run, idx, number, status, worker, started_at)
SELECT :claim * {ORDINALS} + ord - 1, run, idx, number, {A_RUNNING}, :worker, :now FROM temp.granted
"""
_START_NODES = f"""
UPDATE node SET status = {N_RUNNING}, attempt = g.number
  FROM temp.granted g WHERE node.run = g.run AND node.idx = g.idx
"""
_COUNT_STARTS = f"""
UPDATE run
   SET seq = seq + t.started, started_at = coalesce(started_at, :now),
       status = CASE status WHEN {R_PENDING} THEN {R_RUNNING} ELSE status END
  FROM (SELECT run, count(*) AS started FROM temp.granted GROUP BY run) t WHERE run.key = t.run
"""
_NOTE_STARTS = f"""
INSERT INTO journal (run, seq, at, kind, idx, number)
SELECT g.run, r.seq + 1 - row_number() OVER (PARTITION BY g.run ORDER BY g.ord DESC), :now, {KIND_CODE["claimed"]},
       g.idx, g.number
  FROM temp.granted g CROSS JOIN run r ON r.key = g.run
"""
_GRANTS = f"""
SELECT json_group_array(json_array(a.key % {ORDINALS}, r.id, a.idx, a.number, n.failures, n.losses, n.generation, r.heals,
                                   n.postponed)),
       max(g.needy)
  FROM (SELECT key, run, idx, number FROM attempt
         WHERE key BETWEEN :claim * {ORDINALS} AND :claim * {ORDINALS} + {ORDINALS - 1} AND status = {A_RUNNING}
         ORDER BY key) a
       CROSS JOIN node n ON n.run = a.run AND n.idx = a.idx
       CROSS JOIN run r ON r.key = a.run CROSS JOIN graph g ON g.key = r.graph
"""
_INPUTS = f"""
SELECT a.key % {ORDINALS}, need.ancestor, p.output
  FROM attempt a CROSS JOIN run r ON r.key = a.run CROSS JOIN need ON need.graph = r.graph AND need.child = a.idx
       CROSS JOIN attempt p INDEXED BY attempt_slot ON p.run = a.run AND p.idx = need.ancestor AND p.slot = 0
 WHERE a.key BETWEEN :claim * {ORDINALS} AND :claim * {ORDINALS} + {ORDINALS - 1} AND a.status = {A_RUNNING}
   AND p.output IS NOT NULL
 ORDER BY a.key, need.ancestor
"""


def claim(tx: Transaction, op: Claim) -> Receipt:
    ready, scope = _scope(op)
    few: list[Candidate] = []
    for lane, limit in op.lanes if len(op.lanes) == 1 else dict(op.lanes).items():
        room = min(limit, FEW + 1) - len(few)
        if room > 0:
            rows = tx.all(_CANDIDATES[ready], scope | {"lane": lane, "limit": room})
            few += map(Candidate._make, rows)
    granted = grant_few(tx, op, few) if 0 < len(few) <= FEW else None
    if granted is None:
        return _claim_many(tx, op, ready, scope, some=bool(few))
    key, grants = granted
    if any(node.needy for node in few):
        inputs = _inputs(tx, key)
        grants = [grant._replace(inputs=tuple(inputs.get(n, ()))) for n, grant in enumerate(grants)]
    return Claimed(tuple(grants))


def _claim_many(tx: Transaction, op: Claim, ready: str, scope: dict[str, Any], *, some: bool) -> Receipt:
    """A claim that is granted many nodes or none, that came before, or that may not be granted."""
    known = "SELECT (SELECT 1 FROM worker WHERE id = ? AND lease_until > ?), (SELECT key FROM claim WHERE id = ?)"
    ((alive, key),) = tx.all(known, (op.worker, tx.now, op.claim_id))
    if not alive:
        return Refused(Refusal.LEASE_EXPIRED)
    if key is None:
        if not some:
            return Claimed(())
        key = _grant_many(tx, op, ready, scope)
    return Claimed(_grants(tx, op, key))


def _scope(op: Claim) -> tuple[str, dict[str, Any]]:
    """Which READY nodes a claim may take: the end of a statement, and its parameters."""
    if op.serves is None and op.runs is not None:
        if len(op.runs) == 1:
            return _READY_IN_RUN, {"runs": op.runs[0]}
        return _READY_IN_RUNS, {"runs": json.dumps(op.runs)}
    runs = None if op.runs is None else json.dumps(op.runs)
    return _READY_SERVED, {"runs": runs, "serves": None if op.serves is None else json.dumps(op.serves)}


def _grant_many(tx: Transaction, op: Claim, ready: str, scope: dict[str, Any]) -> int:
    """Take READY nodes as a set; the key of the claim."""
    tx.execute("DELETE FROM temp.granted")
    found = 0
    for lane, limit in dict(op.lanes).items():
        room = min(limit, CHUNK) - found
        if room > 0:
            tx.execute(_INTO_GRANTED + ready, scope | {"lane": lane, "limit": room})
            found += tx.db.changes()
    tx.execute("INSERT INTO claim (id) VALUES (?)", (op.claim_id,))
    key = tx.db.last_insert_rowid()
    tx.execute(_START_ATTEMPTS, {"claim": key, "worker": op.worker, "now": tx.now})
    tx.execute(_START_NODES)
    tx.execute(_COUNT_STARTS, {"now": tx.now})
    tx.execute(_NOTE_STARTS, {"now": tx.now})
    return key


def _grants(tx: Transaction, op: Claim, key: int) -> tuple[Grant, ...]:
    """The attempts of a claim that still run, and the outputs their bodies ask for."""
    ((rows, needy),) = tx.all(_GRANTS, {"claim": key})
    inputs = _inputs(tx, key) if needy else {}
    return tuple(
        Grant(
            attempt_id(op.claim_id, ordinal),
            run,
            idx,
            number,
            failures,
            losses,
            tuple(inputs.get(ordinal, ())),
            generation,
            heals,
            postponed,
        )
        for ordinal, run, idx, number, failures, losses, generation, heals, postponed in json.loads(rows)
    )


def _inputs(tx: Transaction, claim: int) -> dict[int, list[tuple[int, bytes]]]:
    """The outputs that the bodies of a claim ask for, by ordinal."""
    inputs: dict[int, list[tuple[int, bytes]]] = {}
    for ordinal, ancestor, output in tx.all(_INPUTS, {"claim": claim}):
        inputs.setdefault(ordinal, []).append((ancestor, resolve(tx.db, output) or b""))
    return inputs


_APPENDABLE = f"""
SELECT json_group_array(json_array(j.key, a.key, l.idx IS NOT NULL))
  FROM json_each(?) j CROSS JOIN claim c ON c.id = j.value ->> 0
       CROSS JOIN attempt a ON a.key = c.key * {ORDINALS} + (j.value ->> 1)
       LEFT JOIN line l ON l.attempt = a.key AND l.idx = j.value ->> 2
 WHERE a.status = {A_RUNNING}
"""
_APPEND = """
INSERT OR REPLACE INTO line (attempt, idx, at, kind, data)
SELECT j.value ->> 0, j.value ->> 1, :now, j.value ->> 2, substr(:bytes, j.value ->> 3, j.value ->> 4)
  FROM json_each(:lines) j
"""
# Marks that are about to be replaced.
_REPLACED = """
SELECT l.data AS value FROM json_each(?) j CROSS JOIN line l ON l.attempt = j.value ->> 0 AND l.idx = j.value ->> 1
"""


def append(tx: Transaction, ops: Sequence[Append]) -> list[Receipt]:
    if append_few(tx, ops):
        return [Appended()] * len(ops)
    asked = json.dumps([(*split_attempt_id(op.attempt), op.index) for op in ops])
    running = tx.json(_APPENDABLE, (asked,))
    new = [(ops[place], attempt) for place, attempt, there in running if not there or ops[place].index < 0]
    replaced = [(attempt, ops[place].index) for place, attempt, there in running if there and ops[place].index < 0]
    if replaced:
        forget_references(tx.db, _REPLACED, (json.dumps(replaced),))
    if new:
        packer = Packer(tx.db)
        lines = [(attempt, op.index, op.kind, *packer.add(op.data)) for op, attempt in new]
        tx.execute(_APPEND, {"lines": json.dumps(lines), "bytes": packer.joined, "now": tx.now})
    receipts: list[Receipt] = [Refused(Refusal.FENCED)] * len(ops)
    for place, _, _ in running:
        receipts[place] = Appended()
    return receipts
