"""A worker's lease: renewed at a third of its length, from a thread of its own, before anything else."""

from __future__ import annotations

import logging
import os
import platform
import threading
from collections.abc import Callable, Iterable

from ..clock import microseconds
from ..codec import encode
from ..errors import StoreError
from ..ids import WorkerId
from ..model import Enlist, Refused, Renew, Renewed
from ..store import Store

log = logging.getLogger("stepwell")


class Lease:
    def __init__(
        self,
        store: Store,
        worker: WorkerId,
        seconds: float,
        *,
        holding: Callable[[], tuple[str, ...] | None],
        on_stop: Callable[[Iterable[str]], None],
    ) -> None:
        self._store = store
        self._worker = worker
        self._seconds = seconds
        self._holding = holding
        self._on_stop = on_stop
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="stepwell-lease", daemon=True)

    def start(self) -> None:
        self.enlist()
        self._thread.start()

    def enlist(self) -> None:
        info = encode({"pid": os.getpid(), "host": platform.node()})
        self._store.commit([Enlist(self._worker, microseconds(self._seconds), info)])

    def lost(self) -> None:
        """The lease ran out. Attempts that nobody took yet stand under the new one; the others are fenced."""
        log.warning(
            "the lease of this worker ran out (was the process paused for more than %g s?); nodes it held may "
            "have been taken by others, whose results count",
            self._seconds,
        )
        try:
            self.enlist()
        except StoreError as error:
            log.warning("the lease could not be taken again yet: %s", error)

    def close(self) -> None:
        self._closed.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(5)

    def _keep(self) -> None:
        pause = self._seconds / 3
        while not self._closed.wait(pause):
            try:
                self._renew()
                pause = self._seconds / 3
            except Exception as error:  # whatever it is, the next renewal may work and the lease must not lapse for it
                log.warning("the lease could not be renewed: %s", error)
                pause = min(1.0, self._seconds / 10)

    def _renew(self) -> None:
        receipt = self._store.commit([Renew(self._worker, microseconds(self._seconds), self._holding())])[0]  # type: ignore[arg-type]
        if isinstance(receipt, Refused):
            self.lost()
        elif isinstance(receipt, Renewed) and receipt.stop:
            self._on_stop(receipt.stop)
