"""A clock for the conformance suite on a store whose time is that of a server: it runs by itself and can only be shifted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stepwell.base.clock import SECOND, Clock, WallClock

TOLERANCE = 5 * SECOND


class Roughly(int):
    """A time that is the same as one a little later, because the clock runs while a test does."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and abs(int(self) - int(other)) <= TOLERANCE

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> Roughly:
        return Roughly(int(self) + int(other))

    def __sub__(self, other: Any) -> Roughly:
        return Roughly(int(self) - int(other))


class RunningClock:
    """`read` is the clock of the server. The store adds `offset` to it, in microseconds, whenever it asks for the time."""

    def __init__(self, read: Callable[[], int] | None = None) -> None:
        self._read = read or WallClock().now
        self.offset = 0

    def now(self) -> int:
        return Roughly(self._read() + self.offset)

    def advance(self, seconds: float) -> None:
        self.offset += int(seconds * SECOND)


class PlainTime:
    """The time of another clock, as an ordinary number: for a store that keeps it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> int:
        return int(self._clock.now())
