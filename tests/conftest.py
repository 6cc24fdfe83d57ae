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

SLOW_FILES = (
    "chaos/test_fleet.py",
    "simulation/test_seeds.py",
    "simulation/test_every_fault.py",
    "cli/test_control.py",
    "cli/test_resume.py",
    "cli/test_errors.py",
    "cli/test_looking.py",
    "cli/test_documents.py",
    "chaos/test_rolling_deploy.py",
    "chaos/test_racing_controls.py",
    "conformance/test_same_as_memory.py",
    "conformance/test_postgres.py",
    "conformance/test_postgres_same_as_memory.py",
    "conformance/test_redis_same_as_memory.py",
    "triggers/test_firing.py",
    "triggers/test_simulated_year.py",
    "store/sqlite/test_crashes.py",
    "store/postgres/test_transactions.py",
    "server/test_schema.py",
)
"""They are begun first, because one that is begun last keeps one process busy while the other has nothing to do any more."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    places = {config.rootpath / "tests" / name: place for place, name in enumerate(SLOW_FILES)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


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
