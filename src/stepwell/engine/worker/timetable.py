"""When the regular duties of a runner are due. Plain decisions; the time is an argument."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import NamedTuple

from ..bodies.held import Held

SWEEP_EVERY = 1_000_000
STOPS_EVERY = 200_000
WATCH_SOONEST = 20_000
WATCH_BUSY = 250_000
WATCH_LATEST = 5_000_000
"""All in microseconds. A runner looks at what others did at least every `WATCH_LATEST`: a lost hint costs only time."""


class Due(NamedTuple):
    sweep: bool
    stops: bool
    watch: bool
    overdue: list[Held]
    """Attempts whose time is up."""


@dataclass(slots=True)
class Timetable:
    """When to sweep, to read the stop list, to look at what others did, and to end attempts whose time is up."""

    sweep_at: int = 0
    stops_at: int = 0
    watch_at: int = 0
    _watched_at: int = -WATCH_BUSY
    _sooner: int | None = None
    """The earliest sweep requested since the latest one began, which may not have seen the reason."""
    _timeouts: list[tuple[int, int, Held]] = field(default_factory=list)
    _count: int = 0
    _tidy_at: int = 1_000

    def time_limit(self, held: Held, at: int) -> None:
        self._count += 1
        heapq.heappush(self._timeouts, (at, self._count, held))
        if len(self._timeouts) > self._tidy_at:
            # Most attempts end long before their time is up, and should not stay in memory until then.
            self._timeouts = [entry for entry in self._timeouts if not entry[2].over]
            heapq.heapify(self._timeouts)
            self._tidy_at = 2 * len(self._timeouts) + 1_000

    def sweep_by(self, at: int) -> None:
        """Sweep at this time at the latest, because something becomes due."""
        self._sooner = at if self._sooner is None else min(self._sooner, at)
        self.sweep_at = min(self.sweep_at, at)

    def swept(self, now: int, next_due_in: int | None, share: float = 1.0) -> None:
        """A sweep is done. `share` lengthens SWEEP_EVERY by this factor, because other workers sweep too."""
        usual = int(SWEEP_EVERY * share)
        self.sweep_at = now + min(usual, usual if next_due_in is None else max(1_000, next_due_in))
        if self._sooner is not None:
            self.sweep_at = min(self.sweep_at, self._sooner)

    def watched(self, now: int) -> None:
        self._watched_at, self.watch_at = now, now + WATCH_LATEST

    def watch_by(self, at: int) -> None:
        self.watch_at = min(self.watch_at, at)

    def hinted(self, now: int, *, busy: bool) -> None:
        """A hint arrived. Look soon, but not all the time: it may be about our own commits."""
        pause = WATCH_BUSY if busy else WATCH_SOONEST
        self.watch_at = min(self.watch_at, max(now, self._watched_at + pause))

    def due(self, now: int, *, busy: bool) -> Due:
        """What is due. `busy`: the worker holds attempts, so some may have to stop."""
        overdue = self.overdue(now)
        stops = busy and self.stops_at <= now
        if stops:
            self.stops_at = now + STOPS_EVERY
        sweep = self.sweep_at <= now
        if sweep:
            self._sooner = None
        return Due(sweep, stops, self.watch_at <= now, overdue)

    def overdue(self, now: int) -> list[Held]:
        """Remove and return the attempts whose time is up."""
        found = []
        while self._timeouts and self._timeouts[0][0] <= now:
            found.append(heapq.heappop(self._timeouts)[2])
        return [held for held in found if not held.over]

    def next_limit(self) -> int | None:
        """When the time of the next attempt is up."""
        return self._timeouts[0][0] if self._timeouts else None

    def next_at(self, now: int, *, busy: bool) -> int:
        """When the next duty is due."""
        times = [self.sweep_at, self.watch_at]
        if busy:
            times.append(self.stops_at)
        if self._timeouts:
            times.append(self._timeouts[0][0])
        return max(now, min(times))
