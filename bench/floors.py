"""What the machine can do at best: the figures that ours are compared with."""

from __future__ import annotations

import time
from pathlib import Path

import apsw


def bare_commits(folder: Path, count: int) -> float:
    """Seconds for `count` transactions of one row each, `synchronous=FULL`, on the same disk."""
    path = folder / f"floor-{time.monotonic_ns()}.db"
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", "wal")
    db.pragma("synchronous", "full")
    db.execute("CREATE TABLE t (i INTEGER PRIMARY KEY, v INTEGER)")
    start = time.perf_counter()
    for number in range(count):
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO t VALUES (?, ?)", (number, number))
        db.execute("COMMIT")
    seconds = time.perf_counter() - start
    db.close()
    return seconds
