"""The HTTP service on the embedded store: one server process, twenty clients in this one."""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from stepwell import Builder, Document, Engine

from .rows import Row

CLIENTS = 20
STARTS = 2_000
STORED = 100_000
WIDE = 10_000
STREAMS = 200
REQUESTS = 20_000
ONE = {"name": "one", "nodes": [{"id": "x", "handler": "transform", "config": {"template": "{{ input.n }}"}}]}


@contextmanager
def serving(url: str, *options: str) -> Iterator[tuple[str, psutil.Process]]:
    command = [sys.executable, "-m", "stepwell", "serve", "--port", "0", "--store", url, *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = next(each for each in process.stderr if " at http" in each)
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield line.partition(" at ")[2].partition(",")[0], psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


class Asking:
    """One connection, kept open."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        content = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        self._connection.request(method, f"/api/v1{path}", content, headers)
        answer = self._connection.getresponse()
        data = answer.read()
        assert answer.status < 300, (path, answer.status, data[:300])
        return json.loads(data)


def _times(url: str, count: int, ask: Callable[[Asking, int], Any]) -> tuple[list[float], float]:
    """How long each request took, from CLIENTS clients at once; and all of them together."""
    taken: list[float] = []

    def client(who: int) -> None:
        asking = Asking(url)
        for number in range(who, count, CLIENTS):
            began = time.perf_counter()
            ask(asking, number)
            taken.append(time.perf_counter() - began)

    threads = [threading.Thread(target=client, args=(who,)) for who in range(CLIENTS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(taken), time.perf_counter() - began


def starts(folder: Path) -> list[Row]:
    url = f"sqlite:///{folder}/starts.db"
    with serving(url) as (address, _):
        asking = Asking(address)
        asking.ask("POST", "/workflows", ONE)
        taken, seconds = _times(
            address, STARTS, lambda each, n: each.ask("POST", "/workflows/one/runs", {"input": {"n": n}})
        )
        until, asking = time.monotonic() + 120, Asking(address)
        while asking.ask("GET", "/runs?status=RUNNING&status=PENDING&limit=1")["items"]:
            assert time.monotonic() < until, "not all of them end"
            time.sleep(0.1)
    rate, p99 = STARTS / seconds, taken[int(len(taken) * 0.99)] * 1_000
    return [
        Row("HTTP: starts of runs, 20 clients, all of them finishing", ">= 300/s", f"{rate:,.0f}/s", rate >= 300),
        Row("HTTP: a start, p99", "<= 250 ms", f"{p99:,.0f} ms", p99 <= 250),
    ]


def looking(folder: Path) -> list[Row]:
    url = f"sqlite:///{folder}/looking.db"
    with Engine(url, runner=None) as engine:
        document = Document(ONE | {"nodes": [{"id": "x", "handler": "transform", "config": {"template": 1}}]})
        for _ in range(STORED // 5_000):
            engine.start_many([document] * 5_000)
        builder = Builder("wide")
        builder.fan_out(range(WIDE), job="bench.shapes:one", name=lambda n: f"n{n}")
        engine.start(builder, run_id="wide")
    rows: list[Row] = []
    with serving(url, "--no-runner") as (address, process):
        asking = Asking(address)
        for what, path in (
            (f"HTTP: GET /runs with {STORED:,} stored", "/runs"),
            (f"HTTP: summary of a run of {WIDE:,} nodes", "/runs/wide"),
            (f"HTTP: a page of nodes of a run of {WIDE:,}", "/runs/wide/nodes"),
        ):
            taken = []
            for _ in range(20):
                began = time.perf_counter()
                asking.ask("GET", path)
                taken.append(time.perf_counter() - began)
            middle = statistics.median(taken) * 1_000
            rows.append(Row(what, "<= 50 ms", f"{middle:.1f} ms", middle <= 50))
        _times(address, 2_000, lambda each, n: each.ask("GET", "/runs?limit=5"))
        before = process.memory_info().rss
        _times(address, REQUESTS, lambda each, n: each.ask("GET", "/runs?limit=5"))
        grown = (process.memory_info().rss - before) / 2**20
        rows.append(Row(f"HTTP: memory over {REQUESTS:,} requests", "flat (< 10 MB)", f"{grown:+.1f} MB", grown < 10))
    return rows


def streams(folder: Path) -> list[Row]:
    url = f"sqlite:///{folder}/streams.db"
    late: list[float] = []
    with serving(url) as (address, _):
        asking = Asking(address)
        asking.ask("POST", "/workflows", ONE)
        parts = urlsplit(address)
        ready = threading.Semaphore(0)

        def listen() -> None:
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
            connection.request("GET", "/api/v1/events")
            answer = connection.getresponse()
            ready.release()
            while line := answer.readline():
                if line.startswith(b"data:"):
                    told = json.loads(line[5:])
                    if told["status"] == "COMPLETED" and told["id"].startswith("seen-"):
                        late.append(time.time() - ended[told["id"]] if told["id"] in ended else 0.0)
                    elif told["id"] == "stop":
                        return

        ended: dict[str, float] = {}
        threads = [threading.Thread(target=listen, daemon=True) for _ in range(STREAMS)]
        for thread in threads:
            thread.start()
        for _ in threads:
            ready.acquire()
        time.sleep(1)
        for number in range(20):
            # Before it is asked for: what is measured includes the request, the run and its commits.
            ended[f"seen-{number}"] = time.time()
            asking.ask("POST", "/workflows/one/runs", {"input": {"n": number}, "run_id": f"seen-{number}"})
            time.sleep(0.3)
    middle = statistics.median(late) * 1_000 if late else float("inf")
    told = f"{middle:.0f} ms from the request on, over {len(late):,} events"
    return [Row(f"HTTP: commit to client, {STREAMS} streams open, median", "<= 100 ms", told, middle <= 100)]


def on_http(folder: Path) -> list[Row]:
    return [*starts(folder), *streams(folder), *looking(folder)]
