"""`def` bodies: in threads, which lead commits between them.

A thread that ends a body takes no lock for it. If others are ready it runs the next one, and what ended is committed a
moment later, with many of its kind; otherwise it leads the commit itself and keeps one of the nodes that became ready. So a
chain never changes threads, and a wide graph is not committed one by one.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from ...model import Settle
from .attempt import Attempt, leave_body
from .held import Held


class Runner(Protocol):
    """What the threads need of whoever holds the attempts."""

    def attempt(self, held: Held) -> Attempt: ...

    def begins(self, attempt: Attempt) -> bool:
        """Whether this body may begin now."""

    def ended(self, held: Held, settlement: Settle) -> bool:
        """A body has ended. True if it took so long that another thread has replaced the one it ran in."""

    def pump(self, *, keep: bool = False) -> Held | None:
        """Commit what there is, unless somebody does; `keep`: return one body for this thread to run."""

    def commit_soon(self) -> None:
        """Have what ended committed in a moment."""

    def go_on(self, attempt: Attempt, coroutine: Coroutine[Any, Any, Any]) -> None:
        """A body turned out to be a coroutine."""

    def went_on(self, held: Held) -> bool:
        """It did, and its thread is free again. True if another one has replaced that."""


class BodyThreads:
    """Threads that run what is ready, in the order of claims. Started as they are needed."""

    def __init__(self, limit: int, runner: Runner, held: Callable[[], int]) -> None:
        self._limit = limit
        self._runner = runner
        self._held = held
        """How many bodies for threads are held, ready and begun."""
        self._ready: deque[Held] = deque()
        """What has not begun. Who takes one out of it, a thread or somebody who gives it back, has it alone."""
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()
        """Makes a thread that has nothing to do look whether something is ready, or all is over."""
        self._lock = threading.Lock()
        self._count = 0
        self.lost = 0
        """Threads whose body did not end in time."""
        self._closed = False

    @property
    def waiting(self) -> bool:
        """Whether some body is ready."""
        return bool(self._ready)

    @property
    def count_waiting(self) -> int:
        """How many are ready and have not begun."""
        return len(self._ready)

    def add(self, items: list[Held]) -> None:
        """These are ready; `begin` should follow."""
        self._ready.extend(items)

    def begin(self, count: int, *, keep: bool) -> Held | None:
        """Have begun so many that were added. `keep`: but for the first that is ready, which is returned."""
        if not count:
            return None
        kept = self.take() if keep else None
        if kept is None or count > 1:
            self.call(count - (kept is not None))
        return kept

    def put_back(self, held: Held) -> None:
        """Somebody else has to begin this one; it was the first."""
        self._ready.appendleft(held)
        self.call(1)

    def take(self) -> Held | None:
        """The first that is ready."""
        try:
            return self._ready.popleft()
        except IndexError:
            return None

    def lose(self) -> None:
        """A thread is occupied for nobody knows how long."""
        with self._lock:
            self.lost += 1

    def find_again(self) -> None:
        """A thread that was lost ends."""
        with self._lock:
            self._count -= 1  # first: `call` looks at both without the lock, and must not see one thread too many
            self.lost -= 1

    def call(self, count: int) -> None:
        """So many became ready. Whoever is called runs all that it finds, so as many calls as threads are enough."""
        for _ in range(min(count, self._limit)):
            self._calls.put(None)
        if self._count - self.lost >= self._limit:
            return
        with self._lock:
            wanted = min(self._held(), self._limit) + self.lost - self._count
            wanted = 0 if self._closed else max(0, wanted)
            self._count += wanted
        for _ in range(wanted):
            threading.Thread(target=self._work, name="stepwell-body", daemon=True).start()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            count = self._count
        for _ in range(count):
            self._calls.put(None)

    def _work(self) -> None:
        held = self.take()
        while not self._closed:
            if held is None:
                leave_body()  # only here: between bodies it would cost as much again, and what is over is not recorded
                self._calls.get()
                held = self.take()
                continue
            if self._run(held):
                self._runner.pump()
                return
            # What promised to run at most once is not left for a moment in which its worker could die.
            if self._ready and held.spec.on_lost != "interrupt":
                self._runner.commit_soon()
                held = self.take()
            else:
                held = self._runner.pump(keep=True)
                if held is None:
                    held = self.take()

    def _run(self, held: Held) -> bool:
        """Run one body. True if it took so long that another thread has replaced this one."""
        attempt = self._runner.attempt(held)
        if not self._runner.begins(attempt):
            return False
        ended = attempt.perform()
        if not isinstance(ended, Settle):
            self._runner.go_on(attempt, ended)
            return self._runner.went_on(held)
        return self._runner.ended(held, ended)
