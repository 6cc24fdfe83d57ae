"""Chaos: a fleet at work, faults of every kind, and the oracle at the end."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from stepwell import Engine, StepwellError, StoreError
from stepwell.core.model import UNFINISHED_RUNS
from stepwell.core.store import reader
from stepwell.engine.broker_app import make_app
from stepwell.engine.orchestrator import Orchestrator
from stepwell.engine.procedures.collect_graphs import collect_graphs
from stepwell.stores import open_store
from tests.chaos.fleet import work
from tests.chaos.fleet.oracle import Figures, judge
from tests.chaos.fleet.transport import register
from tests.servers.fleet import Fleet, Service

LEASE_SECONDS = 2.0
HEAL_SECONDS = 120.0
MODULE = "tests.chaos.fleet.work"


class Server(Protocol):
    """A store or a broker that can be killed."""

    @property
    def url(self) -> str: ...

    def crash(self) -> None: ...

    def start(self) -> None: ...

    def flush(self) -> None: ...

    def leftovers(self) -> list[str]:
        """What is in it although nobody needs it."""
        ...


class Chaos:
    """Starts runs, breaks things, and judges."""

    def __init__(self, store: Server, broker: Server, *, seed: int = 1, workers: int = 2, processes: int = 2) -> None:
        register()
        self.random = random.Random(seed)
        self.store, self.broker = store, broker
        self.folder = Path(tempfile.mkdtemp(prefix="stepwell-chaos-"))
        self.ledger = self.folder / "ledger"
        self.ledger.touch()
        self.fleet = Fleet(store.url, broker.url, self.folder)
        self.processes = processes
        self.workers: list[Service | None] = [None] * workers
        self.versions = [1] * workers
        self.orchestrator: Service | None = None
        self.engine = Engine(store.url, runner="celery", broker=make_app(broker.url))
        self.started: dict[str, tuple[str, int]] = {}
        self.faults: Counter[str] = Counter()
        self._stopped: list[int] = []
        self._enough = threading.Event()
        self._number = 0

    # The fleet

    def launch(self, *words: object, version: int = 1) -> Service:
        command = [sys.executable, "-m", "tests.chaos.fleet.launch", *map(str, words)]
        options = {"STEPWELL_LEASE_SECONDS": str(LEASE_SECONDS), "STEPWELL_CLOSE_SECONDS": "5"}
        return self.fleet.launch(command, CHAOS_VERSION=str(version), **options)

    def start_worker(self, place: int) -> None:
        self.workers[place] = self.launch(
            *("worker", MODULE, "-c", self.processes, "--name", f"w{len(self.fleet.services)}@%h"),
            version=self.versions[place],
        )

    def start_orchestrator(self) -> None:
        self.orchestrator = self.launch("orchestrator")

    def begin(self) -> None:
        for place in range(len(self.workers)):
            self.start_worker(place)
        self.start_orchestrator()
        deadline = time.monotonic() + 60
        while len(self.fleet.workers()) < len(self.workers) * self.processes:
            assert time.monotonic() < deadline, "\n".join(service.said for service in self.fleet.services)
            time.sleep(0.05)

    # Runs

    def start_runs(self, count: int) -> None:
        """Start so many, whatever the store does meanwhile: the same id is the same run."""
        for _ in range(count):
            self._number += 1
            kind = work.KINDS[self._number % len(work.KINDS)]
            run_id = f"{kind}-{self._number}"
            self.started[run_id] = (kind, self._number)
            while True:
                try:
                    self.engine.start(work.make(kind, self._number, str(self.ledger)), run_id=run_id)
                    break
                except StoreError:
                    time.sleep(0.1)

    def unfinished(self) -> int:
        return sum(1 for _ in reader.all_runs(self.engine.store, *UNFINISHED_RUNS))

    # Faults

    def kill_process(self) -> None:
        """One process of a worker, in the midst of whatever it does."""
        children = [pid for worker in self.alive() for pid in worker.children]
        if children:
            self._signal(self.random.choice(children), signal.SIGKILL)

    def pause_process(self) -> None:
        """Past its lease: what it held is taken over, and when it wakes up it is fenced."""
        children = [pid for worker in self.alive() for pid in worker.children]
        if children:
            pid = self.random.choice(children)
            self._signal(pid, signal.SIGSTOP)
            self._stopped.append(pid)
            threading.Timer(1.5 * LEASE_SECONDS, self._signal, (pid, signal.SIGCONT)).start()

    def kill_worker(self) -> None:
        place = self.random.randrange(len(self.workers))
        worker = self.workers[place]
        if worker is not None:
            worker.kill()
        self.start_worker(place)

    def kill_all_workers(self) -> None:
        for worker in self.alive():
            worker.kill()
        time.sleep(0.3)
        for place in range(len(self.workers)):
            self.start_worker(place)

    def end_worker(self) -> None:
        """As a deploy does: it drains."""
        place = self.random.randrange(len(self.workers))
        worker = self.workers[place]
        if worker is not None:
            worker.send(signal.SIGTERM)
        self.start_worker(place)

    def deploy(self) -> None:
        """A worker of the other version, while those of the first are alive; the next time back again."""
        place = self.random.randrange(len(self.workers))
        self.versions[place] = 3 - self.versions[place]
        worker = self.workers[place]
        if worker is not None:
            worker.send(signal.SIGTERM)
        self.start_worker(place)

    def kill_orchestrator(self) -> None:
        if self.orchestrator is not None:
            self.orchestrator.kill()
        self.start_orchestrator()

    def kill_broker(self) -> None:
        self.broker.crash()
        time.sleep(self.random.random())
        self.broker.start()

    def flush_broker(self) -> None:
        self.broker.flush()

    def kill_store(self) -> None:
        self.store.crash()
        time.sleep(self.random.random())
        self.store.start()

    FAULTS: tuple[Callable[[Chaos], None], ...] = (
        kill_process,
        pause_process,
        kill_worker,
        flush_broker,
        deploy,
        kill_store,
        kill_broker,
        kill_orchestrator,
        end_worker,
        kill_all_workers,
    )

    def break_something(self, fault: Callable[[Chaos], None] | None = None) -> str:
        # Single processes die most often, as they do.
        chosen = fault or self.random.choices(self.FAULTS, weights=(8, 3, 2, 2, 1, 1, 1, 1, 1, 1))[0]
        chosen(self)
        self.faults[chosen.__name__] += 1
        return chosen.__name__

    def alive(self) -> list[Service]:
        return [worker for worker in self.workers if worker is not None and worker.alive()]

    def _signal(self, pid: int, number: signal.Signals) -> None:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return

    # The end

    def heal_and_judge(self, tell: Callable[[str], Any] = lambda _: None) -> Figures:
        """No more faults: every run must end, and the oracle must agree."""
        for pid in self._stopped:
            self._signal(pid, signal.SIGCONT)
        self.versions = [2] * len(self.workers)
        for place, worker in enumerate(self.workers):
            if worker is not None:
                worker.send(signal.SIGTERM)
            self.start_worker(place)
        deadline = time.monotonic() + HEAL_SECONDS
        while left := self._left():
            assert time.monotonic() < deadline, self._why(left)
            tell(f"{len(left)} runs left")
            time.sleep(0.2)
        figures = judge(self.engine, self.started, self.ledger)
        for service in self.fleet.services:
            if service.alive():
                service.send(signal.SIGTERM)
        for service in self.fleet.services:
            service.end(signal.SIGTERM, 90)
        self._nothing_is_left()
        return figures

    def _left(self) -> list[str]:
        try:
            return [run.id for run in reader.all_runs(self.engine.store, *UNFINISHED_RUNS)]
        except StepwellError:
            return ["unknown"]

    def _why(self, left: list[str]) -> str:
        told = "\n".join(str(self.engine.get(run).why()) for run in left[:3])
        logs = "\n".join(service.said[-2_000:] for service in self.fleet.services[-4:])
        return f"{len(left)} runs do not end\n{told}\n{logs}"

    def _nothing_is_left(self) -> None:
        """Of workers that are gone no lease; once the runs are deleted, nothing at all that has no reason to be there, neither
        in the store nor in the broker."""
        store = open_store(self.fleet.store)
        try:
            sweeping, deadline = Orchestrator(store), time.monotonic() + HEAL_SECONDS
            while left := [worker.id for worker in reader.list_workers(store)]:
                assert time.monotonic() < deadline, f"these workers are gone, and have a lease: {left}"
                sweeping.turn()
                time.sleep(0.1)
            for run_id in self.started:
                self.engine.get(run_id).delete()
            collect_graphs(store, grace=0)
            assert not list(reader.all_runs(store))
        finally:
            store.close()
        for server in (self.store, self.broker):
            found = server.leftovers()
            assert not found, f"nobody needs this, and it is left in {server.url}: {found[:50]}"

    def close(self) -> None:
        self.fleet.close()
        self.engine.close()
        shutil.rmtree(self.folder, ignore_errors=True)
