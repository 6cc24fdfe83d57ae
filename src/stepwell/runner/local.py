"""The local runner: carries out, in this process, what the desk decides.

Threads and clocks are at this edge and nowhere else in the runner: `def` bodies run in threads (`threads.py`), `async def`
bodies on one loop (`loop.py`), `isolation="process"` bodies in processes of their own (`process.py`). Whoever ends a body or
wants something of the store leads the next commit, unless somebody does.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..clock import SECOND, microseconds
from ..errors import EngineClosed, StoreError
from ..ids import AttemptId, Digest, RunId, WorkerId, new_claim_id
from ..kernel import settling
from ..model import Claimed, Dismiss, GateState, HeldGate, Op, Receipt, RunNews, Settle
from ..store import Store, reader
from .attempt import Attempt, settle
from .capture import close_ears, open_ears, prick_ears
from .chores import Chores, Due
from .desk import Desk, Flight, Landing, Limits, Submission
from .lease import Lease
from .loop import LoopThread
from .metrics import EngineMetrics, snapshot
from .pressure import BackpressureEvent
from .procedure import Procedure, carry_out
from .pulse import Pulse
from .recording import Ledger
from .threads import BodyThreads
from .work import Held, RunFacts

if TYPE_CHECKING:
    from .process import ProcessBodies

log = logging.getLogger("stepwell")

SETTLE_SECONDS = 5.0
"""How long closing waits for the settlement of what has ended or was given back."""
SOON_SECONDS = 0.003
"""How long what bodies ended with may wait for more of its kind, while others are ready to begin."""
MAX_RUNAWAYS = 64
"""Threads whose body did not end in time: beyond this many, nothing more is claimed until some of them end."""


class LocalRunner:
    def __init__(
        self,
        store: Store,
        worker: WorkerId,
        limits: Limits,
        lease_seconds: float,
        *,
        versions: Callable[[], list[tuple[str, Digest]]],
        find_facts: Callable[[RunId], RunFacts],
        on_news: Callable[[Iterable[RunNews]], None],
        on_settled: Callable[[list[tuple[Held, Settle, bool]]], None],
        on_trouble: Callable[[StoreError | None], None],
        on_pressure: Callable[[BackpressureEvent], None],
        finish_gate: Callable[[HeldGate], None],
        do_chores: Callable[[Due], Procedure[None]],
        guarded: bool = False,
    ) -> None:
        self._store = store
        self._find_facts = find_facts
        self._on_news, self._on_settled, self._on_trouble = on_news, on_settled, on_trouble
        self._on_pressure = on_pressure
        self._telling = threading.Lock()
        self._finish_gate = finish_gate
        self._do_chores = do_chores
        self._lock = threading.Lock()
        self.desk = Desk(worker, limits, new_claim_id)
        self.chores = Chores()
        self._ended: deque[tuple[Held, Settle]] = deque()
        """What bodies ended with and the desk has not heard of. No lock is needed to put something there."""
        self._leading = threading.Lock()
        """Held by whoever commits."""
        self._asked = False
        """Somebody wants a commit, and will not wait for it: who leads looks again before it stops leading."""
        self._committer = Pulse(self.pump, "stepwell-commit", 0)
        """Commits what ends outside the threads for bodies, which may all be busy."""
        self._late_committer = Pulse(self._commit_late, "stepwell-late", SOON_SECONDS)
        self._trouble: StoreError | None = None
        self._wake = threading.Event()
        self._limits_changed = threading.Event()
        self._timekeeper: threading.Thread | None = None
        self._quiet = threading.Condition(self._lock)
        self._pulse = Pulse(self._store_lines, "stepwell-lines")
        self.desk.lines.wake = self._pulse.wake
        self._bodies = BodyThreads(limits.threads, self, lambda: self.desk.count("thread"))
        self._loop = LoopThread(self._begins_elsewhere, self._settled_elsewhere)
        self._processes: ProcessBodies | None = None
        self._attempts: dict[Held, Attempt] = {}
        self._closed = False
        self._finished = False
        self._guarded = guarded
        self._ledger = Ledger(store, self._submit_from_a_body)
        self._lease = Lease(
            store,
            worker,
            lease_seconds,
            holding=self._holding,
            on_held=self._leased,
            on_stop=self.stop,
            versions=versions,
        )
        self._housekeeper = threading.Thread(target=self._keep_house, name="stepwell-housekeeping", daemon=True)

    # What the engine asks of it

    def start(self) -> None:
        self._lease.start()
        self._housekeeper.start()
        open_ears()

    def submit(self, ops: list[Op], facts: tuple[RunFacts, ...] = ()) -> list[Receipt]:
        """Commit these ops together with whatever else is waiting, and return their receipts."""
        return self._submit(ops, facts, self.pump)

    def _submit_from_a_body(self, ops: list[Op]) -> list[Receipt]:
        """The same, committed elsewhere: what follows from a commit is not for the thread of a body to do."""
        return self._submit(ops, (), self._committer.wake)

    def _submit(self, ops: list[Op], facts: tuple[RunFacts, ...], commit: Callable[[], object]) -> list[Receipt]:
        ready = threading.Event()
        submission = Submission(ops, facts, done=ready.set)
        with self._lock:
            if self._closed:
                raise EngineClosed("the engine is closed")
            self.desk.submit(submission)
        commit()
        while not ready.wait(1.0):
            if self._finished:
                raise EngineClosed("the engine was closed")
        if submission.error is not None:
            raise submission.error
        assert submission.receipts is not None
        return submission.receipts

    def announce(self) -> None:
        """Tell others which versions of which workflows are here."""
        self._lease.announce()

    def know(self, facts: RunFacts) -> None:
        with self._lock:
            self.desk.know(facts)
        self.pump()

    def hungry(self, runs: Iterable[RunId]) -> None:
        with self._lock:
            self.desk.hungry(runs)
        self.pump()

    def serve(self, pairs: Mapping[tuple[str, str], frozenset[str]]) -> None:
        """Work for these (workflow, digest) pairs, whoever started the runs."""
        with self._lock:
            self.desk.serves = dict(pairs)
            self.desk.look_around()
        self.pump()

    def look_around(self) -> None:
        with self._lock:
            self.desk.look_around()
        self.pump()

    def suspects_possible(self) -> None:
        with self._lock:
            self.desk.suspects_possible()
        self.pump()

    def stop(self, attempts: Iterable[AttemptId]) -> None:
        """Ask these attempts to stop."""
        with self._lock:
            wanted = [self.desk.held[attempt] for attempt in attempts if attempt in self.desk.held]
            wanted = [held for held in wanted if not held.stop]
            for held in wanted:
                held.stop = True
        for held in wanted:
            _interrupt(held)

    def stop_run(self, run_id: RunId) -> None:
        with self._lock:
            attempts = [held.attempt for held in self.desk.held.values() if held.facts.run_id == run_id]
        self.stop(attempts)

    def wake(self) -> None:
        """There may be something to do before the next chore is due."""
        self._wake.set()

    def sweep_in(self, microseconds: int) -> None:
        """Something becomes due then."""
        with self._lock:
            self.chores.sweep_by(self.now() + microseconds)
        self._wake.set()

    def metrics(self) -> EngineMetrics:
        with self._lock:
            if self._ended:
                self._hear_of_ended()
                self.commit_soon()  # who ended it may have found nothing to commit
            return snapshot(self.desk, self._lease, self.now())

    @property
    def busy(self) -> bool:
        return bool(self.desk.held)

    @property
    def idle(self) -> bool:
        with self._lock:
            return self.desk.idle

    # Group commit

    def pump(self, *, keep: bool = False) -> Held | None:
        """Commit what there is to commit, unless somebody does; `keep`: return one body for this thread to run."""
        if not keep:
            self._asked = True
        kept: Held | None = None
        while (flight := self._next_flight()) is not None:
            if kept is not None:
                self._bodies.put_back(kept)
                kept = None
            landing = self._commit(flight)
            if landing is not None:
                kept = self._land(landing, keep=keep)
                if landing.enough and kept is not None and not (self._asked or self._ended):
                    break
            elif not self._asked:  # who asked while it led, and was not told, waits for the next
                return None
        # Not before: a listener that starts a run waits for a commit, and nobody else would send this one.
        self._tell_pressure()
        return kept

    def commit_soon(self) -> None:
        self._late_committer.wake()

    def _commit_late(self) -> None:
        if self._leading.locked():
            self.commit_soon()  # it is not asked to go on at once: what ended since it began is little
        else:
            self.pump()

    def _next_flight(self) -> Flight | None:
        """What this thread has to commit, which then leads until that has landed."""
        while self._leading.acquire(blocking=False):
            flight = None
            try:
                with self._lock:
                    # What bodies ended with waits a moment while more are at hand, unless somebody asks for a commit.
                    if self._asked or not self._bodies.waiting:
                        self._asked = False
                        self._hear_of_ended()
                    flight = None if self._finished else self.desk.next_flight(self.now())
            finally:
                if flight is None:
                    self._leading.release()
            if flight is not None:
                return flight
            if not self._asked:
                break
        if self._ended:
            self.commit_soon()  # it was left for a moment, here or by who leads
        return None

    def _hear_of_ended(self) -> None:
        """Tell the desk which bodies have ended. The lock is held."""
        now = self.now()
        for _ in range(len(self._ended)):
            held, settlement = self._ended.popleft()
            if not held.over:
                self.desk.finished(held, settlement, now)

    def _commit(self, flight: Flight) -> Landing | None:
        """Leads no longer when it returns. None: the store did not take it."""
        try:
            receipts = self._store.commit(flight.ops)
            self._meet_strangers(receipts)
            prick_ears()
            with self._lock:
                landing = self.desk.landed(flight, receipts, self.now())
                # Before anybody else leads or closes: they begin in the order of claims, and what is not to begin is found.
                self._bodies.add([held for held in landing.begin if held.spec.body == "thread"])
                for held, _, _ in landing.settled:
                    self._attempts.pop(held, None)
                landing.enough = self.desk.quiet
                if self._closed or self.desk.idle:
                    self._quiet.notify_all()
            return landing
        except StoreError as error:
            self._fell(flight, error)
        except Exception as error:
            log.exception("the store failed in an unexpected way")
            self._fell(flight, StoreError(f"the store failed in an unexpected way: {error!r}"))
        except BaseException as error:  # Ctrl-C in the thread that started a run
            self._fell(flight, StoreError(f"a commit was interrupted: {error!r}"))
            raise
        finally:
            self._leading.release()
        return None

    def _tell_pressure(self) -> None:
        """In order, and one thread at a time; a listener may ask anything of the engine, so no lock of the desk is held."""
        news = self.desk.pressure.news
        while news and self._telling.acquire(blocking=False):
            try:
                while news:
                    self._on_pressure(news.popleft())
            finally:
                self._telling.release()

    def _land(self, landing: Landing, *, keep: bool) -> Held | None:
        """Carry out what follows from a commit."""
        if self._trouble is not None:
            self._trouble = None
            self._on_trouble(None)
        for submission in landing.answered:
            submission.done()
        kept = self._begin(landing.begin, keep=keep) if landing.begin else None
        if landing.settled:
            self._after_settling(landing)
        if landing.lease_lost:
            self._lease.lost()
        return kept

    def _after_settling(self, landing: Landing) -> None:
        self._on_settled(landing.settled)
        news = landing.news.values()
        if all(run.gate is GateState.OPEN for run in news):  # they go on: nothing to forget, to stop or to finish
            self._on_news(news)
        else:
            self.spread(news)
        delays = [op.delay for _, op, ok in landing.settled if op.delay is not None and ok]
        if delays:
            self.sweep_in(min(delays) + 500)

    def spread(self, news: Iterable[RunNews]) -> None:
        """Tell those who wait, and finish what a closed gate is held for."""
        with self._lock:
            broken = {gate.run_id: gate for gate in self.desk.heard(news)}
            # Named one by one, before anybody can retry the run: what is started then is not to be stopped.
            held = self.desk.held.values() if broken else ()
            running = [each.attempt for each in held if each.facts.run_id in broken]
        if running:
            self.stop(running)
        for gate in broken.values():
            self._finish_gate(gate)
        self._on_news(news)

    def _fell(self, flight: Flight, error: StoreError) -> None:
        """The store did not take the batch. It is sent again by the housekeeper; those who wait are told now."""
        with self._lock:
            told = self.desk.fell(flight, error)
        for submission in told:
            submission.done()
        if self._trouble is None:
            log.warning("the store refuses to commit; it is tried again until it does not: %s", error)
        self._trouble = error
        self._on_trouble(error)

    def _meet_strangers(self, receipts: list[Receipt]) -> None:
        """Runs that others started and this worker was granted nodes of: learn what they are."""
        for receipt in receipts:
            if type(receipt) is Claimed:
                for run in {grant.run_id for grant in receipt.grants if not self.desk.knows(grant)}:
                    try:
                        facts = self._find_facts(run)
                    except StoreError:
                        raise
                    except Exception as error:
                        log.warning("run %s was granted and cannot be served; it is given back: %s", run, error)
                        continue
                    with self._lock:
                        self.desk.know(facts)

    # Bodies

    def _begin(self, begin: list[Held], *, keep: bool) -> Held | None:
        threads = sum(held.spec.body == "thread" for held in begin)
        if threads != len(begin):
            on_loop = [self.attempt(held) for held in begin if held.spec.body == "loop"]
            if on_loop:
                self._loop.begin(on_loop)
            for held in begin:
                if held.spec.body == "process":
                    self._process_bodies().put(self.attempt(held))
        return self._bodies.begin(threads, keep=keep)

    def attempt(self, held: Held) -> Attempt:
        return Attempt(
            held, self._read_outputs, self.desk.lines, self._read_frozen_at, self._ledger, guarded=self._guarded
        )

    def go_on(self, attempt: Attempt, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._loop.go_on(attempt, coroutine)

    def begins(self, attempt: Attempt) -> bool:
        """Whoever has taken a body out of those that are ready has it alone, so most need no lock."""
        held = attempt.held
        if held.spec.timeout is not None or held.unwanted():
            return self._begins(attempt)
        held.begun = True
        return True

    def ended(self, held: Held, settlement: Settle) -> bool:
        if held.spec.timeout is None:
            self._ended.append((held, settlement))
            if held.spec.on_lost == "interrupt":
                self._asked = True
            return False
        with self._lock:
            if not held.over:
                self.desk.finished(held, settlement, self.now())
                self._asked = True
                return False
            return self._came_back(held)

    def went_on(self, held: Held) -> bool:
        if held.spec.timeout is None:
            return False
        with self._lock:
            return self._came_back(held)

    def _came_back(self, held: Held) -> bool:
        """Whether the thread of a body was taken for lost. The lock is held."""
        if held.runaway:
            self._bodies.find_again()
            self.desk.stalled = self._bodies.lost >= MAX_RUNAWAYS
        return held.runaway

    def _store_lines(self) -> None:
        with self._lock:
            self.desk.lines.ripen()
        self.pump()

    def _begins(self, attempt: Attempt) -> bool:
        """Whether this body may begin now. Under the lock: what closing gives back must not begin any more."""
        held = attempt.held
        with self._lock:
            if held.unwanted():
                if not held.over:
                    self.desk.finished(held, settle(held, settling.CANCELLED), self.now())
                    self._asked = True
                return False
            held.begun = True
            if held.spec.timeout is not None:
                self._attempts[held] = attempt
                self.chores.time_limit(held, self.now() + microseconds(held.spec.timeout))
                self._limits_changed.set()
                if self._timekeeper is None:
                    self._timekeeper = threading.Thread(target=self._keep_time, name="stepwell-time", daemon=True)
                    self._timekeeper.start()
            return True

    def _begins_elsewhere(self, attempt: Attempt) -> bool:
        begins = self._begins(attempt)
        if not begins:
            self._committer.wake()
        return begins

    def _settled_elsewhere(self, held: Held, settlement: Settle) -> None:
        """A body on the loop or in a process has ended: let a thread of ours commit it."""
        self._ended.append((held, settlement))
        self._committer.wake()

    def _end_overdue(self, items: list[Held]) -> None:
        """Their time is up: settle them now; whatever their bodies still do is not recorded."""
        for held in items:
            with self._lock:
                self._hear_of_ended()  # or what ended in time on the loop or in a process would be too late
                attempt = self._attempts.get(held)
                if held.over or attempt is None:
                    continue
                self.desk.finished(held, attempt.timed_out(), self.now())
                if held.spec.body == "thread" and held.interrupt is None:
                    held.runaway = True
                    self._bodies.lose()
                    self.desk.stalled = self._bodies.lost >= MAX_RUNAWAYS
                    log.warning(
                        "node %r of run %s did not end within %g s; a thread cannot be killed, so its body goes on without "
                        'being recorded (isolation="process" would end it)',
                        held.spec.name,
                        held.facts.run_id,
                        held.spec.timeout,
                    )
            _interrupt(held)
        if items:
            self._bodies.call(0)  # a thread for each one that is lost, or what was claimed ahead would wait for it
            self._committer.wake()

    def _keep_time(self) -> None:
        """Ends bodies whose time is up. In a thread of its own: all others may be waiting for the store."""
        while not self._closed:
            with self._lock:
                at = self.chores.next_limit()
            self._limits_changed.wait(None if at is None else max(0, at - self.now()) / 1_000_000)
            self._limits_changed.clear()
            with self._lock:
                overdue = self.chores.overdue(self.now())
            self._end_overdue(overdue)

    def _process_bodies(self) -> ProcessBodies:
        if self._processes is None:
            from .process import ProcessBodies

            self._processes = ProcessBodies(self.desk.limits.processes, self._begins_elsewhere, self._settled_elsewhere)
        return self._processes

    def _read_frozen_at(self, run_id: RunId) -> float | None:
        try:
            row = reader.get_run(self._store, run_id)
        except StoreError:  # whoever reads the message can do without
            return None
        return None if row is None else row.created_at / SECOND

    def _read_outputs(self, run_id: RunId, indexes: tuple[int, ...]) -> Mapping[int, bytes]:
        return reader.get_stored_outputs(self._store, run_id, indexes)

    # Housekeeping

    def now(self) -> int:
        return time.monotonic_ns() // 1_000

    def _leased(self) -> None:
        """The lease is held. If it was not, there may be work that could not be claimed."""
        with self._lock:
            regained, self.desk.leased = not self.desk.leased, True
        if regained:
            self._wake.set()

    def _holding(self) -> tuple[AttemptId, ...] | None:
        with self._lock:
            return self.desk.holding()

    def _keep_house(self) -> None:
        while True:
            with self._lock:
                pause = self.chores.next_at(self.now(), busy=self.busy) - self.now()
            self._wake.wait(max(0.0, pause / 1_000_000))
            self._wake.clear()
            if self._closed:
                return self._finish_gates()
            try:
                with self._lock:
                    due = self.chores.due(self.now(), busy=self.busy)
                self._end_overdue(due.overdue)
                carry_out(self._store, self._do_chores(due))
                self.pump()
            except StoreError as error:
                log.warning("housekeeping: %s", error)
                self._wake.wait(0.5)
            except Exception:
                log.exception("housekeeping failed; it goes on")
                self._wake.wait(0.5)

    # The end

    def close(self, timeout: float) -> None:
        """Let bodies end for a while, then give back what did not; nothing is lost either way."""
        with self._lock:
            self.desk.close(self.now())
        self._give_back_unbegun()
        self._wait_until_quiet(timeout)
        self._give_back_all()
        self._wait_until_quiet(SETTLE_SECONDS)
        with self._lock:
            self._closed = True
        self._wake.set()
        self._limits_changed.set()
        self._pulse.close()
        self._lease.close()
        self._committer.close()
        self._late_committer.close()
        self._bodies.close()
        self._loop.close()
        if self._processes is not None:
            self._processes.close()
        if self._housekeeper.is_alive() and threading.current_thread() is not self._housekeeper:
            self._housekeeper.join(5)
        self._finished = True
        close_ears()
        try:
            self._store.commit([Dismiss(self.desk.worker)])
        except StoreError as error:
            log.warning("could not sign off; the lease will run out instead: %s", error)

    def _wait_until_quiet(self, seconds: float) -> None:
        """Until everything is settled; a store that takes nothing is not waited for."""
        deadline = time.monotonic() + seconds
        with self._lock:
            while not self.desk.idle and self._trouble is None and time.monotonic() < deadline:
                self._quiet.wait(min(0.05, max(0.0, deadline - time.monotonic())))

    def _finish_gates(self) -> None:
        """The last chore: a run that failed while the engine closed should not look as if it were running."""
        try:
            carry_out(self._store, self._do_chores(Due(False, False, False, [])))
        except StoreError as error:
            log.warning("housekeeping: %s", error)

    def _give_back_unbegun(self) -> None:
        with self._lock:
            found = [held for held in self.desk.held.values() if held.spec.body != "thread" and not held.begun]
            while (held := self._bodies.take()) is not None:
                found.append(held)
            for held in found:
                if not held.over:
                    self.desk.finished(held, settle(held, settling.RELEASED), self.now())
        self.pump()

    def _give_back_all(self) -> None:
        with self._lock:
            self._hear_of_ended()
            for held in [*self.desk.held.values()]:
                self.desk.finished(held, settle(held, settling.lost(held.spec)), self.now())
        self.pump()


def _interrupt(held: Held) -> None:
    interrupt = held.interrupt  # its body may end at this moment
    if interrupt is not None:
        interrupt()
