"""Power cuts, kills while a file is first opened, and a disk that fills up under a working engine."""

import os
import random
import threading
from bisect import bisect_right
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from stepwell import Builder, Engine
from stepwell.base.ids import RunId
from stepwell.core.model import Batch, ListAttempts, ListJournal, ListNodes, ListRuns, Query, Receipt, RunStatus
from stepwell.core.store import reader
from stepwell.errors import StoreFull
from stepwell.stores.sqlite import SqliteStore
from stepwell.stores.sqlite.database import SCHEMA, schema
from tests.conformance.audit import audit
from tests.conformance.ops import RUN, enlist, graph, start, statuses, work
from tests.engine.waiting import eventually
from tests.stores.sqlite.children import child
from tests.stores.sqlite.mounts import small_disk

RUNS = (RunId("first"), RunId("second"))
QUERIES: list[Query] = [
    ListRuns(),
    *(query(run) for run in RUNS for query in (ListNodes, ListAttempts, ListJournal)),
]


def doubled(item: int) -> int:
    return 2 * item


def payload(item: int) -> str:
    return random.Random(item).randbytes(20_000).hex()


def fan(width: int, job: Any = doubled) -> Builder:
    builder = Builder("fan")
    builder.fan_out(range(width), job=job)
    builder.node("last", job="tests.stores.sqlite.test_crashes:done")
    return builder


def done() -> bool:
    return True


# Power cuts: what was written last is not there, or is rubbish


class Moment(NamedTuple):
    log_size: int
    """How much of the write-ahead log counted when this commit was acknowledged: the file is longer."""
    rows: list[Any]


class Recording(SqliteStore):
    """Keeps what could be read after every commit."""

    def __init__(self, path: Path) -> None:
        self.one_by_one = threading.Lock()
        super().__init__(path, synchronous="full")
        self.log = path.with_name(path.name + "-wal")
        self.moments = [Moment(self.log.stat().st_size, self.read(QUERIES))]

    def commit(self, batch: Batch) -> list[Receipt]:
        with self.one_by_one:
            receipts = super().commit(batch)
            self.moments.append(Moment(self._log.used, self.read(QUERIES)))
            return receipts


class Recorded(NamedTuple):
    database: bytes
    log: bytes
    moments: list[Moment]


