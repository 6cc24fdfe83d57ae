"""A thread that makes calls when it is asked to, each after a delay of its own."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable

from ..errors import StoreError

log = logging.getLogger("stepwell")


class DelayedCall:
    """A call that is made some seconds after `wake`, once, however often it was woken meanwhile."""

    __slots__ = ("_owner", "call", "is_polled", "left", "rounds", "seconds", "woken")

    def __init__(self, owner: DelayedCalls, call: Callable[[], object], seconds: float, rounds: int) -> None:
        self._owner = owner
        self.call = call
        self.seconds = seconds
        self.rounds = rounds
        self.left = 0
        """How many rounds are left."""
        self.woken = False
        """It was woken and the call has not been made yet."""
        self.is_polled = False
        """The thread looks by itself whether it was woken."""

    def wake(self) -> None:
        """Every body that ends may do so. It is two flags and one call into C."""
        if not self.woken:
            self.woken = True
            if not self.is_polled:
                self._owner.request(self)


class DelayedCalls:
    """The thread of any number of delayed calls. It starts with the first request. A call that takes long holds up the others.

    calls = DelayedCalls("stepwell-progress")
    send_soon = calls.add(output.send_progress, seconds=0.4)
    send_soon.wake()
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._requests: queue.SimpleQueue[DelayedCall | None] = queue.SimpleQueue()
        self._due: dict[DelayedCall, float] = {}
        """When the thread looks at these calls. Only it uses this."""
        self._closed = False
        self._last: DelayedCall | None = None
        self._thread: threading.Thread | None = None

    def add(self, call: Callable[[], object], seconds: float = 0.0, rounds: int = 0) -> DelayedCall:
        """For `rounds` times `seconds` after a call the thread stays awake for the next one: to wake it takes longer than some
        calls do."""
        return DelayedCall(self, call, seconds, rounds)

    def request(self, call: DelayedCall) -> None:
        self._requests.put(call)
        if self._thread is None:
            with self._lock:
                if self._thread is None and not self._closed:
                    self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                    self._thread.start()

    def others_wait(self) -> bool:
        """Whether other calls are due while one is being made. Asked by that call, which should not take long then."""
        return not self._requests.empty() or any(at <= time.monotonic() for at in self._due.values())

    def close(self) -> None:
        self._closed = True
        self._requests.put(None)

    def end(self, seconds: float, last: DelayedCall | None = None) -> None:
        """Close it and wait up to `seconds` for the call under way. `last` is made once more if it was woken before."""
        self._last = last
        self.close()
        with self._lock:  # a thread that is being created has started by then
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)

    def _serve(self) -> None:
        due = self._due
        while not self._closed:
            seconds = None if not due else max(0.0, min(due.values()) - time.monotonic())
            try:
                requested = self._requests.get(timeout=seconds)
            except queue.Empty:
                pass
            else:
                if requested is None:
                    break
                due.setdefault(requested, time.monotonic() + requested.seconds)
            now = time.monotonic()
            for call in [call for call, at in due.items() if at <= now]:
                if not self._closed:
                    del due[call]
                    self._look_at(call)
        if self._last is not None and self._last.woken:
            self._make(self._last)

    def _look_at(self, call: DelayedCall) -> None:
        if call.woken:
            call.woken = False  # first, so that whoever wakes it from now on causes another call
            self._make(call)
            call.left = call.rounds
        else:
            call.left -= 1
        call.is_polled = call.left > 0
        if call.is_polled or call.woken:
            self._due[call] = time.monotonic() + call.seconds

    def _make(self, call: DelayedCall) -> None:
        try:
            call.call()
        except StoreError as error:
            log.warning("%s: %s", self._name, error)
        except Exception:
            log.exception("%s failed; it runs again at the next wake-up", self._name)
