"""A thread that does something now and then, as long as it is asked to."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from ...errors import StoreError

PULSE_SECONDS = 0.4
"""How long what a body says waits before it is stored."""

log = logging.getLogger("stepwell")


class Debounce:
    """Once woken, it waits a moment and acts: once, however often it was woken meanwhile. Starts when it is first needed.

    Bodies that end wake it all the time, so waking is one call of C, where an Event takes a dozen of Python.
    """

    def __init__(self, act: Callable[[], object], name: str, seconds: float = PULSE_SECONDS) -> None:
        self._act = act
        self._name = name
        self._seconds = seconds
        self._lock = threading.Lock()
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._asked = False
        """It was woken and has not acted since."""
        self._open = threading.Lock()
        """Held until it is closed."""
        self._open.acquire()
        self._closed = False
        self._last = False
        """It acts once more although it is closed."""
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        if not self._asked:
            self._asked = True
            self._calls.put(None)
            if self._thread is None:
                self._start()

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._open.release()
        self._calls.put(None)

    def end(self, seconds: float, *, last: bool = False) -> None:
        """Close it and wait so long for what it is doing; `last`: also for what it was asked for and has not begun."""
        self._last = last and self._asked
        self.close()
        with self._lock:  # one that is just being made has started by then
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        while not self._closed:
            self._calls.get()
            if self._open.acquire(timeout=self._seconds):
                break
            self._asked = False  # first: whoever wakes it from now on is not part of this
            self._try()
        if self._last:
            self._try()

    def _try(self) -> None:
        try:
            self._act()
        except StoreError as error:
            log.warning("%s: %s", self._name, error)
        except Exception:
            log.exception("%s failed; it goes on when it is asked again", self._name)
