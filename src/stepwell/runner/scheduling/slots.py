"""How many bodies of each kind this worker holds, how many it may run at once, and how many it claims ahead."""

from __future__ import annotations

from .backpressure import KINDS
from .batches import Limits
from .claim_ahead import AHEAD_WINDOW, MOST_TIMES, Pace


class Slots:
    """The slots of one worker, by kind of body."""

    __slots__ = ("_ahead", "_pace", "_took", "counts", "full", "most")

    def __init__(self, limits: Limits) -> None:
        self.most = {kind: limits.of(kind) for kind in KINDS}
        self.counts = dict.fromkeys(KINDS, 0)
        """How many bodies are held, running or claimed ahead."""
        self.full: set[str] = set()
        """The kinds without a free slot."""
        self._ahead = limits.queue_depth
        self._pace = {kind: Pace() for kind in KINDS}
        self._took = 0

    def take(self, kind: str) -> None:
        self.counts[kind] = count = self.counts[kind] + 1
        if count >= self.most[kind]:
            self.full.add(kind)

    def leave(self, kind: str) -> None:
        self.counts[kind] = count = self.counts[kind] - 1
        if count < self.most[kind] and self.full:
            self.full.discard(kind)

    def finished(self, kind: str, now: int, claimed_at: int) -> None:
        """A body of this kind has ended. What is claimed ahead depends on how many do so lately."""
        self._pace[kind].count(now, claimed_at)

    def committed(self, took: int) -> None:
        """A commit took this many microseconds. What is claimed ahead has to last until the next one is answered."""
        self._took = took
        for pace in self._pace.values():
            pace.window = max(AHEAD_WINDOW, took)

    def with_room(self, kind: str, pools: list[str], now: int, most: int) -> tuple[tuple[str, int], ...]:
        """The pools that have room, with the number of nodes to claim, up to `most`. Careful pools get only free slots."""
        if not pools:
            return ()
        free = self.most[kind] - self.counts[kind]
        ahead = 0 if kind == "process" else min(self._pace[kind].recent(now) * self._times(kind), self._ahead)
        if (free if pools[0].endswith("!") else free + ahead) <= 0:
            return ()
        return tuple([(pool, min(most, free if pool.endswith("!") else free + ahead)) for pool in pools])

    def _times(self, kind: str) -> int:
        """The factor for claiming ahead: above 1 if the worker ran out of work while it waited for the store."""
        if self.counts[kind]:
            return 1
        return max(1, min(self._took // max(self._pace[kind].lasted, 1), MOST_TIMES))
