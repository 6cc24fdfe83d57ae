"""The orchestrator: the sweeper as a service of its own, for a fleet whose workers come and go.

It finds what time has changed (lost leases, due retries and timers, deadlines), finishes gates that somebody left, sends the
hints that were lost, fires triggers, and says which work nobody serves. Any number of them may run; none of them leads. It
needs a store and no code of the user. When all of them are gone work goes on, as every worker does the same for itself; one
that is back catches up.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from ..base.clock import SECOND
from ..core.graph import Graph
from ..core.model import Hint
from ..core.store import Store, reader
from ..core.store.living import living
from ..errors import StoreError, StoreReplaced
from .delayed_calls import DelayedCalls
from .engine import Engine
from .lookout import Lookout, Ready, dismiss_dead
from .procedures.procedure import carry_out
from .reports.explain import served_by
from .worker.duties import Sweeper

log = logging.getLogger("stepwell")

SWEEP_SECONDS = 1.0
LOOK_SECONDS = 2.0
"""How often it looks for READY nodes: a lost hint, or a lost broker, costs no more time than this."""
UNSERVED_SECONDS = 10.0
"""How long work must be READY without a live worker before that is logged."""
TELL_AGAIN_SECONDS = 300.0


class Orchestrator:
    def __init__(self, store: Store, engine: Engine | None = None) -> None:
        """`engine` starts the runs of triggers; without it, triggers are left to others."""
        self._store = store
        self._engine = engine
        self._fire_at = 0.0
        self._lookout = Lookout(store)
        self._procedures = DelayedCalls("stepwell-procedures")
        self._gates = self._procedures.add(self._finish_gates)
        self._sweeper = Sweeper(finished=lambda _run, _news: self._awake.set(), wake_gates=self._gates.wake)
        self._awake = threading.Event()
        self._look_at = 0.0
        self._unserved: dict[tuple[str, str, str], float] = {}
        """By queue, workflow and digest: since when nobody serves it."""
        self._told_at: dict[tuple[str, str, str], float] = {}

    def run(self, ended: Callable[[], bool]) -> None:
        """Run until `ended()` is true. A store that cannot be reached is tried again until it answers; StoreReplaced is
        raised, because a store that was replaced stays so."""
        in_trouble = False
        while not ended():
            try:
                pause = self.turn()
                if in_trouble:
                    log.warning("the store answers again")
                in_trouble = False
            except StoreReplaced:
                raise
            except StoreError as error:
                if not in_trouble:
                    log.warning("%s; it is tried again until it answers", error)
                in_trouble, pause = True, SWEEP_SECONDS
            except Exception:
                log.exception("a sweep failed; it goes on")
                pause = SWEEP_SECONDS
            self._wait(ended, pause)
        self._procedures.end(5, last=self._gates)

    def _wait(self, ended: Callable[[], bool], seconds: float) -> None:
        until = time.monotonic() + seconds
        while not (ended() or self._awake.is_set()) and (left := until - time.monotonic()) > 0:
            time.sleep(min(0.1, left))
        self._awake.clear()

    def turn(self) -> float:
        """Sweep once, and look for work if it is time to; the seconds until the next sweep."""
        result = carry_out(self._store, self._sweeper.sweep())
        found = result.receipt.lost or result.receipt.woken or result.receipt.runs
        if found or time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK_SECONDS
            self._look()
        fires = self._fire()
        if result.more:
            return 0.0
        due = SWEEP_SECONDS if result.next_due_in is None else result.next_due_in / SECOND
        return min(SWEEP_SECONDS, fires, max(0.001, due))

    def _fire(self) -> float:
        """Fire triggers if it is time to; the seconds until the next time."""
        if self._engine is not None and time.monotonic() >= self._fire_at:
            self._fire_at = time.monotonic() + self._engine.triggers.fire_due()
        return max(0.0, self._fire_at - time.monotonic()) if self._engine is not None else SWEEP_SECONDS

    def _look(self) -> None:
        dismiss_dead(self._store)
        found = self._lookout.ready()
        if found:
            self._store.send_hint(Hint(queues=tuple(sorted({ready.queue for ready in found}))))
        self._report_unserved(found)

    def _report_unserved(self, found: list[Ready]) -> None:
        now = time.monotonic()
        alive = bool(found) and bool(living(self._store))
        waiting: dict[tuple[str, str, str], Ready] = {}
        for ready in found:
            key = (ready.queue, ready.unfinished.workflow, str(ready.unfinished.digest))
            if not alive or not self._served(ready):
                waiting[key] = ready
        self._unserved = {key: self._unserved.get(key, now) for key in waiting}
        self._told_at = {key: at for key, at in self._told_at.items() if key in waiting}
        for key, since in self._unserved.items():
            queue, workflow, _ = key
            told_at = self._told_at.get(key, -TELL_AGAIN_SECONDS)
            if now - since >= UNSERVED_SECONDS and now - told_at >= TELL_AGAIN_SECONDS:
                self._told_at[key] = now
                log.warning(
                    "runs of %s wait on queue %r and no live worker serves them, for example %s: start a worker that has their "
                    "code (`stepwell workers` lists those there are; `stepwell why %s` says more)",
                    workflow,
                    queue,
                    waiting[key].run,
                    waiting[key].run,
                )

    def _served(self, ready: Ready) -> bool:
        row = reader.get_run(self._store, ready.run)
        if row is None:
            return True
        document = reader.get_graph(self._store, row.digest)
        return document is None or served_by(self._store, row, Graph.load(document), queue=ready.queue)

    def _finish_gates(self) -> None:
        while self._sweeper.pending:
            carry_out(self._store, self._sweeper.finish_next_gate())
