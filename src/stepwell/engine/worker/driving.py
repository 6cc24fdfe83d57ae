"""A runner in a process that another program drives, such as Celery: it rests, and works when it is told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ...core.kernel import settling
from ..bodies.attempt import settle
from ..bodies.threads import BodyThreads
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
