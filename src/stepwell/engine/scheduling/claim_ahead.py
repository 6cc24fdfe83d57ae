"""How much to claim ahead of free slots: as much as has finished lately."""

from __future__ import annotations

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
