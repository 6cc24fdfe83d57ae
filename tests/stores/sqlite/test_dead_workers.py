"""The death of a worker's process is noticed at once, by a lock of the system; a stopped one loses its lease."""

import os
import signal
import time
from pathlib import Path

import pytest

from stepwell.base.clock import ManualClock
from stepwell.base.ids import WorkerId
from stepwell.core.model import AttemptStatus, Dismiss, Renew
from stepwell.core.store import reader
from stepwell.stores.sqlite import SqliteStore
from tests.conformance.ops import RUN, claim, enlist, graph, start, statuses, sweep
from tests.stores.sqlite.children import child

WORK = """
store = SqliteStore(path)
enlist(store, "child", seconds=float(sys.argv[2]))
say(len(claim(store, "child")))
hear()
"""


def test_what_a_killed_process_held_is_lost_at_the_next_sweep(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    start(store, graph(a="", b="", c="a"))
    enlist(store, "parent", seconds=600)
    with child(WORK, path, 600) as worker:
        assert worker.hear() == "2"
        assert sweep(store).lost == 0
        worker.send(signal.SIGKILL)
        worker.wait()
        assert sweep(store).lost == 2
    assert statuses(store) == {"a": "READY", "b": "READY", "c": "PENDING"}
    assert [attempt.status for attempt in reader.list_attempts(store, RUN)] == [AttemptStatus.LOST] * 2
    assert [row.id for row in reader.list_workers(store)] == ["parent"]
    assert [file.name for file in lock_files(path)] == ["parent.lock"]
    store.close()


def test_a_process_that_ends_without_a_word_is_noticed_as_well(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    start(store, graph(a=""))
    with child(WORK, path, 600) as worker:
        assert worker.hear() == "1"
        worker.say("end")
        assert worker.wait() == 0
    assert sweep(store).lost == 1
    store.close()


def test_a_stopped_process_keeps_its_work_until_its_lease_is_over(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    start(store, graph(a=""))
    with child(WORK, path, 1.5) as worker:
        assert worker.hear() == "1"
        worker.send(signal.SIGSTOP)
        until = reader.list_workers(store)[0].lease_until
        lost = 0
        while not lost:
            swept = sweep(store)
            lost = swept.lost
            assert lost == 0 or store.now() >= until
            if not lost:
                assert swept.next_due == until
                time.sleep(max(0.0, min(0.2, (until - store.now()) / 1_000_000)))
        assert statuses(store) == {"a": "READY"}
        worker.send(signal.SIGCONT)
        worker.say("end")
        worker.wait()
    sweep(store)
    assert lock_files(path) == [], "what a process left behind is cleared away when it is gone"
    store.close()


def test_a_worker_of_a_closed_store_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    clock = ManualClock()
    first, second = SqliteStore(path, clock=clock), SqliteStore(path, clock=clock)
    start(first, graph(a=""))
    enlist(first, "first")
    claim(first, "first")
    enlist(second, "second")
    assert sweep(second).lost == 0
    first.close()
    assert sweep(second).lost == 1
    assert [row.id for row in reader.list_workers(second)] == ["second"]
    second.close()


def test_a_dismissed_worker_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    enlist(store, "w")
    assert [file.name for file in lock_files(path)] == ["w.lock"]
    store.commit([Dismiss(WorkerId("w"))])
    assert lock_files(path) == []
    store.close()


def test_any_worker_id_is_a_safe_file_name(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "runs.db"
    store = SqliteStore(path)
    names = ["../../escaped", "a/b", "/etc/x", "host.local:1 ü", "..", "x.new"]
    for name in names:
        enlist(store, name)
    assert sweep(store).lost == 0
    assert {row.id for row in reader.list_workers(store)} == set(names)
    assert len(lock_files(path)) == len(names)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder"]
    store.close()


def test_a_live_worker_of_another_process_is_not_disturbed(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    start(store, graph(a=""))
    with child(WORK, path, 600) as worker:
        worker.hear()
        for _ in range(50):
            assert sweep(store).lost == 0
        assert [row.id for row in reader.list_workers(store)] == ["child"]
    store.close()


def test_a_forked_child_cannot_use_the_store_and_does_not_end_its_workers(tmp_path: Path) -> None:
    code = """
store = SqliteStore(path)
start(store, graph(a=""))
enlist(store, "parent", seconds=600)
claim(store, "parent")
forked = os.fork()
if forked == 0:
    from stepwell.errors import StoreError
    told = 0
    hint = lambda: store.wait_for_hint(None, (), 'w', 0)
    for use in (lambda: store.commit([Sweep()]), lambda: store.read([ListRuns()]), hint):
        try:
            use()
        except StoreError as error:
            told += "forked" in str(error)
    store.close()
    os._exit(told)
_, status = os.waitpid(forked, 0)
say(os.waitstatus_to_exitcode(status), sweep(store).lost, len(reader.list_workers(store)))
say(len(os.listdir(path + "-workers")))
hear()
"""
    path = tmp_path / "runs.db"
    with child(code, path) as parent:
        assert parent.hear() == "3 0 1"
        assert parent.hear() == "1"
        other = SqliteStore(path)
        assert sweep(other).lost == 0
        parent.send(signal.SIGKILL)
        parent.wait()
        assert sweep(other).lost == 1
        other.close()


def test_a_fork_during_a_commit_does_not_hang_the_child(tmp_path: Path) -> None:
    """The child inherits the lock of the commit as it is, held for ever; it must not wait for it."""
    code = """
import faulthandler, threading
faulthandler.dump_traceback_later(20, exit=True)
store = SqliteStore(path)
store._write_lock.acquire()
store._read_lock.acquire()
forked = os.fork()
if forked == 0:
    from stepwell.errors import StoreError
    try:
        store.commit([])
    except StoreError:
        store.close()
        os._exit(7)
_, status = os.waitpid(forked, 0)
say(os.waitstatus_to_exitcode(status))
"""
    with child(code, tmp_path / "runs.db") as parent:
        assert parent.hear() == "7"


def test_the_leases_of_an_earlier_boot_are_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    start(store, graph(a=""))
    enlist(store, "w", seconds=3_600)
    claim(store, "w")
    for file in lock_files(path):
        os.rename(file, file.with_suffix(".gone"))
    store.close()
    monkeypatch.setattr("stepwell.stores.sqlite.database.boot_id", lambda: "another boot")
    after = SqliteStore(path)
    assert after.commit([Renew(WorkerId("w"), 1, None)])[0][0] == "lease_expired"
    assert sweep(after).lost == 1
    after.close()


def lock_files(path: Path) -> list[Path]:
    folder = path.with_name(path.name + "-workers")
    return sorted(folder.glob("*.lock")) if folder.exists() else []
