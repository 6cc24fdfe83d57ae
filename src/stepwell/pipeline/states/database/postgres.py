"""PostgreSQL for states, shared by all machines that reach the server. One root is one schema."""

from __future__ import annotations

import os
import socket
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import psycopg
from psycopg import sql

from ....base.ids import time_ordered
from ....errors import StoreError
from ....stores.postgres.address import parse
from ....stores.postgres.connections import ConnectionPool
from ..files.lease import being_scanned, renewing
from .schema import statements

DEFAULT_SCHEMA = "stepwell_states"
LEASE_SECONDS = 30.0
_LOOK_EVERY = 0.2
_LOCK = 7_301_955_113
"""Of the advisory lock that stands for `BEGIN IMMEDIATE`."""


class PostgresDatabase:
    def __init__(self, url: str) -> None:
        self._address = parse(url)
        self.url = self._address.url
        self.schema = _schema_of(url)
        own = sha256(f"{self.url} {self.schema}".encode()).hexdigest()[:12]
        user = os.getuid() if hasattr(os, "getuid") else "user"
        self.scratch = os.path.join(tempfile.gettempdir(), f"stepwell-{user}", own)
        os.makedirs(self.scratch, mode=0o700, exist_ok=True)
        self._lock_key = _LOCK ^ int(sha256(self.schema.encode()).hexdigest()[:8], 16)
        self._connections = ConnectionPool(self._address)
        weakref.finalize(self, self._connections.close)  # pipelines are rarely closed by anybody
        self._make_tables()

    def _make_tables(self) -> None:
        with self._transaction() as connection:
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self.schema)))
            for statement in statements('TEXT COLLATE "C"', "BYTEA"):
                connection.execute(statement.encode())
            connection.execute(
                "CREATE TABLE IF NOT EXISTS state_leases (name TEXT PRIMARY KEY, holder TEXT, told TEXT, "
                "number BIGINT NOT NULL, until TIMESTAMPTZ)"
            )
            connection.execute("CREATE SEQUENCE IF NOT EXISTS state_changes")

    def close(self) -> None:
        self._connections.close()

    @contextmanager
    def _transaction(self, *, alone: bool = True) -> Iterator[psycopg.Connection[Any]]:
        try:
            with self._connections.one() as connection, connection.transaction():
                connection.execute("SELECT set_config('search_path', %s, true)", (_quoted(self.schema),))
                if alone:
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (self._lock_key,))
                yield connection
        except psycopg.Error as error:
            raise self._connections.translated(error) from error

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._transaction(alone=False) as connection:
            return connection.execute(_own(statement), tuple(values)).fetchall()

    @contextmanager
    def changing(self, *, durable: bool = True) -> Iterator[_PostgresChange]:
        with self._transaction(alone=durable) as connection:
            if not durable:
                connection.execute("SET LOCAL synchronous_commit = off")
            yield _PostgresChange(connection)
            if durable:
                connection.execute("SELECT nextval('state_changes')")

    def change_mark(self) -> object:
        return self.rows("SELECT last_value, is_called FROM state_changes")

    # The lease: a row, by the clock of the server

    @contextmanager
    def lease(self, name: str, patience: float) -> Iterator[Callable[[], bool]]:
        holder = time_ordered()
        self._take(name, holder, time.monotonic() + patience)

        def holds() -> bool:
            return bool(self.rows("SELECT 1 FROM state_leases WHERE name = ? AND holder = ?", (name, holder)))

        def renew() -> None:
            self._change_lease("until = clock_timestamp() + %s * interval '1 second'", name, holder)

        try:
            with renewing(renew, LEASE_SECONDS):
                yield holds
        finally:
            with suppress(StoreError):
                self._change_lease("number = number + 1, holder = NULL, until = NULL, told = '' || %s", name, holder)

    def _change_lease(self, change: str, name: str, holder: str) -> None:
        with self._transaction(alone=False) as connection:
            connection.execute(
                f"UPDATE state_leases SET {change} WHERE name = %s AND holder = %s".encode(),
                (LEASE_SECONDS, name, holder),
            )

    def _take(self, name: str, holder: str, until: float) -> None:
        process = f"process {os.getpid()} on {socket.gethostname()}"
        while True:
            with self._transaction() as connection:
                connection.execute(
                    "INSERT INTO state_leases (name, number) VALUES (%s, 0) ON CONFLICT DO NOTHING", (name,)
                )
                taken = connection.execute(
                    "UPDATE state_leases SET holder = %s, told = %s, number = number + 1 + number %% 2, "
                    "until = clock_timestamp() + %s * interval '1 second' "
                    "WHERE name = %s AND (holder IS NULL OR until < clock_timestamp()) RETURNING 1",
                    (holder, process, LEASE_SECONDS, name),
                ).fetchone()
                other = connection.execute("SELECT told FROM state_leases WHERE name = %s", (name,)).fetchone()
            if taken is not None:
                return
            if time.monotonic() >= until:
                raise being_scanned(name, other[0] if other is not None else "another process")
            time.sleep(_LOOK_EVERY)

    def lease_number(self, name: str) -> int:
        rows = self.rows("SELECT number FROM state_leases WHERE name = ?", (name,))
        return int(rows[0][0]) if rows else 0


class _PostgresChange:
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(_own(statement), tuple(values)).fetchall()

    def run(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._connection.execute(_own(statement), tuple(values))

    def run_many(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """In one go: psycopg sends them without waiting for each answer."""
        if values:
            with self._connection.cursor() as cursor:
                cursor.executemany(_own(statement), [tuple(each) for each in values])


def _own(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


def has_tables(url: str) -> bool:
    """Whether there is a schema of states. Makes nothing."""
    connections = ConnectionPool(parse(url))
    try:
        with connections.one() as connection:
            row = connection.execute("SELECT to_regclass(%s)", (f"{_quoted(_schema_of(url))}.state_notes",)).fetchone()
            return row is not None and row[0] is not None
    except psycopg.Error as error:
        raise connections.translated(error) from error
    finally:
        connections.close()


def _schema_of(url: str) -> str:
    return dict(parse_qsl(urlsplit(url).query)).get("schema", DEFAULT_SCHEMA)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
