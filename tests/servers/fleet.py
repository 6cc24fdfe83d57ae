"""A fleet of the tests' own: real Celery workers and orchestrators, each ended by its process id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stepwell import Engine
from stepwell.core.store import reader
from stepwell.stores import open_store

ROOT = Path(__file__).parents[2]
READY_SECONDS = 60.0


class Service:
    """One process of a fleet, with what it has said."""

    def __init__(self, command: Sequence[str], log: Path, environment: dict[str, str]) -> None:
        self.log = log
        with log.open("wb") as said:
            self._process = subprocess.Popen(
                command, stdout=said, stderr=said, cwd=ROOT, env=environment, start_new_session=True
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def children(self) -> list[int]:
        """The processes of its pool."""
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.pid)], capture_output=True, text=True, check=False
        )
        return [int(pid) for pid in found.stdout.split()]

    def alive(self) -> bool:
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGTERM, seconds: float = 60.0) -> int:
        """End it, and its exit code."""
        if self.alive():
            self.send(number)
        return self._process.wait(seconds)

    def kill(self) -> None:
        """At once, with every process of it."""
        if self.alive():
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                self._process.kill()
        self._process.wait(60)


class Fleet:
    def __init__(self, store: str, broker: str, folder: Path | None = None) -> None:
        self.store, self.broker = store, broker
        self.folder = Path(tempfile.mkdtemp(prefix="stepwell-fleet-")) if folder is None else folder
        self.services: list[Service] = []

    def engine(self, **options: Any) -> Engine:
        """One that only starts runs."""
        return Engine(self.store, runner="celery", broker=self.broker, **options)

    def start(self, *words: object, **environment: str) -> Service:
        """Any command of ours."""
        return self.launch([sys.executable, "-m", "stepwell", *map(str, words)], **environment)

    def launch(self, command: Sequence[str], **environment: str) -> Service:
        given = {
            **os.environ,
            "STEPWELL_STORE": self.store,
            "STEPWELL_BROKER": self.broker,
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "ignore",
            "C_FORCE_ROOT": "1",
            **environment,
        }
        service = Service(command, self.folder / f"{len(self.services)}.log", given)
        self.services.append(service)
        return service

    def worker(self, *modules: str, processes: int = 2, pool: str = "prefork", **options: Any) -> Service:
        """A worker, once all its processes are at work."""
        before = self.workers()
        named = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        name = f"w{len(self.services)}@%h"
        service = self.start("worker", *modules, "-c", processes, "--pool", pool, "--name", name, *named)
        self.wait_for_workers(service, before, processes if pool == "prefork" else 1)
        return service

    def workers(self) -> set[str]:
        store = open_store(self.store)
        try:
            return {worker.id for worker in reader.list_workers(store)}
        finally:
            store.close()

    def wait_for_workers(self, service: Service, before: set[str], number: int) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while len(self.workers() - before) < number or "ready." not in service.said:
            assert service.alive(), service.said
            assert time.monotonic() < deadline, service.said
            time.sleep(0.05)

    def close(self) -> None:
        for service in self.services:
            service.kill()
