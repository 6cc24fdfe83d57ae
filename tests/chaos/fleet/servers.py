"""The servers that chaos breaks, under one set of words."""

from __future__ import annotations

import re
import signal

from tests.chaos.fleet.leftovers import BROKER_KEYS, MOST_HINTS, STORE_KEYS, STORE_TABLES, keys_of, rows_of, unnamed
from tests.chaos.fleet.transport import COPIES
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

    def leftovers(self) -> list[str]:
        with self._server.client() as client:
            every = {key.removeprefix("{chaos}:"): kind for key, kind in keys_of(client).items()}
            return unnamed(every, STORE_KEYS)

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

    def leftovers(self) -> list[str]:
        return unnamed(rows_of(self._server.url("postgres"), "chaos"), STORE_TABLES)

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

    def leftovers(self) -> list[str]:
        with self._server.client() as client:
            found = keys_of(client)
            most = MOST_HINTS * COPIES  # each hint is there so often
            crowded = [key for key in found if key.startswith("stepwell.") and client.llen(key) > most]
            return unnamed(found, BROKER_KEYS) + crowded

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

    def leftovers(self) -> list[str]:
        return [
            f"{queue}: {messages}"
            for queue, messages in self._server.queues().items()
            if not re.fullmatch(r"stepwell\.\w+", queue) or messages > MOST_HINTS
        ]

    def close(self) -> None:
        self._server.stop()
