"""`sqlite:///path`: the embedded store. One file, nothing to install, safe for several processes on one machine."""

from __future__ import annotations

import errno
import os
import random
import threading
import time
from collections.abc import Callable, Collection, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, assert_never, cast
from urllib.parse import quote

import apsw

from ...clock import BootClock, Clock, WallClock, boot_id, has_boot_clock, since_boot
from ...errors import SchemaTooNew, StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from ...ids import AttemptId, RunId, WorkerId
from ...model import ActivateVersion, Answer, Batch, Hint, Op, PutRecord, Query, Receipt, SaveVersion, ops
from ..rules.grouping import groups
from ..rules.values import refuse_values
from .lanes import Lanes
from .limits import LIMITS
from .ops.claiming import claim
from .ops.creating import add_graph, add_nodes, create, delete, delete_graph
from .ops.ending import ANY_STOPS, TEMPORARY_TABLES, Transaction
from .ops.forking import share
from .ops.gates import gate, rewrite
from .ops.leases import dismiss, enlist, renew, stops, sweep
from .ops.links import LINK_TRIGGER, settle_and_claim
from .ops.records import put_record
from .ops.restoring import restore
from .ops.settling import append, settle
from .ops.switching import arrange
from .ops.versions import activate_version, save_version
from .reading import answer
from .workers import WorkerLocks
from .write_ahead_log import WriteAheadLog

OLDEST_SQLITE = (3, 51, 3)
"""Older versions have a race between two processes that can corrupt a database in WAL mode."""

APPLICATION = int.from_bytes(b"Step", "big")
"""The application id that marks the file as a Stepwell store, not the database of another program."""

Synchronous = Literal["full", "normal"]


