"""Where attempts are found.

A node names its latest attempt (`node.last`): the only one of it that may be running or completed. The others have ended in
another way, and are in the index `attempt_former`. `held` names the runs in which a worker may have running attempts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ....core.store.rules.codes import A_COMPLETED, N_RUNNING, ORDINALS
from .ending import Transaction

_FORMER = A_COMPLETED + 1
"""The first of the statuses that the index `attempt_former` has."""

NEW_CLAIM = f"(SELECT coalesce(max(key) / {ORDINALS}, 0) + 1 FROM attempt)"
"""The key of a new claim. A claim without attempts is never stored."""
RUNNING = f"node n ON n.run = {{run}} AND n.status = {N_RUNNING} CROSS JOIN attempt a ON a.key = n.last"
"""What to join for the running attempts of a run."""


def numbered(run: str, node: str, number: str) -> str:
    """An expression for the key of the attempt of a node that has this number."""
    return f"""coalesce(
  (SELECT last FROM node WHERE run = {run} AND idx = {node} AND attempt = {number}),
  (SELECT key FROM attempt INDEXED BY attempt_former
    WHERE run = {run} AND idx = {node} AND number = {number} AND status >= {_FORMER}))"""


def of_run(columns: str, *, where: str = "", page: str = "") -> str:
    """A query for attempts `a` of the run with the key :run, of which `where` holds. `page` orders and limits both its parts.

    In both, `{idx}` is the node.
    """
    tail = f"{where} {page}"
    return f"""
SELECT * FROM (SELECT {columns} FROM node n CROSS JOIN attempt a ON a.key = n.last
                WHERE n.run = :run AND a.status < {_FORMER} {tail.format(idx="n.idx")})
UNION ALL
SELECT * FROM (SELECT {columns} FROM attempt a INDEXED BY attempt_former
                WHERE a.run = :run AND a.status >= {_FORMER} {tail.format(idx="a.idx")})
"""


def add_claim(tx: Transaction, claim: str) -> int:
    """Store a new claim, which is about to get attempts. Returns its key."""
    ((key,),) = tx.all(f"INSERT INTO claim (id, key) VALUES (?, {NEW_CLAIM}) RETURNING key", (claim,))
    return int(key)


_HOLDS = f"""
SELECT 1 FROM node n CROSS JOIN attempt a ON a.key = n.last
 WHERE n.run = held.run AND n.status = {N_RUNNING} AND a.worker = held.worker
"""


def let_go(tx: Transaction, workers: Sequence[str]) -> None:
    """Forget the runs in which these workers have no running attempts any more."""
    tx.execute(
        f"DELETE FROM held WHERE worker IN (SELECT value FROM json_each(?)) AND NOT EXISTS ({_HOLDS})",
        (json.dumps(workers),),
    )
