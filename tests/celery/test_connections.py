"""A process of a worker needs at most three connections to the server of its store, whatever it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stepwell import Engine
from tests.celery import work
from tests.engine.waiting import eventually
from tests.postgres_server import QUICK, PostgresServer
from tests.servers.fleet import Fleet
from tests.servers.redis_server import RedisServer

Counted = Callable[[], int]


@pytest.fixture(params=["redis", "postgres"])
def counted(
    request: pytest.FixtureRequest, redis_server: RedisServer, tmp_path: Path
) -> Iterator[tuple[Fleet, Counted]]:
    """A fleet, and how many connections there are to the server of its store."""
    broker = redis_server.url.removesuffix("/0") + "/3"
    if request.param == "redis":
        server = RedisServer()
        fleet = Fleet(server.url, broker, tmp_path)

        def on_redis() -> int:
            with server.client() as client:
                return sum(each["name"] == "stepwell" for each in client.client_list())

        yield fleet, on_redis
        fleet.close()
        server.stop()
        return
    postgres = PostgresServer(*QUICK)
    fleet = Fleet(postgres.new_url(), broker, tmp_path)

    def on_postgres() -> int:
        names = postgres.execute("SELECT application_name FROM pg_stat_activity")
        return Counter(str(name).partition(" ")[0] for (name,) in names)["stepwell"]

    yield fleet, on_postgres
    fleet.close()
    postgres.close()


def test_at_most_three_for_each_process(counted: tuple[Fleet, Counted], tmp_path: Path) -> None:
    fleet, connections = counted
    fleet.worker("tests.celery.work", processes=1)
    with fleet.engine() as engine:
        runs = [engine.start(work.Order(order_id=number)) for number in range(3)]
        runs += [engine.start(work.naps(str(tmp_path / "ledger"), 10)), engine.start(work.fan(300))]
        for run in runs:
            run.wait(60).check()
    with Engine(fleet.store, runner=None) as looks:
        looks.runs()
    eventually(lambda: 0 < connections() <= 3, show=connections)  # the sessions of the engines end in a moment
