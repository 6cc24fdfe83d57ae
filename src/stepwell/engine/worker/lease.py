"""A worker's lease: a thread of its own renews it after a third of its length, independent of all other work."""

from __future__ import annotations

import logging
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from ...base.clock import LONGEST_WAIT, SECOND, microseconds
from ...base.codec import encode
from ...base.ids import AttemptId, Digest, WorkerId, machine
from ...core.model import Enlist, Enlisted, Receipt, Refused, Renew, Renewed
from ...core.store import Store
from ...errors import StoreError, StoreReplaced

log = logging.getLogger("stepwell")


class LeaseState:
    """Decides when to renew, and what the answer means. A plain object; the time is an argument."""

    def __init__(self, worker: WorkerId, lease: int, info: bytes = b"{}") -> None:
        self._worker = worker
        self._lease = lease
        self.info = info
        self._enlisted = False
        self._heard_at = 0
        """When the lease was last renewed, on the store's clock."""
        self.due_at = 0
        self.renewals = 0
        self.losses = 0

    def next_op(self, holding: tuple[AttemptId, ...] | None) -> Enlist | Renew:
        if not self._enlisted:
            return Enlist(self._worker, self._lease, self.info)
        return Renew(self._worker, self._lease, holding, self._heard_at)

    def answered(self, receipt: Receipt, now: int) -> tuple[AttemptId, ...]:
        """Apply the answer to `next_op`, and return the attempts that should stop. A refused worker enlists again at once."""
        if isinstance(receipt, Refused):
            self.lost(now)
            return ()
        assert isinstance(receipt, Enlisted | Renewed)
        self.renewals += isinstance(receipt, Renewed)
        self._enlisted = True
        self._heard_at = receipt.lease_until - self._lease
        self.due_at = now + self._lease // 3
        return receipt.stop if isinstance(receipt, Renewed) else ()

    def announce(self, info: bytes, now: int) -> None:
        """Enlist again at once, so that others see what has changed about this worker."""
        if info != self.info:
            self.info, self._enlisted, self.due_at = info, False, now

    def failed(self, now: int) -> None:
        """The store did not answer: try again soon."""
        self.due_at = now + min(SECOND, self._lease // 10)

    def lost(self, now: int) -> None:
        """The lease ran out. The next one covers the attempts that no other worker has taken; the rest are fenced."""
        self.losses += self._enlisted  # several refusals are one loss
        self._enlisted = False
        self.due_at = now


class Lease:
    """Keeps the lease of a worker, in a thread."""

    def __init__(
        self,
        store: Store,
        worker: WorkerId,
        seconds: float,
        *,
        holding: Callable[[], tuple[AttemptId, ...] | None],
        on_held: Callable[[], None],
        on_stop: Callable[[Iterable[AttemptId]], None],
        on_replaced: Callable[[StoreReplaced], None],
        versions: Callable[[], list[tuple[str, Digest]]],
        lacks: Callable[[], list[tuple[str, str, str]]] = list,
        queues: frozenset[str] | None = None,
    ) -> None:
        self._store = store
        self._queues = None if queues is None else sorted(queues)
        self._seconds = seconds
        self._versions = versions
        self._lacks = lacks
        self.about: dict[str, Any] = {}
        """What else others are told about this worker."""
        self.state = LeaseState(worker, microseconds(seconds))
        self._holding = holding
        self._on_held = on_held
        self._on_stop = on_stop
        self._on_replaced = on_replaced
        self._lock = threading.Lock()
        self._closed = False
        self._trouble = False
        self._changed = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="stepwell-lease", daemon=True)

    def start(self) -> None:
        self.state.info = self._info()
        self._renew()
        self._thread.start()

    def lost(self) -> None:
        """A commit was refused because the lease ran out: take it again now, or as soon as the store answers."""
        log.warning(
            "the lease of this worker ran out (was the process paused for more than %g s?); nodes it held may "
            "have been taken by others, whose results count",
            self._seconds,
        )
        self.state.lost(_now())
        try:
            self._renew()
        except StoreError as error:
            log.warning("the lease could not be taken again yet: %s", error)
            self._changed.set()  # its thread sleeps until the renewal that would have been due

    def announce(self) -> None:
        """Tell others which versions of which workflows this worker has. They know when this returns."""
        with self._lock:
            self.state.announce(self._info(), _now())
        self._changed.set()
        self._renew_if_due()

    def _info(self) -> bytes:
        said: dict[str, Any] = {
            "pid": os.getpid(),
            "host": platform.node(),
            "machine": machine(),
            "serves": self._versions(),
            **self.about,
        }
        if self._queues is not None:
            said["queues"] = self._queues
        if lacks := self._lacks():
            said["lacks"] = lacks
        return encode(said)

    def stop(self) -> None:
        """Stop renewing."""
        self._closed = True
        self._changed.set()

    def close(self) -> None:
        self.stop()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(5)

    def _keep(self) -> None:
        while True:
            self._changed.wait(min(LONGEST_WAIT, max(0, self.state.due_at - _now()) / SECOND))
            self._changed.clear()
            if self._closed:
                return
            try:
                self._renew_if_due()
                self._trouble = False
            except StoreReplaced as error:
                self._on_replaced(error)
            except Exception as error:  # of any kind: the next renewal may work, and the lease must not lapse
                log.log(
                    logging.DEBUG if self._trouble else logging.WARNING, "the lease could not be renewed: %s", error
                )
                self._trouble = True
                self.state.failed(_now())

    def _renew_if_due(self) -> None:
        if self.state.due_at <= _now():
            self._renew()

    def _renew(self) -> None:
        with self._lock:
            receipt = self._store.commit([self.state.next_op(self._holding())])[0]
            stop = self.state.answered(receipt, _now())
        if not isinstance(receipt, Refused):
            self._on_held()
        if stop:
            self._on_stop(stop)


def _now() -> int:
    return time.monotonic_ns() // 1_000
