"""Group commit: one commit at a time, with everything that is waiting for one.

The thread that ends a body, or wants something of the store, leads the next commit, unless another thread leads already. The
leader looks for more work before it stops leading. Settlements may wait a moment while more bodies are ready to begin, so
that the nodes of a wide graph are not committed one by one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from ...base.ids import AttemptId, RunId
from ...core.model import Claimed, Op, Receipt, RunRow, Settle
from ...core.store import Store
from ...errors import EngineClosed, StoreError, StoreReplaced
from ..bodies.capture import refresh_capture
from ..bodies.held import Held, RunFacts
from ..delayed_calls import DelayedCalls
from ..scheduling.batches import CommitBatch, CommitResult, Submission
from ..scheduling.scheduler import Scheduler

log = logging.getLogger("stepwell")

SOON_SECONDS = 0.003
"""How long settlements may wait for more of their kind while other bodies are ready to begin."""
LATE_ROUNDS = 10
"""For this many times `SOON_SECONDS` the thread that commits them stays awake: to wake it takes longer than to commit."""


def now() -> int:
    """Microseconds on the clock of the scheduler."""
    return time.monotonic_ns() // 1_000


class CommitPort(Protocol):
    """Carries out what follows from a commit."""

    @property
    def bodies_wait(self) -> bool:
        """Whether a body for a thread is ready to begin."""

    def call_if_stuck(self) -> None:
        """Call more threads if bodies wait for one that takes long."""

    def committed(self, result: CommitResult) -> None:
        """The store has committed. Called under the lock, before another thread can lead or close."""

    def act_on(self, result: CommitResult, *, keep: bool) -> Held | None:
        """Carry out the result. With `keep`, return one body for this thread to run."""

    def put_back(self, held: Held) -> None:
        """Let another thread run the body that was returned."""

    def find_facts(self, run_id: RunId, row: RunRow | None) -> RunFacts:
        """Load what a worker must know of a run that another process started."""

    def stop(self, attempts: Iterable[AttemptId]) -> None:
        """Ask these attempts to stop."""

    def tell_trouble(self, trouble: StoreError | None, runs: Collection[RunId] | None = None) -> None:
        """Tell the callers that wait for these runs, or for any: the store cannot commit, or (None) it can again."""

    def store_replaced(self, error: StoreReplaced) -> None:
        """The contents of the store are gone or were replaced: stop all work."""

    def tell_pressure(self) -> None:
        """Tell the listeners about back-pressure, if there is news."""


class GroupCommit:
    def __init__(self, store: Store, scheduler: Scheduler, lock: threading.Lock, host: CommitPort) -> None:
        self._store = store
        self._scheduler = scheduler
        self._lock = lock
        """The lock of the scheduler."""
        self._host = host
        self._ended: deque[tuple[Held, Settle]] = deque()
        """Settlements that the scheduler has not been told of yet. Appending needs no lock."""
        self._leading = threading.Lock()
        """Held by the thread that leads a commit."""
        self._asked = False
        """A commit is wanted: the leader looks again before it stops leading."""
        self.calls = DelayedCalls("stepwell-commit")
        """Commits what nobody else does soon: what ended on the loop and in processes, settlements that wait for more of their
        kind, what bodies have printed."""
        self.wake = self.calls.add(self._commit_now).wake
        """Have the commit thread commit everything: the threads of bodies may all be busy."""
        self.soon = self.calls.add(self._commit_late, SOON_SECONDS, LATE_ROUNDS).wake
        """The same, after `SOON_SECONDS`."""
        self._closed = False
        self._finished = False
        self.trouble: StoreError | None = None
        """Why the latest commit failed, if it did."""
        self._replaced: StoreReplaced | None = None

    def submit(self, ops: list[Op], facts: tuple[RunFacts, ...] = ()) -> list[Receipt]:
        """Commit these ops together with all else that is waiting, and return their receipts."""
        return self._submit(ops, facts, lambda ready: self.pump(until=ready.is_set))

    def submit_from_a_body(self, ops: list[Op]) -> list[Receipt]:
        """The same, committed by another thread: the thread of a body must not carry out what follows from a commit."""
        return self._submit(ops, (), lambda _: self.wake())

    def ended(self, held: Held, settlement: Settle) -> None:
        """A body has ended. Its settlement goes into the next commit, which the caller has to request."""
        self._ended.append((held, settlement))

    def ask(self) -> None:
        """Have the next thread that pumps, or the leader, commit everything."""
        self._asked = True

    def pump(self, *, keep: bool = False, until: Callable[[], bool] | None = None) -> Held | None:
        """Commit everything, unless another thread leads. With `keep`, return one body for this thread to run.

        Once `until()` holds, the commit thread takes over: a thread that starts a run would else lead as long as work comes in.
        """
        if not keep:
            self._asked = True
        kept: Held | None = None
        while (batch := self._next_batch()) is not None:
            if kept is not None:
                self._host.put_back(kept)
                kept = None
            result = self._commit(batch)
            if result is not None:
                kept = self._apply_result(result, keep=keep)
                more = self._asked or bool(self._ended)
                if result.enough and kept is not None and not more:
                    break
                if until is not None and until():
                    if more or not result.enough:
                        self.wake()
                    break
            elif not self._asked:  # else another thread asked meanwhile, and waits for the next commit
                return None
        # Only now: a listener that starts a run waits for a commit, which this thread may have to lead.
        self._host.tell_pressure()
        return kept

    def collect_ended(self) -> bool:
        """Tell the scheduler which bodies have ended. True if any has. The lock is held."""
        count = len(self._ended)
        at = now() if count else 0
        for _ in range(count):
            held, settlement = self._ended.popleft()
            if not held.over:
                self._scheduler.finished(held, settlement, at)
        return count > 0

    def close(self) -> None:
        """Take no more submissions. The lock is held."""
        self._closed = True
        self.calls.close()

    def finish(self) -> None:
        """Commit nothing more."""
        self._finished = True

    def give_up(self, error: StoreReplaced) -> None:
        """Commit nothing more, as the store was replaced. Every submission raises `error`."""
        self.trouble = self._replaced = error

    def _submit(
        self, ops: list[Op], facts: tuple[RunFacts, ...], commit: Callable[[threading.Event], object]
    ) -> list[Receipt]:
        ready = threading.Event()
        submission = Submission(ops, facts, done=ready.set)
        with self._lock:
            if self._closed:
                raise EngineClosed("the engine is closed")
            self._scheduler.submit(submission)
        commit(ready)
        while not ready.wait(0 if self._replaced else 1.0):
            if self._replaced is not None:
                raise self._replaced
            if self._finished:
                raise EngineClosed("the engine was closed")
        if submission.error is not None:
            raise submission.error
        assert submission.receipts is not None
        return submission.receipts

    def _commit_now(self) -> None:
        self.pump(until=self.calls.others_wait)

    def _commit_late(self) -> None:
        self._host.call_if_stuck()
        if self._leading.locked():
            self.soon()  # the leader need not go on at once: few bodies have ended since it began
        else:
            self._commit_now()

    def _next_batch(self) -> CommitBatch | None:
        """Start to lead, and return what to commit. None if another thread leads or there is nothing to commit."""
        while self._leading.acquire(blocking=False):
            batch = None
            try:
                with self._lock:
                    # Settlements wait a moment while more bodies are ready, unless a commit is asked for.
                    if self._asked or not self._host.bodies_wait:
                        self._asked = False
                        self.collect_ended()
                    over = self._finished or self._replaced is not None
                    batch = None if over else self._scheduler.next_batch(now())
            finally:
                if batch is None:
                    self._leading.release()
            if batch is not None:
                return batch
            if not self._asked:
                break
        if self._ended:
            self.soon()  # this thread or the leader has left it for later
        return None

    def _commit(self, batch: CommitBatch) -> CommitResult | None:
        """Commit, and stop leading. None if the commit failed."""
        try:
            receipts = self._store.commit(batch.ops)
            if receipts.stop:
                self._host.stop(receipts.stop)
            refresh_capture()
            self._load_unknown_runs(receipts)
            with self._lock:
                result = self._scheduler.committed(batch, receipts, now())
                result.enough = self._scheduler.quiet
                self._host.committed(result)
            return result
        except StoreError as error:
            self._failed(batch, error)
        except Exception as error:
            self._rejected(batch, error)
        except BaseException as error:  # Ctrl-C in the thread that started a run
            self._failed(batch, StoreError(f"a commit was interrupted: {error!r}"))
            raise
        finally:
            self._leading.release()
        return None

    def _apply_result(self, result: CommitResult, *, keep: bool) -> Held | None:
        if self.trouble is not None:
            self.trouble = None
            self._host.tell_trouble(None)
        for submission in result.answered:
            submission.done()
        return self._host.act_on(result, keep=keep)

    def _failed(self, batch: CommitBatch, error: StoreError) -> None:
        """The store is in trouble. The housekeeper sends the batch again; those who wait get the error now."""
        with self._lock:
            told = self._scheduler.failed(batch, error)
        for submission in told:
            submission.done()
        if isinstance(error, StoreReplaced):
            self._host.store_replaced(error)
            return
        if self.trouble is None:
            log.warning("the store cannot commit; the commit is tried again until it succeeds: %s", error)
        self.trouble = error
        self._host.tell_trouble(error)

    def _rejected(self, batch: CommitBatch, error: Exception) -> None:
        """The store cannot apply one of the ops. This thread looks for it at once."""
        if batch.apart is None and len(batch.ops) > 1:
            log.warning("a batch of %d ops cannot be stored and is sent in parts: %r", len(batch.ops), error)
        with self._lock:
            told, rejected = self._scheduler.rejected(batch, error, now())
        self._asked = True
        for submission in told:
            submission.done()
        if rejected is not None:
            log.error("%s", rejected.told, exc_info=error)
            if rejected.run_id is not None:
                self._host.tell_trouble(StoreError(rejected.told), (rejected.run_id,))

    def _load_unknown_runs(self, receipts: list[Receipt]) -> None:
        """Load the runs that other processes started and that this worker was granted nodes of."""
        for receipt in receipts:
            if type(receipt) is Claimed:
                unknown = [grant.run_id for grant in receipt.grants if not self._scheduler.knows(grant)]
                if unknown:
                    self._load_runs(unknown, {row.id: row for row in receipt.runs})

    def _load_runs(self, runs: list[RunId], rows: dict[RunId, RunRow]) -> None:
        for run in dict.fromkeys(runs):
            try:
                facts = self._host.find_facts(run, rows.get(run))
            except StoreError:
                raise
            except Exception as error:
                log.warning("nodes of run %s were granted, but cannot run here and are given back: %s", run, error)
                continue
            with self._lock:
                self._scheduler.know(facts)
