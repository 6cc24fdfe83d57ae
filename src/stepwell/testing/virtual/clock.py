"""Virtual time: it stands still while code runs and jumps when everything waits.

Bodies of a run overlap in it although they are called one after the other: each begins at the time of its claim.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from ...base.clock import SECOND


class TimeIsUp(BaseException):
    """Raised where a `def` body sleeps beyond its time limit."""


class VirtualClock:
    """Microseconds since 1970, as stores count them."""

    def __init__(self, start: int) -> None:
        self._now = start
        self.limit: int | None = None
        """When the time of the body that runs now is up."""
        self.expired = False
        """It was up."""

    def now(self) -> int:
        return self._now

    def set(self, at: int) -> None:
        self._now = at

    def sleep(self, seconds: float) -> None:
        """What `time.sleep` does in a body."""
        until = self._now + int(seconds * SECOND)
        if self.limit is not None and until > self.limit:
            self._now, self.expired = self.limit, True
            raise TimeIsUp
        self._now = until


@contextmanager
def sleeping_in(clock: VirtualClock) -> Iterator[None]:
    """While this lasts, `time.sleep` takes no time in this thread."""
    real, thread = time.sleep, threading.get_ident()

    def sleep(seconds: Any, /) -> None:
        (clock.sleep if threading.get_ident() == thread else real)(seconds)

    time.sleep = sleep
    try:
        yield
    finally:
        time.sleep = real


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer when nothing else is to be done.

    While it waits for something real, a thread or the network, its time is real time.
    """

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock
        self._in_threads = 0

    def time(self) -> float:
        return self._clock.now() / SECOND

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        future = super().run_in_executor(executor, func, *args)
        self._in_threads += 1
        future.add_done_callback(self._came_back)
        return future

    def _came_back(self, _: Any) -> None:
        self._in_threads -= 1

    def _run_once(self) -> None:
        own = 1  # a socket to itself, by which other threads wake it
        if self._in_threads > 0 or len(self._selector.get_map()) > own:  # type: ignore[attr-defined]
            began = time.monotonic()
            super()._run_once()  # type: ignore[misc]
            self._clock.set(self._clock.now() + int((time.monotonic() - began) * SECOND))
            return
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            # A little more, or rounding would leave the timer a moment in the future.
            due = int(self._scheduled[0]._when * SECOND) + 1  # type: ignore[attr-defined]
            self._clock.set(max(self._clock.now(), due))
        super()._run_once()  # type: ignore[misc]
