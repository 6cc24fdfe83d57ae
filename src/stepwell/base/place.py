"""Where something was written: every definition remembers it, and every error shows it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any

_PACKAGE = __package__.partition(".")[0]
_ROOMS = tuple(f"{_PACKAGE}.{room}" for room in ("define.", "core.graph.", "pipeline.", "base.place", "history."))


class SourceLine:
    """A line of source, shown in the form that editors and terminals open: `orders.py:12`.

    Python finds the number of a line by counting from the top of the file, which for every step of a long class is
    slow. So it is only counted when somebody asks.
    """

    __slots__ = ("_code", "_offset")

    def __init__(self, code: CodeType, offset: int = -1) -> None:
        self._code = code
        self._offset = offset

    @property
    def file(self) -> str:
        return self._code.co_filename

    @property
    def line(self) -> int:
        for start, end, line in self._code.co_lines():
            if start <= self._offset < end and line is not None:
                return line
        return self._code.co_firstlineno

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    __repr__ = __str__


def caller() -> SourceLine:
    """The line that led here, outside the rooms that people write workflows with (and `abc`, which builds classes)."""
    frame = _outside()
    return SourceLine(frame.f_code, frame.f_lasti)


def neighbours() -> Mapping[str, object]:
    """The names defined so far in the module, function or class body of the caller."""
    return _outside().f_locals


def place_of(function: Callable[..., Any]) -> SourceLine:
    """The first line of a function, including decorators; a wrapped function is unwrapped."""
    import inspect  # which takes longer to load than most definitions to check

    return SourceLine(getattr(inspect.unwrap(function), "__code__", None) or function.__code__)


def _outside() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "")
        if module != "abc" and not module.startswith(_ROOMS):
            break
        frame = frame.f_back
    return frame
