"""How much is claimed ahead of free slots: as much as has finished lately."""

from __future__ import annotations

AHEAD_WINDOW = 50_000
"""Claim ahead as much as finished within this many microseconds, or while one commit took, if that was longer."""

MOST_TIMES = 4
"""A worker that has nothing left, and waited for the store longer than it worked, claims up to so many times as much."""


class Pace:
    """How many bodies finished lately: what may be claimed ahead of free slots."""

    __slots__ = ("_before", "_current", "_since", "lasted", "window")

    def __init__(self) -> None:
        self.window = AHEAD_WINDOW
        self.lasted = 0
        """How long the last of them took since it was claimed."""
        self._since = self._current = self._before = 0

    def count(self, now: int, claimed_at: int) -> None:
        self._turn(now)
        self._current += 1
        self.lasted = now - claimed_at

    def recent(self, now: int) -> int:
        self._turn(now)
        return self._current + self._before

    def _turn(self, now: int) -> None:
        age = now - self._since
        if age >= self.window:
            self._before = self._current if age < 2 * self.window else 0
            self._since, self._current = now, 0
