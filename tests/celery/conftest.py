"""One Redis for all: runs in one database of it, messages in another, in a namespace for each test."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.servers.fleet import Fleet
from tests.servers.redis_server import RedisServer

_numbers = count(1)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    server = RedisServer()
    yield server
    server.stop()


@pytest.fixture
def fleet(redis_server: RedisServer, tmp_path: Path) -> Iterator[Fleet]:
    """A fleet without workers, on a store and a broker that nobody has used."""
    with redis_server.client() as client:
        client.execute_command("SELECT", 1)
        client.flushdb()
    broker = redis_server.url.removesuffix("/0") + "/1"
    fleet = Fleet(f"{redis_server.url}?namespace=fleet{next(_numbers)}", broker, tmp_path)
    yield fleet
    fleet.close()
