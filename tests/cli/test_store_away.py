"""What goes on for days outlives a store that is away for a while, and ends when what it works for is gone for good."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell import Engine
from stepwell.cli.exits import ExitCode
from stepwell.core.model import UNFINISHED_RUNS
from stepwell.core.store import reader
from tests.celery import work
from tests.engine.waiting import eventually
from tests.postgres_server import PostgresServer
from tests.servers.fleet import Fleet
from tests.servers.redis_server import RedisServer

RUNS = 300


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """It keeps what it has acknowledged, however it ends."""
    server = RedisServer(appendfsync="always")
    yield server
    server.stop()


@pytest.fixture
def fleet(server: RedisServer, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(f"{server.url}?namespace=away", server.url.removesuffix("/0") + "/1", tmp_path)
    yield fleet
    fleet.close()


@pytest.fixture(params=["redis", "postgres"])
def fleet_and_server(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[Fleet, RedisServer | PostgresServer]]:
    if request.param == "redis":
        yield request.getfixturevalue("fleet"), request.getfixturevalue("server")
        return
    server = PostgresServer()
    fleet = Fleet(server.new_url(), "redis://127.0.0.1:1/0", tmp_path)  # without a broker
    yield fleet, server
    fleet.close()
    server.close()


def test_work_goes_on_after_its_store_was_away_while_it_was_busy(
    fleet_and_server: tuple[Fleet, RedisServer | PostgresServer],
) -> None:
    fleet, server = fleet_and_server
    with Engine(fleet.store, runner=None) as engine:
        engine.start_many(work.Gpu() for _ in range(RUNS))

        def left() -> int:
            return sum(1 for _ in reader.all_runs(engine.store, *UNFINISHED_RUNS))

        worker = fleet.start("work", "tests.celery.work")
        eventually(lambda: left() < RUNS - 20, show=lambda: worker.said)
        if isinstance(server, RedisServer):
            server.kill()
        else:
            server.stop(signal.SIGQUIT)  # as if the machine had crashed
        eventually(lambda: "cannot be reached" in worker.said, show=lambda: worker.said)
        server.start()
        eventually(lambda: not worker.alive() or not left(), seconds=60, show=lambda: worker.said)
        assert worker.alive(), worker.said
        assert worker.end() == ExitCode.OK, worker.said
    assert "error:" not in worker.said


WATCHED = """
name: watched
mode: pipeline
stateRoot: {root}
scanInterval: 0.5
nodes:
  - {{id: page, typeId: state_write, data: {{path: "out/{{x}}", input: "in/{{x}}"}}}}
"""


def test_what_serves_a_store_that_was_flushed_ends_and_says_why(fleet: Fleet, server: RedisServer) -> None:
    file = fleet.folder / "watched.yaml"
    file.write_text(WATCHED.format(root=fleet.folder / "states"))
    services = {
        "work": fleet.start("work", "tests.celery.work"),
        "serve": fleet.start("serve", "--port", 0),
        "orchestrator": fleet.start("orchestrator"),
        "dev": fleet.start("dev", "tests.celery.work", "--port", 0),
        "pipeline watch": fleet.start("pipeline", "watch", "--pipeline", file),
    }
    said = dict.fromkeys(("work", "serve"), "serving") | {"orchestrator": "looking", "pipeline watch": "watching"}
    said["dev"] = "until Ctrl-C"  # by its worker
    for name, service in services.items():
        eventually(lambda: said[name] in service.said, name, seconds=60)  # noqa: B023
    with server.client() as client:
        client.flushall()
    for name, service in services.items():
        eventually(lambda: not service.alive(), name, show=lambda: service.said)  # noqa: B023
        assert service.end() == ExitCode.STORE, name
        assert "error: redis://" in service.said, name
        assert "was flushed" in service.said, name