@pytest.fixture(scope="module", params=["all in the log", "half in the database"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Two runs from the first byte of a new file on, and the files as they were before anything was tidied up."""
    path = tmp_path_factory.mktemp("recorded") / "runs.db"
    store = Recording(path)
    with Engine(store, max_concurrent_nodes=2, queue_depth=4) as engine:
        engine.run(fan(12), run_id=RUNS[0])
        if request.param == "half in the database":
            with store.one_by_one:
                store._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                store.moments = [Moment(store.log.stat().st_size, store.moments[-1].rows)]
                assert store.moments[0].log_size == 0
        engine.run(fan(12), run_id=RUNS[1])
        with store.one_by_one:
            taken = Recorded(path.read_bytes(), store.log.read_bytes(), store.moments[:])
    assert len({moment.log_size for moment in taken.moments}) > 5
    return taken


def after_power_cut(folder: Path, recorded: Recorded, log: bytes, monkeypatch: pytest.MonkeyPatch) -> str:
    """The files as they are found when the machine is on again; the address of the store."""
    folder.mkdir()
    (folder / "runs.db").write_bytes(recorded.database)
    (folder / "runs.db-wal").write_bytes(log)
    monkeypatch.setattr("stepwell.stores.sqlite.database.boot_id", lambda: "the boot after the power cut")
    return f"sqlite:///{folder}/runs.db"


def check_recovered(path: Path, url: str, expected: list[Any]) -> None:
    """The store is what it was after some commit, and work goes on from there."""
    store = SqliteStore(path)
    assert store.read(QUERIES) == expected
    audit(store)
    store.close()
    with Engine(url) as engine:
        for run in RUNS:
            assert engine.run(fan(12), run_id=run, wait=20).status is RunStatus.COMPLETED
            assert {attempt.index for attempt in reader.list_attempts(engine.store, run)} == set(range(13))
        audit(engine.store)


def test_nothing_that_was_acknowledged_is_lost(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = after_power_cut(tmp_path / "cut", recorded, recorded.log, monkeypatch)
    check_recovered(tmp_path / "cut" / "runs.db", url, recorded.moments[-1].rows)


@pytest.mark.parametrize("seed", range(20))
def test_a_log_that_lost_its_tail_leaves_the_commits_before_it(
    recorded: Recorded, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tail is missing, rubbish, or the zeros that the log was extended with; every fifth cut is in the first commits."""
    chance = random.Random(seed)
    sizes = [moment.log_size for moment in recorded.moments]
    cut = chance.randrange((seed % 5 == 0 and sizes[0]) or sizes[-1])
    rest = len(recorded.log) - cut
    tail = (b"", chance.randbytes(rest), bytes(rest))[seed % 3]
    url = after_power_cut(tmp_path / "cut", recorded, recorded.log[:cut] + tail, monkeypatch)
    survived = max(1, bisect_right(sizes, cut))  # a new file is as empty as one that was never written
    check_recovered(tmp_path / "cut" / "runs.db", url, recorded.moments[survived - 1].rows)


# Kills while a file is opened for the first time

OPENERS = """
import random, signal, time
from stepwell.stores.sqlite import database

def opened_by_another(path, before=lambda: None):
    "A process that opens the file and ends."
    forked = os.fork()
    if forked == 0:
        try:
            before()
            SqliteStore(path).close()
        finally:
            os._exit(0)
    return forked

def ended(forked):
    return os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1])
"""

DIE_BEFORE_STATEMENT = """
configure = database.configure

def fragile(count):
    left = [count]
    def before(cursor, statement, bindings):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return True
    def configured(db, *how):
        db.exec_trace = before
        configure(db, *how)
    database.configure = configured

count = 0
while ended(opened_by_another(f"{path}-{count}.db", lambda: fragile(count))):
    count += 1
say(count)
"""

DIE_SOME_TIME = """
def seconds(name):
    "How long one takes that nobody kills."
    begun = time.perf_counter()
    ended(opened_by_another(f"{path}-whole-{name}.db"))
    return time.perf_counter() - begun

usual = min(seconds(name) for name in range(5))
killed = 0
chance = random.Random(0)
for count in range(40):
    forked = opened_by_another(f"{path}-{count % 20}.db")
    time.sleep(chance.uniform(0, usual))
    os.kill(forked, signal.SIGKILL)
    killed += ended(forked) != 0
say(killed)
"""


def check_usable(path: Path) -> None:
    store = SqliteStore(path)
    assert store._writer.pragma("user_version") == SCHEMA
    start(store, graph(a="", b="a"))
    enlist(store)
    assert work(store) == 2
    assert statuses(store) == {"a": "COMPLETED", "b": "COMPLETED"}
    audit(store)
    store.close()


def test_a_process_that_dies_at_any_statement_of_its_first_opening_harms_nobody(tmp_path: Path) -> None:
    with child(OPENERS + DIE_BEFORE_STATEMENT, tmp_path / "runs") as opener:
        count = int(opener.hear())
        opener.wait()
    assert count > schema().count(";\n"), "every statement of the schema was among them"
    for number in range(count):
        check_usable(tmp_path / f"runs-{number}.db")


def test_processes_killed_at_random_while_they_open_a_new_file_harm_nobody(tmp_path: Path) -> None:
    with child(OPENERS + DIE_SOME_TIME, tmp_path / "runs") as opener:
        assert int(opener.hear()) > 0
        opener.wait()
    for number in range(20):
        check_usable(tmp_path / f"runs-{number}.db")


# A full disk


def test_an_engine_goes_on_by_itself_when_a_full_disk_has_space_again(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 16_000) as folder:
        ballast = folder / "ballast"
        ballast.write_bytes(b"\0" * 14_000_000)
        with Engine(f"sqlite:///{folder}/runs.db") as engine:
            run = engine.start(fan(100, payload), run_id=RUN)
            told: list[str] = []

            def wait() -> None:
                with pytest.raises(StoreFull) as caught:
                    run.wait(30)
                told.append(str(caught.value))

            waiters = [threading.Thread(target=wait) for _ in range(3)]
            for waiter in waiters:
                waiter.start()
            for waiter in waiters:
                waiter.join()
            assert all("no space left" in words for words in told)
            assert len(told) == len(waiters)
            assert run.status is RunStatus.RUNNING
            audit(engine.store)
            with pytest.raises(StoreFull):
                engine.start(fan(3, payload))
            ballast.unlink()
            eventually(lambda: run.status is RunStatus.COMPLETED, "it never went on", seconds=30)
            assert run.output("last") is True
            assert {row.number for row in reader.list_attempts(engine.store, RUN)} == {1}, "nothing was done twice"
            audit(engine.store)
        assert os.listdir(folder) == ["runs.db"]
