"""The file of a store, and everything that can be wrong with it: said in our words, and nothing is lost."""

import os
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from stepwell.core.model import Created, Settled
from stepwell.core.store import reader
from stepwell.errors import SchemaTooNew, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from stepwell.stores import open_store
from stepwell.stores.sqlite import SqliteStore, database
from tests.conformance.audit import audit
from tests.conformance.ops import RUN, claim, completed, create, enlist, graph, start, statuses, work
from tests.stores.sqlite.mounts import read_only, run, small_disk


def test_everything_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "below" / "runs.db"
    store = SqliteStore(path)
    start(store, graph(a="", b="a"))
    enlist(store, seconds=600)
    (grant,) = claim(store)
    store.commit([completed(grant, b'{"kept":true}')])
    rows = (reader.require_run(store, RUN), reader.all_nodes(store, RUN), reader.list_journal(store, RUN))
    store.close()
    again = SqliteStore(path)
    assert (reader.require_run(again, RUN), reader.all_nodes(again, RUN), reader.list_journal(again, RUN)) == rows
    assert reader.get_outputs(again, RUN) == {0: b'{"kept":true}'}
    audit(again)
    again.close()


def test_the_write_ahead_log_is_used_and_synced_in_full(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    for connection in (store._writer, store._reader):
        assert connection.pragma("journal_mode") == "wal"
        assert connection.pragma("synchronous") == 2
    store.close()


def test_synchronous_normal_is_a_choice(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/runs.db?synchronous=normal&busy_seconds=1.5")
    assert isinstance(store, SqliteStore)
    assert store._writer.pragma("synchronous") == 1
    assert store._writer.pragma("journal_mode") == "wal"
    assert store._busy_seconds == 1.5
    store.close()


def test_the_bundled_sqlite_has_no_known_corruption() -> None:
    assert tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) >= (3, 51, 3)


def test_an_older_sqlite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.45.1")
    with pytest.raises(StoreError, match=r"SQLite 3\.45\.1 is too old"):
        SqliteStore(tmp_path / "runs.db")


def test_a_store_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    SqliteStore(path).close()
    db = apsw.Connection(str(path))
    db.pragma("user_version", 99)
    db.close()
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew, match=r"schema 99, this one knows \d+.*nothing was changed"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_a_store_from_before_the_first_release_is_left_alone(tmp_path: Path) -> None:
    """Schema 8 did not count the skipped parents of nodes."""
    path = tmp_path / "runs.db"
    SqliteStore(path).close()
    db = apsw.Connection(str(path))
    db.pragma("user_version", 8)
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"from before the first release \(schema 8\).*nothing was changed"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_a_file_that_another_process_makes_first_is_used_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, begin, others = tmp_path / "runs.db", database._begin, list[SqliteStore]()

    def begin_late(db: apsw.Connection) -> None:
        monkeypatch.undo()
        others.append(SqliteStore(path))
        begin(db)

    monkeypatch.setattr(database, "_begin", begin_late)
    store = SqliteStore(path)
    start(store, graph(a=""))
    assert [reader.require_run(each, RUN).nodes for each in (store, *others)] == [1, 1]
    for each in (store, *others):
        each.close()


def test_a_store_that_is_closed_says_so_and_may_be_closed_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    start(store, graph(a=""))
    store.close()
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        start(store, graph(a=""))
    with pytest.raises(StoreError, match="is closed"):
        reader.get_run(store, RUN)


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes, and they are long enough to look like a page of something. " * 80)
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match="is not a SQLite database; choose another path"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE run (id INTEGER PRIMARY KEY, distance REAL)")
    db.execute("INSERT INTO run VALUES (1, 42.195)")
    db.commit()
    db.close()
    with pytest.raises(StoreCorrupt, match="tables of another program; choose another path"):
        SqliteStore(path)
    db = sqlite3.connect(path)
    assert db.execute("SELECT * FROM run").fetchall() == [(1, 42.195)]
    assert db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (1,)
    db.close()


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.touch()
    store = SqliteStore(path)
    start(store, graph(a=""))
    store.close()


def test_a_damaged_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    start(store, graph(**{f"n{i}": "" for i in range(300)}))
    store.close()
    content = bytearray(path.read_bytes())
    for page in range(4096, len(content), 4096):
        content[page : page + 100] = b"\xff" * 100
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match="is damaged"):
        reader.all_nodes(SqliteStore(path), RUN)


def test_a_folder_is_not_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened for writing"):
        SqliteStore(tmp_path)


