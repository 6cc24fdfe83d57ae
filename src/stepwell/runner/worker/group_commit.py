"""Group commit: one commit at a time, with everything in it that wants one.

Whoever ends a body or wants something of the store leads the next commit, unless somebody does; who leads looks again before
it stops leading. What bodies ended with may wait a moment while more of them are at hand, so that a wide graph is not
committed one by one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from ...errors import EngineClosed, StoreError, StoreReplaced
from ...ids import AttemptId, RunId
from ...model import Claimed, Op, Receipt, RunRow, Settle
from ...store import Store
from ..bodies.capture import refresh_capture
from ..bodies.held import Held, RunFacts
from ..scheduling.batches import CommitBatch, CommitResult, Submission
from ..scheduling.scheduler import Scheduler
from .debounce import Debounce

log = logging.getLogger("stepwell")

SOON_SECONDS = 0.003
"""How long what bodies ended with may wait for more of its kind, while others are ready to begin."""


def now() -> int:
    """Microseconds on the clock that the scheduler is told."""
    return time.monotonic_ns() // 1_000


class Host(Protocol):
    """Who carries out what follows from a commit."""

    @property
    def bodies_wait(self) -> bool:
        """Whether a body for a thread is ready to begin."""

    def committed(self, result: CommitResult) -> None:
        """The store took it. Called with the lock, before anybody else leads or closes."""

    def act_on(self, result: CommitResult, *, keep: bool) -> Held | None:
        """Do what follows; `keep`: return one body for this thread to run."""

    def put_back(self, held: Held) -> None:
        """The body that was returned is for another thread to run."""

    def find_facts(self, run_id: RunId, row: RunRow | None) -> RunFacts:
        """What there is to know about a run that somebody else started."""

    def stop(self, attempts: Iterable[AttemptId]) -> None:
        """Ask these attempts to stop."""

    def tell_trouble(self, trouble: StoreError | None, runs: Collection[RunId] | None = None) -> None:
        """Those who wait for these runs, or for any: the store refuses to commit, or does so no longer."""

    def store_replaced(self, error: StoreReplaced) -> None:
        """What was stored is gone, or was exchanged: work on nothing any more."""

    def tell_pressure(self) -> None:
        """Those who listen, if the scheduler has news of it."""


class GroupCommit:
    def __init__(self, store: Store, scheduler: Scheduler, lock: threading.Lock, host: Host) -> None:
        self._store = store
        self._scheduler = scheduler
        self._lock = lock
        """That of the scheduler."""
        self._host = host
        self._ended: deque[tuple[Held, Settle]] = deque()
        """What bodies ended with and the scheduler has not heard of. No lock is needed to put something there."""
        self._leading = threading.Lock()
        """Held by whoever commits."""
        self._asked = False
        """Somebody wants a commit, and will not wait for it: who leads looks again before it stops leading."""
        self._committer = Debounce(self.pump, "stepwell-commit", 0)
        """Commits what ends outside the threads for bodies, which may all be busy."""
        self._late_committer = Debounce(self._commit_late, "stepwell-late", SOON_SECONDS)
        self._closed = False
        self._finished = False
        self.trouble: StoreError | None = None
        """Why the store refused the latest commit, if it did."""
        self._replaced: StoreReplaced | None = None

    def submit(self, ops: list[Op], facts: tuple[RunFacts, ...] = ()) -> list[Receipt]:
        """Commit these ops together with whatever else is waiting, and return their receipts."""
        return self._submit(ops, facts, lambda ready: self.pump(until=ready.is_set))

    def submit_from_a_body(self, ops: list[Op]) -> list[Receipt]:
        """The same, committed elsewhere: what follows from a commit is not for the thread of a body to do."""
        return self._submit(ops, (), lambda _: self.wake())

    def ended(self, held: Held, settlement: Settle) -> None:
        """A body has ended; to be committed with the next commit, for which somebody has to ask."""
        self._ended.append((held, settlement))

    def ask(self) -> None:
        """Who pumps next, or leads, is to commit all there is."""
        self._asked = True

    def wake(self) -> None:
        """Have a thread of ours commit what there is."""
        self._committer.wake()

    def soon(self) -> None:
        """The same, in a moment."""
        self._late_committer.wake()

    def pump(self, *, keep: bool = False, until: Callable[[], bool] | None = None) -> Held | None:
        """Commit what there is to commit, unless somebody does; `keep`: return one body for this thread to run.

        `until`: when it holds, leave the rest to a thread of ours. Who starts a run would else lead for as long as others do.
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
            elif not self._asked:  # who asked while it led, and was not told, waits for the next
                return None
        # Not before: a listener that starts a run waits for a commit, and nobody else would send this one.
        self._host.tell_pressure()
        return kept

    def collect_ended(self) -> bool:
        """Tell the scheduler which bodies have ended; whether there were any. The lock is held."""
        count, at = len(self._ended), now()
        for _ in range(count):
            held, settlement = self._ended.popleft()
            if not held.over:
                self._scheduler.finished(held, settlement, at)
        return count > 0

    def close(self) -> None:
        """Take no more submissions. The lock is held."""
        self._closed = True
        self._committer.close()
        self._late_committer.close()

    def finish(self) -> None:
        """Commit nothing more."""
        self._finished = True

    def give_up(self, error: StoreReplaced) -> None:
        """Commit nothing more, as there is nothing to commit it to; whoever asks for something is told."""
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

    def _commit_late(self) -> None:
        if self._leading.locked():
            self.soon()  # it is not asked to go on at once: what ended since it began is little
        else:
            self.pump()

    def _next_batch(self) -> CommitBatch | None:
        """What this thread has to commit, which then leads until that is answered."""
        while self._leading.acquire(blocking=False):
            batch = None
            try:
                with self._lock:
                    # What bodies ended with waits a moment while more are at hand, unless somebody asks for a commit.
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
            self.soon()  # it was left for a moment, here or by who leads
        return None

    def _commit(self, batch: CommitBatch) -> CommitResult | None:
        """Leads no longer when it returns. None: the store did not take it."""
        try:
            receipts = self._store.commit(batch.ops)
            self._load_unknown_runs(receipts)
            if receipts.stop:
                self._host.stop(receipts.stop)
            refresh_capture()
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
        """The store did not take the batch. It is sent again by the housekeeper; those who wait are told now."""
        with self._lock:
            told = self._scheduler.failed(batch, error)
        for submission in told:
            submission.done()
        if isinstance(error, StoreReplaced):
            self._host.store_replaced(error)
            return
        if self.trouble is None:
            log.warning("the store refuses to commit; it is tried again until it does not: %s", error)
        self.trouble = error
        self._host.tell_trouble(error)

    def _rejected(self, batch: CommitBatch, error: Exception) -> None:
        """No store in trouble raises this: there is an op that it cannot apply. It is looked for at once, by this thread."""
        if batch.apart is None and len(batch.ops) > 1:
            log.warning("a batch of %d cannot be stored and is sent in parts: %r", len(batch.ops), error)
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
        """Runs that others started and this worker was granted nodes of: learn what they are."""
        for receipt in receipts:
            if type(receipt) is Claimed:
                unknown = {grant.run_id for grant in receipt.grants if not self._scheduler.knows(grant)}
                rows = {row.id: row for row in receipt.runs} if unknown else {}
                for run in unknown:
                    try:
                        facts = self._host.find_facts(run, rows.get(run))
                    except StoreError:
                        raise
                    except Exception as error:
                        log.warning("run %s was granted and cannot be served; it is given back: %s", run, error)
                        continue
                    with self._lock:
                        self._scheduler.know(facts)
