"""The threads behind the follower: one that keeps to the timetable, one that waits for hints, one that finishes gates."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from ...clock import SECOND
from ...errors import RunError, StoreError, StoreReplaced
from ...graph import Graph
from ...ids import Digest, RunId, WorkerId
from ...model import RunNews
from ...store import Store
from ..procedures.gates import ask, enact
from ..procedures.procedure import carry_out
from .debounce import Debounce
from .follower import Follower
from .group_commit import now
from .timetable import WATCH_BUSY, WATCH_SOONEST, Due, Timetable

log = logging.getLogger("stepwell")

HINT_SECONDS = 5.0
"""How long one wait for a hint takes at most."""
AFTER_TROUBLE_SECONDS = 0.5


class Host(Protocol):
    @property
    def busy(self) -> bool:
        """Whether attempts are held."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""

    def pump(self) -> object: ...

    def end_overdue(self, due: Due) -> None: ...

    def handle_news(self, news: Iterable[RunNews]) -> None: ...

    def store_replaced(self, error: StoreReplaced) -> None:
        """What was stored is gone."""


class Housekeeper:
    def __init__(
        self,
        store: Store,
        worker: WorkerId,
        queues: frozenset[str] | None,
        timetable: Timetable,
        lock: threading.Lock,
        host: Host,
        *,
        follower: Callable[[], Follower],
        waited: Callable[[], Iterable[RunId]],
        graphs: Callable[[Digest], Graph | None],
    ) -> None:
        self._store, self._worker, self._queues = store, worker, queues
        self._timetable, self._lock, self._host = timetable, lock, host
        self._follower, self._waited, self._graphs = follower, waited, graphs
        self._awake = threading.Event()
        self._closed = threading.Event()
        self._pauses: deque[tuple[RunId, str]] = deque()
        self._trouble = False
        self.gates = Debounce(self._finish_gates, "stepwell-gates", 0)
        self._threads = [
            threading.Thread(target=self._keep_house, name="stepwell-housekeeping", daemon=True),
            threading.Thread(target=self._follow, name="stepwell-hints", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        self._awake.set()

    def pause(self, run_id: RunId, reason: str) -> None:
        """Have a run paused soon: whoever asks has no time to wait for its gate."""
        self._pauses.append((run_id, reason))
        self.gates.wake()

    def close(self) -> None:
        """Do nothing more but finish the gates that are left."""
        self._closed.set()
        self._awake.set()

    def end(self) -> None:
        # A run that failed while the engine closed should not look as if it were running.
        self.gates.end(5, last=True)
        keeper = self._threads[0]  # the other may wait in the store, and does nothing that has to be waited for
        if keeper.is_alive() and threading.current_thread() is not keeper:
            keeper.join(5)

    def _keep_house(self) -> None:
        while True:
            with self._lock:
                pause = self._timetable.next_at(now(), busy=self._host.busy) - now()
            self._awake.wait(max(0.0, pause / 1_000_000))
            self._awake.clear()
            if self._closed.is_set():
                return
            try:
                with self._lock:
                    due = self._timetable.due(now(), busy=self._host.busy)
                self._host.end_overdue(due)
                carry_out(self._store, self._follower().do(due))
                self._host.pump()
                self._trouble = False
            except StoreReplaced as error:
                self._host.store_replaced(error)
            except StoreError as error:
                # Once for each outage, however long it takes.
                log.log(logging.DEBUG if self._trouble else logging.WARNING, "housekeeping: %s", error)
                self._trouble = True
                self._awake.wait(AFTER_TROUBLE_SECONDS)
            except Exception:
                log.exception("housekeeping failed; it goes on")
                self._awake.wait(AFTER_TROUBLE_SECONDS)

    def _follow(self) -> None:
        """Look what others did as soon as something is heard of."""
        while not self._closed.is_set():
            try:
                heard = self._store.wait_for_hint(self._queues, tuple(self._waited()), self._worker, HINT_SECONDS)
            except StoreError:
                self._closed.wait(AFTER_TROUBLE_SECONDS)  # the housekeeper tells
                continue
            if heard:
                busy = not self._host.idle
                with self._lock:
                    self._timetable.hinted(now(), busy=busy)
                self._awake.set()
                # Who is busy mostly hears of its own commits; a hint that comes meanwhile is heard then.
                self._closed.wait((WATCH_BUSY if busy else WATCH_SOONEST) / SECOND)

    def _finish_gates(self) -> None:
        while self._pauses:
            self._pause_run(*self._pauses.popleft())
        follower = self._follower()
        while follower.pending:
            try:
                carry_out(self._store, follower.finish_next_gate(), self._graphs)
            except StoreReplaced as error:
                self._host.store_replaced(error)
                return
            except StoreError as error:
                log.warning("housekeeping: %s", error)
            except Exception:  # the others are not to wait for one that can never be finished
                log.exception("a gate could not be finished; it is tried again")
        self._host.pump()

    def _pause_run(self, run_id: RunId, reason: str) -> None:
        """If it cannot be paused now, whoever asked tries its node again, and asks again."""
        try:
            news = carry_out(self._store, enact(ask(run_id, "pause", reason=reason)), self._graphs)
        except (StoreError, RunError) as error:
            log.warning("run %s could not be paused: %s", run_id, error)
            return
        if news is not None:
            log.warning("run %s is paused: %s", run_id, reason)
            self._host.handle_news([news])
