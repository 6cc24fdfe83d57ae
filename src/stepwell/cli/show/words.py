"""Times and amounts in words, and back."""

from __future__ import annotations

import re

from ...base.clock import is_seconds
from ...base.words import count, duration, error_line, iso, one_line, shown
from ...engine.show.words import ago, how_far, local, plain
from ...errors import InputError

__all__ = ["ago", "count", "duration", "error_line", "how_far", "iso", "local", "one_line", "parse_age", "plain"]

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])\Z")


def parse_age(text: str) -> float:
    """`30d`, `12h`, `90s` in seconds."""
    match = _AGE.match(text.strip())
    if match is None:
        raise InputError(f"expected an age, a number and s, m, h, d or w, as in 30d, got {shown(text)}")
    age = float(match[1]) * _UNITS[match[2]]
    if not is_seconds(age):
        raise InputError(f"{shown(text)} is too old: at most ten years can be asked for")
    return age
