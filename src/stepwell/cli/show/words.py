"""Times and amounts in words, and back."""

from __future__ import annotations

import re
from datetime import datetime

from ...clock import SECOND, is_seconds
from ...errors import InputError
from ...model.lines import Progress
from ...words import count, duration, error_line, iso, one_line, shown

__all__ = ["ago", "count", "duration", "error_line", "how_far", "iso", "local", "one_line", "parse_age", "plain"]

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])\Z")


def parse_age(text: str) -> float:
    """`30d`, `12h`, `90s` in seconds."""
    found = _AGE.match(text.strip())
    if found is None:
        raise InputError(f"{text!r} is not an age: a number and s, m, h, d or w is needed, as in 30d")
    age = float(found[1]) * _UNITS[found[2]]
    if not is_seconds(age):
        raise InputError(f"{shown(text)} is too old: at most ten years can be asked for")
    return age


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


def how_far(progress: Progress) -> str:
    """
    >>> how_far(Progress(450, 1_000, "rows")), how_far(Progress(7.5))
    ('45 %, 450/1,000, rows', '7.5')
    """
    share = "" if progress.fraction is None else f"{int(100 * progress.fraction)} %"
    done = f"{progress.done:,}" if progress.total is None else f"{progress.done:,}/{progress.total:,}"
    return ", ".join(filter(None, (share, done, one_line(plain(progress.message or "")))))


def plain(text: str) -> str:
    """Without what a terminal would obey: what a body said may come from anywhere."""
    return _CONTROL.sub("", text)
