"""The local runner: carries out, in this process, what the scheduler decides.

Only this layer of the runner has threads and clocks: bodies run in `bodies.py`, their settlements are committed in groups
(`group_commit.py`), the lease is kept in `lease.py`, and regular duties are done in `housekeeper.py`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...base.clock import SECOND
from ...base.ids import AttemptId, Digest, RunId, WorkerId, new_claim_id
from ...core.graph import Graph
from ...core.kernel import settling
from ...core.model import Dismiss, GateState, HeldGate, Lane, RunNews, RunRow, Settle
from ...core.store import Store
from ...errors import StoreError, StoreReplaced
from ..bodies.attempt import settle
from ..bodies.capture import start_capture, stop_capture
from ..bodies.held import Held, RunFacts
from ..bodies.kinds import Limits
from ..scheduling.batches import CommitResult
from ..scheduling.metrics import EngineMetrics
from ..scheduling.pressure import BackpressureEvent
from ..scheduling.scheduler import Scheduler
from .bodies import WorkerBodies
from .children import ChildPort
from .group_commit import GroupCommit, now
from .housekeeper import Housekeeper
from .lease import Lease
from .sharing import Driving, Others
from .timetable import Due, Timetable

if TYPE_CHECKING:
    from .duties import Follower

log = logging.getLogger("stepwell")

CONTENDED_SECONDS = 0.01
"""After this time a claim that skipped runs locked by other workers is made again: about as long as a commit takes."""
LINES_SECONDS = 0.4
"""How long output of a body waits before it is stored."""
SUSPECTS_EVERY = 4 * SECOND
"""Microseconds. A hint makes the worker look for suspects at most this often; whoever sweeps looks for them at once."""
SETTLE_SECONDS = 5.0
"""How long closing waits for the settlements of bodies that have ended or were given back."""


class LocalRunner:
    def __init__(
        self,
        store: Store,
        worker: WorkerId,
        limits: Limits,
        lease_seconds: float,
        *,
        versions: Callable[[], list[tuple[str, Digest]]],
        find_facts: Callable[[RunId, RunRow | None], RunFacts],
        on_news: Callable[[Iterable[RunNews]], None],
        on_trouble: Callable[..., None],
        on_pressure: Callable[[BackpressureEvent], None],
        follower: Callable[[], Follower],
        discover: Callable[[], None],
        waited: Collection[RunId],
        graphs: Callable[[Digest], Graph | None],
        children: ChildPort,
        lacks: Callable[[], list[tuple[str, str, str]]] = list,
        queues: frozenset[str] | None = None,
        guarded: bool = False,
    ) -> None:
        self._store = store
        self._find_facts, self.tell_trouble = find_facts, on_trouble
        self._on_news, self._on_pressure = on_news, on_pressure
        self._telling, self._lock = threading.Lock(), threading.Lock()
        self._follower = follower
        self.scheduler = Scheduler(worker, limits, new_claim_id, queues, store.limits)
        self.timetable = Timetable()
        self._commits = GroupCommit(store, self.scheduler, self._lock, self)
        self.pump, self.submit, self.commit_soon = self._commits.pump, self._commits.submit, self._commits.soon
        self._quiet = threading.Condition(self._lock)
        self.scheduler.lines.wake = self._commits.calls.add(self._store_lines, LINES_SECONDS).wake
        self._suspects_at = -SUSPECTS_EVERY
        self._look_again_soon = self._commits.calls.add(self._look_again, CONTENDED_SECONDS).wake
        self._house = Housekeeper(
            store,
            worker,
            queues,
            self.timetable,
            self._lock,
            self,
            follower=follower,
            discover=discover,
            waited=waited,
            graphs=graphs,
        )
        self.wake, self.wake_gates = self._house.wake, self._house.gates.wake
        self.discover_soon = self._house.discovery.wake
        self._others = Others(store, self.scheduler, self._lock) if store.needs_hints else None
        self._replaced = threading.Event()
        self.stopped: StoreReplaced | None = None
        """Why it has given up for good: its store was replaced."""
        self._bodies = WorkerBodies(
            store,
            self.scheduler,
            self._lock,
            self._commits,
            self.timetable,
            settled_apart=self._settled_apart,
            pause=self._house.pause,
            gave_up=self._replaced,
            guarded=guarded,
            children=children,
            graphs=graphs,
        )
        self.put_back, self.loop_bodies = self._bodies.threads.put_back, self._bodies.loop
        self.call_if_stuck = self._bodies.threads.call_if_stuck
        self._driving = Driving(
            self.scheduler,
            self._lock,
            self._quiet,
            self._bodies.threads,
            pump=self.pump,
            tell_others=lambda: None if self._others is None else self._others.tell_again(),
            gave_up=self._replaced.is_set,
        )
        self.rest, self.work_off = self._driving.rest, self._driving.work_off
        self.wait_until_idle = self._driving.wait_until_idle
        self._closed = False
        self._lease = Lease(
            store,
            worker,
            lease_seconds,
            holding=self._holding,
            on_held=self._leased,
            on_stop=self.stop,
            on_replaced=self.store_replaced,
            versions=versions,
            lacks=lacks,
            queues=queues,
        )

    # Called by the engine

    def start(self) -> None:
        self._lease.start()
        self._house.start()
        start_capture()

    def announce(self) -> None:
        """Tell others which versions of which workflows this worker has."""
        self._lease.announce()

    def know(self, facts: RunFacts) -> None:
        with self._lock:
            self.scheduler.know(facts)
        self.pump()

    def mark_ready(self, runs: Iterable[RunId]) -> None:
        named = tuple(runs)
        with self._lock:
            self.scheduler.mark_ready(named)
        self.pump()
        if named:
            self._driving.found_work()

    def serve(self, pairs: Mapping[tuple[str, str], frozenset[Lane]]) -> None:
        """Work for these (workflow, digest) pairs, whoever started the runs."""
        with self._lock:
            self.scheduler.serves = dict(pairs)
            suspects = now() - self._suspects_at >= SUSPECTS_EVERY
            if suspects:
                self._suspects_at = now()
            self.scheduler.look_around(suspects=suspects)
        self.pump()
        if pairs:
            self._driving.found_work()

    def look_around(self) -> None:
        with self._lock:
            self.scheduler.look_around()
        self.pump()
        self._driving.found_work()

    def look_for_suspects(self) -> None:
        with self._lock:
            self.scheduler.look_for_suspects()
        self.pump()

    def drain(self) -> None:
        with self._lock:
            self.scheduler.drain(now())
        self.pump()

    def stop(self, attempts: Iterable[AttemptId]) -> None:
        """Ask these attempts to stop."""
        with self._lock:
            wanted = [self.scheduler.held[attempt] for attempt in attempts if attempt in self.scheduler.held]
            wanted = [held for held in wanted if not held.stop]
            for held in wanted:
                held.stop = True
        for held in wanted:
            held.make_stop()

    def stop_run(self, run_id: RunId) -> None:
        with self._lock:
            attempts = [held.attempt for held in self.scheduler.held.values() if held.facts.run_id == run_id]
        self.stop(attempts)

    def on_surplus(self, tell: Callable[[str, int], None]) -> None:
        """Call `tell(queue, count)` now and then while more nodes are READY than this process takes."""
        self._others = Others(self._store, self.scheduler, self._lock, tell)

    @property
    def runaways(self) -> int:
        """How many threads are still occupied by a body that has overrun its time limit."""
        return self._bodies.threads.lost

    def describe(self, **about: Any) -> None:
        """Set what others are told about this worker, besides what it serves, at its start and at each announcement."""
        self._lease.about = about

    def sweep_in(self, microseconds: int) -> None:
        """Sweep then, because something becomes due."""
        with self._lock:
            self.timetable.sweep_by(now() + microseconds)
        self.wake()

    def metrics(self) -> EngineMetrics:
        with self._lock:
            if self._commits.collect_ended():
                self.commit_soon()  # the threads that ended them may have found nothing to commit
            lease = self._lease.state
            return self.scheduler.metrics(now(), renewals=lease.renewals, leases_lost=lease.losses)

    def settling(self) -> Iterable[Held]:
        """The attempts that the commit in flight settles. Called by the thread that leads it."""
        return (*self.scheduler.settling, *self._bodies.in_transactions.copy().values())

    @property
    def busy(self) -> bool:
        return bool(self.scheduler.held)

    @property
    def idle(self) -> bool:
        with self._lock:
            return self.scheduler.idle

    # After a commit

    @property
    def bodies_wait(self) -> bool:
        return self._bodies.threads.waiting

    def find_facts(self, run_id: RunId, row: RunRow | None) -> RunFacts:
        facts = self._find_facts(run_id, row)
        if self._others is not None:
            self._others.took(run_id)
        return facts

    def committed(self, result: CommitResult) -> None:
        # Under the lock: bodies begin in the order of claims, and closing finds those that must not begin.
        self._bodies.add(result)
        self._notice_quiet()

    def _notice_quiet(self) -> None:
        if self._closed or self.scheduler.idle:
            self._quiet.notify_all()

    def store_replaced(self, error: StoreReplaced) -> None:
        """The contents of the store are gone or were replaced: log it once, stop all bodies, and commit nothing more."""
        with self._lock:
            if self._replaced.is_set():
                return
            self.stopped = error
            self._replaced.set()
            self._commits.give_up(error)
            held = [*self.scheduler.held]
        log.error("this worker stops: %s", error)
        self.stop(held)
        self.tell_trouble(error)
        self._house.close()
        self._lease.stop()

    def tell_pressure(self) -> None:
        """One thread at a time, so that listeners get events in order."""
        news = self.scheduler.pressure.news
        while news and self._telling.acquire(blocking=False):
            try:
                while news:
                    self._on_pressure(news.popleft())
            finally:
                self._telling.release()

    def act_on(self, result: CommitResult, *, keep: bool) -> Held | None:
        kept = self._bodies.begin(result.begin, keep=keep) if result.begin else None
        if result.settled:
            self._after_settling(result)
        if result.lease_lost:
            self._lease.lost()
        if result.contended:
            self._look_again_soon()
        if self._others is not None:
            self._others.tell(result)
        return kept

    def _settled_apart(self, result: CommitResult) -> None:
        with self._lock:
            self._notice_quiet()
        self.act_on(result, keep=False)
        if not result.settled:
            self.handle_news(result.news.values())

    def _after_settling(self, result: CommitResult) -> None:
        news = result.news.values()
        for held, op, recorded in result.settled:
            if op.child is not None:
                self._handed_over(held, op, recorded)
        for run in news:
            if run.gate is not GateState.OPEN:
                self.handle_news(news)
                break
        else:  # all of them go on: nothing to forget, stop or finish
            self._on_news(news)
        if result.delays:
            self.sweep_in(min(result.delays) + 500)

    def _handed_over(self, held: Held, op: Settle, recorded: bool) -> None:
        """Work on the run that performs a node of an attempt, or settle the attempt again if that could not be created."""
        facts = held.child
        assert facts is not None
        assert op.child is not None
        if not recorded:
            again = self._bodies.children.again(held, op)
            with self._lock:
                self.scheduler.settle_again(held, again)
            self.commit_soon()
            return
        with self._lock:
            self.scheduler.know(facts)
        if len(facts.graph) > self._store.limits.nodes:
            self._follower().finish_gate(HeldGate(facts.run_id, "load", b""))
        if op.child.timeout is not None:
            self.sweep_in(op.child.timeout)
        self.commit_soon()

    def handle_news(self, news: Iterable[RunNews]) -> None:
        """Tell those who wait for these runs, and finish the work of gates that closed on a failure."""
        with self._lock:
            broken = {gate.run_id: gate for gate in self.scheduler.apply_news(news)}
            # List the attempts before anybody can retry the run: those started after that must not be stopped.
            held = self.scheduler.held.values() if broken else ()
            running = [each.attempt for each in held if each.facts.run_id in broken]
        if running:
            self.stop(running)
        for gate in broken.values():
            self._follower().finish_gate(gate)
        self._on_news(news)

    # Housekeeping

    def _look_again(self) -> None:
        with self._lock:
            self.scheduler.look_again()
        self._commits.wake()

    def _store_lines(self) -> None:
        with self._lock:
            self.scheduler.lines.mark_due()
        self._commits.wake()

    def now(self) -> int:
        return now()

    def _leased(self) -> None:
        """The lease is held. If it had been lost, there may be work that could not be claimed."""
        with self._lock:
            regained, self.scheduler.leased = not self.scheduler.leased, True
        if regained:
            self.wake()

    def _holding(self) -> tuple[AttemptId, ...] | None:
        with self._lock:
            return self.scheduler.holding()

    def end_overdue(self, due: Due) -> None:
        self._bodies.end_overdue(due.overdue)

    # Closing

    def close(self, timeout: float) -> None:
        """Wait up to `timeout` seconds for bodies to end, then give back the rest. Nothing is lost either way."""
        with self._lock:
            self.scheduler.close(now())
        self._give_back_unbegun()
        self._wait_until_quiet(timeout)
        self._give_back_all()
        self._wait_until_quiet(SETTLE_SECONDS)
        with self._lock:
            self._closed = True
            self._commits.close()
        self._bodies.close()
        self._house.close()
        self._lease.close()
        self._house.end()
        self._commits.finish()
        stop_capture()
        if self._replaced.is_set():  # the store does not know this worker any more
            return
        try:
            self._store.commit([Dismiss(self.scheduler.worker)])
        except StoreError as error:
            log.warning("this worker could not sign off; its lease will expire instead: %s", error)

    def _wait_until_quiet(self, seconds: float) -> None:
        """Wait until everything is settled, unless the store is in trouble."""
        deadline = time.monotonic() + seconds
        with self._lock:
            while not self.scheduler.idle and self._commits.trouble is None and time.monotonic() < deadline:
                self._quiet.wait(min(0.05, max(0.0, deadline - time.monotonic())))

    def _give_back_unbegun(self) -> None:
        with self._lock:
            for held in self._bodies.not_begun():
                if not held.over:
                    self.scheduler.finished(held, settle(held, settling.RELEASED), now())
        self.pump()

    def _give_back_all(self) -> None:
        with self._lock:
            self._commits.collect_ended()
            for held in [*self.scheduler.held.values()]:
                self.scheduler.finished(held, settle(held, settling.lost(held.spec)), now())
        self.pump()
