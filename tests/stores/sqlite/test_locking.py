"""Several processes on one file: they wait for each other, make progress, and give up in an orderly way."""

import threading
import time
from pathlib import Path

import pytest

from stepwell.core.model import RunStatus
from stepwell.core.store import reader
from stepwell.errors import StoreBusy
from stepwell.stores.sqlite import SqliteStore
from tests.conformance.audit import audit
from tests.conformance.ops import RUN, WORKER, claim, completed, enlist, fan, graph, start, statuses
from tests.stores.sqlite.children import child

HOLD = """
db = apsw.Connection(path)
db.execute("BEGIN IMMEDIATE")
say("held")
hear()
db.execute("ROLLBACK")
say("free")
hear()
"""


def test_a_store_that_is_locked_for_long_is_busy_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = SqliteStore(path, busy_seconds=0.3)
    start(store, graph(a="", b="a"))
    enlist(store, seconds=600)
    (grant,) = claim(store)
    with child(HOLD, path) as other:
        assert other.hear() == "held"
        begun = time.monotonic()
        with pytest.raises(StoreBusy, match=r"held the write lock for more than 0\.3 s; nothing was written"):
            store.commit([completed(grant)])
        assert 0.3 <= time.monotonic() - begun < 15
        assert statuses(store) == {"a": "RUNNING", "b": "PENDING"}, "reading goes on"
        another = SqliteStore(path, busy_seconds=0.1)
        assert statuses(another) == {"a": "RUNNING", "b": "PENDING"}, "who only looks waits for nobody"
        another.close()
        other.say()
        assert other.hear() == "free"
        store.commit([completed(grant)])
    assert statuses(store) == {"a": "COMPLETED", "b": "READY"}
    audit(store)
    store.close()


def test_a_commit_waits_for_a_short_lock(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = SqliteStore(path, busy_seconds=20)
    with child(HOLD, path) as other:
        assert other.hear() == "held"
        releasing = threading.Timer(0.3, other.say)
        releasing.start()
        start(store, graph(a=""))
        releasing.join()
    assert statuses(store) == {"a": "READY"}
    store.close()


def test_reading_while_another_waits_does_not_stretch_its_patience(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = SqliteStore(path, busy_seconds=0.5)
    start(store, graph(a=""))
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            reader.require_run(store, RUN)
            store.wait_for_hint(None, (), WORKER, 0)

    reading = threading.Thread(target=read)
    with child(HOLD, path) as other:
        assert other.hear() == "held"
        reading.start()
        begun = time.monotonic()
        try:
            with pytest.raises(StoreBusy):
                enlist(store)
        finally:
            ended.set()
            reading.join()
        assert time.monotonic() - begun < 15
    store.close()


def test_opening_a_new_file_waits_for_another_that_is_just_creating_it(tmp_path: Path) -> None:
    """SQLite asks no busy handler when it switches a file to the write-ahead log: it is busy at once."""
    path = tmp_path / "runs.db"
    with child(HOLD, path) as other:
        assert other.hear() == "held"
        releasing = threading.Timer(0.3, other.say)
        releasing.start()
        store = SqliteStore(path, busy_seconds=20)
        releasing.join()
    start(store, graph(a=""))
    assert statuses(store) == {"a": "READY"}
    store.close()


def test_opening_a_new_file_that_is_locked_for_long_is_busy(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with child(HOLD, path) as other:
        assert other.hear() == "held"
        begun = time.monotonic()
        with pytest.raises(StoreBusy, match=r"held the write lock for more than 0\.3 s"):
            SqliteStore(path, busy_seconds=0.3)
        assert 0.3 <= time.monotonic() - begun < 15


def test_processes_that_open_a_new_file_at_once_all_succeed(tmp_path: Path) -> None:
    code = """
say("up")
hear()
store = SqliteStore(path)
start(store, graph(a=""), "run-" + sys.argv[2])
say(store._writer.pragma("user_version"))
store.close()
"""
    path = tmp_path / "runs.db"
    with child(code, path, 1) as one, child(code, path, 2) as two, child(code, path, 3) as three:
        others = (one, two, three)
        assert [other.hear() for other in others] == ["up"] * 3
        for other in others:
            other.say()
        versions = {other.hear() for other in others}
        assert [other.wait() for other in others] == [0, 0, 0]
    store = SqliteStore(path)
    assert versions == {str(store._writer.pragma("user_version"))}
    assert {run.id for run in reader.all_runs(store)} == {"run-1", "run-2", "run-3"}
    store.close()


def test_two_processes_work_on_one_run_and_share_it(tmp_path: Path) -> None:
    code = """
store = SqliteStore(path)
name = "child-" + sys.argv[2]
enlist(store, name, seconds=600)
say("up")
hear()
done = 0
while reader.require_run(store, RUN).status is not RunStatus.COMPLETED:
    done += work(store, name, limit=5)
say(done)
store.close()
"""
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    start(store, fan(300))
    with child(code, path, 1) as one, child(code, path, 2) as two:
        assert (one.hear(), two.hear()) == ("up", "up")
        one.say()
        two.say()
        shares = int(one.hear()), int(two.hear())
        assert (one.wait(), two.wait()) == (0, 0)
    assert sum(shares) == 302
    assert reader.require_run(store, RUN).status is RunStatus.COMPLETED
    assert {attempt.number for attempt in reader.list_attempts(store, RUN)} == {1}
    audit(store)
    store.close()


def test_who_waits_hears_of_the_commits_of_others(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    store.wait_for_hint(None, (), WORKER, 0)
    assert not store.wait_for_hint(None, (), WORKER, 0)
    with child("store = SqliteStore(path)\nenlist(store, 'w')\nstore.close()\nsay('done')", path) as other:
        assert other.hear() == "done"
    assert store.wait_for_hint(None, (), WORKER, 5)
    store.close()