def test_only_the_last_folder_of_a_path_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of it is missing when it was mistyped."""
    with pytest.raises(
        StoreError, match=f"cannot be made: there is no folder {tmp_path}/no/such. Correct the path, or create"
    ):
        SqliteStore(tmp_path / "no" / "such" / "folder" / "runs.db")
    assert list(tmp_path.iterdir()) == []
    SqliteStore(tmp_path / "one" / "runs.db").close()
    monkeypatch.chdir(tmp_path)
    SqliteStore(".stepwell/stepwell.db").close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".stepwell", "one"]


def test_a_folder_that_is_a_file_cannot_hold_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreReadOnly, match="check that the folder exists and may be written"):
        SqliteStore(tmp_path / "file" / "runs.db")


def test_a_folder_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    with read_only(folder):
        with pytest.raises(StoreReadOnly, match=r"runs\.db"):
            SqliteStore(folder / "runs.db")
        with pytest.raises(StoreReadOnly, match=r"runs\.db"):
            SqliteStore(folder / "deeper" / "runs.db")
    SqliteStore(folder / "runs.db").close()


def test_a_file_that_may_not_be_written_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    start(store, graph(a=""))
    store.close()
    with read_only(path), pytest.raises(StoreReadOnly, match="give this user write permission"):
        SqliteStore(path)
    store = SqliteStore(path)
    assert statuses(store) == {"a": "READY"}
    store.close()


def test_a_store_on_a_read_only_disk_is_refused(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 2_000) as folder:
        store = SqliteStore(folder / "runs.db")
        start(store, graph(a=""))
        store.close()
        assert run("mount", "-o", "remount,ro", str(folder))
        with pytest.raises(StoreReadOnly, match=r"runs\.db"):
            SqliteStore(folder / "runs.db")


def test_a_full_disk_loses_nothing_and_the_same_batch_succeeds_later(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 3_000) as folder:
        ballast = folder / "ballast"
        ballast.write_bytes(b"\0" * 1_000_000)
        store = SqliteStore(folder / "runs.db")
        of = start(store, graph(a="", b="a"))
        enlist(store, seconds=600)
        acknowledged = [RUN]
        batch = [create(of, "run-0")]
        with suppress(StoreFull):
            while True:
                store.commit(batch)
                acknowledged.append(batch[0].run_id)
                batch = [create(of, f"run-{len(acknowledged)}", input=b'"%s"' % (b"x" * 3_000))]
        with pytest.raises(StoreFull, match="nothing was written, free some and retry"):
            store.commit(batch)
        assert [row.id for row in reader.all_runs(store)] == acknowledged[::-1]
        audit(store)
        ballast.unlink()
        assert store.commit(batch) == [Created(batch[0].run_id, False, 2, 2)]
        assert work(store, runs=(RUN,)) == 2
        audit(store)
        store.close()


def test_a_disk_that_fills_up_in_the_middle_of_a_settlement(tmp_path: Path) -> None:
    """Without a small disk: SQLite itself is told to use no more pages."""
    store = SqliteStore(tmp_path / "runs.db")
    start(store, graph(**{f"n{i}": "" for i in range(40)}, join=" ".join(f"n{i}" for i in range(40))))
    enlist(store, seconds=600)
    grants = claim(store)
    batch = [completed(grant, b'"' + b"%04d" % grant.index * 2_000 + b'"') for grant in grants]
    store._writer.pragma("max_page_count", store._writer.pragma("page_count") + 5)
    for _ in range(2):
        with pytest.raises(StoreFull, match="nothing was written, free some and retry"):
            store.commit(batch)
    assert set(statuses(store).values()) == {"RUNNING", "PENDING"}
    audit(store)
    store._writer.pragma("max_page_count", 1_000_000)
    receipts = store.commit(batch)
    assert all(isinstance(receipt, Settled) and not receipt.repeated for receipt in receipts)
    assert statuses(store)["join"] == "READY"
    audit(store)
    store.close()


def test_a_disk_too_small_for_the_store_says_so(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 40) as folder, pytest.raises(StoreFull, match="no space left"):
        SqliteStore(folder / "runs.db")


def test_no_space_for_a_workers_lock_says_so(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 3_000) as folder:
        store = SqliteStore(folder / "runs.db")
        start(store, graph(a=""))
        assert run("mount", "-o", "remount,nr_inodes=5", str(folder))
        with pytest.raises(StoreFull, match="safe to try again"):
            enlist(store)
        assert run("mount", "-o", "remount,nr_inodes=50", str(folder))
        enlist(store)
        assert len(claim(store)) == 1
        store.close()


def test_only_its_user_may_read_a_new_store(tmp_path: Path) -> None:
    """Whatever the umask says: also the log, the locks of workers, and the folder that is made for it."""
    before = os.umask(0)
    try:
        store = SqliteStore(tmp_path / "made" / "runs.db")
        start(store, graph(a=""))
        enlist(store, seconds=600)
        modes = {str(each.relative_to(tmp_path)): stat.S_IMODE(each.stat().st_mode) for each in tmp_path.rglob("*")}
    finally:
        os.umask(before)
    files = {name: mode for name, mode in modes.items() if not (tmp_path / name).is_dir()}
    assert {"made/runs.db", "made/runs.db-wal", "made/runs.db-shm"} < files.keys()
    assert set(files.values()) == {0o600}, files
    assert {name: modes[name] for name in modes.keys() - files.keys()} == {"made": 0o700, "made/runs.db-workers": 0o700}
    store.close()


def test_the_mode_of_a_file_that_was_there_is_kept(tmp_path: Path) -> None:
    """Its user may have given it to a group."""
    (path := tmp_path / "runs.db").touch()
    path.chmod(0o660)
    SqliteStore(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
