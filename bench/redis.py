"""The Redis store, beside a bare Lua call and the embedded store in the same run."""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepwell import Builder, Context, Engine
from stepwell.core.store import reader
from stepwell.stores.redis.store import RedisStore
from tests.conformance import ops
from tests.servers.redis_server import RedisServer

from .rows import Row, measure
from .shapes import chain, fan

ROUNDS = 3
BARE = "return redis.call('HSET', KEYS[1], 'field', ARGV[1])"


def begun(started_at: float, file: str, ctx: Context) -> None:
    Path(file).write_text(str(time.time() - started_at))


def serve(url: str) -> None:
    with Engine(url, jobs=["bench.redis"]) as engine:
        engine.work(wait=0)
        time.sleep(600)


def on_redis(folder: Path) -> list[Row]:
    server = RedisServer("--auto-aof-rewrite-percentage", "0")
    try:
        return [
            *chains(server),
            *fans(server, folder),
            *memory(server),
            *claims(server),
            *starts(server, folder),
            *closes(server),
        ]
    finally:
        server.stop()


def _timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def bare_calls(server: RedisServer, count: int) -> float:
    with server.client() as client:
        call: Any = client.register_script(BARE)
        return _timed(lambda: [call(keys=["bare"], args=[number]) for number in range(count)])


def chains(server: RedisServer) -> list[Row]:
    nodes, results = 1_000, []
    with Engine(f"{server.url}?namespace=chain") as engine:
        engine.run(chain(3))
        for _ in range(ROUNDS):
            floor = bare_calls(server, nodes)
            built = chain(nodes)
            ours = _timed(lambda built=built: engine.run(built))  # type: ignore[misc]
            results.append((ours / floor, floor, ours))
    ratio, floor, ours = sorted(results)[ROUNDS // 2]
    told = f"{ratio:.1f} x: {ours / nodes * 1e6:.0f} µs a node, bare {floor / nodes * 1e6:.0f} µs"
    return [Row("Redis: chain of 1,000, everysec", "≤ 5 x a bare Lua call", told, ratio <= 5)]


def fans(server: RedisServer, folder: Path) -> list[Row]:
    width, results = 10_000, []
    with Engine(f"{server.url}?namespace=fan") as ours, Engine(f"sqlite:///{folder}/fan.db") as embedded:
        for engine in (ours, embedded):
            engine.run(fan(3))
        for turn in range(ROUNDS):
            took: dict[Engine, float] = {}
            for engine in (ours, embedded) if turn % 2 else (embedded, ours):
                built = fan(width)  # for each its own: a graph is put in order once
                took[engine] = _timed(lambda e=engine, b=built: e.run(b))  # type: ignore[misc]
            results.append((took[embedded] / took[ours], width / took[ours], width / took[embedded]))
    ratio, here, there = sorted(results)[ROUNDS // 2]
    told = f"{ratio:.2f} x: {here:,.0f} nodes/s, embedded {there:,.0f}"
    return [Row("Redis: fan 1 → 10,000 → 1", "none: see bench.compare", told, None)]


def memory(server: RedisServer) -> list[Row]:
    width = 100_000
    with server.client() as client:
        client.config_set("slowlog-log-slower-than", 1_000)
        client.config_set("slowlog-max-len", 5_000)
        client.slowlog_reset()
        before = client.info("memory")["used_memory"]
        with Engine(f"{server.url}?namespace=wide&keep_days=forever") as engine:
            engine.run(fan(width))
        time.sleep(1.5)  # buffers of clients and of the log are given back
        calls = sorted(entry["duration"] / 1_000 for entry in client.slowlog_get(5_000))
        client.slowlog_reset()
        used = (client.info("memory")["used_memory"] - before) / width
    longest = calls[-1] if calls else 0.0
    usual = statistics.median(calls) if calls else 0.0
    return [
        Row("Redis: memory of a fan of 100,000", "≤ 600 bytes a node", f"{used:.0f} bytes", used <= 600),
        Row("Redis: longest call of that fan", "≤ 20 ms", f"{longest:.0f} ms; median {usual:.1f} ms", longest <= 20),
    ]


def claims(server: RedisServer) -> list[Row]:
    """How long the server is kept by a worker that asks for as many nodes as it has threads."""
    store, count = RedisStore(f"{server.url}?namespace=claims"), 500
    of = ops.fan(10_000)
    ops.serve(store, of, seconds=600)
    (first,) = ops.claim(store)
    store.commit([ops.completed(first)])
    while ops.sweep(store).next_due is None or reader.require_run(store, ops.RUN).releasing:
        continue
    with server.client() as client:
        client.config_resetstat()
        granted = sum(len(ops.claim(store, limit=8)) for _ in range(count))
        each = client.info("commandstats")["cmdstat_fcall"]["usec"] / count / 1_000
    store.close()
    assert granted == 8 * count
    return [Row("Redis: a claim of 8 nodes", "≤ 1 ms of the server", f"{each:.2f} ms", each <= 1)]


def starts(server: RedisServer, folder: Path) -> list[Row]:
    """From `start` to the first body, which runs in another process."""
    url, times = f"{server.url}?namespace=starts", []
    worker = multiprocessing.get_context("spawn").Process(target=serve, args=(url,))
    worker.start()
    try:
        with Engine(url, runner=None) as engine, tempfile.TemporaryDirectory(dir=folder) as place:
            for number in range(40):
                file = Path(place) / str(number)
                built = Builder("first")
                built.node("only", job=begun, args={"started_at": time.time(), "file": str(file)})
                engine.start(built)
                while not file.exists() or not file.read_text():
                    time.sleep(0.001)
                times.append(float(file.read_text()))
                time.sleep(0.05)
    finally:
        worker.kill()
        worker.join()
    median = statistics.median(times[10:]) * 1_000
    return [Row("Redis: start to first body elsewhere", "≤ 10 ms median", f"{median:.1f} ms", median <= 10)]


def closes(server: RedisServer) -> list[Row]:
    (microseconds,) = measure("close", f"{server.url}?namespace=closes").values()
    milliseconds = microseconds / 1_000
    return [Row("Redis: `engine.close()`", "≤ 20 ms", f"{milliseconds:.1f} ms median", milliseconds <= 20)]
