"""When a worker that hears hints looks: not all at once, and not for what another has taken meanwhile."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence

from ....base.ids import RunId, WorkerId
from ...model import Hint

ANYTHING = Hint()
"""Stands for a hint that does not say what of: something may have happened."""
SHORTEST_SECONDS = 0.005
LONGEST_SPREAD_SECONDS = 0.5
KEPT = 1_000
"""Hints that are remembered for those who are slow to ask."""


def spread(workers: int, commit_seconds: float) -> float:
    """Within how many seconds those who hear of work look for it, when there are so many: one after the other, on average, each
    after the time that the one before needs to claim it and to tell of that."""
    return min(LONGEST_SPREAD_SECONDS, max(SHORTEST_SECONDS, 5 * commit_seconds) * max(0, workers - 1))


def hint_of(text: str | bytes) -> Hint | None:
    """The hint that was sent as this text; None if it is none. Whoever can write to the server may send anything.

    >>> hint_of('[["gpu"], ["r-1"]]')
    Hint(queues=('gpu',), runs=('r-1',), workers=(), started=(), taken=(), senders=())
    >>> hint_of('[[["gpu"]]]')
    """
    try:
        parts = json.loads(text)
        if all(type(part) is list and all(type(name) is str for name in part) for part in parts):
            return Hint(*map(tuple, parts))
    except (ValueError, TypeError, RecursionError):
        pass
    return None


def together(hints: Sequence[Hint]) -> Hint:
    """One hint instead of several.

    >>> together([Hint(("a",), started=("r-1",)), Hint(("b",), started=("r-2",))])[:4]
    (('a', 'b'), (), (), ('r-1', 'r-2'))
    >>> together([Hint(("a",), started=("r-1",)), Hint(("a",))]).started
    ()
    """
    if ANYTHING in hints:
        return ANYTHING
    merged = Hint._make(
        tuple(dict.fromkeys(one for part in parts for one in part)) for parts in zip(*hints, strict=True)
    )
    if any(hint.queues and not hint.started for hint in hints):
        merged = merged._replace(started=())
    return merged if len({hint.senders for hint in hints}) == 1 else merged._replace(senders=())


class Looking:
    """What one worker has heard of and not looked for yet. The time is an argument."""

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self.at: float | None = None
        """When to look."""
        self._started: set[RunId] | None = None
        """For which runs; None: for more than is known."""

    def hear(
        self,
        hint: Hint,
        queues: Collection[str] | None,
        runs: Collection[RunId],
        worker: WorkerId,
        now: float,
        spread: float,
    ) -> None:
        """`queues` (all, if None), `runs` and `worker`: what this worker wants to hear of."""
        if worker in hint.senders:
            return
        if hint == ANYTHING or worker in hint.workers or any(run in runs for run in hint.runs):
            self._look(now, ())
        elif hint.queues if queues is None else not set(queues).isdisjoint(hint.queues):
            self._look(now + spread * self._chance(), hint.started)
        if self._started is not None:
            self._started.difference_update(hint.taken)
            if not self._started:
                self.at = self._started = None

    def is_due(self, now: float) -> bool:
        """Whether to look now; if so, that is done."""
        if self.at is None or self.at > now:
            return False
        self.at = self._started = None
        return True

    def _look(self, at: float, started: Collection[RunId]) -> None:
        if self.at is None:
            self.at, self._started = at, set(started) or None
            return
        self.at = min(self.at, at)
        self._started = self._started | set(started) if self._started is not None and started else None


class Heard:
    """The hints that came to this process, and which of its workers have to look."""

    def __init__(self) -> None:
        self.spread = 0.0
        """Within how many seconds those who hear of work look for it."""
        self.looking: dict[WorkerId, Looking] = {}
        self._hints: deque[tuple[int, Hint]] = deque(maxlen=KEPT)
        self._last = 0
        self._told: dict[WorkerId, int] = {}
        """The last hint that each worker has heard."""
        self._changed = threading.Condition()
        self._closed = False
        self._sweep_seconds = 0.0

    def note(self, hint: Hint) -> None:
        with self._changed:
            self._last += 1
            self._hints.append((self._last, hint))
            self._changed.notify_all()

    def wait(self, queues: Collection[str] | None, runs: Collection[RunId], worker: WorkerId, timeout: float) -> bool:
        give_up_at = time.monotonic() + timeout
        with self._changed:
            self._told.setdefault(worker, self._last)
            looking = self.looking.setdefault(worker, Looking())
            while not self._closed:
                self._hear(looking, queues, runs, worker)
                now = time.monotonic()
                if looking.is_due(now):
                    return True
                if now >= give_up_at:
                    return False
                self._changed.wait(min(give_up_at, looking.at or give_up_at) - now)
        return False

    def swept(self, workers: int, seconds: float) -> None:
        """A sweep took so long; it tells how many workers there are, and is as small as a claim."""
        self._sweep_seconds += (seconds - self._sweep_seconds) / 4
        self.spread = spread(workers, self._sweep_seconds)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _hear(
        self, looking: Looking, queues: Collection[str] | None, runs: Collection[RunId], worker: WorkerId
    ) -> None:
        before, self._told[worker] = self._told[worker], self._last
        heard = [hint for number, hint in self._hints if number > before] if before < self._last else []
        if len(heard) < self._last - before:
            heard.append(ANYTHING)  # there was more than is remembered
        for hint in heard:
            looking.hear(hint, queues, runs, worker, time.monotonic(), self.spread)
