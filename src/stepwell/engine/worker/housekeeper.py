"""The threads of regular duties: one follows the timetable, one waits for hints, one does what takes long."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from ...base.clock import SECOND
from ...base.ids import Digest, RunId, WorkerId
from ...core.graph import Graph
from ...core.model import RunNews
from ...core.store import Store
from ...errors import RunError, StoreError, StoreReplaced
from ..delayed_calls import DelayedCalls
from ..procedures.gates import ask, enact
from ..procedures.procedure import carry_out
from .duties import Follower
from .group_commit import now
from .timetable import WATCH_BUSY, WATCH_SOONEST, Due, Timetable

log = logging.getLogger("stepwell")

HINT_SECONDS = 5.0
"""The longest single wait for a hint."""
AFTER_TROUBLE_SECONDS = 0.5


class HousePort(Protocol):
    @property
    def busy(self) -> bool:
        """Whether the worker holds attempts."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""

    def pump(self) -> object: ...

    def end_overdue(self, due: Due) -> None: ...

    def handle_news(self, news: Iterable[RunNews]) -> None: ...

    def store_replaced(self, error: StoreReplaced) -> None:
        """The contents of the store are gone or were replaced."""


class Housekeeper:
    def __init__(
        self,
        store: Store,
        worker: WorkerId,
        queues: frozenset[str] | None,
        timetable: Timetable,
        lock: threading.Lock,
        host: HousePort,
        *,
        follower: Callable[[], Follower],
        discover: Callable[[], None],
        waited: Collection[RunId],
        graphs: Callable[[Digest], Graph | None],
    ) -> None:
        self._store, self._worker, self._queues = store, worker, queues
        self._timetable, self._lock, self._host = timetable, lock, host
        self._follower, self._waited, self._graphs = follower, waited, graphs
        self._awake = threading.Event()
        self._closed = threading.Event()
        self._pauses: deque[tuple[RunId, str]] = deque()
        self._trouble = False
        self._procedures = DelayedCalls("stepwell-procedures")
        """What takes time in proportion to a run: finishing gates, and healing runs to serve them."""
        self.gates = self._procedures.add(self._finish_gates)
        self.discovery = self._procedures.add(discover)
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
        """Pause a run soon, in another thread: the caller has no time to wait for its gate."""
        self._pauses.append((run_id, reason))
        self.gates.wake()

    def close(self) -> None:
        """Stop, except for the gates that are left to finish."""
        self._closed.set()
        self._awake.set()

    def end(self) -> None:
        # A run that failed while the engine was closing should not be left looking as if it were running.
        self._procedures.end(5, last=self.gates)
        keeper = self._threads[0]  # the other thread may be waiting in the store, and has nothing to finish
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
                # Warn once per outage, however long it lasts.
                log.log(logging.DEBUG if self._trouble else logging.WARNING, "housekeeping: %s", error)
                self._trouble = True
                self._awake.wait(AFTER_TROUBLE_SECONDS)
            except Exception:
                log.exception("housekeeping failed; it is tried again")
                self._awake.wait(AFTER_TROUBLE_SECONDS)

    def _follow(self) -> None:
        """Look at what other processes did as soon as a hint arrives."""
        while not self._closed.is_set():
            try:
                heard = self._store.wait_for_hint(self._queues, self._waited, self._worker, HINT_SECONDS)
            except StoreError:
                self._closed.wait(AFTER_TROUBLE_SECONDS)  # the housekeeping thread logs it
                continue
            if heard:
                busy = not self._host.idle
                with self._lock:
                    self._timetable.hinted(now(), busy=busy)
                self._awake.set()
                # A busy worker mostly hears of its own commits. A hint that comes during this pause is heard after it.
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
            except Exception:  # the other gates must not wait for one that can never be finished
                log.exception("a gate could not be finished; it is tried again")
        self._host.pump()

    def _pause_run(self, run_id: RunId, reason: str) -> None:
        """If the run cannot be paused now, its node is tried again and asks again."""
        try:
            news = carry_out(self._store, enact(ask(run_id, "pause", reason=reason)), self._graphs)
        except (StoreError, RunError) as error:
            log.warning("run %s could not be paused: %s", run_id, error)
            return
        if news is not None:
            log.warning("run %s is paused: %s", run_id, reason)
            self._host.handle_news([news])
