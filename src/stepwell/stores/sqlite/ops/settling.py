"""Applies settlements and lines of bodies, as sets."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ....base.ids import split_attempt_id
from ....core.model import RECORDED, Append, AttemptStatus, NodeStatus, Receipt, Settle
from ....core.model.receipts import Appended, Refusal, Refused, Settled
from ....core.store.rules.codes import (
    A_FAILED,
    A_RUNNING,
    A_TIMED_OUT,
    ATTEMPT_CODE,
    G_OPEN,
    N_CANCELLED,
    N_COMPLETED,
    N_FAILED,
    N_READY,
    N_SKIPPED,
    N_WAITING,
    NODE_CODE,
    ORDINALS,
    R_CANCELLING,
)
from ....core.store.rules.payloads import error_type
from ..payloads import Packer, keep
from .ending import Transaction, apply_ending, news, note_errors, run_again
from .single import settle_few

# Whether the node was removed from the graph. Only healed runs and forks pay for this subquery.
_GONE = (
    "((r.heals OR r.fork IS NOT NULL) AND (SELECT l.removed FROM layout l WHERE l.graph = r.graph AND l.idx = a.idx))"
)
# In a run that is stopping, no node waits or becomes READY again. A node whose body obeyed a stop that no longer holds,
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
       j.value ->> 11,
       substr(:bytes, j.value ->> 8, j.value ->> 9),
       CASE WHEN j.value ->> 3 = {N_WAITING} AND NOT r.stopping AND NOT {_GONE} THEN :now + (j.value ->> 10) END,
       0, NULL, CASE WHEN j.value ->> 3 = {N_SKIPPED} AND NOT {_GONE} THEN j.value ->> 12 END, r.gate = {G_OPEN}
  FROM json_each(:ops) j
       LEFT JOIN claim c ON c.id = j.value ->> 0
       LEFT JOIN attempt a ON a.key = c.key * {ORDINALS} + (j.value ->> 1)
       LEFT JOIN run r ON r.key = a.run
"""
# Separate from the other counts because it updates an index.
_DUE = """
UPDATE run SET due_at = min(coalesce(run.due_at, t.due_at), t.due_at)
  FROM (SELECT run, min(due_at) AS due_at FROM temp.ending WHERE verdict = 1 AND due_at IS NOT NULL GROUP BY run) t
 WHERE run.key = t.run
"""
# `apply_ending` has counted them as failures, by their status.
_POSTPONE = f"""
UPDATE node SET failures = node.failures - 1, postponed = node.postponed + 1
  FROM temp.ending e
 WHERE e.verdict = 1 AND e.status IN ({A_FAILED}, {A_TIMED_OUT}) AND e.ord IN (SELECT value FROM json_each(?))
   AND node.run = e.run AND node.idx = e.idx
"""
# What `_SETTLING` has found for a node that is to wait: it waits until it is woken, unless that has happened meanwhile.
_PARK = f"""
UPDATE temp.ending
   SET due_at = NULL,
       node = CASE WHEN node <> {N_WAITING} THEN {N_CANCELLED}
                   WHEN (SELECT n.wakes FROM node n WHERE n.run = ending.run AND n.idx = ending.idx) = p.value ->> 1
                   THEN {N_WAITING} ELSE {N_READY} END
  FROM json_each(?) p WHERE ord = p.value ->> 0
"""
_NO_ATTEMPT = ("", 0)
_AGAIN = (NodeStatus.READY, NodeStatus.CANCELLED)
"""Settlements after which a node may have to run again: a CANCELLED one does if the stop was withdrawn."""


def settle(tx: Transaction, ops: Sequence[Settle]) -> list[Receipt]:
    receipts = settle_few(tx, ops)
    if receipts is not None:
        return receipts
    legal = [op.legal for op in ops]
    lines = [
        Append(op.attempt, index, kind, data)
        for op, allowed in zip(ops, legal, strict=True)
        if allowed and op.lines
        for index, (kind, data) in enumerate(op.lines, RECORDED)
    ]
    if lines:
        append(tx, lines)  # refused for attempts that are not running, as their settlements are
    tx.execute("DELETE FROM temp.ending")
    packer = Packer()
    _fill(tx, ops, legal, packer)
    parks = [(place, op.wakes) for place, op in enumerate(ops) if op.status is AttemptStatus.PARKED]
    if parks:
        tx.execute(_PARK, (json.dumps(parks),))
    apply_ending(tx)
    if any(op.error for op in ops):
        note_errors(tx)
    if postponed := [place for place, op in enumerate(ops) if op.postponed]:
        tx.execute(_POSTPONE, (json.dumps(postponed),))
    if parks or any(op.node in _AGAIN for op in ops):
        run_again(tx)
    if any(op.node is NodeStatus.WAITING for op in ops):
        tx.execute(_DUE)
    verdicts = tx.json(
        "SELECT json_group_array(json_array(verdict, run)) FROM (SELECT * FROM temp.ending ORDER BY ord)"
    )
    moved = {run for verdict, run in verdicts if verdict == 1}
    runs = news(tx, moved | {run for verdict, run in verdicts if verdict == 2}, moved=moved)
    receipts = []
    for op, allowed, (verdict, run) in zip(ops, legal, verdicts, strict=True):
        if verdict:
            receipts.append(Settled(verdict == 2, runs[run]))
        elif allowed:
            receipts.append(Refused(Refusal.FENCED))
        else:
            receipts.append(Refused(Refusal.STATUS, f"{op.status} -> {op.node}"))
        if verdict == 1 and packer.large:
            keep(tx.db, run, op.output, op.error, op.outcome)
    return receipts


def _fill(tx: Transaction, ops: Sequence[Settle], legal: Sequence[bool], packer: Packer) -> None:
    rows = [
        (
            *(split_attempt_id(op.attempt) if allowed else _NO_ATTEMPT),
            ATTEMPT_CODE[op.status],
            NODE_CODE[op.node],
            *packer.add(op.output),
            *packer.add(op.error),
            *packer.add(op.outcome),
            op.delay or 0,
            error_type(op.error),
            op.reason,
        )
        for op, allowed in zip(ops, legal, strict=True)
    ]
    tx.execute(_SETTLING, {"ops": json.dumps(rows), "bytes": packer.joined, "now": tx.now})


_APPENDABLE = f"""
SELECT json_group_array(json_array(j.key, a.key, l.idx IS NOT NULL, a.run))
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


def append(tx: Transaction, ops: Sequence[Append]) -> list[Receipt]:
    asked = json.dumps([(*split_attempt_id(op.attempt), op.index) for op in ops])
    running = tx.json(_APPENDABLE, (asked,))
    new = [(ops[place], attempt, run) for place, attempt, there, run in running if not there or ops[place].index < 0]
    if new:
        packer = Packer()
        lines = [(attempt, op.index, op.kind, *packer.add(op.data)) for op, attempt, _ in new]
        for op, _, run in new if packer.large else ():
            keep(tx.db, run, op.data)
        tx.execute(_APPEND, {"lines": json.dumps(lines), "bytes": packer.joined, "now": tx.now})
    receipts: list[Receipt] = [Refused(Refusal.FENCED)] * len(ops)
    for place, *_ in running:
        receipts[place] = Appended()
    return receipts
