"""A store whose hints about work go to a broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ...ids import RunId, WorkerId
from ...model import Answer, Batch, Hint, Query, StoreLimits
from ...store import Store
from ...store.port import Transactions
from .sender import WAIT_SECONDS, HintSender, begin_after_fork


class BrokeredStore:
    """The same store, but what it is told of work on queues is told to Celery workers.

    What is said of runs and of workers stays with the store. `patient`, for those who only start runs: they wait a moment until
    it is sent, and the sender is closed with the store.
    """

    needs_hints = True

    def __init__(self, open: Callable[[], Store], sender: HintSender, *, patient: bool = False) -> None:
        self._open = open
        self._sender = sender
        self._patient = patient
        self._lock = threading.Lock()
        self._store: Store = open()
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
    def url(self) -> str:
        return self._store.url

    @property
    def embedded(self) -> bool:
        return self._store.embedded

    @property
    def limits(self) -> StoreLimits:
        return self._store.limits

    def commit(self, batch: Batch) -> Answer:
        return self.store.commit(batch)

    def read(self, queries: Sequence[Query]) -> list[Any]:
        return self.store.read(queries)

    def now(self) -> int:
        return self.store.now()

    def send_hint(self, hint: Hint) -> None:
        if hint.queues:
            self._sender.send(hint.queues, WAIT_SECONDS if self._patient else 0.0)
        if (hint.runs or hint.workers) and self.store.needs_hints:
            self.store.send_hint(hint._replace(queues=()))

    def wait_for_hint(
        self, queues: Collection[str] | None, runs: Collection[RunId], worker: WorkerId, timeout: float
    ) -> bool:
        return self.store.wait_for_hint(queues, runs, worker, timeout)

    @property
    def transactions(self) -> Transactions | None:
        return self.store.transactions

    def close(self) -> None:
        if self._patient:
            self._sender.close()
        if self._usable:
            self._store.close()
