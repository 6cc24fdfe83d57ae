"""A thread that does something now and then, as long as it is asked to."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from ...errors import StoreError

PULSE_SECONDS = 0.4
"""How long what a body says waits before it is stored."""

log = logging.getLogger("stepwell")


class Debounce:
    """Once woken, it waits a moment and acts: once, however often it was woken meanwhile. Starts when it is first needed."""

    def __init__(self, act: Callable[[], object], name: str, seconds: float = PULSE_SECONDS) -> None:
        self._act = act
        self._name = name
        self._seconds = seconds
        self._lock = threading.Lock()
        self._asked = threading.Event()
        self._closed = threading.Event()
        self._last = False
        """It acts once more although it is closed."""
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        if not self._asked.is_set():
            self._asked.set()
            if self._thread is None:
                self._start()

    def close(self) -> None:
        self._closed.set()
        self._asked.set()

    def end(self, seconds: float, *, last: bool = False) -> None:
        """Close it and wait so long for what it is doing; `last`: also for what it was asked for and has not begun."""
        self._last = last and self._asked.is_set()
        self.close()
        with self._lock:  # one that is just being made has started by then
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        while not self._closed.is_set():  # asked again here: the clearing below may have met the end
            self._asked.wait()
            if self._closed.wait(self._seconds):
                break
            self._asked.clear()
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
