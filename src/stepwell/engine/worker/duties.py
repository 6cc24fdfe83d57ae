"""The regular duties of a runner. It sweeps, looks at what other processes did, and reads which attempts should stop.

Written as procedures on a port, so that the local runner and the simulator do exactly the same.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from ...base.clock import microseconds
from ...base.ids import AttemptId, RunId
from ...core.model import Answer, GetRun, HeldGate, ListStops, RunNews, Sweep, Swept
from ...errors import StepwellError
from ..procedures.gates import finish
from ..procedures.procedure import Commit, Procedure, Read, news_of
from ..scheduling.scheduler import Scheduler
from .timetable import Due, Timetable

log = logging.getLogger("stepwell")


class SweepResult(NamedTuple):
    receipt: Swept
    next_due_in: int | None
    """Microseconds until the next sweep will find something; None if no row says so."""
    more: bool
    """It reached its limit, so there may be more to find."""


class Sweeper:
    """Finds what has become due, and finishes gates that were abandoned. It needs nothing but a store.

    Every engine has one. Any number of them may work on one store, without a leader.
    """

    def __init__(
        self,
        *,
        finished: Callable[[RunId, RunNews | None], None] = lambda _run, _news: None,
        wake_gates: Callable[[], None] = lambda: None,
    ) -> None:
        self._finished = finished
        self._wake_gates = wake_gates
        self._gates: deque[HeldGate] = deque()
        self._named: set[HeldGate] = set()
        """The gates in `_gates`, because a sweep may report a waiting one again."""

    def sweep(self) -> Procedure[SweepResult]:
        asked = Sweep()
        answer = yield Commit([asked])
        assert isinstance(answer, Answer)
        (receipt,) = answer
        assert isinstance(receipt, Swept)
        # What was due and still is would not change with another sweep at once.
        known = receipt.next_due is not None and receipt.next_due > answer.now
        due_in = receipt.next_due - answer.now if known and receipt.next_due is not None else None
        if receipt.lost:
            several = f"{receipt.lost} attempts of lost workers were"
            log.warning("%s taken over", "1 attempt of a lost worker was" if receipt.lost == 1 else several)
        for held in receipt.gates:
            self.finish_gate(held)
        most = max(receipt.lost, receipt.woken, len(receipt.gates), len(receipt.runs))
        return SweepResult(receipt, due_in, most >= asked.limit)

    def finish_gate(self, held: HeldGate) -> None:
        """Finish the work of this gate soon, in another thread because it may take long."""
        if held not in self._named:
            self._named.add(held)
            self._gates.append(held)
        self._wake_gates()

    @property
    def pending(self) -> bool:
        return bool(self._gates)

    def finish_next_gate(self) -> Procedure[None]:
        held = self._gates.popleft()
        self._named.discard(held)
        try:
            news = yield from finish(held)
        except StepwellError as error:
            log.warning(
                "run %s: its gate for %r could not be finished yet; it is tried again: %s",
                held.run_id,
                held.purpose,
                error,
            )
            return  # a later sweep reports it again, if it is still held
        self._finished(held.run_id, news)


KNOWN_AT_ONCE = 50
"""How many known runs one watch reads, to see whether they ended elsewhere."""
MOST_SHARES = 30
"""However many workers share the sweeping, each sweeps at least every this many seconds."""


class Runner(Protocol):
    """What the follower needs of the runner."""

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


class Follower(Sweeper):
    """The regular duties of one runner."""

    def __init__(
        self,
        runner: Runner,
        *,
        waited: Callable[[], Iterable[RunId]],
        serve: Callable[[], None],
        shared: bool = False,
    ) -> None:
        self._runner = runner
        self._waited = waited
        self._serve = serve
        self._shared = shared
        """The store is a server that all workers sweep, so each does it less often than every second."""
        self._turn = 0
        self._serve_again_at: int | None = None
        super().__init__(finished=self._gate_finished, wake_gates=runner.wake_gates)

    def serve_again(self, seconds: float) -> None:
        """Refresh what is served after `seconds`, although nothing seems to have changed."""
        now = self._runner.now()
        self._serve_again_at = now + microseconds(seconds)
        self._runner.timetable.watch_by(self._serve_again_at)
        if seconds == 0:
            self._runner.wake()

    def do(self, due: Due) -> Procedure[None]:
        if due.sweep:
            yield from self._sweep()
        if due.watch:
            yield from self._watch()
        if due.stops:
            (attempts,) = yield Read([ListStops(self._runner.scheduler.worker)])
            self._runner.stop(attempts)

    def _gate_finished(self, run_id: RunId, news: RunNews | None) -> None:
        if news is not None:  # of this run, or of the one whose node it performs
            self._runner.handle_news([news])
        self._runner.mark_ready([run_id] if news is None else [run_id, news.run_id])
        if news is not None and news.run_id not in self._runner.scheduler.facts:
            self._runner.look_around()  # somebody else works on the parent, or nobody does

    def _sweep(self) -> Procedure[None]:
        result = yield from self.sweep()
        receipt, timetable = result.receipt, self._runner.timetable
        share = min(MOST_SHARES, max(1, receipt.workers)) if self._shared else 1
        timetable.swept(self._runner.now(), result.next_due_in, share)
        if result.more:
            timetable.sweep_by(self._runner.now())
        if receipt.lost:
            self._runner.look_for_suspects()
        self._runner.handle_news(receipt.runs)
        self._runner.mark_ready([run.run_id for run in receipt.runs])
        if receipt.lost or receipt.woken:
            self._runner.look_around()
        if self._runner.scheduler.would_drain:
            (runs,) = yield Read([self._runner.scheduler.suspects()])
            if runs:
                self._runner.drain()

    def _watch(self) -> Procedure[None]:
        """Read whether other processes moved runs that this one works on or waits for."""
        self._runner.timetable.watched(self._runner.now())
        known = tuple(self._runner.scheduler.facts)
        asked = tuple(dict.fromkeys((*self._waited(), *self._in_turn(known))))
        if known or asked:
            ready, *rows = yield Read([self._runner.scheduler.ready_query(known), *map(GetRun, asked)])
            self._runner.mark_ready(ready)
            self._runner.handle_news([news_of(row) for row in rows if row is not None and row.status.resting])
        self._serve_again_at = None
        self._serve()

    def _in_turn(self, known: tuple[RunId, ...]) -> tuple[RunId, ...]:
        """Some of the known runs, others each time, so that those that ended elsewhere are forgotten in the end."""
        start = self._turn if self._turn < len(known) else 0
        self._turn = start + KNOWN_AT_ONCE
        return known[start : self._turn]
