"""All stores of states pass the same suite, and a pipeline on a database behaves as one on files."""

from __future__ import annotations

import os
import stat
import threading
from hashlib import sha256
from pathlib import Path

import apsw
import pytest

from stepwell import Builder, Engine, Pipeline, StoreError
from stepwell.errors import StoreFull
from stepwell.pipeline.states.database import open_database_states
from stepwell.pipeline.states.database.store import DatabaseStates
from stepwell.pipeline.states.files.store import FileStates
from tests.conformance.states import Open, StateStoreConformance
from tests.pipeline.blog import Clock, Ledger, make_blog, statuses
from tests.postgres_server import PostgresServer


class TestFiles(StateStoreConformance):
    @pytest.fixture
    def open_states(self, tmp_path: Path) -> Open:
        (tmp_path / "root").mkdir()
        return lambda: FileStates(str(tmp_path / "root"), "p")

    def kept_aside(self, store: FileStates) -> list[bytes]:
        aside = Path(store.root.home, ".stepwell/aside")
        return sorted(file.read_bytes() for file in aside.rglob("*") if file.is_file())


class DatabaseConformance(StateStoreConformance):
    def kept_aside(self, store: DatabaseStates) -> list[bytes]:
        rows = store._database.rows("SELECT body FROM state_aside JOIN state_contents ON hash = content")
        return sorted(bytes(body) for (body,) in rows)


class TestSqlite(DatabaseConformance):
    @pytest.fixture
    def open_states(self, tmp_path: Path) -> Open:
        return lambda: open_database_states(f"sqlite:///{tmp_path}/states.db", "p")


class TestPostgres(DatabaseConformance):
    @pytest.fixture
    def open_states(self, postgres: PostgresServer) -> Open:
        url = postgres.new_url()
        return lambda: open_database_states(url, "p")


def test_a_database_that_somebody_creates_just_now_is_waited_for(tmp_path: Path) -> None:
    other = apsw.Connection(f"{tmp_path}/states.db")
    other.set_busy_timeout(30_000)
    other.execute("CREATE TABLE something (x)")
    other.execute("BEGIN IMMEDIATE")
    ending = threading.Timer(0.2, other.execute, ["COMMIT"])
    ending.start()
    open_database_states(f"sqlite:///{tmp_path}/states.db", "p").close()
    ending.join()
    other.close()


def test_only_its_user_may_read_a_new_database_of_states(tmp_path: Path) -> None:
    """Whatever the umask says: also its log, and the folder with the lease and what bodies read and write."""
    before = os.umask(0)
    try:
        states = open_database_states(f"sqlite:///{tmp_path}/states.db", "p")
        states.files.put("in/a.txt", b"secret")
        with states.lease("p", 0):
            modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
    finally:
        os.umask(before)
        states.close()
    files = {"states.db", "states.db-wal", "states.db-shm"}
    assert modes == dict.fromkeys(files, 0o600) | {"states.db-files": 0o700}


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_no_state_is_recorded_once_the_file_is_gone(tmp_path: Path, suffix: str) -> None:
    states = open_database_states(f"sqlite:///{tmp_path}/states.db", "p")
    file = tmp_path / f"states.db{suffix}"
    assert file.stat().st_mode & 0o777 == 0o600
    file.unlink()
    for _ in range(2):
        with pytest.raises(StoreError, match=r"states\.db.* was deleted, moved or replaced"):
            states.files.put("a.txt", b"lost")
    states.close()


def test_a_full_disk_is_told_and_the_same_state_is_recorded_later(tmp_path: Path) -> None:
    """Without a small disk: SQLite itself is told to use no more pages."""
    states = open_database_states(f"sqlite:///{tmp_path}/states.db", "p")
    connection = states._database._connection  # type: ignore[attr-defined]
    connection.pragma("max_page_count", connection.pragma("page_count") + 2)
    for _ in range(2):
        with pytest.raises(StoreFull, match=r"states\.db: no space left on the disk; nothing was written"):
            states.files.put("a.txt", b"x" * 100_000)
    connection.pragma("max_page_count", 1_000_000)
    states.files.put("a.txt", b"x" * 100_000)
    assert states.files.read("a.txt") == b"x" * 100_000
    states.close()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/states.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_url()


