"""The bodies of one worker: where each kind runs, when a body may begin, and what happens when it ends.

`def` bodies run in threads (`threads.py`), `async def` bodies on one loop (`loop.py`), `isolation="process"` bodies in
processes of their own (`process.py`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...base.clock import SECOND
from ...base.ids import AttemptId, RunId
from ...core.kernel import settling
from ...core.model import Op, Settle
from ...core.model.outputs import Completion
from ...core.store import Store, reader
from ...errors import StoreError
from ..bodies.attempt import Attempt, Pause, settle
from ..bodies.held import Held
from ..bodies.host import Services
from ..bodies.loop import LoopBodies
from ..bodies.recording import TRY_AGAIN_SECONDS, Ledger
from ..bodies.threads import BodyThreads
from ..bodies.transaction import TransactionAttempt
from ..scheduling.batches import CommitResult
from ..scheduling.outbox import alone
from ..scheduling.scheduler import Scheduler
from .group_commit import GroupCommit, now
from .time_limits import Timekeeper
from .timetable import Timetable

if TYPE_CHECKING:
    from ..bodies.process import ProcessBodies

log = logging.getLogger("stepwell")


class WorkerBodies:
    def __init__(
        self,
        store: Store,
        scheduler: Scheduler,
        lock: threading.Lock,
        commits: GroupCommit,
        timetable: Timetable,
        *,
        settled_apart: Callable[[CommitResult], None],
        pause: Pause,
        gave_up: threading.Event,
        guarded: bool,
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._lock = lock
        """The lock of the scheduler."""
        self._commits = commits
        self.pump, self.commit_soon = commits.pump, commits.soon
        self._settled_apart = settled_apart
        """Called with the result of a settlement that was committed in the transaction of its body."""
        self._pause = pause
        self._gave_up = gave_up
        self._guarded = guarded
        limits = scheduler.limits
        self.threads = BodyThreads(limits.threads, self, lambda: scheduler.count("thread"))
        self.time = Timekeeper(scheduler, lock, timetable, commits, self.threads)
        self.loop = LoopBodies(self._begins_elsewhere, self._settled_elsewhere, self._loop_is_gone)
        self._processes: ProcessBodies | None = None
        self._processes_lock = threading.Lock()
        self._closed = False
        ledger = Ledger(store, commits.submit_from_a_body)
        self._services = Services(self._read_outputs, scheduler.lines, ledger, store.transactions)
        self.in_transactions: dict[AttemptId, Held] = {}
        """Attempts whose settlement is committed in the transaction of their body."""

    def add(self, result: CommitResult) -> None:
        """Take what a commit claimed and settled; `begin` follows. The lock is held, so bodies begin in the order of claims."""
        for held in result.begin:
            if held.spec.body == "thread":
                self.threads.add(held)
        for held, _, _ in result.settled:
            if held.spec.timeout is not None:
                self.time.forget(held)

    def begin(self, begin: list[Held], *, keep: bool) -> Held | None:
        threads = 0
        for held in begin:
            threads += held.spec.body == "thread"
        if threads != len(begin):
            on_loop = [self.attempt(held) for held in begin if held.spec.body == "loop"]
            if on_loop:
                self.loop.begin(on_loop)
            for held in begin:
                if held.spec.body == "process":
                    self._put_into_process(self.attempt(held))
        return self.threads.begin(threads, keep=keep)

    def attempt(self, held: Held) -> Attempt:
        if held.spec.transaction:
            self.in_transactions[held.attempt] = held
            return TransactionAttempt(
                held,
                self._services,
                self._read_frozen_at,
                self._with_lines,
                pause=self._pause,
                guarded=self._guarded,
            )
        return Attempt(held, self._services, self._read_frozen_at, pause=self._pause, guarded=self._guarded)

    def go_on(self, attempt: Attempt, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.loop.go_on(attempt, coroutine)

    def begins(self, attempt: Attempt) -> bool:
        """Whether this body may begin. The caller alone has taken it from the ready ones, so most bodies need no lock."""
        held = attempt.held
        if held.spec.timeout is not None or held.stop or held.over:
            return self._begins(attempt)
        held.begun = True
        return True

    def _with_lines(self, held: Held, settlement: Settle) -> list[Op]:
        with self._lock:
            return alone(held, settlement)

    def ended(self, held: Held, settlement: Settle) -> bool:
        if held.spec.transaction:
            self.in_transactions.pop(held.attempt, None)
            if held.answer is not None:
                return self._committed_apart(held, settlement)
        if held.spec.timeout is None:
            self._commits.ended(held, settlement)
            if held.spec.on_lost == "interrupt":
                self._commits.ask()
            return False
        with self._lock:
            if not held.over:
                self._scheduler.finished(held, settlement, now())
                self._commits.ask()
                return False
            return self.time.came_back(held)

    def _committed_apart(self, held: Held, settlement: Settle) -> bool:
        with self._lock:
            result = self._scheduler.settled_apart(held, settlement, now())
            self.add(result)
            self._commits.ask()
            replaced = self.time.came_back(held)
        self._settled_apart(result)
        return replaced

    def went_on(self, held: Held) -> bool:
        if held.spec.timeout is None:
            return False
        with self._lock:
            return self.time.came_back(held)

    def _begins(self, attempt: Attempt) -> bool:
        """The same under the lock: a body that closing gives back must not begin."""
        held = attempt.held
        with self._lock:
            if held.unwanted():
                if not held.over:
                    self._scheduler.finished(held, settle(held, settling.CANCELLED), now())
                    self._commits.ask()
                return False
            held.begun = True
            if held.spec.timeout is not None:
                self.time.begins(attempt, held.spec.timeout)
            return True

    def _begins_elsewhere(self, attempt: Attempt) -> bool:
        begins = self._begins(attempt)
        if not begins:
            self._commits.wake()
        return begins

    def _settled_elsewhere(self, held: Held, settlement: Settle) -> None:
        """A body on the loop or in a process has ended: have the commit thread settle it."""
        self._commits.ended(held, settlement)
        self._commits.wake()

    def _loop_is_gone(self, left: Sequence[Held]) -> None:
        """The application has closed its loop: give back async bodies, also those that had begun, and claim no more."""
        with self._lock:
            self._scheduler.withdraw("loop")
            for held in left:
                if not held.over:
                    verdict = settling.lost(held.spec) if held.begun else settling.RELEASED
                    self._scheduler.finished(held, settle(held, verdict), now())
            self._commits.ask()
        self._commits.wake()
        if not self._closed:
            log.warning(
                "the event loop that async bodies ran on was closed before the engine; %d of them are given back, and this "
                "engine runs no more async bodies",
                len(left),
            )

    def _put_into_process(self, attempt: Attempt) -> None:
        """Takes a lock, as several threads may bring the first such body, or one that closing has given back."""
        with self._processes_lock:
            if self._closed:
                return
            if self._processes is None:
                from ..bodies.process import ProcessBodies

                places = self._scheduler.limits.processes
                self._processes = ProcessBodies(places, self._begins_elsewhere, self._settled_elsewhere)
            self._processes.put(attempt)

    def _read_frozen_at(self, run_id: RunId) -> float | None:
        try:
            row = reader.get_run(self._store, run_id)
        except StoreError:  # the error message can do without it
            return None
        return None if row is None else row.created_at / SECOND

    def _read_outputs(self, run_id: RunId, indexes: tuple[int, ...]) -> Mapping[int, Completion]:
        """Retry until the store answers: an outage is not the fault of the body that reads."""
        while True:
            try:
                return reader.get_completions(self._store, run_id, indexes)
            except StoreError:
                if self._scheduler.closing or self._gave_up.wait(TRY_AGAIN_SECONDS):
                    raise

    # Closing

    def not_begun(self) -> list[Held]:
        """Take away all bodies that have not begun, so that they never will. The lock is held."""
        found = [held for held in self._scheduler.held.values() if held.spec.body != "thread" and not held.begun]
        while (held := self.threads.take()) is not None:
            found.append(held)
        return found

    def end_overdue(self, overdue: list[Held]) -> None:
        self.time.end(overdue)
        self.loop.look()

    def close(self) -> None:
        with self._processes_lock:
            self._closed = True
        self.time.close()
        self.threads.close()
        self.loop.close()
        if self._processes is not None:
            self._processes.close()
