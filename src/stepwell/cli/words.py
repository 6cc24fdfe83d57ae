"""Times and amounts in words, and back."""

from __future__ import annotations

import re
from datetime import datetime

from ..clock import SECOND
from ..errors import InputError
from ..words import count, duration, iso, one_line

__all__ = ["ago", "count", "duration", "iso", "local", "one_line", "parse_age"]

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])\Z")


def parse_age(text: str) -> float:
    """`30d`, `12h`, `90s` in seconds."""
    found = _AGE.match(text.strip())
    if found is None:
        raise InputError(f"{text!r} is not an age: a number and s, m, h, d or w is needed, as in 30d")
    return float(found[1]) * _UNITS[found[2]]


def ago(then: int, now: int) -> str:
    """How long ago a time of the store was: for a day in words, after that the date."""
    seconds = max(0, now - then) / SECOND
    if seconds < 86_400:
        size, unit = next((_UNITS[unit], unit) for unit in "hms" if seconds >= _UNITS[unit] or unit == "s")
        return f"{int(seconds // size)} {unit} ago"
    return local(then)[:10]


def local(time: int) -> str:
    """A time of the store as people here read it: `2026-01-15 10:30:02`."""
    return datetime.fromtimestamp(time / SECOND).strftime("%Y-%m-%d %H:%M:%S")
