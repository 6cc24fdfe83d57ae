"""How many bodies of each kind this worker holds, how many it may run at once, and how many it claims ahead."""

from __future__ import annotations

from collections.abc import Sequence

from .backpressure import KINDS
from .batches import Limits
from .claim_ahead import AHEAD_WINDOW, MOST_TIMES, Pace
from .ready_pools import CAREFUL


class Slots:
    """The slots of one worker, by kind of body."""

    __slots__ = ("_ahead", "_pace", "_took", "_window", "counts", "full", "most")

    def __init__(self, limits: Limits) -> None:
        self.most = {kind: limits.of(kind) for kind in KINDS}
        self.counts = dict.fromkeys(KINDS, 0)
        """How many bodies are held, running or claimed ahead."""
        self.full: set[str] = set()
        """The kinds without a free slot."""
        self._ahead = limits.queue_depth
        self._pace = {kind: Pace() for kind in KINDS}
        self._took, self._window = 0, AHEAD_WINDOW

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
        self._pace[kind].count(now, claimed_at, self._window)

    def committed(self, took: int) -> None:
        """A commit took this many microseconds. What is claimed ahead has to last until the next one is answered."""
        self._took, self._window = took, took if took > AHEAD_WINDOW else AHEAD_WINDOW

    def with_room(self, kind: str, pools: Sequence[str], now: int, most: int) -> tuple[tuple[str, int], ...]:
        """The pools that have room, with the number of nodes to claim, up to `most`. Careful pools get only free slots."""
        free = self.most[kind] - self.counts[kind]
        with_ahead = free if kind == "process" else free + self._ahead_of(kind, now)
        found: list[tuple[str, int]] = []
        for pool in pools:
            room = free if pool in CAREFUL else with_ahead
            if room <= 0:  # if the careful pool has none, the other must not take the next free slot from it
                break
            found.append((pool, room if room < most else most))
        return tuple(found)

    def pass_on(self, kind: str, now: int, claimed_at: int) -> None:
        """The only body that was held has ended, and another is claimed. What `leave` and `finished` do."""
        self.counts[kind] -= 1
        self._pace[kind].count(now, claimed_at, self._window)

    def _ahead_of(self, kind: str, now: int) -> int:
        """How many bodies to claim beyond the free slots: as many as ended lately."""
        pace = self._pace[kind]
        ahead = pace.recent(now, self._window)
        if not self.counts[kind]:  # it ran out of work while it waited for the store
            times = self._took // (pace.lasted or 1)
            if times > 1:
                ahead *= times if times < MOST_TIMES else MOST_TIMES
        return ahead if ahead < self._ahead else self._ahead
