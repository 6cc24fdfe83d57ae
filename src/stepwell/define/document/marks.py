"""Where the values of a text stand: a tree of lines and columns, as deep as the values are."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any

from .problems import Path


class Mark:
    """The place of a value, and of everything in it; `key` is that of the key it stands under."""

    __slots__ = ("children", "column", "key", "line")

    def __init__(self, line: int, column: int, key: tuple[int, int] | None = None) -> None:
        self.line = line
        self.column = column
        self.key = key
        self.children: dict[str | int, Mark] = {}

    def at(self, path: Path) -> tuple[int, int]:
        """Line and column of what stands at a path, from 1; of what is not there those of the nearest that is."""
        mark = self
        for part in path:
            found = mark.children.get(part)
            if found is None:
                break
            mark = found
        return (mark.line, mark.column)


_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[][{},:]|[^][{},:\s"]++', re.DOTALL)
_LINE = re.compile(r"\r\n|\r|\n")


def marks_of_json(text: str) -> Mark:
    """The places of a JSON text that has been read. Made only when somebody must be told where something is."""
    import json

    starts = [0, *(found.end() for found in _LINE.finditer(text))]

    def place(offset: int) -> tuple[int, int]:
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    root: Mark | None = None
    stack: list[tuple[Mark, bool]] = []
    key: Any = None
    key_place: tuple[int, int] | None = None
    awaits_key = False
    for token in _TOKEN.finditer(text):
        word = token.group()
        first = word[0]
        if first in "]}":
            stack.pop()
            awaits_key = False
        elif first == ",":
            awaits_key = stack[-1][1]
        elif first == ":":
            awaits_key = False
        elif awaits_key:
            key, key_place = json.loads(word), place(token.start())
        else:
            mark = Mark(*place(token.start()), key_place)
            if not stack:
                root = mark
            else:
                parent, is_object = stack[-1]
                parent.children[key if is_object else len(parent.children)] = mark
            key_place = None
            if first in "[{":
                stack.append((mark, first == "{"))
                awaits_key = first == "{"
    return root or Mark(1, 1)
