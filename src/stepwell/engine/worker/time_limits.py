"""Time limits of bodies: when its time is up, an attempt is settled at once, whatever its body still does."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Mapping

from ...base.clock import LONGEST_WAIT, SECOND, microseconds
from ..bodies.attempt import Attempt
from ..bodies.executor import Executor
from ..bodies.held import Held
from ..scheduling.scheduler import Scheduler
from .group_commit import GroupCommit, now
from .timetable import Timetable

log = logging.getLogger("stepwell")

MAX_RUNAWAYS = 64
"""If this many threads are occupied by bodies that overran their time limit, nothing is claimed until some of them end."""


class Timekeeper:
    """Watches the time limits in a thread of its own, as all others may be waiting for the store. Started on first use."""

    def __init__(
        self,
        scheduler: Scheduler,
        lock: threading.Lock,
        timetable: Timetable,
        commits: GroupCommit,
        executors: Mapping[str, Executor],
    ) -> None:
        self._scheduler = scheduler
        self._lock = lock
        """The lock of the scheduler."""
        self._timetable = timetable
        self._commits = commits
        self._executors = executors
        self._attempts: dict[Held, Attempt] = {}
        self._changed = threading.Event()
        self._looks_at: float = math.inf
        """When the thread looks next. Only an earlier limit wakes it; else every body of a chain would."""
        self._thread: threading.Thread | None = None
        self._closed = False

    def begins(self, attempt: Attempt, seconds: float) -> None:
        """The time limit of this body starts now. The lock is held."""
        self._attempts[attempt.held] = attempt
        until = now() + microseconds(seconds)
        self._timetable.time_limit(attempt.held, until)
        if until < self._looks_at:
            self._looks_at = until
            self._changed.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="stepwell-time", daemon=True)
            self._thread.start()

    def forget(self, held: Held) -> None:
        """The attempt is settled. The lock is held."""
        self._attempts.pop(held, None)

    def came_back(self, held: Held) -> bool:
        """The thread of this body is free again. True if another thread has replaced it. The lock is held."""
        if held.runaway:
            self._executors[held.spec.body].came_back()
            self._count_lost()
        return held.runaway

    def _count_lost(self) -> None:
        self._scheduler.stalled = sum(executor.lost for executor in self._executors.values()) >= MAX_RUNAWAYS

    def end(self, items: list[Held]) -> None:
        """Settle attempts whose time is up. Whatever their bodies still do is not recorded."""
        for held in items:
            try:
                self._end(held)
            except Exception:  # the time of the others is up too
                log.exception("node %r of run %s could not be timed out", held.spec.name, held.facts.run_id)
        if items:
            for executor in [*self._executors.values()]:
                executor.replace()  # or what was claimed ahead would wait for them
            self._commits.wake()

    def _end(self, held: Held) -> None:
        with self._lock:
            self._commits.collect_ended()  # else bodies that ended in time on the loop or in a process would time out
            attempt = self._attempts.get(held)
            if held.over or attempt is None:
                return
            self._scheduler.finished(held, attempt.timed_out(), now())
            if self._executors[held.spec.body].overran(held):
                self._lose(held)
        held.make_stop()

    def close(self) -> None:
        self._closed = True
        self._changed.set()

    def _lose(self, held: Held) -> None:
        held.runaway = True
        self._count_lost()
        log.warning(
            "node %r of run %s did not end within %g s; a thread cannot be killed, so its body goes on without "
            'being recorded (isolation="process" would end it)',
            held.spec.name,
            held.facts.run_id,
            held.spec.timeout,
        )

    def _watch(self) -> None:
        while not self._closed:
            try:
                self._look()
            except Exception:  # the other limits must still be kept
                log.exception("checking time limits failed; it is tried again")
                time.sleep(0.1)

    def _look(self) -> None:
        with self._lock:
            at = self._timetable.next_limit()
            self._looks_at = math.inf if at is None else at
        self._changed.wait(None if at is None else min(LONGEST_WAIT, max(0, at - now()) / SECOND))
        self._changed.clear()
        with self._lock:
            overdue = self._timetable.overdue(now())
        self.end(overdue)
