"""The lock files of workers at every moment: one that can be seen and is free means that its worker is gone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import apsw
import psutil
import pytest

from stepwell.base.ids import WorkerId
from stepwell.core.model import Dismiss, Enlist, Renew, Sweep
from stepwell.core.store import reader
from stepwell.errors import StoreBusy
from stepwell.stores.sqlite import SqliteStore, workers
from stepwell.stores.sqlite.workers import WorkerLocks
from tests.conformance.ops import claim, enlist, graph, start, sweep

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="leases alone decide there")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def enlisting(worker: str) -> Enlist:
    return Enlist(WorkerId(worker), 30_000_000, b"{}")


def files(database: Path) -> list[str]:
    folder = database.with_name("runs.db-workers")
    return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


# Locks are of an open file, not of a process: two of these are to each other what two processes are.


def test_a_worker_is_dead_for_others_when_its_lock_is_free_and_never_for_itself(database: Path) -> None:
    ours, theirs = WorkerLocks(database), WorkerLocks(database)
    ours.follow([enlisting("a"), enlisting("b")])
    theirs.follow([enlisting("c")])
    assert (ours.dead_workers(), theirs.dead_workers()) == ([], [])
    theirs.close()
    assert ours.dead_workers() == ["c"]
    assert files(database) == ["a.lock", "b.lock", "c.lock"]
    ours.close()
    assert sorted(WorkerLocks(database).dead_workers()) == ["a", "b", "c"]


def test_looking_whether_a_worker_is_dead_keeps_no_lock(database: Path) -> None:
    gone = WorkerLocks(database)
    gone.follow([enlisting("a")])
    gone.close()
    first, second = WorkerLocks(database), WorkerLocks(database)
    for _ in range(3):
        assert first.dead_workers() == second.dead_workers() == ["a"]


def test_a_worker_that_enlists_again_keeps_the_lock_it_has(database: Path) -> None:
    ours, theirs = WorkerLocks(database), WorkerLocks(database)
    ours.follow([enlisting("a")])
    open_files = psutil.Process().num_fds()
    for _ in range(3):
        ours.follow([enlisting("a"), Renew(WorkerId("a"), 30_000_000, ())])
    assert psutil.Process().num_fds() == open_files
    assert theirs.dead_workers() == []
    ours.close()


def test_no_file_can_be_seen_before_it_is_locked(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    lock = workers.fcntl.flock

    def watched(descriptor: int, operation: int) -> None:
        seen.append([name for name in files(database) if name.endswith(".lock")])
        lock(descriptor, operation)

    monkeypatch.setattr(workers.fcntl, "flock", watched)
    ours = WorkerLocks(database)
    ours.follow([enlisting("a")])
    assert seen == [[]]
    assert files(database) == ["a.lock"]
    ours.close()


def test_the_file_of_a_dismissed_worker_is_gone_before_its_lock_is(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = WorkerLocks(database)
    ours.follow([enlisting("a"), enlisting("b")])
    seen: list[list[str]] = []
    close = os.close

    def watched(descriptor: int) -> None:
        seen.append(files(database))
        close(descriptor)

    monkeypatch.setattr(workers.os, "close", watched)
    ours.follow([Dismiss(WorkerId("a")), Dismiss(WorkerId("never enlisted here"))])
    assert seen == [["b.lock"]]
    monkeypatch.undo()
    assert WorkerLocks(database).dead_workers() == []
    ours.close()
    assert WorkerLocks(database).dead_workers() == ["b"]


def test_who_is_buried_is_forgotten_and_the_folder_goes_with_the_last(database: Path) -> None:
    gone, ours = WorkerLocks(database), WorkerLocks(database)
    gone.follow([enlisting("a"), enlisting("b")])
    gone.close()
    ours.remove_locks(["a", "nobody"])
    assert ours.dead_workers() == ["b"]
    ours.close()
    assert files(database) == ["b.lock"]
    ours.remove_locks(["b"])
    ours.close()
    assert not database.with_name("runs.db-workers").exists()
    ours.follow([enlisting("c")])
    assert files(database) == ["c.lock"]
    ours.close()


def test_a_worker_without_a_file_may_be_enlisting_and_is_not_dead(database: Path) -> None:
    store, other = SqliteStore(database), SqliteStore(database)
    enlist(store, "w", seconds=600)
    next(database.with_name("runs.db-workers").iterdir()).unlink()
    assert sweep(other).lost == 0
    assert [row.id for row in reader.list_workers(other)] == ["w"]
    store.close()
    other.close()


def test_a_commit_that_fails_takes_no_lock_and_buries_nobody(database: Path) -> None:
    store = SqliteStore(database, busy_seconds=0.05)
    start(store, graph(a=""))
    dead = SqliteStore(database)
    enlist(dead, "dead", seconds=600)
    assert len(claim(dead, "dead")) == 1
    dead.close()
    holder = apsw.Connection(str(database))
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy):
        store.commit([enlisting("new")])
    with pytest.raises(StoreBusy):
        store.commit([Sweep()])
    assert files(database) == ["dead.lock"]
    holder.execute("ROLLBACK")
    holder.close()
    assert sweep(store).lost == 1
    assert files(database) == []
    store.close()


def test_only_the_dead_lose_their_lease_by_it(database: Path) -> None:
    store, dead = SqliteStore(database), SqliteStore(database)
    start(store, graph(a="", b=""))
    enlist(store, "alive", seconds=600)
    enlist(dead, "dead", seconds=600)
    assert len(claim(store, "alive", limit=1)) == len(claim(dead, "dead", limit=1)) == 1
    dead.close()
    assert sweep(store).lost == 1
    assert [row.id for row in reader.list_workers(store)] == ["alive"]
    assert sweep(store).lost == 0
    store.close()
