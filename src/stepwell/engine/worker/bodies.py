"""The bodies of one worker: when one may begin, and what happens when it ends. `bodies/` has an executor for each kind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from ...base.clock import SECOND
from ...base.ids import AttemptId, Digest, RunId
from ...base.memory import LARGE
from ...core.graph import Graph
from ...core.kernel import settling
from ...core.model import Op, Settle
from ...core.model.outputs import Completion
from ...core.store import Store, reader
from ...define import Performer
from ...errors import StoreError
from ..bodies.attempt import Attempt, Pause, settle
from ..bodies.executor import Executor
from ..bodies.handing import LookAttempt
from ..bodies.held import Held
from ..bodies.host import Services
from ..bodies.kinds import KINDS
from ..bodies.loop import LoopBodies
from ..bodies.recording import TRY_AGAIN_SECONDS, Ledger
from ..bodies.threads import BodyThreads
from ..bodies.transaction import TransactionAttempt
from ..procedures.children import ChildEnd, look
from ..procedures.procedure import carry_out
from ..scheduling.batches import CommitResult
from ..scheduling.outbox import alone
from ..scheduling.scheduler import Scheduler
from .children import ChildPort, Children
from .group_commit import GroupCommit, now
from .time_limits import Timekeeper
from .timetable import Timetable

Found = TypeVar("Found")
AnyExecutor = TypeVar("AnyExecutor", bound=Executor)


class _ReadBytes(threading.local):
    """How much bodies in this thread have read since it last gave free memory back."""

    bytes = 0


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
        children: ChildPort,
        graphs: Callable[[Digest], Graph | None],
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
        self._executors: dict[str, Executor] = {}
        """By kind. Those of kinds that few programs have are opened with the first body."""
        self._opening = threading.Lock()
        self.threads, self.loop = self._open(BodyThreads), self._open(LoopBodies)
        self.time = Timekeeper(scheduler, lock, timetable, commits, self._executors)
        self._closed = False
        ledger = Ledger(store, commits.submit_from_a_body)
        self.children = Children(store, scheduler, lock, children)
        self._services = Services(self._read_outputs, scheduler.lines, ledger, store.transactions, self._hand_over)
        self._graphs = graphs
        self._read = _ReadBytes()
        self.in_transactions: dict[AttemptId, Held] = {}
        """Attempts whose settlement is committed in the transaction of their body."""

    def add(self, result: CommitResult) -> None:
        """Take what a commit claimed and settled; `begin` follows. The lock is held, so bodies begin in the order of claims."""
        for held in result.begin:
            if (executor := self._executors.get(held.kind)) is not None:
                executor.add(held)
        for held, _, _ in result.settled:
            if held.spec.timeout is not None:
                self.time.forget(held)

    def begin(self, begin: list[Held], *, keep: bool) -> Held | None:
        by_kind: dict[str, list[Held]] = {}
        for held in begin:
            by_kind.setdefault(held.kind, []).append(held)
        kept: Held | None = None
        for kind, bodies in by_kind.items():
            if (executor := self._executor(kind)) is not None:
                kept = executor.begin(bodies, keep=keep) or kept
        return kept

    def _executor(self, kind: str) -> Executor | None:
        """None if closing has given back the first body of its kind."""
        if kind not in self._executors:
            with self._opening:  # several threads may bring it
                if kind not in self._executors and not self._closed:
                    self._open(KINDS[kind].executor())
        return self._executors.get(kind)

    def _open(self, executor: type[AnyExecutor]) -> AnyExecutor:
        opened = executor(self, self._scheduler.limits.of(executor.kind))
        self._executors[executor.kind] = opened
        return opened

    def count(self, kind: str) -> int:
        return self._scheduler.count(kind)

    def attempt(self, held: Held) -> Attempt:
        if held.inputs:
            self._read.bytes += sum(len(output) for _, output in held.inputs)
        if held.wakes:
            return LookAttempt(held, self._services, self._look)
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

    def go_on(self, attempt: Attempt, coroutine: Coroutine[Any, Any, Any]) -> bool:
        self.loop.go_on(attempt, coroutine)
        if attempt.held.spec.timeout is None:
            return False
        with self._lock:
            return self.time.came_back(attempt.held)

    def read_much(self) -> bool:
        much = self._read.bytes >= LARGE
        if much:
            self._read.bytes = 0
        return much

    def begins_owned(self, attempt: Attempt) -> bool:
        held = attempt.held
        if held.spec.timeout is not None or held.stop or held.over:
            return self._begins(attempt)
        held.begun = True
        return True

    def begins(self, attempt: Attempt) -> bool:
        begins = self._begins(attempt)
        if not begins:
            self._commits.wake()
        return begins

    def settled(self, held: Held, settlement: Settle) -> None:
        self._commits.ended(held, settlement)
        self._commits.wake()

    def give_back(self, kind: str, bodies: Sequence[Held]) -> None:
        """Give back also those that had begun."""
        with self._lock:
            self._scheduler.withdraw(kind)
            for held in bodies:
                if not held.over:
                    verdict = settling.lost(held.spec) if held.begun else settling.RELEASED
                    self._scheduler.finished(held, settle(held, verdict), now())
            self._commits.ask()
        self._commits.wake()

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
            if held.spec.timeout is not None and not held.wakes:
                self.time.begins(attempt, held.spec.timeout)
            return True

    def _read_frozen_at(self, run_id: RunId) -> float | None:
        try:
            row = reader.get_run(self._store, run_id)
        except StoreError:  # the error message can do without it
            return None
        return None if row is None else row.created_at / SECOND

    def _read_outputs(self, run_id: RunId, indexes: tuple[int, ...]) -> Mapping[int, Completion]:
        found = self._patiently(lambda: reader.get_completions(self._store, run_id, indexes))
        self._read.bytes += sum(len(completion.output) for completion in found.values())
        return found

    def _hand_over(self, held: Held, workflow: Performer) -> Settle:
        return self._patiently(lambda: self.children.hand_over(held, workflow))

    def _look(self, held: Held) -> ChildEnd:
        return self._patiently(lambda: carry_out(self._store, look(held.facts.run_id, held.index), self._graphs))

    def _patiently(self, read: Callable[[], Found]) -> Found:
        """Retry until the store answers: an outage is not the fault of the body that reads."""
        while True:
            try:
                return read()
            except StoreError:
                if self._scheduler.closing or self._gave_up.wait(TRY_AGAIN_SECONDS):
                    raise

    # Closing

    def not_begun(self) -> list[Held]:
        """Take away all bodies that have not begun, so that they never will. The lock is held."""
        taken: list[Held] = []
        for kind in KINDS:
            bodies = [held for held in self._scheduler.held.values() if held.kind == kind]
            executor = self._executors.get(kind)
            taken += bodies if executor is None else executor.take_back(bodies)
        return taken

    def end_overdue(self, overdue: list[Held]) -> None:
        self.time.end(overdue)
        for executor in [*self._executors.values()]:
            executor.look()

    def close(self) -> None:
        with self._opening:
            self._closed = True
        self.time.close()
        for executor in self._executors.values():
            executor.close()
