"""Wakes those who wait for a run."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

from ..ids import RunId
from ..model import RunNews, RunStatus


class Waiter:
    """One thread that waits for one run."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._error: BaseException | None = None
        self.completed = False
        """News said that the run has completed."""

    def wait(self, timeout: float | None) -> None:
        self._event.wait(timeout)
        self._event.clear()
        if self._error is not None:
            raise self._error

    def wake(self, error: BaseException | None = None, *, completed: bool = False) -> None:
        self._error, self.completed = error, completed
        self._event.set()


class LoopWaiter:
    """One coroutine that waits for one run, on the loop it runs on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._error: BaseException | None = None

    async def wait(self, timeout: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), timeout)
        self._event.clear()
        if self._error is not None:
            raise self._error

    def wake(self, error: BaseException | None = None, *, completed: bool = False) -> None:
        """From any thread."""
        self._error = error
        with contextlib.suppress(RuntimeError):  # its loop was closed
            self._loop.call_soon_threadsafe(self._event.set)


AnyWaiter = TypeVar("AnyWaiter", Waiter, LoopWaiter)


class Watch:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[RunId, list[Waiter | LoopWaiter]] = {}

    @contextlib.contextmanager
    def waiting(self, run_id: RunId, waiter: AnyWaiter) -> Iterator[AnyWaiter]:
        with self._lock:
            self._waiters.setdefault(run_id, []).append(waiter)
        try:
            yield waiter
        finally:
            with self._lock:
                self._waiters[run_id].remove(waiter)
                if not self._waiters[run_id]:
                    del self._waiters[run_id]

    def runs(self) -> tuple[RunId, ...]:
        with self._lock:
            return tuple(self._waiters)

    def tell(self, news: Iterable[RunNews]) -> None:
        for run in news:
            if (run.status.terminal or run.status is RunStatus.PAUSED) and run.run_id in self._waiters:
                with self._lock:
                    for waiter in self._waiters.get(run.run_id, ()):
                        waiter.wake(completed=run.status is RunStatus.COMPLETED)

    def trouble(self, error: BaseException | None, runs: Collection[RunId] | None = None) -> None:
        """Raise an error in those who wait for these runs, or for any; None: the trouble is over."""
        with self._lock:
            for run_id, waiters in self._waiters.items():
                if error is not None and (runs is None or run_id in runs):
                    for waiter in waiters:
                        waiter.wake(error)
