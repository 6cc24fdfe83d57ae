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
from collections.abc import Collection
from hashlib import sha256
from typing import Any

import psycopg

from ...base.ids import RunId, WorkerId
from ...core.model import Hint
from ...core.store.rules.hints import ANYTHING, Heard, hint_of, together
from .connections import ConnectionPool

log = logging.getLogger("stepwell")

TOGETHER_SECONDS = 0.05
HEARTBEAT_SECONDS = 15.0
AFTER_TROUBLE_SECONDS = 1.0
MOST_BYTES = 7_900
"""PostgreSQL carries no more than 8,000."""
_SEND = "SELECT set_config('synchronous_commit', 'off', true), pg_notify(%s, %s)"


def channel(schema: str) -> str:
    return f"stepwell_{sha256(schema.encode()).hexdigest()[:16]}"


def encoded(hint: Hint) -> str:
    text = json.dumps(hint, separators=(",", ":"))
    return text if len(text) <= MOST_BYTES else ""


class Sender:
    """Sends hints from a thread of its own, which begins with the first."""

    def __init__(self, connections: ConnectionPool, schema: str) -> None:
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


class HintListener:
    """Hears hints on a connection of its own; begins with the first who waits."""

    def __init__(self, connections: ConnectionPool, schema: str) -> None:
        self._connections, self._channel = connections, channel(schema)
        self.heard = Heard()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._connection: psycopg.Connection[Any] | None = None
        self._closed = False

    def wait(self, queues: Collection[str] | None, runs: Collection[RunId], worker: WorkerId, timeout: float) -> bool:
        self._begin()
        return self.heard.wait(queues, runs, worker, timeout)

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
                    self.heard.note(ANYTHING)  # what was sent meanwhile was not heard
                for found in connection.notifies(timeout=HEARTBEAT_SECONDS):
                    self.heard.note(hint_of(found.payload) or ANYTHING)
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

    def close(self) -> None:
        self._closed = True
        self.heard.close()
        with self._starting:  # a thread that is being created has started by then
            thread, connection = self._thread, self._connection
        if connection is not None and not connection.closed:  # wake up whoever waits for notifications on it
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)
        if thread is not None:
            thread.join(5)
        if connection is not None:
            connection.close()
