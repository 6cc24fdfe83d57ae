"""`sqlite:///path`: the embedded store. One file, nothing to install, safe for several processes on one machine."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, assert_never, cast
from urllib.parse import quote

from ...base.clock import Clock
from ...base.ids import AttemptId, RunId, WorkerId
from ...core.model import Answer, Batch, Hint, Op, PutRecord, Query, Receipt, ops
from ...core.store.hooks import CommitHooks
from ...core.store.rules.grouping import groups
from ...core.store.rules.processes import check_process
from ...core.store.rules.values import refuse_values
from ...core.store.rules.verdicts import refuse_follower
from ...errors import StoreError
from .database import TROUBLE, Synchronous, boot_clock, connect, make_schema, translated
from .files import OpenedFiles, create_private
from .lanes import Lanes
from .limits import LIMITS
from .ops.children import hand_over, wake
from .ops.claiming import claim
from .ops.creating import add_graph, add_nodes, create, delete, delete_graph
from .ops.ending import ANY_STOPS, TEMPORARY_TABLES, Transaction
from .ops.forking import share
from .ops.gates import gate, rewrite
from .ops.leases import dismiss, enlist, renew, runs_to_stop, stops, sweep
from .ops.records import put_record
from .ops.restoring import restore
from .ops.settling import append, settle
from .ops.switching import arrange
from .reading import answer
from .workers import WorkerLocks
from .write_ahead_log import WriteAheadLog

TELL_AGAIN = 100_000
"""Microseconds until a worker that was told what to stop is told again. Meanwhile it can ask (`ListStops`)."""
LOOK_SOONEST, LOOK_LATEST = 0.02, 0.5
"""Seconds between two checks whether the file has changed."""
_USUAL = frozenset({ops.Settle, ops.Append, ops.Claim, ops.Create})
"""Ops that change no worker and do not tell a run to stop. Only a settlement that fails its run does, and it clears
`nothing_stops`."""


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
        self.hooks = CommitHooks()
        self._closed = False
        self._lanes = Lanes()
        self._ends = threading.Event()
        self._heard: dict[WorkerId, int] = {}
        """By worker that waits for hints: the version of the file that it last heard of."""
        self._told: dict[WorkerId, tuple[list[int], int]] = {}
        """By worker: the runs of which it was told what to stop, and when."""
        try:
            self._open(clock, synchronous)
        except TROUBLE as error:
            raise translated(error, self.path, self._busy_seconds) from error
        self._locks = WorkerLocks(Path(self._writer.filename))
        self._misses_files = False

    def _open(self, clock: Clock | None, synchronous: Synchronous) -> None:
        self._make_folder()
        create_private(self.path)
        self._writer = connect(self.path, synchronous, self._busy_seconds)
        self._writing = self._writer.cursor()
        try:
            make_schema(self._writer, self.path)
            self._writer.execute(TEMPORARY_TABLES)
            self._clock = clock or boot_clock(self._writer)
            self._reader = connect(self.path, synchronous, self._busy_seconds)
        except BaseException:
            self._writer.close()
            raise
        self._reading = self._reader.cursor()
        self._transaction = Transaction(self._writing, 0, self._lanes)
        """The one that writes, used again and again."""
        self._log = WriteAheadLog(self._writer)
        self._files = OpenedFiles(self.path, self._writer)

    def _make_folder(self) -> None:
        """Create the last folder only: if more of the path is missing, it is probably mistyped."""
        folder = self.path.parent
        try:
            folder.mkdir(0o700, exist_ok=True)
        except FileNotFoundError:
            raise StoreError(
                f"{self.path} cannot be made: there is no folder {folder.parent}. Correct the path, or create the folder first"
            ) from None

    def commit(self, batch: Batch) -> Answer:
        return self.hooks.around(self._commit_alone, batch)

    def _commit_alone(self, batch: Batch) -> Answer:
        self._check_process()
        with self._write_lock:
            try:
                return self._commit(batch)
            except TROUBLE as error:
                raise translated(error, self.path, self._busy_seconds) from error

    def _commit(self, batch: Batch) -> Answer:
        self._check_open()
        if self._misses_files:
            self._check_files()
        kinds = set(map(type, batch))
        usual = kinds <= _USUAL
        dead = () if usual or ops.Sweep not in kinds else self._locks.dead_workers()
        cursor = self._writing
        self._begin()
        try:
            tx = self._transaction
            tx.now, tx.nothing_stops = self._clock.now(), False
            if dead:
                self._expire(tx, dead)
            receipts = self._apply_all(tx, batch)
            answer = Answer(receipts, tx.now, () if usual and tx.nothing_stops else self._stops(tx, batch))
            if self._log.grows:
                self._log.extend()
            cursor.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                cursor.execute("ROLLBACK")
            self._lanes.forget()
            raise
        if not usual:
            self._locks.follow(batch)
            if dead:
                self._locks.remove_locks(dead)
        if self._log.grows:
            self._log.committed()
        self._check_files()  # before the commit is acknowledged
        return answer

    def _check_files(self) -> None:
        """Check that the files are still there. Once one is not, it is checked before each commit, so that none is written."""
        self._misses_files = True
        self._files.check()
        self._misses_files = False

    def _apply_all(self, tx: Transaction, batch: Batch) -> list[Receipt]:
        receipts: list[Receipt] = []
        for kind, members in groups(batch):
            before = receipts[-1] if receipts else None
            receipts += self._judge(tx, kind, [batch[position] for position in members], before)
        return receipts

    def _judge(self, tx: Transaction, kind: type[Op], group: list[Op], before: Receipt | None) -> list[Receipt]:
        if kind is ops.Settle or kind is ops.Append or kind is ops.Claim:  # payloads and known names only, or a child
            return self._apply(tx, kind, group)
        refused = [refuse_values(op) or refuse_follower(op, before) for op in group]
        if not any(refused):
            return self._apply(tx, kind, group)
        good = [op for op, refusal in zip(group, refused, strict=True) if refusal is None]
        applied = iter(self._apply(tx, kind, good) if good else ())
        return [next(applied) if refusal is None else refusal for refusal in refused]

    def _stops(self, tx: Transaction, batch: Batch) -> tuple[AttemptId, ...]:
        workers = dict.fromkeys([op.worker for op in batch if type(op) is ops.Claim or type(op) is ops.Renew])
        if not workers or tx.one(f"SELECT ({ANY_STOPS})")[0] is None:
            return ()
        if any(type(op) is ops.Renew for op in batch):
            self._told.clear()
        return tuple(attempt for worker in workers if self._is_to_be_told(tx, worker) for attempt in stops(tx, worker))

    def _is_to_be_told(self, tx: Transaction, worker: WorkerId) -> bool:
        """Whether to tell a worker what to stop. Not with each claim: its runs have to be looked through for it."""
        runs, (told, at) = runs_to_stop(tx, worker), self._told.get(worker, ([], 0))
        if runs == told and tx.now - at < TELL_AGAIN:
            return False
        self._told[worker] = runs, tx.now
        return bool(runs)

    def _apply(self, tx: Transaction, kind: type[Op], group: list[Op]) -> list[Receipt]:
        if kind is ops.Settle:
            settlements = cast("list[ops.Settle]", group)
            if (child := settlements[0].child) is not None:  # it stands alone
                return [hand_over(tx, settlements[0], child)]
            return settle(tx, settlements)
        if kind is ops.Create:
            return create(tx, cast("list[ops.Create]", group))
        if kind is ops.Append:
            return append(tx, cast("list[ops.Append]", group))
        (op,) = group
        match op:
            case ops.Claim():
                return [claim(tx, op)]
            case ops.Wake():
                return [wake(tx, op)]
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
            self._files.check()
            cursor = self._reading
            try:
                cursor.execute("BEGIN")
                try:
                    tx = Transaction(cursor, self._clock.now(), self._lanes)
                    return [answer(tx, query) for query in queries]
                finally:
                    cursor.execute("COMMIT")
            except TROUBLE as error:
                raise translated(error, self.path, self._busy_seconds) from error

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
            except TROUBLE as error:
                raise translated(error, self.path, self._busy_seconds) from error

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

    def _begin(self) -> None:
        self._writing.execute("BEGIN IMMEDIATE")

    def _expire(self, tx: Transaction, dead: Sequence[str]) -> None:
        """Expire the leases of workers whose process is known to be gone."""
        for worker in dead:
            tx.db.execute("UPDATE worker SET lease_until = 0 WHERE id = ?", (worker,))

    def _check_process(self) -> None:
        check_process(self._pid, self.url)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"the store {self.url} is closed")
