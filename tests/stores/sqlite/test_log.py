"""The write-ahead log is extended ahead of need and used again, and what is committed is never at stake for it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import apsw
import pytest

from stepwell.base.ids import WorkerId
from stepwell.core.model import Enlist
from stepwell.core.store.reader import list_workers
from stepwell.stores.sqlite import SqliteStore
from stepwell.stores.sqlite.write_ahead_log import CHECKPOINT_FRAMES

PAGE = 4096 + 24


def log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def enlist(store: SqliteStore, number: int) -> None:
    store.commit([Enlist(WorkerId(f"w{number}"), 60_000_000, b"{}")])


def test_commits_go_into_space_that_the_log_already_has(tmp_path: Path) -> None:
    store = SqliteStore(path := tmp_path / "runs.db")
    sizes = []
    for number in range(200):
        enlist(store, number)
        sizes.append(log_of(path).stat().st_size)
        assert store._log.used <= sizes[-1]
    assert len(set(sizes)) <= 5, "it grows in few large steps"
    store.close()
    assert not log_of(path).exists(), "beside a database that was restored from a backup it would be applied to that"


def test_a_checkpoint_lets_the_log_begin_anew(tmp_path: Path) -> None:
    store = SqliteStore(path := tmp_path / "runs.db", synchronous="normal")
    used = []
    for number in range(2 * CHECKPOINT_FRAMES):
        enlist(store, number % 50)
        used.append(store._log.used)
    assert min(used[CHECKPOINT_FRAMES:]) < 10 * PAGE, "it is used again from its beginning"
    assert log_of(path).stat().st_size < 1.5 * CHECKPOINT_FRAMES * PAGE, "and does not grow any more"
    store.close()


def test_two_processes_extend_one_log(tmp_path: Path) -> None:
    """Each extends it only while nobody else can append to it."""
    stores = [SqliteStore(tmp_path / "runs.db", synchronous="normal") for _ in range(2)]
    for number in range(600):
        enlist(stores[number % 2], number)
    for store in stores:
        assert len(list_workers(store)) == 600
        store.close()
    again = SqliteStore(tmp_path / "runs.db")
    assert len(list_workers(again)) == 600
    again.close()


def test_a_log_that_cannot_be_extended_costs_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(path := tmp_path / "runs.db")
    written = os.pwrite

    def full(fd: int, data: bytes, at: int) -> int:
        written(fd, data[:1000], at)
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr("stepwell.stores.sqlite.write_ahead_log.os.pwrite", full)
    for number in range(100):
        enlist(store, number)
    assert log_of(path).stat().st_size == store._log.used, "what was written of the step is gone"
    monkeypatch.undo()
    enlist(store, 100)
    assert len(list_workers(store)) == 101
    store.close()


def test_a_checkpoint_that_cannot_end_costs_no_commit(tmp_path: Path) -> None:
    """Somebody still reads what the log would be written over: it grows, and is used again later."""
    store = SqliteStore(path := tmp_path / "runs.db", synchronous="normal")
    enlist(store, 0)
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN; SELECT * FROM worker").fetchall()
    for number in range(2 * CHECKPOINT_FRAMES):
        enlist(store, number % 50)
    assert store._log.used > 2 * CHECKPOINT_FRAMES * PAGE
    assert len(list_workers(store)) == 50
    reader.close()
    for number in range(2):
        enlist(store, number)
    assert store._log.used < 10 * PAGE
    store.close()
