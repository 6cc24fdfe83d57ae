"""Where something was written: every definition remembers it, and every error shows it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, NamedTuple

_ROOMS = tuple(f"{__package__}.{room}" for room in ("define.", "graph.", "place"))


class Place(NamedTuple):
    """A line of source, shown in the form that editors and terminals open: `orders.py:12`."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def caller() -> Place:
    """The line that led here, outside the rooms that people write workflows with (and `abc`, which builds classes)."""
    frame = _outside()
    return Place(frame.f_code.co_filename, frame.f_lineno)


def neighbours() -> Mapping[str, object]:
    """What has been defined so far where the caller stands: in its module, its function or its class body."""
    return _outside().f_locals


def place_of(function: Callable[..., Any]) -> Place:
    """The first line of a function, its decorators included; of a wrapped one, that of what it wraps."""
    code = getattr(inspect.unwrap(function), "__code__", None) or function.__code__
    return Place(code.co_filename, code.co_firstlineno)


def _outside() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return frame


def _is_ours(module: str) -> bool:
    return module == "abc" or module.startswith(_ROOMS)
