"""Back-pressure: every slot for a kind of body is taken, and ready work is left in the store for want of room.

It is active from then until none waits any more, so a fan-out of any width is one block. A plain object: no threads, no
clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Literal, NamedTuple

from ...clock import SECOND

KINDS = ("thread", "loop", "process")
TELL_EVERY = SECOND
"""A beginning is told at most this often for each kind of body: work that comes in many short bursts is no news."""
MAX_RUNS_COUNTED = 1_000
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

    def update(self, kind: str, held: int, limit: int, waiting: Callable[[], Iterable[int]], now: int) -> None:
        """Where it is active already, or there is no room: how much waits of each run, at most."""
        state = self._by_kind[kind]
        if any(waiting()):
            if state.since is None:
                state.since = now
                state.blocks += 1
                self.active.add(kind)
            # One that began too soon after the last is told late, if it is still active then.
            told_lately = state.told_at is not None and now - state.told_at < TELL_EVERY
            if not (state.told or told_lately):
                state.told, state.told_at = True, now
                self._tell(kind, "began", held, limit, _together(waiting()), now - state.since)
        elif state.since is not None:
            lasted = now - state.since
            state.spent += lasted
            state.since = None
            self.active.discard(kind)
            if state.told:
                state.told = False
                self._tell(kind, "ended", held, limit, 0, lasted)

    def blocks(self, kind: str) -> int:
        """How often it was state."""
        return self._by_kind[kind].blocks

    def spent(self, kind: str, now: int) -> int:
        """For how many microseconds it was active in all, until now."""
        state = self._by_kind[kind]
        return state.spent + (0 if state.since is None else now - state.since)

    def _tell(
        self, kind: str, state: Literal["began", "ended"], held: int, limit: int, waiting: int | None, lasted: int
    ) -> None:
        seconds = lasted / SECOND
        self.news.append(BackpressureEvent(kind, state, held, limit, waiting, seconds, self.blocks(kind)))


def _together(waiting: Iterable[int]) -> int | None:
    found = list(islice(waiting, MAX_RUNS_COUNTED + 1))
    return sum(found) if len(found) <= MAX_RUNS_COUNTED else None