def test_a_pipeline_on_a_database(database: str, engine: Engine) -> None:
    ledger = Ledger()

    def blog() -> Pipeline:
        return make_blog(database, ledger)  # type: ignore[arg-type]

    for date in ("d1", "d2"):
        blog().put(f"daily/{date}/a.txt", f"Hello {date}".encode())
    assert len(blog().build(engine=engine).produced) == 5
    ledger.take()
    assert blog().build(engine=engine).produced == ()
    blog().put("daily/d1/a.txt", b"hello d1")  # the summary comes out the same
    assert blog().build(engine=engine).produced == ("summary d1",)
    blog().put("daily/d1/a.txt", b"boom")
    assert blog().build(engine=engine).failed == {"summary d1": "boom"}
    assert statuses(blog()) == {
        "summary d1": "failed", "summary d2": "fresh", "digest d1": "blocked", "digest d2": "fresh", "index": "blocked",
    }  # fmt: skip
    blog().invalidate("digest d2")
    assert set(blog().build(engine=engine).produced) == {"digest d2"}
    assert blog().store.files.read("index.html").startswith(b"d1 ")


def test_what_people_ask_of_a_database_of_states_is_in_columns(database: str, engine: Engine) -> None:
    clock = Clock()
    blog = make_blog(database, clock=clock)  # type: ignore[arg-type]
    blog.put("daily/d1/a.txt", b"Hello")
    blog.put("daily/d2/a.txt", b"boom")
    blog.build(engine=engine)
    rows = blog.store._database.rows  # type: ignore[attr-defined]
    record = blog.store.records.find(["daily/d1/summary.txt"])["daily/d1/summary.txt"]
    columns = "path, entity_id, pipeline, state_type, code_hash, content_hash, created_at, updated_at"
    assert [tuple(row) for row in rows(f"SELECT {columns} FROM states WHERE state_type = 'summary'")] == [
        ("daily/d1/summary.txt", "d1", "auto-blog", "summary", record.code_hash, sha256(b"hello").hexdigest(),
         record.produced_at, record.produced_at),
    ]  # fmt: skip
    asked = "SELECT entity_id, state_type, error, error_type, attempt, next_retry_at FROM state_failures"
    assert [tuple(row) for row in rows(asked)] == [("d2", "summary", "boom", "ValueError", 1, clock.now + 60)]
    clock.now += 60
    blog.build(engine=engine)
    assert [tuple(row) for row in rows(asked)] == [("d2", "summary", "boom", "ValueError", 2, clock.now + 300)]
    later = record._replace(produced_at="2100-01-01T00:00:00Z")
    blog.store.records.change({"daily/d1/summary.txt": later})
    times = "SELECT created_at, updated_at FROM states WHERE path = 'daily/d1/summary.txt'"
    assert [tuple(row) for row in rows(times)] == [(record.produced_at, later.produced_at)]
    blog.store.records.change({"daily/d1/summary.txt": None})
    assert [tuple(row) for row in rows(times)] == [(None, None)]
    assert blog.store.files.read("daily/d1/summary.txt") == b"hello"


def test_a_trigger_finds_states_of_another_pipeline_of_its_database(database: str, engine: Engine) -> None:
    def triggered() -> Pipeline:
        pipeline = Pipeline("second", root=database)
        pipeline.trigger("told", state="summary", workflow=_noting)
        return pipeline

    make_blog(database).put("daily/d1/a.txt", b"Hello")  # type: ignore[arg-type]
    triggered().build(engine=engine)
    make_blog(database).build(engine=engine)  # type: ignore[arg-type]
    triggered().build(engine=engine)
    triggered().build(engine=engine)
    assert [run.wait().output("note") for run in engine.runs(workflow="noting")] == ["daily/d1/summary.txt"]


def _noting(event: dict[str, str]) -> Builder:
    builder = Builder("noting")
    builder.node("note", job=_note, args={"path": event["path"]})
    return builder


def _note(path: str) -> str:
    return path


def test_directories_and_many_of_one_on_a_database(database: str, engine: Engine) -> None:
    def make() -> Pipeline:
        pipeline = Pipeline("p", root=database)

        @pipeline.stage(input="books/{book}.txt", output="chapters/{book}/{number}.txt", version="1")
        def split(text: str) -> dict[int, str]:
            return dict(enumerate(text.split("|"), 1))

        @pipeline.stage(input="chapters/{book}/{number}.txt", output="site/{book}-{number:\\d+}/", version="1")
        def site(path: Path, out: Path) -> None:
            (out / "page.html").write_text(path.read_text().upper())

        return pipeline

    make().put("books/moby.txt", b"call|me")
    assert set(make().build(engine=engine).produced) == {"split moby", "site moby/1", "site moby/2"}
    assert make().store.files.read("site/moby-2/page.html") == b"ME"
    assert make().build(engine=engine).produced == ()
    make().put("books/moby.txt", b"call")
    assert set(make().build(engine=engine).produced) == {"split moby"}
    assert make().clean() == ["site/moby-2/"]
    assert not make().store.files.exists("site/moby-2/page.html")
