"""The servers that chaos breaks, under one set of words."""

from __future__ import annotations

import signal

from tests.postgres_server import PostgresServer
from tests.servers.redis_server import RedisServer


class RedisStoreServer:
    """It is killed, so it syncs always: with `everysec`, what it acknowledged may wait up to two seconds for a slow disk."""

    def __init__(self) -> None:
        self._server = RedisServer(appendfsync="always")
        self.url = f"{self._server.url}?namespace=chaos"

    def crash(self) -> None:
        self._server.kill()

    def start(self) -> None:
        self._server.start()

    def flush(self) -> None:
        raise NotImplementedError("a store that is flushed has lost everything")

    def close(self) -> None:
        self._server.stop()


class PostgresStoreServer:
    def __init__(self) -> None:
        self._server = PostgresServer()
        self.url = self._server.url("postgres", "?schema=chaos")

    def crash(self) -> None:
        self._server.stop(signal.SIGQUIT)

    def start(self) -> None:
        self._server.start()

    def flush(self) -> None:
        raise NotImplementedError("a store that is flushed has lost everything")

    def close(self) -> None:
        self._server.close()


class RedisBroker:
    """As bad as a broker may be: see `transport.py`."""

    def __init__(self) -> None:
        self._server = RedisServer("--appendonly", "no")
        self.url = self._server.url.replace("redis://", "chaosredis://")

    def crash(self) -> None:
        self._server.kill()

    def start(self) -> None:
        self._server.start()

    def flush(self) -> None:
        with self._server.client() as client:
            client.flushall()

    def close(self) -> None:
        self._server.stop()


class RabbitBroker:
    """Debian's RabbitMQ, in a folder and on ports of its own."""

    def __init__(self) -> None:
        from tests.servers.rabbit_server import RabbitServer

        self._server = RabbitServer()
        self.url = self._server.url

    def crash(self) -> None:
        self._server.kill()

    def start(self) -> None:
        self._server.start()

    def flush(self) -> None:
        self._server.purge()

    def close(self) -> None:
        self._server.stop()
