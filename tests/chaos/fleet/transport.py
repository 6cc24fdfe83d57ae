"""A broker that behaves as badly as a broker may: `chaosredis://` drops half of all hints and delivers the others ten times, in
any order, some of them late."""

from __future__ import annotations

import random
import threading
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis

SCHEME = "chaosredis"
COPIES = 10


class Channel(redis.Channel):  # type: ignore[misc]
    def _put(self, queue: str, message: Any, **options: Any) -> None:
        if not queue.startswith("stepwell."):
            super()._put(queue, message, **options)
        elif random.random() < 0.5:
            late = random.randrange(COPIES)
            self._put_copies(queue, message, COPIES - late)
            if late:
                timer = threading.Timer(random.random(), self._put_copies, (queue, message, late))
                timer.daemon = True
                timer.start()

    def _put_copies(self, queue: str, message: Any, count: int) -> None:
        try:
            for _ in range(count):
                # At either end: those that wait are overtaken, or are not.
                with self.conn_or_acquire() as client:
                    push = client.lpush if random.random() < 0.5 else client.rpush
                    push(queue, redis.dumps(message))
        except Exception as error:
            if threading.current_thread() is threading.main_thread():
                raise
            print(f"a late copy of a hint was lost: {error}")


class Transport(redis.Transport):  # type: ignore[misc]
    Channel = Channel


def register() -> None:
    TRANSPORT_ALIASES[SCHEME] = f"{__name__}:Transport"
