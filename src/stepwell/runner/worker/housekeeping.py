"""What must happen regularly although nobody asks: sweeping, finishing gates, looking what other processes did.

Written as procedures on a port, so that the local runner and the simulator do exactly the same.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from ...clock import microseconds
from ...errors import StepwellError
from ...ids import AttemptId, RunId
from ...model import TERMINAL_RUNS, GetRun, HeldGate, ListStops, ReadyRuns, RunNews, RunStatus, Sweep, Swept
from ..procedures.gates import finish
from ..procedures.procedure import Commit, Procedure, Read, Version
from ..procedures.reads import news_of
from .scheduler import Scheduler
from .timetable import Due, Timetable

log = logging.getLogger("stepwell")

KNOWN_AT_ONCE = 50
"""How many of the runs it works on are looked at together, to see whether they ended elsewhere."""

LOOK_ANYWAY = 5_000_000
"""Look what others did at least this often, also when the store seems unchanged: a missed hint only costs time."""


class Runner(Protocol):
    """What housekeeping needs of whoever runs bodies."""

    scheduler: Scheduler
    timetable: Timetable

    def now(self) -> int: ...

    def handle_news(self, news: Iterable[RunNews]) -> None: ...

    def mark_ready(self, runs: Iterable[RunId]) -> None: ...

    def look_around(self) -> None: ...

    def look_for_suspects(self) -> None: ...

    def drain(self) -> None: ...

    def stop(self, attempts: Iterable[AttemptId]) -> None: ...

    def wake(self) -> None: ...

    def wake_gates(self) -> None: ...


class Housekeeping:
    """The regular duties of one runner."""

    def __init__(
        self,
        runner: Runner,
        *,
        store_now: Callable[[], int],
        waited: Callable[[], Iterable[RunId]],
        serve: Callable[[], None],
    ) -> None:
        self._runner = runner
        self._store_now = store_now
        self._waited = waited
        self._serve = serve
        self._turn = 0
        self._gates: deque[HeldGate] = deque()
        self._named: set[HeldGate] = set()
        """The same: one that waits is reported by every sweep."""
        self._version = -1
        self._look_anyway_at = 0
        self._serve_again_at: int | None = None

    # What may take long. It is done elsewhere, so that who is asked to stop is told in time.

    def finish_gate(self, held: HeldGate) -> None:
        """Have this gate's work finished soon."""
        if held not in self._named:
            self._named.add(held)
            self._gates.append(held)
        self._runner.wake_gates()

    @property
    def pending(self) -> bool:
        return bool(self._gates)

    def finish_next_gate(self) -> Procedure[None]:
        held = self._gates.popleft()
        self._named.discard(held)
        yield from self._finish(held)

    def serve_again(self, seconds: float) -> None:
        """What is served should be looked at again then, although nothing seems to have changed."""
        self._serve_again_at = self._runner.now() + microseconds(seconds)
        if seconds == 0:
            self._runner.timetable.watch_soon(self._runner.now())
            self._runner.wake()

    # What is done regularly

    def do(self, due: Due) -> Procedure[None]:
        if due.sweep:
            yield from self._sweep()
        if due.watch:
            yield from self._watch()
        if due.stops:
            (attempts,) = yield Read([ListStops(self._runner.scheduler.worker)])
            self._runner.stop(attempts)

    def _finish(self, held: HeldGate) -> Procedure[None]:
        try:
            news = yield from finish(held)
        except StepwellError as error:
            log.warning("run %s: %r is not finished yet: %s", held.run_id, held.purpose, error)
            return  # the sweeper reports it again, if it is still there
        if news is not None:
            self._runner.handle_news([news])
        self._runner.mark_ready([held.run_id])

    def _sweep(self) -> Procedure[None]:
        began, sweep = self._store_now(), Sweep()
        (receipt,) = yield Commit([sweep])
        assert isinstance(receipt, Swept)
        # What was due before and still is, another sweep at once would not change either.
        known = receipt.next_due is not None and receipt.next_due > began
        next_due_in = receipt.next_due - self._store_now() if known and receipt.next_due is not None else None
        self._runner.timetable.swept(self._runner.now(), next_due_in)
        if receipt.lost >= sweep.limit or receipt.woken >= sweep.limit:
            self._runner.timetable.sweep_by(self._runner.now())
        if receipt.lost:
            lost = (
                "1 attempt of a lost worker was"
                if receipt.lost == 1
                else f"{receipt.lost} attempts of lost workers were"
            )
            log.warning("%s taken over", lost)
            self._runner.look_for_suspects()
        self._runner.handle_news(receipt.runs)
        self._runner.mark_ready([run.run_id for run in receipt.runs])
        for held in receipt.gates:
            self.finish_gate(held)
        if receipt.lost or receipt.woken:
            self._runner.look_around()
        if self._runner.scheduler.would_drain:
            (runs,) = yield Read([self._runner.scheduler.suspects()])
            if runs:
                self._runner.drain()

    def _watch(self) -> Procedure[None]:
        """See whether other processes moved runs that this one works on or waits for."""
        (version,) = yield Version()
        now = self._runner.now()
        serve_again = self._serve_again_at is not None and now >= self._serve_again_at
        changed = version != self._version or now >= self._look_anyway_at or serve_again
        self._version = version
        self._runner.timetable.watched(self._runner.now(), changed=changed, busy=not self._runner.scheduler.idle)
        if not changed:
            return
        self._look_anyway_at = now + LOOK_ANYWAY
        known = tuple(self._runner.scheduler.facts)
        if known:
            (ready,) = yield Read([ReadyRuns(known)])
            self._runner.mark_ready(ready)
        asked = dict.fromkeys((*self._waited(), *self._in_turn(known)))
        if asked:
            rows = yield Read([GetRun(run) for run in asked])
            still = (RunStatus.PAUSED, *TERMINAL_RUNS)
            self._runner.handle_news([news_of(row) for row in rows if row is not None and row.status in still])
        self._serve_again_at = None
        self._serve()

    def _in_turn(self, known: tuple[RunId, ...]) -> tuple[RunId, ...]:
        """Some of the runs it works on, others each time: those that ended elsewhere must not be remembered for ever."""
        start = self._turn if self._turn < len(known) else 0
        self._turn = start + KNOWN_AT_ONCE
        return known[start : self._turn]
