"""What every test has: one PostgreSQL and one Redis server, and one process to fork commands from, for each test process.
They are started when a test first needs them.

Every run of the tests draws the same examples, so that what passes here passes elsewhere. Set STEPWELL_EXPLORE=1, as
`make prove WHAT=explore` does, to draw others each time.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, settings

from tests.forking.template import Template
from tests.postgres_server import PostgresServer, postgres
from tests.servers.redis_server import RedisServer

__all__ = ["postgres"]

# The suite of stores is imported by tests; it has to be named before that, for asserts that say what they compared.
pytest.register_assert_rewrite("tests.conformance")

_namespaces = count()

# A busy machine is slow, which says nothing about what is tested.
settings.register_profile(
    "same", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default" if os.environ.get("STEPWELL_EXPLORE") else "same")

SLOW_FILES = (
    "browser/test_every_page.py",
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
    "stores/sqlite/test_crashes.py",
    "stores/postgres/test_transactions.py",
    "server/test_schema.py",
    "server/test_fleet.py",
    "stores/sqlite/test_interleaving.py",
    "stores/postgres/test_processes.py",
    "browser/test_sessions.py",
    "browser/test_runs.py",
    "packaging/test_wheel.py",
    "engine/test_logs.py",
    "engine/test_state.py",
    "define/test_large_classes.py",
    "base/templates/test_hostile_templates.py",
    "base/types/test_every_type.py",
)
"""They are begun first, because one that is begun last keeps one process busy while the other has nothing to do any more."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    places = {config.rootpath / "tests" / name: place for place, name in enumerate(SLOW_FILES)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """A shell that starts the tests in the background has them ignore SIGINT, and what they start would inherit that."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    server = RedisServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def template() -> Iterator[Template]:
    started = Template()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def utf8_template() -> Iterator[Template]:
    """For tests of examples, which print more than ASCII."""
    started = Template(PYTHONUTF8="1")
    yield started
    started.stop()


@pytest.fixture(params=["postgres", "redis"])
def server_url(request: pytest.FixtureRequest) -> str:
    """A store on a server, that nobody has used."""
    if request.param == "postgres":
        postgres_server: PostgresServer = request.getfixturevalue("postgres")
        return postgres_server.new_url()
    server: RedisServer = request.getfixturevalue("redis_server")
    return f"{server.url}?namespace=own-{next(_namespaces)}"
