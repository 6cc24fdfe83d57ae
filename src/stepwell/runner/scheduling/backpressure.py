"""Back-pressure: every slot for a kind of body is taken, and ready work is left in the store for want of room.

It is active from then until none waits any more, so a fan-out of any width is one block. A plain object: no threads, no
clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Literal, NamedTuple

from ...clock import SECOND
from ...ids import RunId

KINDS = ("thread", "loop", "process")
TELL_EVERY = SECOND
"""A beginning is told at most this often for each kind of body: work that comes in many short bursts is no news."""
MAX_RUNS_COUNTED = 1_000
MAX_RUNS_KEPT = 1_000
"""Runs whose numbers are kept, the latest that had to wait."""
MAX_UNTOLD = 1_000


class BackpressureEvent(NamedTuple):
    """There is no room for a kind of body while work waits in the store, or none waits any more."""

    kind: str
    """Which bodies: `thread`, `loop` or `process`."""
    state: Literal["began", "ended"]
    held: int
    """How many of them are in memory, at work or claimed ahead."""
    limit: int
    """How many may run at once."""
    waiting: int | None
    """How many nodes wait in the store, at most: those of the same runs that wait for a retry, need another kind of body or
    are run by other workers count too. None when too many runs would have to be counted."""
    seconds: float
    """How long it has been state."""
    blocks: int
    """How often it was active since the engine was opened; more often than it was told, when it came in short bursts."""
    runs: Mapping[RunId, int]
    """Which runs wait, and how many of their nodes at most, in the order in which they are served; the first 1,000."""


class RunPressure(NamedTuple):
    """What back-pressure in one engine has cost one run."""

    blocks: int
    """How often the run had ready work while there was no room for it."""
    seconds: float
    """For how long, all of these together."""


class _KindState:
    """One kind of body."""

    __slots__ = ("blocks", "since", "spent", "told", "told_at")

    def __init__(self) -> None:
        self.since: int | None = None
        """Since when it is state."""
        self.told = False
        self.told_at: int | None = None
        self.blocks = 0
        self.spent = 0


class Pressure:
    """How often and how long each kind of body was without room, and what of it is to be told."""

    def __init__(self) -> None:
        self._by_kind = {kind: _KindState() for kind in KINDS}
        self.active: set[str] = set()
        """The kinds of bodies for which it is active now."""
        self.news: deque[BackpressureEvent] = deque(maxlen=MAX_UNTOLD)
        """What is to be told, in order."""
        self.ever = False
        """It was active at some time: before, nobody had to wait for anything."""
        self._now = 0
        self._entered: dict[tuple[str, RunId], tuple[int, int]] = {}
        """Of a run that may have ready work for a kind: for how long, and how often, it had been active then."""
        self._runs: dict[RunId, RunPressure] = {}

    def update(
        self, kind: str, held: int, limit: int, waiting: Callable[[], Iterable[tuple[RunId, int]]], now: int
    ) -> None:
        """Where it is active already, or there is no room: how much waits of each run, at most."""
        state = self._by_kind[kind]
        self._now = now
        if any(count for _, count in waiting()):
            self.ever = True
            if state.since is None:
                state.since = now
                state.blocks += 1
                self.active.add(kind)
            # One that began too soon after the last is told late, if it is still active then.
            told_lately = state.told_at is not None and now - state.told_at < TELL_EVERY
            if not (state.told or told_lately):
                state.told, state.told_at = True, now
                self._tell(kind, "began", held, limit, waiting(), now - state.since)
        elif state.since is not None:
            lasted = now - state.since
            state.spent += lasted
            state.since = None
            self.active.discard(kind)
            if state.told:
                state.told = False
                self._tell(kind, "ended", held, limit, (), lasted)

    def entered(self, kind: str, run: RunId) -> None:
        """The run may have ready work for this kind of body. Only needed once it was `ever` active."""
        self._entered.setdefault((kind, run), (self.spent(kind, self._now), self.blocks(kind)))

    def left(self, kind: str, run: RunId) -> None:
        """It has none, or none any more."""
        added = self._cost(kind, run)
        self._entered.pop((kind, run), None)
        if added is not None:
            before = self._runs.pop(run, RunPressure(0, 0.0))
            self._runs[run] = RunPressure(before.blocks + added.blocks, before.seconds + added.seconds)
            if len(self._runs) > MAX_RUNS_KEPT:
                del self._runs[next(iter(self._runs))]

    def of_runs(self, ready: Iterable[tuple[str, RunId]]) -> dict[RunId, RunPressure]:
        """What it has cost each run, until now. `ready`: which runs may have ready work, for which kind of body."""
        found = dict(self._runs)
        for kind, run in ready:
            added = self._cost(kind, run)
            if added is not None:
                before = found.get(run, RunPressure(0, 0.0))
                found[run] = RunPressure(before.blocks + added.blocks, before.seconds + added.seconds)
        return found

    def _cost(self, kind: str, run: RunId) -> RunPressure | None:
        spent, blocks = self._entered.get((kind, run), (0, 0))
        waited = self.spent(kind, self._now) - spent
        # One that was active already when the run came counts for it too.
        return RunPressure(max(1, self.blocks(kind) - blocks), waited / SECOND) if waited > 0 else None

    def blocks(self, kind: str) -> int:
        """How often it was state."""
        return self._by_kind[kind].blocks

    def spent(self, kind: str, now: int) -> int:
        """For how many microseconds it was active in all, until now."""
        state = self._by_kind[kind]
        return state.spent + (0 if state.since is None else now - state.since)

    def _tell(
        self,
        kind: str,
        state: Literal["began", "ended"],
        held: int,
        limit: int,
        waiting: Iterable[tuple[RunId, int]],
        lasted: int,
    ) -> None:
        found = list(islice(waiting, MAX_RUNS_COUNTED + 1))
        total = sum(count for _, count in found) if len(found) <= MAX_RUNS_COUNTED else None
        runs = {run: count for run, count in found[:MAX_RUNS_COUNTED] if count}
        seconds = lasted / SECOND
        self.news.append(BackpressureEvent(kind, state, held, limit, total, seconds, self.blocks(kind), runs))
