"""Dates in expressions: ISO 8601 texts, or seconds since 1970, always told in UTC and always in English."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ..errors import TemplateError
from ..values import described, is_number

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def moment(value: Any) -> datetime:
    """The time that a text or a number means. A text without a time zone is taken as UTC."""
    try:
        if is_number(value):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str) and len(value) <= 64:
            found = datetime.fromisoformat(value.strip())
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise TemplateError(f"{described(value)} is no date: expected ISO 8601, as 2026-01-15T10:30:00Z, or seconds")


def formatted(when: datetime, form: str) -> str:
    """
    >>> formatted(moment("2026-01-15T10:30:00Z"), "%d %b %Y, %H:%M")
    '15 Jan 2026, 10:30'
    """
    parts = form.split("%")
    made = [parts[0]]
    escaped = False
    for each in parts[1:]:
        if escaped:  # what follows %%
            made.append(each)
            escaped = False
        elif not each:
            made.append("%")
            escaped = True
        else:
            made.append(_directive(when, each[0]) + each[1:])
    return "".join(made)


def _directive(when: datetime, letter: str) -> str:
    words = {
        "Y": f"{when.year:04}",
        "y": f"{when.year % 100:02}",
        "m": f"{when.month:02}",
        "d": f"{when.day:02}",
        "H": f"{when.hour:02}",
        "I": f"{(when.hour - 1) % 12 + 1:02}",
        "M": f"{when.minute:02}",
        "S": f"{when.second:02}",
        "f": f"{when.microsecond:06}",
        "p": "AM" if when.hour < 12 else "PM",
        "j": f"{when.timetuple().tm_yday:03}",
        "A": _DAYS[when.weekday()],
        "a": _DAYS[when.weekday()][:3],
        "B": _MONTHS[when.month - 1],
        "b": _MONTHS[when.month - 1][:3],
        "V": f"{when.isocalendar().week:02}",
        "G": f"{when.isocalendar().year:04}",
        "z": "+0000",
        "Z": "UTC",
    }
    if letter not in words:
        raise TemplateError(f"unknown date format %{letter}; there are {' '.join('%' + each for each in words)}")
    return words[letter]


def shifted(when: datetime, **amounts: Any) -> datetime:
    for name, amount in amounts.items():
        if not is_number(amount):
            raise TemplateError(f"shift({name}=...) needs a number, not {described(amount)}")
    try:
        return when + timedelta(**amounts)
    except (OverflowError, ValueError):
        raise TemplateError(f"the date {iso(when)} cannot be shifted that far") from None


def iso(when: datetime) -> str:
    """`2026-01-15T10:30:00Z`, with a fraction only if there is one."""
    return when.replace(tzinfo=None).isoformat() + "Z"
