"""The Redis store passes the conformance suite whole."""

from collections.abc import Iterator
from itertools import count

import pytest

from stepwell.core.model import ListRuns, Sweep
from stepwell.errors import StoreError
from stepwell.stores.redis.store import RedisStore
from tests.conformance.clocks import RunningClock
from tests.conformance.suite import *  # noqa: F403
from tests.servers.redis_server import RedisServer

_namespaces = count()


@pytest.fixture(scope="session")
def server() -> Iterator[RedisServer]:
    server = RedisServer()
    yield server
    server.stop()


@pytest.fixture
def clock() -> RunningClock:
    return RunningClock()


@pytest.fixture
def store(server: RedisServer, clock: RunningClock) -> Iterator[RedisStore]:
    store = RedisStore(f"{server.url}?namespace=suite-{next(_namespaces)}", offset=lambda: clock.offset)
    yield store
    store.close()


def test_a_closed_store_says_so(server: RedisServer) -> None:
    closed = RedisStore(server.url)
    closed.close()
    closed.close()
    for use in (
        lambda: closed.commit([Sweep()]),
        lambda: closed.read([ListRuns()]),
        lambda: closed.wait_for_hint(None, (), "w", 0),
    ):
        with pytest.raises(StoreError, match="closed"):
            use()
