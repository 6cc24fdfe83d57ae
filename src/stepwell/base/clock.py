"""Clocks. Times are integers: microseconds since 1970, by the clock of the store.

A lease must not end because the wall clock was set, so the embedded store does not use it directly. `BootClock` counts from
the boot of the machine, including suspended time, plus a shift that is fixed once per boot by the wall clock. All processes
with the same shift see the same time, and it never goes back.
"""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, TypeAlias

SECOND = 1_000_000


class Clock(Protocol):
    def now(self) -> int:
        """Microseconds since 1970."""
        ...


class WallClock:
    """The wall clock. The named fallback where the system has no boot-time clock (macOS, Windows)."""

    def now(self) -> int:
        return time.time_ns() // 1_000


class ManualClock:
    """A clock that only moves when it is told to, for tests and simulation."""

    def __init__(self, start: int = 1_700_000_000 * SECOND) -> None:
        self._now = start

    def now(self) -> int:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += int(seconds * SECOND)


class BootClock:
    """Microseconds since boot plus a fixed shift."""

    def __init__(self, shift: int) -> None:
        self.shift = shift

    def now(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000 + self.shift


def has_boot_clock() -> bool:
    return hasattr(time, "CLOCK_BOOTTIME") and boot_id() is not None


def since_boot() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000


def boot_id() -> str | None:
    """What tells this boot of the machine from every other, or None where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


MAX_SECONDS = 10 * 365 * 86_400
"""The longest duration that is accepted: ten years. Stores and threads could not handle arbitrary ones."""
LONGEST_WAIT = 86_400.0
"""Seconds that a thread waits at once before it looks again: on some systems it cannot wait for as long as that."""
SECONDS_NEEDED = f"a number of seconds from 0 to {MAX_SECONDS:,} (ten years)"
POSITIVE_SECONDS_NEEDED = f"a positive number of seconds up to {MAX_SECONDS:,} (ten years)"


def is_seconds(value: object, *, positive: bool = False) -> bool:
    """Whether a value is a valid duration: the one rule for all of them.

    >>> [is_seconds(value) for value in (30, 0, 0.5, True, "30", float("nan"), 10**10)]
    [True, True, True, False, False, False, False]
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return (value > 0 if positive else value >= 0) and value <= MAX_SECONDS


Duration: TypeAlias = float | timedelta
"""How long something takes, as people give it: a number of seconds, or a timedelta."""


def in_seconds(value: Any) -> Any:
    """A timedelta as seconds; everything else unchanged, to be checked by `is_seconds`.

    >>> in_seconds(timedelta(minutes=2)), in_seconds(1.5)
    (120.0, 1.5)
    """
    return value.total_seconds() if isinstance(value, timedelta) else value


def microseconds(seconds: float) -> int:
    return int(seconds * SECOND)


def utc_text(seconds: float) -> str:
    """A time, given in seconds since 1970, as JSON and messages write it.

    >>> utc_text(1_768_473_000)
    '2026-01-15T10:30:00Z'
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
