"""On every store: several threads fire the same triggers at the same moments, and each time has one run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell import Engine, Trigger, Workflow, step
from stepwell.base.clock import SECOND
from stepwell.core.store import Store, reader
from stepwell.stores import open_store
from stepwell.triggers.book import Triggers
from stepwell.triggers.firing import Firing
from stepwell.triggers.times import time_text
from tests.postgres_server import PostgresServer
from tests.servers.redis_server import RedisServer

MINUTES = 12


class Tick(Workflow):
    @step
    def a(self) -> int:
        return 1


@pytest.fixture(params=["memory", "sqlite", "postgres", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "redis":
        server = RedisServer()
        yield server.url
        server.stop()
    elif request.param == "postgres":
        found: PostgresServer = request.getfixturevalue("postgres")
        yield found.new_url()
    else:
        yield "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/runs.db"


class Clock:
    def __init__(self, start: int) -> None:
        self.time = start

    def now(self) -> int:
        return self.time


def engine_of(store: Store) -> Engine:
    return Engine(store, workflows=[Tick], runner=None)


def test_each_time_has_one_run_whoever_was_first(url: str) -> None:
    shared = open_store(url) if url == "memory://" else None
    stores = [shared or open_store(url) for _ in range(3)]
    start = stores[0].now() // (60 * SECOND) * 60 * SECOND
    clock = Clock(start)
    engines = [engine_of(store) for store in stores]
    book = Triggers(stores[0], engines[0].triggers.start_run, clock.now)
    book.add(Trigger("all", Tick, cron="* * * * *", catch_up="all"))
    book.add(Trigger("odd", Tick, cron="1-59/2 * * * *", catch_up="all", overlap="queue"))
    together = threading.Barrier(len(engines) + 1, timeout=60)
    wrong: list[BaseException] = []

    def live(engine: Engine, store: Store) -> None:
        firing = Firing(store, engine.triggers.start_run, clock.now)
        try:
            for _ in range(MINUTES):
                together.wait()
                firing.fire_due()
                together.wait()
        except BaseException as error:
            wrong.append(error)
            together.abort()

    threads = [threading.Thread(target=live, args=each) for each in zip(engines, stores, strict=True)]
    for thread in threads:
        thread.start()
    for _ in range(MINUTES):
        clock.time += 60 * SECOND
        together.wait()
        together.wait()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    last = Firing(stores[0], engines[0].triggers.start_run, clock.now)
    for _ in range(3):
        last.fire_due()
    expected = [f"all:{time_text(start + minute * 60 * SECOND)}" for minute in range(1, MINUTES + 1)]
    found = sorted(run.id for run in engines[0].runs(tag={"trigger": "all"}, limit=1_000))
    assert found == expected
    queued = [run.id for run in engines[0].runs(tag={"trigger": "odd"})]
    assert len(queued) == 1  # nobody works on it, so the others wait
    state = book.get("odd").state
    assert 1 + len(state.queue) == sum((start // SECOND // 60 + minute) % 2 for minute in range(1, MINUTES + 1))
    assert book.get("all").state.fired == MINUTES
    assert reader.get_run(stores[0], expected[0]) is not None
    for store in {id(store): store for store in stores}.values():
        store.close()
