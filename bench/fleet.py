"""A fleet of two worker processes beside Celery's own canvas: the same broker, the same number of processes, in one run."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from stepwell import Builder, Context, Engine
from stepwell.core.model import UNFINISHED_RUNS
from stepwell.core.store import reader
from stepwell.engine.broker_app import make_app
from stepwell.engine.orchestrator import Orchestrator
from tests.postgres_server import QUICK, PostgresServer
from tests.servers.fleet import Fleet
from tests.servers.redis_server import RedisServer

from .rows import Row
from .shapes import Diamond, chain, fan

WIDTH = 10_000
CHORD = 2_000
"""Of Celery: the wider a chord, the fewer tasks a second, so this is in its favour."""
ROUNDS = 3
WORK = ("bench.shapes", "bench.fleet")


def first_body(started_at: float, file: str, ctx: Context) -> None:
    Path(file).write_text(repr(time.time() - started_at))


def until_killed(file: str, ctx: Context) -> None:
    with Path(file).open("a") as ledger:
        ledger.write(f"{time.time()} {os.getpid()}\n")
    if ctx.attempt == 1:
        time.sleep(600)


def fleet(folder: Path) -> list[Row]:
    broker, redis, postgres = RedisServer("--appendonly", "no"), RedisServer(), PostgresServer(*QUICK)
    fleets = {
        "Redis": Fleet(f"{redis.url}?namespace=bench", broker.url, folder),
        "PostgreSQL": Fleet(postgres.url("postgres", "?schema=bench"), broker.url, folder),
    }
    try:
        os.environ["BENCH_BROKER"] = broker.url.removesuffix("/0") + "/1"
        on_redis = fleets["Redis"]
        return [
            *fans(fleets, broker),
            _told(chains(on_redis)),
            _told(diamonds(on_redis)),
            _told(starts(on_redis, folder)),
            *map(_told, waits(fleets)),
            _told(recovery(on_redis, folder)),
            _told(away(broker, redis)),
        ]
    finally:
        for each in fleets.values():
            each.close()
        for server in (broker, redis):
            server.stop()
        postgres.close()


@contextmanager
def canvas() -> Iterator[None]:
    """A Celery worker with two processes."""
    command = [sys.executable, "-m", "celery", "-A", "bench.canvas", "worker", "-c", "2", "-Q", "canvas", "-l", "ERROR"]
    options = ["--without-gossip", "--without-mingle", "-n", "canvas@%h"]
    worker = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    from .canvas import nothing

    try:
        nothing.delay().get(timeout=60)
        yield
    finally:
        worker.terminate()
        worker.wait(30)


def _told(row: Row) -> Row:
    """It takes minutes: what is known is told."""
    print(f"{row.work}: {row.measured} (bar: {row.bar})", flush=True)
    return row


def _work(fleet: Fleet) -> None:
    fleet.worker(*WORK, processes=2)


def _timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _median(values: list[float]) -> float:
    return statistics.median(values)


def _pushed(server: RedisServer) -> int:
    """Messages that were sent to the broker."""
    with server.client() as client:
        return int(client.info("commandstats").get("cmdstat_lpush", {"calls": 0})["calls"])


def fans(fleets: dict[str, Fleet], broker: RedisServer) -> list[Row]:
    from .canvas import fan as chord

    rows, messages = [], []
    for name, bar in (("Redis", 20), ("PostgreSQL", 15)):
        _work(fleets[name])
        results = []
        with fleets[name].engine() as engine, canvas():
            engine.start(fan(10)).wait(60)
            for _ in range(ROUNDS):
                before, built = _pushed(broker), fan(WIDTH)
                ours = (WIDTH + 2) / _timed(lambda: engine.start(built).wait(300))  # noqa: B023
                messages.append(_pushed(broker) - before)
                theirs = (CHORD + 1) / chord(CHORD)
                results.append((ours / theirs, ours, theirs))
        fleets[name].close()
        ratio, ours, theirs = sorted(results)[ROUNDS // 2]
        told = f"{ratio:.1f} x: {ours:,.0f} nodes/s, Celery {theirs:,.0f}"
        rows.append(_told(Row(f"fleet on {name}: fan 1 → 10,000 → 1", f"≥ {bar} x a Celery chord", told, ratio >= bar)))
    most = max(messages)
    rows.append(_told(Row("fleet: messages for a fan of 10,000", "≤ 50", f"{most}", most <= 50)))
    return rows


def chains(fleet: Fleet) -> Row:
    from .canvas import chained

    length, results = 200, []
    _work(fleet)
    with fleet.engine() as engine, canvas():
        for _ in range(2 * ROUNDS + 1):
            run = engine.start(chain(length))
            run.wait(60).check()
            attempts = list(reader.list_attempts(engine.store, run.id))
            ended = max(attempt.ended_at or 0 for attempt in attempts)
            ours = (ended - min(attempt.started_at for attempt in attempts)) / 1e6 / length
            theirs = chained(length) / length
            results.append((ours / theirs, ours, theirs))
    fleet.close()
    ratio, ours, theirs = sorted(results[1:])[ROUNDS]
    told = f"1/{1 / ratio:.1f}: {ours * 1e3:.2f} ms a node, Celery {theirs * 1e3:.2f}"
    return Row("fleet on Redis: chain of 200, first body to end", "≤ 1/8 of a Celery chain", told, ratio <= 1 / 8)


def diamonds(fleet: Fleet) -> Row:
    from .canvas import diamonds as canvas_of

    count, fewer, results = 1_000, 100, []
    _work(fleet)
    with fleet.engine() as engine, canvas():
        engine.run(Diamond())

        def all_of_them() -> None:
            engine.start_many(Diamond() for _ in range(count))
            while next(iter(reader.all_runs(engine.store, *UNFINISHED_RUNS, limit=1)), None) is not None:
                time.sleep(0.02)

        for _ in range(ROUNDS):
            ours, theirs = count / _timed(all_of_them), fewer / canvas_of(fewer)
            results.append((ours / theirs, ours, theirs))
    fleet.close()
    ratio, ours, theirs = sorted(results)[ROUNDS // 2]
    told = f"{ratio:.1f} x: {ours:,.0f} runs/s, Celery {theirs:,.0f}"
    return Row("fleet on Redis: 1,000 diamonds", "≥ 10 x the same as canvas", told, ratio >= 10)


def starts(fleet: Fleet, folder: Path) -> Row:
    _work(fleet)
    times = []
    with fleet.engine() as engine:
        for number in range(40):
            file = folder / f"first{number}"
            built = Builder("first")
            built.node("only", job=first_body, args={"started_at": time.time(), "file": str(file)})
            engine.start(built)
            while not file.exists() or not file.read_text():
                time.sleep(0.001)
            times.append(float(file.read_text()))
            time.sleep(0.05)
    fleet.close()
    median = _median(times[10:]) * 1e3
    return Row("fleet: start to first body, idle", "≤ 25 ms median", f"{median:.1f} ms", median <= 25)


def waits(fleets: dict[str, Fleet]) -> list[Row]:
    """One run after the other, each of one node, beside one task of Celery after the other. The pause between two is longer
    than that between two hints of a process on PostgreSQL."""
    from .canvas import nothing

    rows = []
    for name, fleet in fleets.items():
        _work(fleet)
        ours, theirs = [], []
        with fleet.engine() as engine, canvas():
            for _ in range(60):
                built = chain(1)
                ours.append(_timed(lambda: engine.start(built).wait(60)))  # noqa: B023
                theirs.append(_timed(lambda: nothing.delay().get(timeout=60)))
                time.sleep(0.06)
        fleet.close()
        median, celery = _median(ours[10:]) * 1e3, _median(theirs[10:]) * 1e3
        told = f"{median:.1f} ms, Celery {celery:.1f}"
        rows.append(
            Row(f"fleet on {name}: start to the end of `run.wait()`, idle", "≤ 15 ms median", told, median <= 15)
        )
    return rows


def recovery(fleet: Fleet, folder: Path) -> Row:
    """A whole worker is killed; another takes over."""
    lease, taken = 3.0, []
    os.environ["STEPWELL_LEASE_SECONDS"] = str(lease)
    try:
        for number in range(3):
            victim = fleet.worker(*WORK, processes=1)
            file = folder / f"killed{number}"
            with fleet.engine() as engine:
                built = Builder("killed")
                built.node("only", job=until_killed, args={"file": str(file)})
                run = engine.start(built)
                while not file.exists():
                    time.sleep(0.005)
                fleet.worker(*WORK, processes=1)
                killed_at = time.time()
                victim.kill()
                run.wait(60).check()
            fleet.close()
            taken.append(float(file.read_text().splitlines()[-1].split()[0]) - killed_at)
    finally:
        del os.environ["STEPWELL_LEASE_SECONDS"]
    worst = max(taken)
    return Row(
        "fleet: recovery of a killed worker's nodes",
        f"≤ lease + 1 s = {lease + 1:g} s",
        f"{worst:.2f} s",
        worst <= lease + 1,
    )


def away(broker: RedisServer, redis: RedisServer) -> Row:
    """No worker for an hour, as many looks as an orchestrator takes in that time."""
    url = f"{redis.url}?namespace=away"
    with Engine(url, runner="celery", broker=make_app(broker.url)) as engine:
        for _ in range(10):
            engine.start_many(Diamond() for _ in range(1_000))
        orchestrator = Orchestrator(engine.store)
        for _ in range(1_800):
            orchestrator._look()
        time.sleep(1)
    with broker.client() as client:
        queued = int(client.llen("stepwell.default"))
    return Row("fleet: hints queued, 10,000 ready runs, workers away for an hour", "≤ 100", f"{queued}", queued <= 100)
