"""What the machine can do at best: the figures that ours are compared with."""

from __future__ import annotations

import os
import time
from pathlib import Path

import apsw


def bare_commits(folder: Path, count: int) -> float:
    """Seconds for `count` transactions of one row each, `synchronous=FULL`, on the same disk, into a log that has the space."""
    path = folder / f"floor-{time.monotonic_ns()}.db"
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", "wal")
    db.pragma("synchronous", "full")
    db.execute("CREATE TABLE t (i INTEGER PRIMARY KEY, v INTEGER)")
    _extend(path, count)
    start = time.perf_counter()
    for number in range(count):
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO t VALUES (?, ?)", (number, number))
        db.execute("COMMIT")
    seconds = time.perf_counter() - start
    db.close()
    return seconds


def _extend(path: Path, commits: int) -> None:
    """As the store does with its own: a commit then makes no file grow."""
    log = os.open(f"{path}-wal", os.O_RDWR)
    os.pwrite(log, bytes(2 * commits * 4_120), os.fstat(log).st_size)
    os.fsync(log)
    os.close(log)
