"""A store whose hints about work go to a broker."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ...model import Hint
from ...store import Store
from ..wrapped_store import WrappedStore
from .sender import WAIT_SECONDS, HintSender, begin_after_fork


class BrokeredStore(WrappedStore):
    """The same store, but hints about work on queues go to Celery workers. Those about runs and workers stay with the store.

    `patient`, for those who only start runs: they wait a moment until a hint is sent, and closing the store closes the sender.
    """

    def __init__(self, open: Callable[[], Store], sender: HintSender, *, patient: bool = False) -> None:
        super().__init__(open())
        self._open = open
        self._sender = sender
        self._patient = patient
        self._lock = threading.Lock()
        self._usable = True
        begin_after_fork(self)

    def begin(self) -> None:
        """In a process that was forked: connections cannot be shared, so the store is opened anew when it is needed."""
        self._lock, self._usable = threading.Lock(), False

    @property
    def store(self) -> Store:
        if not self._usable:
            with self._lock:
                if not self._usable:
                    self._store, self._usable = self._open(), True
        return self._store

    @property
    def needs_hints(self) -> bool:
        return True

    def send_hint(self, hint: Hint) -> None:
        if hint.queues:
            self._sender.send(hint.queues, WAIT_SECONDS if self._patient else 0.0)
        if (hint.runs or hint.workers) and self.store.needs_hints:
            self.store.send_hint(hint._replace(queues=()))

    def close(self) -> None:
        if self._patient:
            self._sender.close()
        if self._usable:
            self._store.close()
