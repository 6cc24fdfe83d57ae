"""Redis does exactly what the memory store does, whatever it is asked, and leaves nothing behind of what was deleted."""

import atexit
from functools import cache
from itertools import count

import pytest
from hypothesis import HealthCheck, settings

from stepwell.stores.redis.store import RedisStore
from tests.conformance.test_same_as_memory import SameAsMemory as _SameAsMemory
from tests.servers.redis_server import RedisServer

_namespaces = count()


@cache
def server() -> RedisServer:
    server = RedisServer("--appendonly", "no")
    atexit.register(server.stop)
    return server


class RedisSameAsMemory(_SameAsMemory):
    def open(self) -> None:
        self.name = f"same-{next(_namespaces)}"
        url = f"{server().url}?durability=none&namespace={self.name}"
        self.other = RedisStore(url, clock=self.clock)

    def check_other(self) -> None:
        pass

    def close(self) -> None:
        self.other.close()
        with server().client() as client:
            client.flushall()


RedisSameAsMemory.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=50,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
TestRedisSameAsMemory = pytest.mark.timeout(900)(RedisSameAsMemory.TestCase)
