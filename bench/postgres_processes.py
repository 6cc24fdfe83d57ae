"""Several processes on one PostgreSQL server: one fan for four, and one start among fifty that are idle.

`python -m bench.postgres_processes URL ENGINES` works until its standard input ends, and prints a JSON object for every line it
reads: what its engines have asked of the store since the line before.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

from stepwell import Engine
from stepwell.core.model import Claim, Settle
from stepwell.stores.postgres.store import PostgresStore
from tests.postgres_server import ROOT, PostgresServer

from .rows import Row
from .shapes import Diamond, fan

WIDTH = 10_000
IDLE_PROCESSES, IDLE_ENGINES = 5, 10
IDLE_SECONDS = 30.0


class Counted(PostgresStore):
    """Counts what is asked of it."""

    calls = claims = 0
    longest = 0.0

    def commit(self, batch: Any) -> Any:
        Counted.calls += 1
        kinds = {type(op) for op in batch}
        Counted.claims += Claim in kinds and Settle not in kinds
        began = time.perf_counter()
        try:
            return super().commit(batch)
        finally:
            Counted.longest = max(Counted.longest, time.perf_counter() - began)

    def read(self, queries: Any) -> Any:
        Counted.calls += 1
        return super().read(queries)

    @classmethod
    def told(cls) -> dict[str, float]:
        said = {"calls": cls.calls, "claims": cls.claims, "longest": cls.longest}
        cls.calls, cls.claims, cls.longest = 0, 0, 0.0
        return said


def work(url: str, engines: int) -> None:
    with ExitStack() as stack:
        for _ in range(engines):
            engine = stack.enter_context(Engine(Counted(url), workflows=[Diamond], jobs=["bench.shapes"]))
            engine.work(wait=0)
        print("ready", flush=True)
        for _ in sys.stdin:
            print(json.dumps(Counted.told()), flush=True)


class Worker:
    def __init__(self, url: str, engines: int) -> None:
        command = [sys.executable, "-m", "bench.postgres_processes", url, str(engines)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True)

    @property
    def _lines(self) -> tuple[IO[str], IO[str]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def wait_until_ready(self) -> None:
        assert self._lines[1].readline() == "ready\n"

    def ask(self) -> dict[str, float]:
        given, answers = self._lines
        given.write("\n")
        given.flush()
        told: dict[str, float] = json.loads(answers.readline())
        return told

    def end(self) -> None:
        given, answers = self._lines
        given.close()
        self._process.wait(60)
        answers.close()


@contextmanager
def working(url: str, processes: int, engines: int = 1) -> Iterator[list[Worker]]:
    workers = [Worker(url, engines) for _ in range(processes)]
    try:
        for worker in workers:
            worker.wait_until_ready()
        yield workers
    finally:
        for worker in workers:
            worker.end()


def shared_fan(server: PostgresServer) -> list[Row]:
    """A wide run that another process started, by one process and by four."""
    rates: dict[int, float] = {}
    shares: list[int] = []
    longest = 0.0
    for processes in (1, 4):
        url = server.new_url()
        with working(url, processes) as workers, Engine(url, runner=None) as engine:
            engine.start(fan(100)).wait(60)
            for worker in workers:
                worker.ask()
            began = time.perf_counter()
            run = engine.start(fan(WIDTH))
            run.wait(600)
            rates[processes] = WIDTH / (time.perf_counter() - began)
            longest = max(longest, *(worker.ask()["longest"] for worker in workers))
            schema = url.rpartition("=")[2]
            counted = (
                f"SELECT count(*) FROM {schema}.attempt WHERE run = (SELECT max(key) FROM {schema}.run) GROUP BY worker"
            )
            shares = sorted(int(str(count)) for (count,) in server.execute(counted))
    ratio, least = rates[4] / rates[1], (shares[0] if len(shares) == 4 else 0) / WIDTH
    return [
        Row(
            "1 -> 10,000 -> 1, four processes",
            ">= 0.8 x the rate of one",
            f"{ratio:.2f} x ({rates[4]:,.0f} nodes/s)",
            ratio >= 0.8,
        ),
        Row("the least share of the four", ">= 10 %", f"{100 * least:.0f} %", least >= 0.1),
        Row("longest commit of the four", "<= 250 ms", f"{1e3 * longest:.0f} ms", longest <= 0.25),
    ]


def idle(server: PostgresServer) -> list[Row]:
    """Many that have nothing to do, and one start among them."""
    url, engines = server.new_url(), IDLE_PROCESSES * IDLE_ENGINES
    with working(url, IDLE_PROCESSES, IDLE_ENGINES) as workers, Engine(url, runner=None, workflows=[Diamond]) as engine:
        engine.start(Diamond()).wait(60)
        time.sleep(35)  # by then all have been told how many they are
        for worker in workers:
            worker.ask()
        time.sleep(IDLE_SECONDS)
        calls = sum(worker.ask()["calls"] for worker in workers) / IDLE_SECONDS / engines
        claims = []
        for _ in range(9):
            engine.start(Diamond()).wait(60)
            time.sleep(1.5)
            claims.append(sum(worker.ask()["claims"] for worker in workers))
    median = statistics.median(claims)
    return [
        Row(f"{engines} idle engines", "<= 0.5 calls/s each", f"{calls:.2f}", calls <= 0.5),
        Row(
            f"one start among {engines} idle engines",
            "<= 5 claims in all",
            f"{median:.0f} (most {max(claims):.0f})",
            median <= 5,
        ),
    ]


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]))
