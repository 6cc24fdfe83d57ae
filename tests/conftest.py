"""What every test has: one PostgreSQL and one Redis server for each test process, started when a test first needs it.

Every run of the tests draws the same examples, so that what passes here passes elsewhere. Set STEPWELL_EXPLORE=1, as
`make explore` does, to draw others each time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres_server import PostgresServer, postgres
from tests.servers.redis_server import RedisServer

__all__ = ["postgres"]

_namespaces = count()

# A busy machine is slow, which says nothing about what is tested.
settings.register_profile(
    "same", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default" if os.environ.get("STEPWELL_EXPLORE") else "same")


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    server = RedisServer()
    yield server
    server.stop()


@pytest.fixture(params=["postgres", "redis"])
def server_url(request: pytest.FixtureRequest) -> str:
    """A store on a server, that nobody has used."""
    if request.param == "postgres":
        postgres_server: PostgresServer = request.getfixturevalue("postgres")
        return postgres_server.new_url()
    server: RedisServer = request.getfixturevalue("redis_server")
    return f"{server.url}?namespace=own-{next(_namespaces)}"
