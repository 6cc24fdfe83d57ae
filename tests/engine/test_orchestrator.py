"""The orchestrator: what time has changed and what nobody was told of is found, by any number of them, without any code."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell import Engine
from stepwell.base.clock import SECOND, ManualClock
from stepwell.base.codec import encode
from stepwell.base.ids import WorkerId, machine
from stepwell.core.model import Enlist, Hint
from stepwell.core.model.suspects import SUSPECT_AFTER
from stepwell.core.store import Store, reader
from stepwell.core.store.memory import MemoryStore
from stepwell.engine import orchestrator as home
from stepwell.engine.lookout import Lookout, dismiss_dead
from stepwell.engine.orchestrator import Orchestrator
from stepwell.engine.procedures.procedure import carry_out
from stepwell.engine.worker.duties import Sweeper
from stepwell.stores import open_store
from tests.celery import work
from tests.conformance.ops import RUN, claim, enlist, graph, node, sweep
from tests.conformance.ops import start as create
from tests.engine.waiting import eventually


class Told:
    """A store that notes which queues it was told of."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.queues: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def send_hint(self, hint: Hint) -> None:
        self.queues += hint.queues


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Told]:
    opened = open_store(f"sqlite:///{tmp_path}/runs.db")
    yield Told(opened)  # type: ignore[misc]
    opened.close()


def start(store: Told, *, gpu: bool = False) -> str:
    with Engine(store.url, runner=None) as engine:
        return engine.start(work.Gpu() if gpu else work.Order(order_id=1)).id


def test_a_hint_that_was_lost_is_sent_again(store: Told) -> None:
    orchestrator = Orchestrator(store)  # type: ignore[arg-type]
    orchestrator.turn()
    assert store.queues == []
    start(store)
    orchestrator._look_at = 0
    orchestrator.turn()
    assert store.queues == ["default"], "nobody has told of it, and it is found"
    assert orchestrator.turn() <= home.SWEEP_SECONDS
    assert store.queues == ["default"], "but not told at every sweep"


def test_a_sweep_says_when_the_next_one_is_due() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    create(store, graph(a=""))
    enlist(store, seconds=10)
    assert len(claim(store)) == 1
    due = []
    for _ in range(3):
        due.append(carry_out(store, Sweeper().sweep()).next_due_in)
        clock.advance(4)
    assert due == [10 * SECOND, 6 * SECOND, 2 * SECOND]


def test_a_node_that_is_suspected_is_found_too() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    create(store, graph(a=""))
    for _ in range(SUSPECT_AFTER):
        enlist(store, seconds=10)
        assert len(claim(store)) == 1
        assert Lookout(store).ready() == []
        clock.advance(10)
        assert sweep(store).lost == 1
    assert node(store, 0).lane.suspect
    assert [found.run for found in Lookout(store).ready()] == [RUN]


def test_a_worker_whose_process_died_is_signed_off(store: Told) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for worker, pid in ((WorkerId("dead"), gone.pid), (WorkerId("alive"), os.getpid())):
        info = encode({"pid": pid, "machine": machine(), "serves": []})
        store._store.commit([Enlist(worker, 60 * SECOND, info)])
    elsewhere = encode({"pid": gone.pid, "machine": "another", "serves": []})
    store._store.commit([Enlist(WorkerId("elsewhere"), 60 * SECOND, elsewhere)])
    dismiss_dead(store)  # type: ignore[arg-type]
    assert {worker.id for worker in reader.list_workers(store._store)} == {"alive", "elsewhere"}


def test_work_that_nobody_serves_is_reported(store: Told, caplog: pytest.LogCaptureFixture) -> None:
    run = start(store)
    orchestrator = Orchestrator(store)  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING, "stepwell"):
        for _ in range(3):
            orchestrator._look_at = 0
            orchestrator.turn()
            assert not caplog.messages, "not before it has waited for a while"
        for key in orchestrator._unserved:
            orchestrator._unserved[key] -= home.UNSERVED_SECONDS
        for _ in range(3):
            orchestrator._look_at = 0
            orchestrator.turn()
    (told,) = caplog.messages
    assert "Order" in told
    assert run in told


def test_it_goes_on_when_the_store_is_away_and_ends_when_told(
    store: Told, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from stepwell.errors import StoreError

    monkeypatch.setattr(home, "SWEEP_SECONDS", 0.01)
    away = threading.Event()
    commit = store._store.commit

    def trouble(batch: object) -> object:
        if away.is_set():
            raise StoreError("away")
        return commit(batch)  # type: ignore[arg-type]

    monkeypatch.setattr(store._store, "commit", trouble)
    orchestrator = Orchestrator(store)  # type: ignore[arg-type]
    ends = threading.Event()
    thread = threading.Thread(target=orchestrator.run, args=(ends.is_set,))
    away.set()
    thread.start()
    try:
        eventually(lambda: "away" in caplog.text)
        away.clear()
        start(store)
        eventually(lambda: store.queues)
    finally:
        ends.set()
        thread.join(30)
    assert not thread.is_alive()
    assert caplog.text.count("it is tried again until it answers") == 1, "an outage is told once"
    assert caplog.text.count("the store answers again") == 1


def test_the_command_looks_after_a_store_until_it_is_told_to_end(store: Told, tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    info = encode({"pid": gone.pid, "machine": machine(), "serves": []})
    store._store.commit([Enlist(WorkerId("dead"), 60 * SECOND, info)])
    command = [sys.executable, "-m", "stepwell", "orchestrator", "--store", store.url]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        eventually(lambda: not reader.list_workers(store._store), "it does not sweep", seconds=60)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert "dead" in said
