"""`make prove WHAT=requests`: 100,000 requests of every kind to one server process, whose memory must not grow with them.

REQUESTS=20000 is a shorter one.
"""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import psutil

from tests.server.running import ADD

CLIENTS = 8
MIB = 2**20
FLAT = 10
"""MiB that may come between the first fifth, when what is remembered has its size, and the end. What the file of the store
has grown by is not counted: SQLite keeps up to 64 MiB of its pages."""


class Requests:
    """One client: what it asks for is drawn."""

    def __init__(self, address: str, seed: int, answers: Counter[str]) -> None:
        self._api = httpx.Client(base_url=f"{address}/api/v1", timeout=120)
        self._random = random.Random(seed)
        self._answers = answers
        self._run = ""
        self._start()

    def ask(self) -> None:
        kinds = (self._start, self._read, self._wrong, self._follow, self._leave, self._save, self._steer)
        (kind,) = self._random.choices(kinds, weights=(10, 70, 8, 3, 1, 2, 6))
        kind()

    def _note(self, answer: httpx.Response, *expected: int) -> httpx.Response:
        assert answer.status_code in expected, (answer.request.url, answer.status_code, answer.text[:300])
        self._answers[f"{answer.request.method} {answer.status_code}"] += 1
        return answer

    def _start(self) -> None:
        body = {"input": {"a": self._random.randrange(10**6)}, "tags": {"n": str(self._random.randrange(10**9))}}
        headers = {"Idempotency-Key": f"{self._random.random()}"}
        self._run = self._note(self._api.post("/workflows/add/runs", json=body, headers=headers), 201).json()["id"]

    def _read(self) -> None:
        run = f"/runs/{self._run}"
        paths = (
            "/runs?limit=5",
            run,
            f"{run}/nodes",
            f"{run}/nodes/x",
            f"{run}/results",
            f"{run}/why",
            f"{run}/journal",
        )
        self._note(self._api.get(self._random.choice((*paths, f"{run}/graph", "/workflows", "/workers"))), 200)

    def _wrong(self) -> None:
        drawn = f"{self._random.random()}"
        self._note(self._api.get(f"/{drawn}"), 404)
        self._note(self._api.get(f"/runs/{drawn}"), 404)
        self._note(self._api.get("/runs", headers={"Authorization": f"Bearer sw_{drawn}"}), 401)
        self._note(self._api.post("/workflows/add/runs", json={"input": {"b": drawn}}), 422)

    def _follow(self) -> None:
        with self._api.stream("GET", f"/runs/{self._run}/events", params={"until": "ended"}) as stream:
            assert any("event: end" in line for line in stream.iter_lines())
            self._note(stream, 200)

    def _leave(self) -> None:
        with self._api.stream("GET", "/events") as stream:
            next(stream.iter_lines())
            self._note(stream, 200)

    def _save(self) -> None:
        self._note(self._api.post("/workflows", json=ADD), 200)

    def _steer(self) -> None:
        self._note(self._api.post(f"/runs/{self._run}/cancel", json={"dry_run": True}), 200, 409)


def main() -> int:
    count = int(os.environ.get("REQUESTS", "100000"))
    with tempfile.TemporaryDirectory(prefix="stepwell-requests-") as folder:
        command = [sys.executable, "-m", "stepwell", "serve", "--port", "0", "--store", f"sqlite:///{folder}/runs.db"]
        with (Path(folder) / "said").open("wb") as said:
            server = subprocess.Popen(command, stderr=said)
        try:
            while " at http" not in (text := (Path(folder) / "said").read_text()):
                time.sleep(0.05)
            address = text.partition(" at ")[2].partition(",")[0]
            grown = _drive(address, psutil.Process(server.pid), Path(folder) / "runs.db", count)
        finally:
            server.terminate()
            server.wait(60)
    return 0 if grown < FLAT else 1


def _drive(address: str, server: psutil.Process, file: Path, count: int) -> float:
    httpx.post(f"{address}/api/v1/workflows", json=ADD, timeout=120).raise_for_status()
    answers: Counter[str] = Counter()
    clients = [Requests(address, seed, answers) for seed in range(CLIENTS)]
    sizes: list[float] = []
    files: list[float] = []
    for turn in range(10):

        def ask(client: Requests, until: int = count * (turn + 1) // 10) -> None:
            while answers.total() < until:
                client.ask()

        threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
        sizes.append(server.memory_info().rss / MIB)
        files.append(file.stat().st_size / MIB)
        print(f"{answers.total():>8,} requests: {sizes[-1]:.1f} MiB, the file has {files[-1]:.1f}", flush=True)
    print(", ".join(f"{what} {number:,}" for what, number in sorted(answers.items())))
    grown, more = sizes[-1] - sizes[1], files[-1] - files[1]
    print(f"from {count // 5:,} to {count:,} requests: {grown:+.1f} MiB, the file {more:+.1f} MiB")
    return grown - more


if __name__ == "__main__":
    sys.exit(main())
