"""The file of a store as a database: connect to it, make its schema, and say what its errors mean."""

from __future__ import annotations

import errno
import os
import random
import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Literal, cast

import apsw

from ...base.clock import BootClock, Clock, WallClock, boot_id, has_boot_clock, since_boot
from ...errors import SchemaTooNew, StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly

SCHEMA = 10
"""The version of the schema. Those before were never released."""
OLDEST_SQLITE = (3, 51, 3)
"""Older versions have a race between two processes that can corrupt a database in WAL mode."""

APPLICATION = int.from_bytes(b"Step", "big")
"""The application id that marks the file as a Stepwell store, not the database of another program."""

Synchronous = Literal["full", "normal"]

TROUBLE = (
    apsw.BusyError,
    apsw.LockedError,
    apsw.FullError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.NotADBError,
    apsw.CorruptError,
    apsw.IOError,
    OSError,
)
"""Errors that any database can run into. Any other error of SQLite is a defect of ours, and is raised as it is."""
_OPEN = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_NOMUTEX
"""Without SQLite's own mutexes: each connection has a lock here, and a second one costs some hundred calls per commit."""


def connect(path: Path, synchronous: Synchronous, busy_seconds: float) -> apsw.Connection:
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < OLDEST_SQLITE:
        raise StoreError(f"SQLite {apsw.sqlite_lib_version()} is too old; install a newer apsw wheel")
    db = apsw.Connection(os.fspath(path), flags=_OPEN, statementcachesize=300)
    try:
        configure(db, path, synchronous, busy_seconds)
    except BaseException:
        db.close()
        raise
    return db


def configure(db: apsw.Connection, path: Path, synchronous: Synchronous, busy_seconds: float) -> None:
    # Otherwise SQLite would plan a statement again whenever a parameter changes that a partial index might depend on.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    db.set_busy_handler(_patience(busy_seconds))
    if db.readonly("main"):
        raise StoreReadOnly(f"{path} is read-only: give this user write permission to it and its folder")
    mode = _switch_to_log(db, busy_seconds)
    if mode != "wal":
        raise StoreError(f"{path}: this file system does not support SQLite's write-ahead log (got {mode!r})")
    db.pragma("synchronous", synchronous)
    db.pragma("temp_store", "memory")
    db.pragma("cache_size", -32_000)


def _switch_to_log(db: apsw.Connection, busy_seconds: float) -> object:
    """Switch to WAL mode, with retries: SQLite calls no busy handler here, and another process may be creating the file."""
    give_up_at = time.monotonic() + busy_seconds
    while True:
        try:
            return db.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() >= give_up_at:
                raise
            time.sleep(random.uniform(0.0005, 0.005))


def _patience(seconds: float) -> Callable[[int], bool]:
    """A busy handler: retries for `seconds` while another process holds the lock."""
    give_up_at = 0.0

    def wait(tries: int) -> bool:
        """Sleep for a short random time, so that both processes make progress. False to give up."""
        nonlocal give_up_at
        if tries == 0:
            give_up_at = time.monotonic() + seconds
        time.sleep(random.uniform(0.0001, min(0.0005 * (tries + 1), 0.005)))
        return time.monotonic() < give_up_at

    return wait


def _begin(db: apsw.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")


def make_schema(db: apsw.Connection, path: Path) -> None:
    """Make the schema of a new file, or check that of one that exists."""
    if db.pragma("user_version") == SCHEMA:
        return  # without waiting for another writer
    _begin(db)
    try:
        _check_ours(db, path)
        version = cast(int, db.pragma("user_version"))
        if version > SCHEMA:
            raise SchemaTooNew(
                f"{path} was written by a newer Stepwell (schema {version}, this one knows {SCHEMA}): "
                "upgrade this installation; nothing was changed"
            )
        if 0 < version < SCHEMA:
            raise StoreError(
                f"{path} was made by a Stepwell from before the first release (schema {version}): choose another path, "
                "or remove this file; nothing was changed"
            )
        if version == 0:
            db.execute(schema())
            db.pragma("application_id", APPLICATION)
            db.pragma("user_version", SCHEMA)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _check_ours(db: apsw.Connection, path: Path) -> None:
    used = db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is not None
    if used and db.pragma("application_id") != APPLICATION:
        raise StoreCorrupt(f"{path} holds the tables of another program; choose another path")


def boot_clock(db: apsw.Connection) -> Clock:
    """The clock that all processes of this boot share. The first process sets it by the wall clock."""
    if not has_boot_clock():
        return WallClock()
    known = "SELECT shift FROM boot WHERE id = ?"
    row = db.execute(known, (boot_id(),)).fetchone()
    if row is None:
        _begin(db)
        db.execute(
            "INSERT OR IGNORE INTO boot (id, shift) VALUES (?, ?)", (boot_id(), WallClock().now() - since_boot())
        )
        if db.changes():
            # Leases of an earlier boot have expired: their processes are gone, whatever the clock says.
            db.execute("UPDATE worker SET lease_until = 0")
        row = db.execute(known, (boot_id(),)).fetchone()
        db.execute("COMMIT")
    assert row is not None
    return BootClock(cast(int, row[0]))


def schema() -> str:
    """The SQL that makes the schema."""
    return (resources.files(__package__) / "schema.sql").read_text("utf-8")


def translated(error: BaseException, path: Path, busy_seconds: float) -> StoreError:
    """Our error for one of SQLite's: what happened, and what to do."""
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return StoreBusy(
            f"{path}: another process has held the write lock for more than {busy_seconds:g} s; "
            "nothing was written, try again when it is done"
        )
    if isinstance(error, apsw.FullError):
        return StoreFull(f"{path}: no space left on the disk; nothing was written, free some and retry")
    if isinstance(error, apsw.ReadOnlyError):
        return StoreReadOnly(f"{path} is read-only: give this user write permission to it and its folder")
    if isinstance(error, (apsw.CantOpenError, PermissionError, NotADirectoryError, FileExistsError)):
        return StoreReadOnly(
            f"{path} cannot be opened for writing ({error}): check that the folder exists and may be written"
        )
    if isinstance(error, apsw.NotADBError):
        return StoreCorrupt(f"{path} is not a SQLite database; choose another path")
    if isinstance(error, apsw.CorruptError):
        return StoreCorrupt(f"{path} is damaged ({error}); restore it from a backup")
    if isinstance(error, apsw.IOError):
        return StoreError(f"{path}: the disk reported an error ({error}); it is safe to try again")
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return (StoreFull if full else StoreError)(f"{path}: {error}; it is safe to try again")
