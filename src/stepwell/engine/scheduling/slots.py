"""How many bodies of each kind this worker holds, how many it may run at once, and how many it claims ahead."""

from __future__ import annotations

from collections.abc import Sequence

from ..bodies.kinds import KINDS, Limits

POOLS = {kind: (f"{kind}!", kind) for kind in KINDS}
"""The pools of each kind of body. The careful one has the nodes that must not be claimed ahead of a free slot. It comes
first: if the other were claimed ahead first, no slot would ever be free for it."""
CAREFUL = frozenset(careful for careful, _ in POOLS.values())


def pool_of(kind: str, *, careful: bool) -> str:
    return POOLS[kind][0 if careful else 1]


AHEAD_WINDOW = 50_000
"""Microseconds. Claim ahead as many bodies as finished within this time, or within one commit if that took longer."""

MOST_TIMES = 4
"""A worker that ran out of work, and whose commit took longer than its last body, claims up to this many times as much."""


class Pace:
    """Counts the bodies of one kind that finished lately."""

    __slots__ = ("_before", "_current", "_since", "lasted")

    def __init__(self) -> None:
        self.lasted = 0
        """Microseconds from claim to end of the body that finished last."""
        self._since = self._current = self._before = 0

    def count(self, now: int, claimed_at: int, window: int) -> None:
        self.lasted = now - claimed_at
        if now - self._since >= window:
            self._turn(now, window)
        self._current += 1

    def recent(self, now: int, window: int) -> int:
        """How many finished in this window of time and the one before."""
        if now - self._since >= window:
            self._turn(now, window)
        return self._current + self._before

    def _turn(self, now: int, window: int) -> None:
        self._before = self._current if now - self._since < 2 * window else 0
        self._since, self._current = now, 0


class Slots:
    """The slots of one worker, by kind of body."""

    __slots__ = ("_ahead", "_pace", "_took", "_window", "counts", "full", "most", "most_held")

    def __init__(self, limits: Limits) -> None:
        self.most = {kind: limits.of(kind) for kind in KINDS}
        self.counts = dict.fromkeys(KINDS, 0)
        """How many bodies are held, running or claimed ahead."""
        self.most_held = dict.fromkeys(KINDS, 0)
        """The most that were held at once. Updated only while no slot is free."""
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
        with_ahead = free if not KINDS[kind].claimed_ahead else free + self._ahead_of(kind, now)
        found: list[tuple[str, int]] = []
        for pool in pools:
            room = free if pool in CAREFUL else with_ahead
            if room <= 0:  # if the careful pool has none, the other must not take the next free slot from it
                break
            found.append((pool, room if room < most else most))
        return tuple(found)

    def _ahead_of(self, kind: str, now: int) -> int:
        """How many bodies to claim beyond the free slots: as many as ended lately."""
        pace = self._pace[kind]
        ahead = pace.recent(now, self._window)
        if not self.counts[kind]:  # it ran out of work while it waited for the store
            times = self._took // (pace.lasted or 1)
            if times > 1:
                ahead *= times if times < MOST_TIMES else MOST_TIMES
        return ahead if ahead < self._ahead else self._ahead
