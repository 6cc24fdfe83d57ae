"""Hints by LISTEN and NOTIFY: on one connection a process, apart from commits.

A commit that carries a NOTIFY takes a lock over the whole server. So hints are sent in transactions of their own that nobody
waits for: the first at once, what comes within 50 ms of it together. They may be lost; whoever waits looks now and then.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Collection
from hashlib import sha256
from typing import Any

import psycopg

from ...ids import RunId, WorkerId
from ...model import Hint
from ..rules.hints import ANYTHING, Looking, together
from .connections import Connections

log = logging.getLogger("stepwell")

TOGETHER_SECONDS = 0.05
HEARTBEAT_SECONDS = 15.0
AFTER_TROUBLE_SECONDS = 1.0
KEPT = 1_000
"""Hints that are remembered for those who are slow to ask."""
MOST_BYTES = 7_900
"""PostgreSQL carries no more than 8,000."""
_SEND = "SELECT set_config('synchronous_commit', 'off', true), pg_notify(%s, %s)"


def channel(schema: str) -> str:
    return f"stepwell_{sha256(schema.encode()).hexdigest()[:16]}"


def encoded(hint: Hint) -> str:
    text = json.dumps(hint, separators=(",", ":"))
    return text if len(text) <= MOST_BYTES else ""


def decoded(text: str) -> Hint:
    try:
        return Hint(*map(tuple, json.loads(text)))
    except (ValueError, TypeError):
        return ANYTHING


class Sender:
    """Sends hints from a thread of its own, which begins with the first."""

    def __init__(self, connections: Connections, schema: str) -> None:
        self._connections, self._channel = connections, channel(schema)
        self._waiting: list[Hint] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def send(self, hint: Hint) -> None:
        with self._changed:
            if self._closed:
                return
            self._waiting.append(hint)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="stepwell-hints-out", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                hints, self._waiting = self._waiting, []
            try:
                with self._connections.one() as connection:
                    connection.execute(_SEND, (self._channel, encoded(together(hints))))
            except Exception:  # a hint that is lost costs only time
                log.debug("a hint was not sent", exc_info=True)
            with self._changed:
                self._changed.wait_for(lambda: self._closed, TOGETHER_SECONDS)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(5)


class Listener:
    """Hears hints on a connection of its own; begins with the first who waits."""

    def __init__(self, connections: Connections, schema: str) -> None:
        self._connections, self._channel = connections, channel(schema)
        self._heard: deque[tuple[int, Hint]] = deque(maxlen=KEPT)
        self._last = 0
        self._told: dict[WorkerId, int] = {}
        """The last hint that each worker has heard."""
        self._looking: dict[WorkerId, Looking] = {}
        self.spread = 0.0
        """Within how many seconds those who hear of work look for it."""
        self._changed = threading.Condition()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._connection: psycopg.Connection[Any] | None = None
        self._closed = False

    def wait(self, queues: Collection[str] | None, runs: Collection[RunId], worker: WorkerId, timeout: float) -> bool:
        self._begin()
        give_up_at = time.monotonic() + timeout
        with self._changed:
            self._told.setdefault(worker, self._last)
            looking = self._looking.setdefault(worker, Looking())
            while not self._closed:
                self._hear(looking, queues, runs, worker)
                now = time.monotonic()
                if looking.is_due(now):
                    return True
                if now >= give_up_at:
                    return False
                self._changed.wait(min(give_up_at, looking.at or give_up_at) - now)
        return False

    def _hear(
        self, looking: Looking, queues: Collection[str] | None, runs: Collection[RunId], worker: WorkerId
    ) -> None:
        before, self._told[worker] = self._told[worker], self._last
        heard = [hint for number, hint in self._heard if number > before] if before < self._last else []
        if len(heard) < self._last - before:
            heard.append(ANYTHING)  # there was more than is remembered
        for hint in heard:
            looking.hear(hint, queues, runs, worker, time.monotonic(), self.spread)

    def _begin(self) -> None:
        with self._starting:
            if self._thread is None and not self._closed:
                try:
                    self._connection = self._listen()
                except psycopg.Error:
                    log.debug("listening for hints begins later", exc_info=True)
                self._thread = threading.Thread(target=self._run, name="stepwell-hints-in", daemon=True)
                self._thread.start()

    def _listen(self) -> psycopg.Connection[Any]:
        connection = self._connections.connect(" hints")
        try:
            connection.execute(f"LISTEN {self._channel}".encode())
        except BaseException:
            connection.close()
            raise
        return connection

    def _run(self) -> None:
        while not self._ended():
            try:
                connection = self._connection
                if connection is None:
                    connection = self._connection = self._listen()
                    self._note(ANYTHING)  # what was sent meanwhile was not heard
                for found in connection.notifies(timeout=HEARTBEAT_SECONDS):
                    self._note(decoded(found.payload))
                connection.execute("SELECT 1")
            except Exception:
                if self._ended():
                    return
                log.debug("listening for hints begins again", exc_info=True)
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None
                time.sleep(AFTER_TROUBLE_SECONDS)

    def _ended(self) -> bool:
        return self._closed

    def _note(self, hint: Hint) -> None:
        with self._changed:
            self._last += 1
            self._heard.append((self._last, hint))
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        connection = self._connection
        if connection is not None and not connection.closed:
            _break(connection)
        if self._thread is not None:
            self._thread.join(5)
        if connection is not None:
            connection.close()


def _break(connection: psycopg.Connection[Any]) -> None:
    """Wake up whoever waits for notifications on it."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
