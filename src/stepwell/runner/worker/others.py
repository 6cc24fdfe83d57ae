"""What other processes are told after a commit: that runs ended, and that there is more to do than this process takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ...ids import RunId
from ...model import GateState, Hint
from ...store import Store
from ..scheduling.batches import CommitResult
from ..scheduling.scheduler import Scheduler

TELL_FIRST, TELL_LATER = 0.05, 1.6
"""Seconds between two times that others are told of surplus work: more and more, as long as there is some."""


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

    def tell(self, result: CommitResult) -> None:
        """After a commit. Nothing depends on it: who is not told looks by itself, later."""
        moved = tuple(run.run_id for run in result.news.values() if run.gate is not GateState.OPEN)
        if not self._scheduler.full:
            self._pause = TELL_FIRST
        self._tell(self._surplus(), moved)

    def tell_again(self) -> None:
        """Between commits: what was not told with the last one, because it came too soon after another."""
        self._tell(self._surplus(), ())

    def _tell(self, queues: dict[str, int], moved: tuple[RunId, ...]) -> None:
        if self._store.needs_hints and (moved or queues):
            self._store.send_hint(Hint(tuple(queues), moved))

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
