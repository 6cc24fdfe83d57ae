"""Times and amounts in words."""

from __future__ import annotations

import re
from datetime import datetime

from ...base.clock import SECOND
from ...base.words import one_line
from ...core.model.lines import Progress

_SIZES = {"h": 3_600, "m": 60, "s": 1}
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def ago(then: int, now: int) -> str:
    """How long ago a time of the store was; after a day, the date."""
    seconds = max(0, now - then) / SECOND
    if seconds < 86_400:
        size, unit = next((size, unit) for unit, size in _SIZES.items() if seconds >= size or unit == "s")
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
    """Without control characters: what a body reports may come from anywhere."""
    return _CONTROL.sub("", text)
