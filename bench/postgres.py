"""The PostgreSQL store beside what its server can do at best, and beside the embedded store, in one run. fsync is on."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from stepwell import Engine
from tests.postgres_server import ROOT, PostgresServer

from .postgres_processes import idle, shared_fan
from .rows import Row
from .shapes import Diamond, chain, fan

ROUNDS = 3
DBOS_NODES = 500


def postgres(folder: Path) -> list[Row]:
    server = PostgresServer("-c", "max_connections=400")
    try:
        urls = {"postgres": server.new_url(), "sqlite": f"sqlite:///{folder}/beside.db"}
        found: dict[tuple[str, str], list[float]] = {}
        floors = []
        for _ in range(ROUNDS):
            floors.append(bare_commit(server))
            for name, url in urls.items():
                with Engine(url, workflows=[Diamond]) as engine:
                    engine.run(Diamond())
                    for case, (nodes, work) in _WORK.items():
                        begun = time.perf_counter()
                        work(engine)
                        found.setdefault((name, case), []).append(nodes / (time.perf_counter() - begun))
        several = [*shared_fan(server), *idle(server), _beside_dbos(server, folder)]
        deadlocks = server.execute("SELECT sum(deadlocks) FROM pg_stat_database")[0][0]
        return [*_rows(found, statistics.median(floors)), _latency(server), *several, _deadlocks(deadlocks)]
    finally:
        server.close()


def bare_commit(server: PostgresServer) -> float:
    """Seconds that a commit of one row takes, sent as one round trip."""
    import psycopg

    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS floor (key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text)"
        )
        begun = time.perf_counter()
        for _ in range(500):
            connection.execute("INSERT INTO floor (body) VALUES (%s)", ("x" * 100,), prepare=True)
        return (time.perf_counter() - begun) / 500


def _beside_dbos(server: PostgresServer, folder: Path) -> Row:
    """A chain by DBOS on the same server, in an environment of its own, and by us, in turn."""
    environment, program = folder / "dbos", [folder / "dbos" / "bin" / "python", ROOT / "bench" / "dbos_chain.py"]
    case, bar = "a node of a chain, beside DBOS", ">= 3 x faster"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    install = [
        environment / "bin" / "pip",
        "--disable-pip-version-check",
        "--no-input",
        "install",
        "--quiet",
        "--quiet",
    ]
    if subprocess.run([*install, "--require-hashes", "-r", ROOT / "requirements" / "dbos.txt"], check=False).returncode:
        return Row(case, bar, "DBOS could not be installed", False)
    server.execute("CREATE DATABASE dbos")
    theirs, ours = [], []
    for _ in range(ROUNDS):
        command = [*program, server.url("dbos"), str(DBOS_NODES), "1"]
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        theirs.append(float(said.stdout.split()[-1]))
        with Engine(server.new_url()) as engine:
            engine.run(chain(3))
            built, begun = chain(DBOS_NODES), time.perf_counter()
            engine.run(built)
            ours.append((time.perf_counter() - begun) / DBOS_NODES)
    there, here = statistics.median(theirs), statistics.median(ours)
    told = f"{there / here:.1f} x ({1e3 * here:.2f} and {1e3 * there:.2f} ms)"
    return Row(case, bar, told, there >= 3 * here)


def _diamonds(engine: Engine) -> None:
    for run in engine.start_many(Diamond() for _ in range(1_000)):
        run.wait()


_WORK: dict[str, tuple[int, Callable[[Engine], object]]] = {
    "chain": (1_000, lambda engine: engine.run(chain(1_000))),
    "fan": (10_002, lambda engine: engine.run(fan(10_000))),
    "diamonds": (1_000, _diamonds),
}


def _rows(found: dict[tuple[str, str], list[float]], floor: float) -> list[Row]:
    rate = {key: statistics.median(rates) for key, rates in found.items()}
    floors = 1 / rate["postgres", "chain"] / floor
    wide = rate["postgres", "fan"] / rate["sqlite", "fan"]
    small = rate["postgres", "diamonds"] / rate["sqlite", "diamonds"]
    each = 1e3 / rate["postgres", "chain"]
    return [
        Row(
            "chain of 1,000, PostgreSQL",
            "<= 5 x a bare commit",
            f"{floors:.1f} x ({each:.2f} and {1e3 * floor:.2f} ms)",
            floors <= 5,
        ),
        Row(
            "1 -> 10,000 -> 1, PostgreSQL",
            ">= 0.6 x the embedded store",
            f"{wide:.2f} x ({rate['postgres', 'fan']:,.0f} nodes/s)",
            wide >= 0.6,
        ),
        Row(
            "1,000 diamonds, PostgreSQL",
            ">= 0.4 x the embedded store",
            f"{small:.2f} x ({rate['postgres', 'diamonds']:,.0f} runs/s)",
            small >= 0.4,
        ),
    ]


def _latency(server: PostgresServer) -> Row:
    """From `start` in one process to the end of a run of four nodes in another that is idle."""
    url = server.new_url()
    command = [sys.executable, "-c", _WORKER.format(url=url)]
    with Engine(url, runner=None, workflows=[Diamond]) as engine:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        delays = []
        for _ in range(15):
            time.sleep(0.3)
            run = engine.start(Diamond())
            run.wait(30)
            row = run.row
            assert row.started_at is not None
            delays.append((row.started_at - row.created_at) / 1e3)
        child.stdin.close()
        child.wait(30)
        child.stdout.close()
    median = statistics.median(delays)
    return Row("start to first claim elsewhere, idle", "<= 25 ms median", f"{median:.0f} ms", median <= 25)


_WORKER = """
import sys
from stepwell import Engine
from bench.shapes import Diamond
with Engine({url!r}, workflows=[Diamond]):
    print("ready", flush=True)
    sys.stdin.read()
"""


def _deadlocks(count: object) -> Row:
    return Row("deadlocks that the server counted", "0", str(count), count == 0)
