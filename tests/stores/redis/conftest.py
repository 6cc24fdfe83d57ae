"""One server for the tests of the Redis store; each test has a namespace of its own."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.servers.redis_server import RedisServer

_namespaces = count()


@pytest.fixture(scope="session")
def server() -> Iterator[RedisServer]:
    server = RedisServer()
    yield server
    server.stop()


@pytest.fixture
def url(server: RedisServer) -> str:
    return f"{server.url}?namespace=test-{next(_namespaces)}"
