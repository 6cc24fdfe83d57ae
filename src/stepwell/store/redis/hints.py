"""Hints by publish and subscribe: that something may have happened. One that is lost costs only time."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from ...ids import RunId, WorkerId
from ...model import Hint
from .calling import Calls
from .connecting import Address, connect

_KEPT = 256
_LOOK_SECONDS = 0.5


class Hints:
    """One thread listens for all that wait in this process; it begins with the first."""

    def __init__(self, address: Address, channel: str) -> None:
        self._address = address
        self._channel = channel
        self._changed = threading.Condition()
        self._heard: deque[Hint] = deque(maxlen=_KEPT)
        self._count = 0
        """Hints that came so far."""
        self._seen: dict[WorkerId, int] = {}
        self._thread: threading.Thread | None = None
        self._listening = threading.Event()
        self._closed = False

    def send(self, calls: Calls, hint: Hint) -> None:
        from redis.exceptions import RedisError

        with suppress(RedisError):
            calls.call(("PUBLISH", self._channel, json.dumps(hint)))

    def wait(self, queues: Collection[str] | None, runs: Collection[RunId], worker: WorkerId, timeout: float) -> bool:
        wanted_queues = None if queues is None else frozenset(queues)
        wanted_runs = frozenset(runs)

        def concerns(hint: Hint) -> bool:
            return worker not in hint.senders and (
                bool(hint.queues if wanted_queues is None else wanted_queues.intersection(hint.queues))
                or not wanted_runs.isdisjoint(hint.runs)
                or worker in hint.workers
            )

        end = time.monotonic() + timeout
        self._listen()
        with self._changed:
            while True:
                fresh = self._count - self._seen.get(worker, 0)
                self._seen[worker] = self._count
                if fresh > len(self._heard) or any(
                    concerns(hint) for hint in list(self._heard)[len(self._heard) - fresh :]
                ):
                    return True
                left = end - time.monotonic()
                if left <= 0 or self._closed:
                    return False
                self._changed.wait(left)

    def _listen(self) -> None:
        with self._changed:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="stepwell-hints", daemon=True)
                self._thread.start()
        self._listening.wait(_LOOK_SECONDS)  # what is sent from now on is heard

    def _run(self) -> None:
        from redis.exceptions import RedisError

        pause = 0.05
        while not self._closed:
            client = connect(self._address, socket_timeout=None)
            try:
                with client.pubsub(ignore_subscribe_messages=True) as subscription:
                    subscription.subscribe(self._channel)
                    subscription.get_message(timeout=_LOOK_SECONDS)
                    self._listening.set()
                    while not self._closed:
                        message = subscription.get_message(timeout=_LOOK_SECONDS)
                        pause = 0.05
                        if message is not None:
                            self._hear(message)
            except (RedisError, OSError, ValueError):
                if not self._closed:
                    time.sleep(pause)
                    pause = min(2 * pause, 2.0)
            finally:
                client.close()

    def _hear(self, message: dict[str, Any]) -> None:
        try:
            hint = Hint(*map(tuple, json.loads(message["data"])))
        except (ValueError, TypeError, KeyError):
            return  # no message of ours
        with self._changed:
            self._heard.append(hint)
            self._count += 1
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(2 * _LOOK_SECONDS)
