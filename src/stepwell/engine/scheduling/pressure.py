"""Back-pressure: all slots for a kind of body are taken while READY work waits in the store.

A kind is blocked from then until no work waits any more, so a fan-out of any width counts as one block. A plain object: no
threads, no clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Literal, NamedTuple

from ...base.clock import SECOND
from ...base.ids import RunId
from ..bodies.kinds import KINDS

TELL_EVERY = SECOND
"""Microseconds. The start of a block is reported at most this often for each kind: many short bursts are not news."""
MAX_RUNS_COUNTED = 1_000
MAX_RUNS_KEPT = 1_000
"""The cost of back-pressure is kept for this many runs: those that had to wait most recently."""
MAX_UNTOLD = 1_000


class BackpressureEvent(NamedTuple):
    """A kind of body has run out of slots while work waits in the store, or no work waits any more."""

    kind: str
    """The kind of body: `thread`, `loop` or `process`."""
    state: Literal["began", "ended"]
    held: int
    """How many attempts of this kind the worker holds, running or claimed ahead."""
    limit: int
    """How many bodies of this kind may run at once."""
    waiting: int | None
    """The most nodes that can be waiting in the store. Nodes of the same runs that wait for a retry, need another kind of body
    or run on other workers are counted too. None when there are too many runs to count."""
    seconds: float
    """How long the block has lasted."""
    blocks: int
    """How many blocks there were since the engine was opened. Short ones are counted, but not all are reported."""
    runs: Mapping[RunId, int]
    """The first 1,000 runs that wait, in the order they are served, each with the most nodes it can have waiting."""


class RunPressure(NamedTuple):
    """What back-pressure in one engine has cost one run."""

    blocks: int
    """How many times the run had READY work and no slot was free."""
    seconds: float
    """How long that lasted in total."""


class _KindState:
    """The back-pressure of one kind of body."""

    __slots__ = ("blocks", "since", "spent", "told", "told_at")

    def __init__(self) -> None:
        self.since: int | None = None
        """When the current block began; None if there is none."""
        self.told = False
        self.told_at: int | None = None
        self.blocks = 0
        self.spent = 0


class Pressure:
    """Measures how often and how long each kind of body was blocked, and collects what to report."""

    def __init__(self) -> None:
        self._by_kind = {kind: _KindState() for kind in KINDS}
        self.active: set[str] = set()
        """The kinds that are blocked now."""
        self.news: deque[BackpressureEvent] = deque(maxlen=MAX_UNTOLD)
        """Events to report, in order."""
        self.ever = False
        """Whether any kind was ever blocked. Until then no run has to be measured."""
        self._now = 0
        self._entered: dict[tuple[str, RunId], tuple[int, int]] = {}
        """For each kind and run that may have READY work: how long and how often the kind had been blocked when it got some."""
        self._runs: dict[RunId, RunPressure] = {}

    def update(
        self, kind: str, held: int, limit: int, waiting: Callable[[], Iterable[tuple[RunId, int]]], now: int
    ) -> None:
        """Start or end a block. Called when no slot of this kind is free, or the kind is blocked already.

        `waiting` yields the runs that may wait, each with the most nodes it can have waiting.
        """
        state = self._by_kind[kind]
        self._now = now
        if any(count for _, count in waiting()):
            self.ever = True
            if state.since is None:
                state.since = now
                state.blocks += 1
                self.active.add(kind)
            # A block that began too soon after the last report is reported later, if it still lasts then.
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
        """The run may have READY work for this kind of body. Needed only once a kind was `ever` blocked."""
        self._entered.setdefault((kind, run), (self.spent(kind, self._now), self.blocks(kind)))

    def left(self, kind: str, run: RunId) -> None:
        """The run has no READY work for this kind of body any more."""
        added = self._cost(kind, run)
        self._entered.pop((kind, run), None)
        if added is not None:
            before = self._runs.pop(run, RunPressure(0, 0.0))
            self._runs[run] = RunPressure(before.blocks + added.blocks, before.seconds + added.seconds)
            if len(self._runs) > MAX_RUNS_KEPT:
                del self._runs[next(iter(self._runs))]

    def of_runs(self, ready: Iterable[tuple[str, RunId]]) -> dict[RunId, RunPressure]:
        """What back-pressure has cost each run so far. `ready`: the kinds and runs that may have READY work now."""
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
        # A block that was under way when the run arrived counts for the run too.
        return RunPressure(max(1, self.blocks(kind) - blocks), waited / SECOND) if waited > 0 else None

    def blocks(self, kind: str) -> int:
        """How many blocks this kind has had."""
        return self._by_kind[kind].blocks

    def spent(self, kind: str, now: int) -> int:
        """For how many microseconds this kind was blocked in total, until now."""
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