FILE_CHECK_SECONDS = 1.0
LOOK_SOONEST, LOOK_LATEST = 0.02, 0.5
"""Seconds between two checks whether the file has changed."""
_TROUBLE = (
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
_WORKERS = frozenset({ops.Enlist, ops.Dismiss})
_STOP_NOTHING = frozenset({ops.Settle, ops.Append, ops.Claim, ops.Create})
"""Ops that do not tell a run to stop. Only a settlement that fails its run does, and it clears `nothing_stops`."""


def _identity(path: Path) -> tuple[int, int] | None:
    """The device and inode of the file at this path; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class SqliteStore:
    """A store in one SQLite file.

    Every commit is one `BEGIN IMMEDIATE` transaction. With `synchronous="full"` (the default) it is on the disk when `commit`
    returns. Reads have a connection of their own and never wait for a writer.
    """

    embedded = True
    needs_hints = False
    transactions = None
    limits = LIMITS

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Clock | None = None,
        synchronous: Synchronous = "full",
        busy_seconds: float = 30.0,
    ) -> None:
        self.path = Path(path).absolute()
        self.url = f"sqlite:///{quote(os.fspath(self.path))}"
        self._busy_seconds = busy_seconds
        self._pid = os.getpid()
        self._write_lock, self._read_lock = threading.Lock(), threading.Lock()
        self._closed = False
        self._lanes = Lanes()
        self._ends = threading.Event()
        self._heard: dict[WorkerId, int] = {}
        """By worker that waits for hints: the version of the file that it last heard of."""
        try:
            self._open(clock, synchronous)
        except _TROUBLE as error:
            raise self._translated(error) from error
        self._locks = WorkerLocks(self.path)
        self._file = _identity(self.path)
        self._look_at_file_at = 0.0

    def _open(self, clock: Clock | None, synchronous: Synchronous) -> None:
        self._make_folder()
        self._writer = self._connect(synchronous)
        self._writing = self._writer.cursor()
        try:
            self._migrate()
            self._writer.execute(TEMPORARY_TABLES + LINK_TRIGGER)
            self._clock = clock or self._boot_clock()
            self._reader = self._connect(synchronous)
        except BaseException:
            self._writer.close()
            raise
        self._reading = self._reader.cursor()
        self._log = WriteAheadLog(self._writer, self.path)

    def _make_folder(self) -> None:
        """Create the last folder only: if more of the path is missing, it is probably mistyped."""
        folder = self.path.parent
        try:
            folder.mkdir(exist_ok=True)
        except FileNotFoundError:
            raise StoreError(
                f"{self.path} cannot be made: there is no folder {folder.parent}. Correct the path, or create the folder first"
            ) from None

    def commit(self, batch: Batch) -> Answer:
        self._check_process()
        with self._write_lock:
            try:
                return self._commit(batch)
            except _TROUBLE as error:
                raise self._translated(error) from error

    def _commit(self, batch: Batch) -> Answer:
        self._check_open()
        self._check_file()
        kinds = set(map(type, batch))
        dead = self._locks.dead_workers() if ops.Sweep in kinds else ()
        cursor = self._writing
        self._begin()
        try:
            tx = Transaction(cursor, self._clock.now(), self._lanes)
            if dead:
                self._expire(tx, dead)
            answer = Answer(self._apply_all(tx, batch), tx.now, self._stops(tx, batch, kinds))
            self._log.extend()
            cursor.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                cursor.execute("ROLLBACK")
            self._lanes.forget()
            raise
        if not kinds.isdisjoint(_WORKERS):
            self._locks.follow(batch)
        if dead:
            self._locks.remove_locks(dead)
        self._log.checkpoint_if_long()
        return answer

    def _check_file(self) -> None:
        """Check, now and then, that the file is still there: commits to a deleted or replaced file succeed, and are lost."""
        now = time.monotonic()
        if now < self._look_at_file_at:
            return
        self._look_at_file_at = now + FILE_CHECK_SECONDS
        if _identity(self.path) != self._file:
            raise StoreError(
                f"{self.path} was deleted, moved or replaced while it was in use: what is committed now would be lost. "
                f"Put the file back and start again"
            )

    def _apply_all(self, tx: Transaction, batch: Batch) -> list[Receipt]:
        if len(batch) == 2 and type(batch[0]) is ops.Settle and type(batch[1]) is ops.Claim:
            at_once = settle_and_claim(tx, batch[0], batch[1])
            if at_once is not None:
                return at_once
        receipts: list[Receipt] = []
        for kind, members in groups(batch):
            receipts += self._judge(tx, kind, [batch[position] for position in members])
        return receipts

    def _judge(self, tx: Transaction, kind: type[Op], group: list[Op]) -> list[Receipt]:
        if kind is ops.Settle or kind is ops.Append or kind is ops.Claim:  # these hold payloads and known names only
            return self._apply(tx, kind, group)
        refused = [refuse_values(op) for op in group]
        if not any(refused):
            return self._apply(tx, kind, group)
        good = [op for op, refusal in zip(group, refused, strict=True) if refusal is None]
        applied = iter(self._apply(tx, kind, good) if good else ())
        return [next(applied) if refusal is None else refusal for refusal in refused]

    def _stops(self, tx: Transaction, batch: Batch, kinds: set[type[Op]]) -> tuple[AttemptId, ...]:
        if tx.nothing_stops and kinds <= _STOP_NOTHING:
            return ()
        workers = dict.fromkeys([op.worker for op in batch if type(op) is ops.Claim or type(op) is ops.Renew])
        if not workers or tx.one(f"SELECT ({ANY_STOPS})")[0] is None:
            return ()
        return tuple(attempt for worker in workers for attempt in stops(tx, worker))

    def _apply(self, tx: Transaction, kind: type[Op], group: list[Op]) -> list[Receipt]:
        if kind is ops.Settle:
            return settle(tx, cast("list[ops.Settle]", group))
        if kind is ops.Create:
            return create(tx, cast("list[ops.Create]", group))
        if kind is ops.Append:
            return append(tx, cast("list[ops.Append]", group))
        (op,) = group
        match op:
            case ops.Claim():
                return [claim(tx, op)]
            case ops.AddGraph():
                return [add_graph(tx, op)]
            case ops.AddNodes():
                return [add_nodes(tx, op)]
            case ops.SwitchGraph():
                return [arrange(tx, op)]
            case ops.Share():
                return [share(tx, op)]
            case ops.Enlist():
                return [enlist(tx, op)]
            case ops.Renew():
                return [renew(tx, op)]
            case ops.Dismiss():
                return [dismiss(tx, op)]
            case ops.Sweep():
                return [sweep(tx, op)]
            case ops.Gate():
                return [gate(tx, op)]
            case ops.Rewrite():
                return [rewrite(tx, op)]
            case ops.Restore():
                return [restore(tx, op)]
            case ops.Delete():
                return [delete(tx, op)]
            case ops.DeleteGraph():
                return [delete_graph(tx, op)]
            case SaveVersion():
                return [save_version(tx, op)]
            case ActivateVersion():
                return [activate_version(tx, op)]
            case PutRecord():
                return [put_record(tx, op)]
            case ops.Settle() | ops.Create() | ops.Append():
                raise AssertionError("handled above")
            case _:
                assert_never(op)

    def read(self, queries: Sequence[Query]) -> list[Any]:
        self._check_process()
        with self._read_lock:
            self._check_open()
            cursor = self._reading
            try:
                cursor.execute("BEGIN")
                try:
                    tx = Transaction(cursor, self._clock.now(), self._lanes)
                    return [answer(tx, query) for query in queries]
                finally:
                    cursor.execute("COMMIT")
            except _TROUBLE as error:
                raise self._translated(error) from error

    def now(self) -> int:
        return self._clock.now()

    def send_hint(self, hint: Hint) -> None:
        """Nothing to do: every process that has the file open can see each commit."""

    def wait_for_hint(
        self, queues: Collection[str] | None, runs: Collection[RunId], worker: WorkerId, timeout: float
    ) -> bool:
        """Check whether the file has changed, often at first, then less and less often."""
        give_up_at, pause = time.monotonic() + timeout, LOOK_SOONEST
        while (version := self._version()) == self._heard.get(worker):
            left = give_up_at - time.monotonic()
            if left <= 0 or self._ends.wait(min(pause, left)):
                return False
            pause = min(2 * pause, LOOK_LATEST)
        self._heard[worker] = version
        return True

    def _version(self) -> int:
        """A number that changes with every commit of another connection."""
        self._check_process()
        with self._read_lock:
            self._check_open()
            try:
                return cast(int, self._reader.pragma("data_version"))
            except _TROUBLE as error:
                raise self._translated(error) from error

    def close(self) -> None:
        if self._pid != os.getpid():
            return  # A forked child must not close what its parent still uses.
        with self._write_lock, self._read_lock:
            if not self._closed:
                self._closed = True
                self._ends.set()
                self._log.close()
                self._reader.close()
                self._writer.close()
                self._locks.close()

    def _connect(self, synchronous: Synchronous) -> apsw.Connection:
        version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
        if version < OLDEST_SQLITE:
            raise StoreError(f"SQLite {apsw.sqlite_lib_version()} is too old; install a newer apsw wheel")
        db = apsw.Connection(os.fspath(self.path), flags=_OPEN, statementcachesize=300)
        try:
            self._configure(db, synchronous)
        except BaseException:
            db.close()
            raise
        return db

    def _configure(self, db: apsw.Connection, synchronous: Synchronous) -> None:
        # Otherwise SQLite would plan a statement again whenever a parameter changes that a partial index might depend on.
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        db.set_busy_handler(_patience(self._busy_seconds))
        if db.readonly("main"):
            raise StoreReadOnly(f"{self.path} is read-only: give this user write permission to it and its folder")
        mode = self._switch_to_log(db)
        if mode != "wal":
            raise StoreError(f"{self.path}: this file system does not support SQLite's write-ahead log (got {mode!r})")
        db.pragma("synchronous", synchronous)
        db.pragma("temp_store", "memory")
        db.pragma("cache_size", -32_000)

    def _switch_to_log(self, db: apsw.Connection) -> object:
        """Switch to WAL mode, with retries: SQLite calls no busy handler here, and another process may be creating the file."""
        give_up_at = time.monotonic() + self._busy_seconds
        while True:
            try:
                return db.pragma("journal_mode", "wal")
            except apsw.BusyError:
                if time.monotonic() >= give_up_at:
                    raise
                time.sleep(random.uniform(0.0005, 0.005))

    def _begin(self) -> None:
        self._writing.execute("BEGIN IMMEDIATE")

    def _migrate(self) -> None:
        """Migrate the file to the newest schema, one numbered file at a time, each in a transaction of its own."""
        newest = max(number for number, _ in migrations())
        if self._writer.pragma("user_version") == newest:
            return  # without waiting for another writer
        for number, text in migrations():
            self._begin()
            try:
                self._check_ours()
                version = cast(int, self._writer.pragma("user_version"))
                if version > newest:
                    raise SchemaTooNew(
                        f"{self.path} was written by a newer Stepwell (schema {version}, this one knows {newest}): "
                        "upgrade this installation; nothing was changed"
                    )
                if version < number:
                    self._writer.execute(text)
                    self._writer.pragma("application_id", APPLICATION)
                    self._writer.pragma("user_version", number)
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    def _check_ours(self) -> None:
        used = self._writer.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is not None
        if used and self._writer.pragma("application_id") != APPLICATION:
            raise StoreCorrupt(f"{self.path} holds the tables of another program; choose another path")

    def _boot_clock(self) -> Clock:
        """The clock that all processes of this boot share. The first process sets it by the wall clock."""
        if not has_boot_clock():
            return WallClock()
        known = "SELECT shift FROM boot WHERE id = ?"
        row = self._writer.execute(known, (boot_id(),)).fetchone()
        if row is None:
            self._begin()
            self._writer.execute(
                "INSERT OR IGNORE INTO boot (id, shift) VALUES (?, ?)", (boot_id(), WallClock().now() - since_boot())
            )
            if self._writer.changes():
                # Leases of an earlier boot have expired: their processes are gone, whatever the clock says.
                self._writer.execute("UPDATE worker SET lease_until = 0")
            row = self._writer.execute(known, (boot_id(),)).fetchone()
            self._writer.execute("COMMIT")
        assert row is not None
        return BootClock(cast(int, row[0]))

    def _expire(self, tx: Transaction, dead: Sequence[str]) -> None:
        """Expire the leases of workers whose process is known to be gone."""
        for worker in dead:
            tx.db.execute("UPDATE worker SET lease_until = 0 WHERE id = ?", (worker,))

    def _check_process(self) -> None:
        """Called before any lock is taken: a forked child inherits locks that nobody will ever release."""
        if self._pid != os.getpid():
            raise StoreError("a store cannot be used in a forked process; open a new one there")

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"the store {self.url} is closed")

    def _translated(self, error: BaseException) -> StoreError:
        """Our error for one of SQLite's: what happened, and what to do."""
        if isinstance(error, (apsw.BusyError, apsw.LockedError)):
            return StoreBusy(
                f"{self.path}: another process has held the write lock for more than {self._busy_seconds:g} s; "
                "nothing was written, try again when it is done"
            )
        if isinstance(error, apsw.FullError):
            return StoreFull(f"{self.path}: no space left on the disk; nothing was written, free some and retry")
        if isinstance(error, apsw.ReadOnlyError):
            return StoreReadOnly(f"{self.path} is read-only: give this user write permission to it and its folder")
        if isinstance(error, (apsw.CantOpenError, PermissionError, NotADirectoryError, FileExistsError)):
            return StoreReadOnly(
                f"{self.path} cannot be opened for writing ({error}): check that the folder exists and may be written"
            )
        if isinstance(error, apsw.NotADBError):
            return StoreCorrupt(f"{self.path} is not a SQLite database; choose another path")
        if isinstance(error, apsw.CorruptError):
            return StoreCorrupt(f"{self.path} is damaged ({error}); restore it from a backup")
        if isinstance(error, apsw.IOError):
            return StoreError(f"{self.path}: the disk reported an error ({error}); it is safe to try again")
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        return (StoreFull if full else StoreError)(f"{self.path}: {error}; it is safe to try again")


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


def migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration, in order."""
    folder = resources.files(__package__) / "migrations"
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return sorted((int(entry.name[:4]), entry.read_text("utf-8")) for entry in found)
