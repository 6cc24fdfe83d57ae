"""How many bodies of each kind this worker holds, how many it may hold, and how many it claims ahead of that."""

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
        """How many are held."""
        self.full: set[str] = set()
        """The kinds of which all slots are taken."""
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
        """A body of this kind has ended: as many as do so in a moment are claimed ahead."""
        self._pace[kind].count(now, claimed_at)

    def committed(self, took: int) -> None:
        """A commit was answered after so many microseconds: what is claimed ahead has to last until the next answer."""
        self._took = took
        for pace in self._pace.values():
            pace.window = max(AHEAD_WINDOW, took)

    def with_room(self, kind: str, pools: list[str], now: int, most: int) -> tuple[tuple[str, int], ...]:
        """Those of the pools for which there is room, with how much: for careful ones only what is free now."""
        if not pools:
            return ()
        free = self.most[kind] - self.counts[kind]
        ahead = 0 if kind == "process" else min(self._pace[kind].recent(now) * self._times(kind), self._ahead)
        if (free if pools[0].endswith("!") else free + ahead) <= 0:
            return ()
        return tuple([(pool, min(most, free if pool.endswith("!") else free + ahead)) for pool in pools])

    def _times(self, kind: str) -> int:
        """How many times as much it could have done as it did, at least: it has nothing left, and has waited since."""
        if self.counts[kind]:
            return 1
        return max(1, min(self._took // max(self._pace[kind].lasted, 1), MOST_TIMES))
