"""Hints by publish and subscribe: that something may have happened. One that is lost costs only time."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from ...base.ids import RunId, WorkerId
from ...core.model import Hint
from ...core.store.rules.hints import ANYTHING, Heard, hint_of
from .connecting import RedisAddress, connect

_LOOK_SECONDS = 0.5


class Hints:
    """One thread listens for all that wait in this process; it begins with the first."""

    def __init__(self, address: RedisAddress, channel: str) -> None:
        self._address = address
        self._channel = channel
        self.heard = Heard()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._listening = threading.Event()
        self._subscription: Any = None
        self._ends = threading.Event()

    def send(self, client: Any, hint: Hint) -> None:
        message = json.dumps(hint)
        # The driver raises whatever it comes to when another thread closes the store meanwhile, a TypeError for one.
        with suppress(Exception):
            client.publish(self._channel, message)

    def wait(self, queues: Collection[str] | None, runs: Collection[RunId], worker: WorkerId, timeout: float) -> bool:
        self._listen()
        return self.heard.wait(queues, runs, worker, timeout)

    def _listen(self) -> None:
        with self._starting:
            if self._thread is None and not self._ends.is_set():
                self._thread = threading.Thread(target=self._run, name="stepwell-hints-in", daemon=True)
                self._thread.start()
        self._listening.wait(_LOOK_SECONDS)  # what is sent from now on is heard

    def _run(self) -> None:
        from redis.backoff import NoBackoff
        from redis.exceptions import RedisError
        from redis.retry import Retry

        pause = 0.05
        while not self._ends.is_set():
            client = connect(self._address, socket_timeout=None, retry=Retry(NoBackoff(), 0))  # this loop tries again
            try:
                with client.pubsub() as self._subscription:
                    subscription = self._subscription
                    subscription.subscribe(self._channel)
                    while not self._ends.is_set():
                        message = subscription.get_message(timeout=_LOOK_SECONDS)
                        pause = 0.05
                        if message is not None:
                            self._hear(message)
            except (RedisError, OSError, ValueError):
                self._ends.wait(pause)
                pause = min(2 * pause, 2.0)
            finally:
                client.close()

    def _hear(self, message: dict[str, Any]) -> None:
        if message["type"] == "subscribe":  # comes again when the thread has had to connect again
            if self._listening.is_set():
                self.heard.note(ANYTHING)  # what was sent meanwhile was not heard
            self._listening.set()
            return
        hint = hint_of(message["data"]) if message["type"] == "message" else None
        if hint is not None:
            self.heard.note(hint)

    def close(self) -> None:
        self._ends.set()
        self.heard.close()
        with self._starting:  # a thread that is being created has started by then
            thread = self._thread
        self._wake()
        if thread is not None and thread is not threading.current_thread():
            thread.join(2 * _LOOK_SECONDS)

    def _wake(self) -> None:
        """End the wait for a message. The socket has no public name: where it is not found, the wait ends by itself."""
        line = getattr(getattr(self._subscription, "connection", None), "_sock", None)
        if line is not None:
            with suppress(OSError), socket.socket(fileno=os.dup(line.fileno())) as same:
                same.shutdown(socket.SHUT_RDWR)
