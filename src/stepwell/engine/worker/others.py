"""Tells other processes after a commit which runs ended, whether there is more to do than this process takes, and which of
their runs it has taken, so that others who heard of these need not look."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ...base.ids import RunId
from ...core.model import GateState, Hint
from ...core.store import Store
from ..scheduling.batches import CommitResult
from ..scheduling.scheduler import Scheduler

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
