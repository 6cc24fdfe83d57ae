"""All stores of states pass the same suite, and a pipeline on a database behaves as one on files."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest

from stepwell import Engine, Pipeline
from stepwell.pipeline.states.database import open_database_states
from stepwell.pipeline.states.files.store import FileStates
from stepwell.testing.states import Open, StateStoreConformance
from tests.pipeline.blog import Ledger, make_blog, statuses
from tests.postgres_server import PostgresServer


class TestFiles(StateStoreConformance):
    @pytest.fixture
    def open_states(self, tmp_path: Path) -> Open:
        (tmp_path / "root").mkdir()
        return lambda: FileStates(str(tmp_path / "root"), "p")


class TestSqlite(StateStoreConformance):
    @pytest.fixture
    def open_states(self, tmp_path: Path) -> Open:
        return lambda: open_database_states(f"sqlite:///{tmp_path}/states.db", "p")


class TestPostgres(StateStoreConformance):
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
