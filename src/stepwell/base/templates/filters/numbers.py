"""Filters of numbers and dates. Dates are ISO 8601 texts, or seconds since 1970, always told in UTC and always in English."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from ..errors import TemplateError
from ..limits import Budget
from ..values import checked_number, described, is_number
from .arguments import NOT_GIVEN, Filter, whole_of

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
            time = datetime.fromisoformat(value.strip())
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
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


def reading(name: str, read: Callable[[Any], Any]) -> Filter:
    def number(budget: Budget, value: Any, default: Any = NOT_GIVEN) -> Any:
        try:
            if is_number(value) or (isinstance(value, str) and "_" not in value and len(value) <= 400):
                return checked_number(read(value))
        except (ValueError, OverflowError, TemplateError):
            pass
        if default is not NOT_GIVEN:
            return default
        raise TemplateError(f"{name}: {described(value)} is no {'whole number' if name == 'int' else 'number'}")

    return number


def cut(value: Any) -> int:
    """A whole number; what comes after the point is cut off."""
    try:
        return int(value)
    except ValueError:
        return int(float(value))


def round_(budget: Budget, value: Any, digits: Any = 0) -> Any:
    """Halves are rounded away from zero. Without digits the result is a whole number."""
    if not is_number(value):
        raise TemplateError(f"round needs a number, not {described(value)}")
    digits = whole_of(digits, "round", 0, 15)
    if abs(value) < 1e15:
        value = float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))
    return checked_number(value if digits else int(value))


def abs_(budget: Budget, value: Any) -> Any:
    if not is_number(value):
        raise TemplateError(f"abs needs a number, not {described(value)}")
    return abs(value)


def date(budget: Budget, value: Any, form: Any = "%Y-%m-%d") -> str:
    if type(form) is not str or len(form) > 200:
        raise TemplateError("date needs a format as '%d.%m.%Y', of at most 200 characters")
    return formatted(moment(value), form)


def timestamp(budget: Budget, value: Any) -> Any:
    seconds = moment(value).timestamp()
    return int(seconds) if seconds == int(seconds) else seconds


def shift(budget: Budget, value: Any, days: Any = 0, hours: Any = 0, minutes: Any = 0, seconds: Any = 0) -> str:
    return iso(shifted(moment(value), days=days, hours=hours, minutes=minutes, seconds=seconds))
