"""A thread that does something now and then, as long as it is asked to."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

PULSE_SECONDS = 0.4
"""How long what a body says waits before it is stored."""

log = logging.getLogger("stepwell")


class Pulse:
    """Once woken, it waits a moment and acts: once, however often it was woken meanwhile. Starts when it is first needed."""

    def __init__(self, act: Callable[[], object], name: str, seconds: float = PULSE_SECONDS) -> None:
        self._act = act
        self._name = name
        self._seconds = seconds
        self._lock = threading.Lock()
        self._asked = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        if not self._asked.is_set():
            self._asked.set()
            if self._thread is None:
                self._start()

    def close(self) -> None:
        self._closed.set()
        self._asked.set()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        while not self._closed.is_set():  # asked again here: the clearing below may have met the end
            self._asked.wait()
            if self._closed.wait(self._seconds):
                return
            self._asked.clear()
            try:
                self._act()
            except Exception:
                log.exception("%s failed; it goes on when it is asked again", self._name)
