"""Times and durations as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from ..base.clock import SECOND, is_seconds

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DURATION = re.compile(r"(?:(\d{1,9})w)?(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?")
_UNITS = (604_800, 86_400, 3_600, 60, 1)


def duration(value: Any) -> float | None:
    """
    >>> duration("1h30m"), duration("15m"), duration(90), duration("soon")
    (5400, 900, 90, None)
    """
    if isinstance(value, str):
        match = _DURATION.fullmatch(value.replace(" ", "").lower()[:60])
        if match is None or not any(match.groups()):
            return None
        return sum(int(part or 0) * unit for part, unit in zip(match.groups(), _UNITS, strict=True))
    return value if is_seconds(value) else None


def moment(value: Any) -> int | None:
    """Microseconds since 1970 of a time as `2026-03-01T06:00:00Z`; None if it is no such text or has no offset."""
    if not isinstance(value, str) or len(value) > 60:
        return None
    try:
        time = datetime.fromisoformat(value)
        if time.tzinfo is None or not 1970 <= time.year < 9900:
            return None
        return int((time.astimezone(UTC) - EPOCH).total_seconds()) * SECOND
    except (ValueError, OverflowError):
        return None


def time_text(time: int) -> str:
    """
    >>> time_text(1_768_473_000_000_000), time_text(1_768_473_000_500_000)
    ('2026-01-15T10:30:00Z', '2026-01-15T10:30:00.500000Z')
    """
    utc = EPOCH + timedelta(microseconds=time)
    return utc.isoformat(timespec="microseconds" if time % SECOND else "seconds").replace("+00:00", "Z")
