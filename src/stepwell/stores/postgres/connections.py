"""Connections to the server: a few, kept for the next who needs one, and replaced when they break."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors

from ...errors import StoreBusy, StoreError, StoreFull, StoreReadOnly
from .address import PostgresAddress
from .schema import quoted

KEPT = 4
"""Idle connections that are kept open."""
CONNECT_SECONDS = 10
OLDEST_SERVER = 14
_SETTINGS = {
    # How long a commit may take or wait: a copy of it whose sender is gone ends by itself, long before it is forgotten.
    "statement_timeout": "60s",
    "lock_timeout": "20s",
    "idle_in_transaction_session_timeout": "60s",
    # Plans that are safe without statistics.
    "enable_seqscan": "off",
    "jit": "off",
}
_WHERE_SUPPORTED = {
    # There are platforms on which the server cannot notice that its client is gone.
    "client_connection_check_interval": "2s",
    # A server may be built without it. Its own way takes 1.5 ms more for 100 KB.
    "default_toast_compression": "lz4",
}

AGAIN = (errors.DeadlockDetected, errors.SerializationFailure, errors.LockNotAvailable)
"""The server undid what it was asked, because of others."""
_BROKEN = ("08", "57P", "53300")
"""How the numbers of errors begin that say nothing about what was asked: connections that broke, a server that ends or begins,
too many connections."""


def worth_repeating(error: psycopg.Error) -> bool:
    if isinstance(error, AGAIN):
        return True
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate.startswith(_BROKEN)


class ConnectionPool:
    def __init__(self, address: PostgresAddress, most: int | None = None) -> None:
        """`most`: how many are used at once; whoever needs another waits for one."""
        self._address = address
        self._permits = contextlib.nullcontext() if most is None else threading.BoundedSemaphore(most)
        self._idle: dict[bool, list[psycopg.Connection[Any]]] = {False: [], True: []}
        """By whether they were last used to commit: a session makes its plans of the functions when it first calls them, which
        takes as long as some hundred nodes do."""
        self._lock = threading.Lock()
        self._closed = False
        self.pooled = address.pooled
        """Somebody else keeps connections, behind an address that they are asked for by the transaction."""

    @contextmanager
    def one(self, *, commits: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """A connection for one use. One that broke is closed, and with it those that have been idle: they broke, too."""
        with self._permits, self._used(commits) as connection:
            yield connection

    @contextmanager
    def _used(self, commits: bool) -> Iterator[psycopg.Connection[Any]]:
        connection = self._take(commits)
        try:
            yield connection
        except BaseException:
            if connection.closed or connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                connection.close()
                self._drop_idle()
                raise
            self._give_back(connection, commits)
            raise
        self._give_back(connection, commits)

    def connect(self, purpose: str = "", *, ours: bool = True) -> psycopg.Connection[Any]:
        """A connection of one's own; `ours`: with the settings that our statements need."""
        connection: psycopg.Connection[Any] = psycopg.connect(
            self._address.conninfo,
            autocommit=True,
            prepare_threshold=None if self._address.pooled else 2,
            **self._defaults(purpose),
        )
        try:
            self._check(connection)
            if ours and not self._address.pooled:
                self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _defaults(self, purpose: str) -> dict[str, Any]:
        """What the URL does not say itself."""
        wanted: dict[str, Any] = {
            "connect_timeout": CONNECT_SECONDS,
            "application_name": f"stepwell {os.getpid()}{purpose}",
            "client_encoding": "UTF8",
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
        }
        if not self._address.pooled:
            wanted["target_session_attrs"] = "read-write"
        said = psycopg.conninfo.conninfo_to_dict(self._address.conninfo)
        return {name: value for name, value in wanted.items() if name not in said}

    def _check(self, connection: psycopg.Connection[Any]) -> None:
        version = connection.info.server_version // 10_000
        if version < OLDEST_SERVER:
            raise StoreError(
                f"{self._address.url}: the server is PostgreSQL {version}: expected {OLDEST_SERVER} or newer"
            )

    def _set_up(self, connection: psycopg.Connection[Any]) -> None:
        settings = _SETTINGS | {"search_path": quoted(self._address.schema)}
        chosen = "SELECT " + ", ".join("set_config(%s, %s, false)" for _ in settings)
        connection.execute(chosen.encode(), [word for setting in settings.items() for word in setting])
        for name, value in _WHERE_SUPPORTED.items():
            with contextlib.suppress(psycopg.Error):
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))

    def _take(self, commits: bool) -> psycopg.Connection[Any]:
        with self._lock:
            if self._closed:
                raise StoreError(f"the store {self._address.url} is closed")
            for idle in (self._idle[commits], self._idle[not commits]):
                while idle:
                    connection = idle.pop()
                    if not connection.closed:
                        return connection
        return self.connect()

    def _give_back(self, connection: psycopg.Connection[Any], commits: bool) -> None:
        with self._lock:
            if not self._closed and sum(map(len, self._idle.values())) < KEPT:
                self._idle[commits].append(connection)
                return
        connection.close()

    def _drop_idle(self) -> None:
        with self._lock:
            dropped = [connection for idle in self._idle.values() for connection in idle]
            self._idle = {False: [], True: []}
        for connection in dropped:
            connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._drop_idle()

    def translated(self, error: psycopg.Error) -> StoreError:
        """PostgreSQL's errors in our words: what happened and what to do. The password is in none of them."""
        where, told = self._address.url, self._address.masked(error)
        if isinstance(error, errors.DiskFull | errors.OutOfMemory):
            return StoreFull(
                f"{where}: the server has no space left ({told}); nothing was written, free some and retry"
            )
        if isinstance(error, errors.ReadOnlySqlTransaction | errors.InsufficientPrivilege):
            return StoreReadOnly(f"{where} may not be written ({told}); nothing was written")
        if isinstance(error, (errors.QueryCanceled, *AGAIN)):
            return StoreBusy(
                f"{where}: other transactions have held its locks for too long ({told}); nothing was written, try again"
            )
        if worth_repeating(error):
            return StoreError(f"{where} cannot be reached, or the connection broke: {told}; it is safe to try again")
        return StoreError(f"{where}: {told}; nothing was written")
