"""Several worker processes on one PostgreSQL server: every completion once, whoever is killed."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from stepwell import Engine, Run
from stepwell.core.model import AttemptStatus, RunStatus
from stepwell.core.store import reader
from tests.conformance.audit import audit
from tests.engine.ledger import counted, noted
from tests.engine.waiting import in_time
from tests.postgres_server import ROOT, PostgresServer
from tests.stores.postgres.children import LEASE_SECONDS, Noted
from tests.stores.postgres.sizes import size


@contextmanager
def worker(url: str, lease: float = LEASE_SECONDS) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.stores.postgres.children", url, str(lease)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        yield child
    finally:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.close()
        try:
            child.wait(30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()


def check(engine: Engine, runs: list[Run]) -> None:
    """Every node of every run has completed once."""
    for run in runs:
        row = reader.require_run(engine.store, run.id)
        assert (row.status, row.open, row.active, row.failed) == (RunStatus.COMPLETED, 0, 0, 0)
        completed = [a.index for a in reader.list_attempts(engine.store, run.id) if a.status is AttemptStatus.COMPLETED]
        assert sorted(completed) == [0, 1, 2, 3]


def test_four_processes_share_the_work_without_a_deadlock(postgres: PostgresServer, tmp_path: Path) -> None:
    url, ledger = postgres.new_url(), str(tmp_path / "ledger")
    with Engine(url, runner=None, workflows=[Noted]) as engine, ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(worker(url, 60.0))  # nobody is to be taken for dead
        runs = list(engine.start_many(Noted(ledger=ledger) for _ in range(size(100, 1_000))))
        for run in runs:
            run.wait(60)
        check(engine, runs)
        audit(engine.store)
        assert set(counted(ledger).values()) == {1}, "nobody died, so no body ran twice"
        assert len(counted(ledger)) == 4 * len(runs)
        assert len({line.split()[1] for line in noted(ledger)}) > 1, "one process did everything"
    assert postgres.execute("SELECT sum(deadlocks) FROM pg_stat_database") == [(0,)]


def test_what_killed_processes_held_is_run_again_by_others(postgres: PostgresServer, tmp_path: Path) -> None:
    url, ledger = postgres.new_url(), str(tmp_path / "ledger")
    with Engine(url, runner=None, workflows=[Noted]) as engine, ExitStack() as stack:
        victims = [stack.enter_context(worker(url)) for _ in range(2)]
        runs = list(engine.start_many(Noted(ledger=ledger) for _ in range(60)))
        for number, victim in enumerate(victims):
            while len(noted(ledger)) < 40 * (number + 1):
                time.sleep(0.002)
            victim.send_signal(signal.SIGKILL)
            stack.enter_context(worker(url))
        for run in runs:
            run.wait(60)
        check(engine, runs)
        audit(engine.store)
        assert len(counted(ledger)) == 240


def test_a_run_that_is_started_elsewhere_begins_at_once(postgres: PostgresServer, tmp_path: Path) -> None:
    url, ledger = postgres.new_url(), str(tmp_path / "ledger")
    with Engine(url, runner=None, workflows=[Noted]) as engine, worker(url):
        engine.start(Noted(ledger=ledger)).wait(30)

        def seconds() -> float:
            time.sleep(1.5)
            begun = time.monotonic()
            engine.start(Noted(ledger=ledger)).wait(30)
            return time.monotonic() - begun

        in_time(3.0, seconds, tries=4)  # by polling, it would be found within five seconds


def test_a_server_that_crashes_loses_nothing(tmp_path: Path) -> None:
    """With fsync on, stopped as if the machine had crashed, while runs are under way."""
    server, ledger = PostgresServer(), str(tmp_path / "ledger")
    try:
        url = server.new_url()
        with Engine(url, workflows=[Noted], lease_seconds=5) as engine:
            runs = list(engine.start_many(Noted(ledger=ledger) for _ in range(60)))
            for number in range(2):
                while len(noted(ledger)) < 20 + 60 * number:
                    time.sleep(0.002)
                server.stop(signal.SIGQUIT)
                server.start()
            for run in runs:
                run.wait(60)
            check(engine, runs)
            audit(engine.store)
        assert len(counted(ledger)) == 240
    finally:
        server.close()
