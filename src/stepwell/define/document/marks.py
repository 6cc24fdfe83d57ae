"""The lines and columns of values in a text."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from json.decoder import scanstring  # type: ignore[attr-defined]

from ...base.forms.problems import Path


class Mark:
    """The place of a YAML value, and of everything in it."""

    __slots__ = ("children", "column", "line")

    def __init__(self, line: int, column: int) -> None:
        self.line = line
        self.column = column
        self.children: dict[str | int, Mark] = {}

    def at(self, path: Path) -> tuple[int, int]:
        mark = self
        for part in path:
            child = mark.children.get(part)
            if child is None:
                break
            mark = child
        return (mark.line, mark.column)


_LINE = re.compile(r"\r\n|\r|\n")
_SPACE = re.compile(r"[ \t\n\r]*+")


class JsonMarks:
    """The places in a JSON text that was read before. Only the way to a problem is looked through; what lies beside it is
    skipped by the parser, which is quick: there may be a million dependencies."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._skip = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
        self._inside: dict[int, dict[str | int, int]] = {}
        self._lines: list[int] | None = None

    def at(self, path: Path) -> tuple[int, int]:
        offset = self._after_space(0)
        for part in path:
            child = self._children(offset).get(part)
            if child is None:
                break
            offset = child
        if self._lines is None:
            self._lines = [0, *(line.end() for line in _LINE.finditer(self._text))]
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def _children(self, offset: int) -> dict[str | int, int]:
        """Where the values of a list or an object begin."""
        known = self._inside.get(offset)
        if known is None:
            known = self._inside[offset] = self._read_children(offset)
        return known

    def _read_children(self, offset: int) -> dict[str | int, int]:
        text, children = self._text, dict[str | int, int]()
        if text[offset] not in "[{":
            return children
        is_object, at = text[offset] == "{", self._after_space(offset + 1)
        while text[at] not in "]}":
            key: str | int = len(children)
            if is_object:
                key, at = scanstring(text, at + 1)
                at = self._after_space(self._after_space(at) + 1)
            children[key] = at
            _, at = self._skip(text, at)
            at = self._after_space(at)
            if text[at] == ",":
                at = self._after_space(at + 1)
        return children

    def _after_space(self, offset: int) -> int:
        spaces = _SPACE.match(self._text, offset)
        return offset if spaces is None else spaces.end()
