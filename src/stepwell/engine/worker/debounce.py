"""A thread that acts shortly after it is woken, once for any number of wake-ups."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from ...errors import StoreError

PULSE_SECONDS = 0.4
"""How long output of a body waits before it is stored."""

log = logging.getLogger("stepwell")


class Debounce:
    """Waits a moment after it is woken, then acts once, however often it was woken meanwhile. The thread starts on first use.

    Every body that ends wakes it, so waking is one call into C, where an Event takes a dozen Python calls.
    """

    def __init__(self, act: Callable[[], object], name: str, seconds: float = PULSE_SECONDS, rounds: int = 0) -> None:
        self._act = act
        self._rounds = rounds
        """For this many times `seconds` its thread stays awake after it acted: it may be woken again soon."""
        self._name = name
        self._seconds = seconds
        self._lock = threading.Lock()
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._asked = False
        """It was woken and has not acted yet."""
        self._open = threading.Lock()
        """Held until it is closed."""
        self._open.acquire()
        self._closed = False
        self._last = False
        """Act once more although it is closed."""
        self._thread: threading.Thread | None = None
        self._awake = False
        """Its thread finds out by itself whether it was asked."""

    def wake(self) -> None:
        if not self._asked:
            self._asked = True
            if not self._awake:
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
        """Close it and wait up to `seconds` for the action under way. `last`: act once more if it was woken before."""
        self._last = last and self._asked
        self.close()
        with self._lock:  # a thread that is being created has started by then
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        left = 0
        while not self._closed:
            if not left:
                self._awake = False
                if not self._asked:
                    self._calls.get()
                self._awake = self._rounds > 0
            if self._open.acquire(timeout=self._seconds):
                break
            left = max(0, left - 1)
            if self._asked:
                while not self._calls.empty():
                    self._calls.get()
                self._asked = False  # first, so that a wake-up from now on causes another action
                self._try()
                left = self._rounds
        if self._last:
            self._try()

    def _try(self) -> None:
        try:
            self._act()
        except StoreError as error:
            log.warning("%s: %s", self._name, error)
        except Exception:
            log.exception("%s failed; it runs again at the next wake-up", self._name)
