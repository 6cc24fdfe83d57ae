"""The PostgreSQL store passes the conformance suite whole, on a real server, by that server's clock."""

from collections.abc import Iterator

import pytest

from stepwell.base.clock import ManualClock
from stepwell.core.model import ListRuns, Sweep
from stepwell.errors import StoreError
from stepwell.stores.postgres.store import PostgresStore
from tests.conformance.clocks import RunningClock
from tests.conformance.suite import *  # noqa: F403
from tests.postgres_server import PostgresServer, empty


@pytest.fixture
def clock() -> RunningClock:
    return RunningClock()


@pytest.fixture(scope="session")
def url(postgres: PostgresServer) -> str:
    return postgres.new_url()


@pytest.fixture
def store(url: str, clock: RunningClock) -> Iterator[PostgresStore]:
    store = PostgresStore(url, clock=clock)
    yield store
    empty(store)
    store.close()


def test_a_closed_store_says_so(url: str) -> None:
    closed = PostgresStore(url)
    closed.close()
    closed.close()
    for use in (
        lambda: closed.commit([Sweep()]),
        lambda: closed.read([ListRuns()]),
        lambda: closed.wait_for_hint(None, (), "w", 0),
    ):
        with pytest.raises(StoreError, match="closed"):
            use()


def test_a_clock_of_a_test_is_taken_as_it_is(url: str) -> None:
    store = PostgresStore(url, clock=ManualClock())
    assert store.commit([Sweep()]).now == ManualClock().now() == store.now()
    store.close()
