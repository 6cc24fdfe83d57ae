"""Sharing work with other processes: hints after commits, and a runner that another program drives, such as Celery."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ...base.ids import RunId
from ...core.kernel import settling
from ...core.model import GateState, Hint
from ...core.store import Store
from ..bodies.attempt import settle
from ..bodies.threads import BodyThreads
from ..scheduling.batches import CommitResult
from ..scheduling.scheduler import Scheduler
from .group_commit import now

STUCK_SECONDS = 0.25
"""If no body ends for this long, what was claimed ahead is given back, so that other processes can take it."""
LOOK_SECONDS = 0.05


class Driving:
    def __init__(
        self,
        scheduler: Scheduler,
        lock: threading.Lock,
        quiet: threading.Condition,
        bodies: BodyThreads,
        *,
        pump: Callable[[], object],
        tell_others: Callable[[], None],
        gave_up: Callable[[], bool],
    ) -> None:
        self._scheduler, self._lock, self._quiet, self._bodies = scheduler, lock, quiet, bodies
        self._pump, self._tell_others, self._gave_up = pump, tell_others, gave_up
        self._on_found: Callable[[], None] = lambda: None

    def rest(self, on_found: Callable[[], None] = lambda: None) -> None:
        """Claim nothing until `work_off` is called. `on_found` is called when there may be something to claim."""
        with self._lock:
            self._scheduler.resting = True
            self._on_found = on_found

    def found_work(self) -> None:
        """Report that there may be something to claim."""
        if self._scheduler.resting:
            self._on_found()

    def work_off(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Work until nothing served here is READY, `seconds` are over or `until()` holds; then rest. True if none is left."""
        scheduler = self._scheduler
        deadline = time.monotonic() + seconds
        with self._lock:
            scheduler.resting = False
            scheduler.look_around()
            scheduler.mark_ready([*scheduler.facts])
        self._pump()
        self._wait(
            lambda: (scheduler.idle and scheduler.quiet) or scheduler.closing or self._gave_up() or until(), deadline
        )
        with self._lock:
            scheduler.resting = True
            return scheduler.idle and scheduler.quiet and not scheduler.closing

    def wait_until_idle(self, seconds: float) -> bool:
        """Wait up to `seconds` until no body runs and nothing has to be settled. True if that is so."""
        self._wait(lambda: self._scheduler.idle, time.monotonic() + seconds)
        with self._lock:
            return self._scheduler.idle

    def _wait(self, over: Callable[[], bool], deadline: float) -> None:
        """Wait until `over()`. What was claimed ahead and is stuck behind a long body is given back for others to take."""
        moved, since = (-1, -1), 0.0
        while True:
            with self._lock:
                if over() or time.monotonic() >= deadline:
                    return
                self._quiet.wait(min(LOOK_SECONDS, max(0.0, deadline - time.monotonic())))
                counters = self._scheduler.counters
                now_at = (counters.settled, self._bodies.count_waiting)
                if now_at != moved or not self._bodies.waiting:
                    moved, since = now_at, time.monotonic()
            if time.monotonic() - since >= STUCK_SECONDS:
                self._give_back_waiting()
            self._tell_others()

    def _give_back_waiting(self) -> None:
        with self._lock:
            while (held := self._bodies.take()) is not None:
                if not held.over:
                    self._scheduler.finished(held, settle(held, settling.RELEASED), now())
        self._pump()


TELL_FIRST, TELL_LATER = 0.05, 1.6
"""Seconds between two hints of surplus work. The pause grows as long as there is some."""
FEW_RUNS = 8
"""Up to this many taken runs are reported. If there are more, there is work for several processes."""


class Others:
    def __init__(
        self,
        store: Store,
        scheduler: Scheduler,
        lock: threading.Lock,
        on_surplus: Callable[[str, int], None] | None = None,
    ) -> None:
        self._store, self._scheduler, self._lock = store, scheduler, lock
        self._on_surplus = on_surplus
        self._told_at = -TELL_LATER
        self._pause = TELL_FIRST
        self._taken: list[RunId] = []

    def took(self, run_id: RunId) -> None:
        """This process works on a run that another one started. Others are told after the commit that granted it."""
        self._taken.append(run_id)

    def tell(self, result: CommitResult) -> None:
        """Send the hints after a commit. Nothing depends on them: a process that misses one looks by itself, later."""
        moved = tuple(run.run_id for run in result.news.values() if run.gate is not GateState.OPEN)
        if not self._scheduler.full:
            self._pause = TELL_FIRST
        taken, self._taken = self._taken, []
        self._tell(self._surplus(), moved, () if self._scheduler.full or len(taken) > FEW_RUNS else tuple(taken))

    def tell_again(self) -> None:
        """Send, between commits, the surplus that came too soon after an earlier hint."""
        self._tell(self._surplus(), ())

    def _tell(self, queues: dict[str, int], moved: tuple[RunId, ...], taken: tuple[RunId, ...] = ()) -> None:
        if self._store.needs_hints and (moved or queues or taken):
            self._store.send_hint(Hint(tuple(queues), moved, taken=taken, senders=(self._scheduler.worker,)))

    def _surplus(self) -> dict[str, int]:
        now = time.monotonic()
        if now - self._told_at < self._pause:
            return {}
        with self._lock:
            surplus = self._scheduler.waiting.surplus()
        self._pause = min(2 * self._pause, TELL_LATER) if surplus else TELL_FIRST
        if surplus:
            self._told_at = now
            for queue, count in surplus.items() if self._on_surplus is not None else ():
                self._on_surplus(queue, count)  # type: ignore[misc]
        return surplus
