"""SQLite for states: one file, and a folder beside it for what bodies write and read."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import apsw

from ....stores.sqlite.database import TROUBLE, translated
from ....stores.sqlite.files import OpenedFiles, create_private
from ..files.lease import hold_lease, lease_number
from ..files.root import Root
from .schema import statements

BUSY_SECONDS = 60


class SqliteDatabase:
    def __init__(self, url: str) -> None:
        self.url = url
        self.path = path_of(url)
        self.scratch = f"{self.path}-files"
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        os.makedirs(self.scratch, mode=0o700, exist_ok=True)
        create_private(Path(self.path))
        self._folder = Root(self.scratch)
        self._lock = threading.RLock()
        with self._translated():
            self._connection = self._connect("FULL")
            self._quick = self._connect("NORMAL")
            """A crash of the machine may undo what it wrote last; never a crash of the process."""
            for statement in statements():
                self._connection.execute(statement)
        self._files = OpenedFiles(Path(self.path), self._connection)

    def _connect(self, synchronous: str) -> apsw.Connection:
        connection = apsw.Connection(self.path)
        connection.set_busy_timeout(BUSY_SECONDS * 1_000)
        _switch_to_log(connection)
        connection.execute(f"PRAGMA synchronous={synchronous}")
        return connection

    def close(self) -> None:
        self._connection.close()
        self._quick.close()

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock, self._translated():
            return list(self._connection.execute(statement, tuple(values)))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors that any database can run into, such as a full disk, as our own."""
        try:
            yield
        except apsw.Error as error:
            if isinstance(error, TROUBLE):
                raise translated(error, Path(self.path), BUSY_SECONDS) from error
            raise

    @contextmanager
    def changing(self, *, durable: bool = True) -> Iterator[_SqliteChange]:
        with self._lock, self._translated():
            connection = self._connection if durable else self._quick
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield _SqliteChange(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # SQLite ends it itself when the disk is full
                    connection.execute("ROLLBACK")
                raise
            self._files.check()

    def change_mark(self) -> object:
        with self._lock:
            return self._connection.pragma("data_version"), self._connection.total_changes()

    def lease(self, name: str, patience: float) -> AbstractContextManager[Callable[[], bool]]:
        return hold_lease(self._folder, f"{name}.lease", name, patience)

    def lease_number(self, name: str) -> int:
        return lease_number(self._folder, f"{name}.lease")


def path_of(url: str) -> str:
    return os.path.abspath(unquote(url.removeprefix("sqlite:///")))


def _switch_to_log(connection: apsw.Connection) -> None:
    """For this SQLite does not wait: while somebody else creates the file, it is busy at once."""
    give_up_at = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except apsw.BusyError:
            if time.monotonic() >= give_up_at:
                raise
            time.sleep(0.002)


class _SqliteChange:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return list(self._connection.execute(statement, tuple(values)))

    def run(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._connection.execute(statement, tuple(values))

    def run_many(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        if values:
            self._connection.executemany(statement, [tuple(each) for each in values])
