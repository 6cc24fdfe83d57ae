"""`def` bodies: in threads, which also lead commits.

A thread that ends a body takes no lock. If other bodies are ready, it runs the next one, and the settlement is committed a
moment later, together with others. Otherwise the thread leads the commit itself and keeps one of the nodes that become ready.
So a chain never changes threads, and the nodes of a wide graph are not committed one by one.

Waking another thread takes longer than a short body does. So after a short one its thread runs a few others by itself; if one
of them takes long after all, another thread notices soon (`call_if_stuck`).
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Iterable

from ...base.memory import give_back
from ...core.model import Settle
from .attempt import leave_body
from .executor import Executor, WorkerPort
from .held import Held

SHORT_SECONDS = 0.0001
"""A body that ends sooner is over before another thread is awake."""
FEW = 3
"""After a short body its thread runs this many others by itself, and calls other threads only if one of them takes long."""


class BodyThreads(Executor):
    """Threads that run ready bodies in the order of claims. Started as needed."""

    kind = "thread"

    def __init__(self, worker: WorkerPort, limit: int) -> None:
        self._limit = limit
        self._worker = worker
        self._ready: deque[Held] = deque()
        """Bodies that have not begun. Whoever takes one, a thread that runs it or one that gives it back, alone owns it."""
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()
        """Each item wakes an idle thread, to look for ready bodies or to end."""
        self._lock = threading.Lock()
        self._count = 0
        self._short = False
        """Whether the body that ended last was a short one."""
        self._ended = self._ended_before = 0
        """How many bodies have ended, now and when `call_if_stuck` was asked for."""
        self.lost = 0
        self._closed = False

    @property
    def waiting(self) -> bool:
        """Whether any body is ready."""
        return bool(self._ready)

    @property
    def count_waiting(self) -> int:
        """How many bodies are ready and have not begun."""
        return len(self._ready)

    def add(self, held: Held) -> None:
        self._ready.append(held)

    def begin(self, bodies: list[Held], *, keep: bool) -> Held | None:
        kept = self.take() if keep else None
        others = len(bodies) - (kept is not None)
        if kept is not None and others <= FEW and self._short:
            if others:
                self._ended_before = self._ended
                self._worker.commit_soon()
        elif others:
            self.call(others)
        return kept

    def call_if_stuck(self) -> None:
        """Call more threads if bodies are ready and none has ended lately: what runs now is not short."""
        if self._ready:
            if self._ended == self._ended_before:
                self.call(len(self._ready))
            else:
                self._ended_before = self._ended
                self._worker.commit_soon()

    def put_back(self, held: Held) -> None:
        """Let another thread run this body. It goes to the front again."""
        self._ready.appendleft(held)
        self.call(1)

    def take(self) -> Held | None:
        """Remove and return the first ready body; None if there is none."""
        try:
            return self._ready.popleft()
        except IndexError:
            return None

    def take_back(self, held: Iterable[Held]) -> list[Held]:
        return [*iter(self.take, None)]

    def overran(self, held: Held) -> bool:
        """A thread cannot be killed. It is not counted on any more, unless its body goes on elsewhere."""
        if held.interrupt is not None:
            return False
        with self._lock:
            self.lost += 1
        return True

    def replace(self) -> None:
        self.call(0)

    def came_back(self) -> None:
        """The thread of the body ends, too."""
        with self._lock:
            self._count -= 1  # first: `call` reads both without the lock, and must not see one thread too many
            self.lost -= 1

    def call(self, count: int) -> None:
        """`count` bodies became ready. A thread runs all that it finds, so one wake-up per thread is enough."""
        for _ in range(min(count, self._limit)):
            self._calls.put(None)
        if self._count - self.lost >= self._limit:
            return
        with self._lock:
            wanted = min(self._worker.count(self.kind), self._limit) + self.lost - self._count
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
                leave_body()  # not between bodies, where it would cost as much again: output of an ended body is not recorded
                self._calls.get()
                held = self.take()
                continue
            began = time.monotonic()
            if self._run(held):
                self._worker.pump()
                return
            self._short = time.monotonic() - began < SHORT_SECONDS
            self._ended += 1
            # A body that runs at most once is settled at once: its worker could die in the moment it would wait.
            if self._ready and held.spec.on_lost != "interrupt":
                self._worker.commit_soon()
                held = self.take()
            else:
                held = self._worker.pump(keep=True)
                if held is None:
                    held = self.take()
            if self._worker.read_much():
                leave_body()
                give_back()

    def _run(self, held: Held) -> bool:
        """Run one body. True if it overran its time limit, and another thread has replaced this one."""
        attempt = self._worker.attempt(held)
        if not self._worker.begins_owned(attempt):
            return False
        ended = attempt.perform()
        if not isinstance(ended, Settle):
            return self._worker.go_on(attempt, ended)
        return self._worker.ended(held, ended)
