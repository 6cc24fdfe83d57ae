"""JSON that people wrote or edited, read with care: limits first, and nothing is silently dropped."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from ...base.codec import MAX_DEPTH, json_path
from ...errors import GraphError
from .check import GraphProblem

MAX_BYTES = 256 * 1024 * 1024

# An unterminated string extends to the end of the text, so that each character is scanned once.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS = re.compile(r"[^][{}]+")
_STEP = {"[": 1, "{": 1, "]": -1, "}": -1}


def parse(data: str | bytes, problems: list[GraphProblem], depth: int = MAX_DEPTH) -> Any:
    """What a JSON text says; a GraphError when it says nothing, or is nested deeper than `depth` levels.

    A key that an object has twice is added to the problems: `json` would keep the last one and be silent about it.
    """
    if len(data) > MAX_BYTES:
        raise _unreadable(f"it has {len(data):,} bytes; at most {MAX_BYTES:,} are allowed")
    objects = Objects()
    try:
        text = data if isinstance(data, str) else data.decode(json.detect_encoding(data))
        if too_deep(text, depth):
            raise _unreadable(f"it is nested deeper than {depth} levels")
        found = json.loads(text, object_pairs_hook=objects)
    except json.JSONDecodeError as error:
        raise _unreadable(f"it is not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except ValueError as error:  # not UTF-8, or a number of 5,000 digits
        raise _unreadable(f"it is not JSON: {error}") from None
    for path in objects.paths_in(found):
        problems.append(GraphProblem("graph", "this key is there more than once", path=json_path(path)))
    return found


def _unreadable(message: str) -> GraphError:
    return GraphError([GraphProblem("graph", message, path="$")])


def too_deep(text: str, most: int) -> bool:
    """Checked before parsing, because the parser recurses with every level."""
    brackets = _NOT_BRACKETS.sub("", _STRING.sub("", text))
    return any(depth > most for depth in accumulate(map(_STEP.__getitem__, brackets)))


def too_many(text: str, values: int, containers: int) -> bool:
    """Whether a JSON text may hold more values, or more lists and objects, than this. Counted before they are made."""
    return _many(text, values, containers) and _many(_STRING.sub("", text), values, containers)


def _many(text: str, values: int, containers: int) -> bool:
    inside = text.count("[") + text.count("{")
    return inside > containers or inside + text.count(",") > values


class Objects:
    """Makes a dict of every JSON object, and remembers those that had a key twice."""

    def __init__(self) -> None:
        self._repeated: dict[int, tuple[dict[str, Any], list[str]]] = {}
        """By the identity of the dict, which is kept here so that nothing else gets it."""

    def __call__(self, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            times = Counter(key for key, _ in pairs)
            self._repeated[id(made)] = made, [key for key in times if times[key] > 1]
        return made

    def paths_in(self, value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
        """Where the repeated keys are. They are only looked for when there are some."""
        if not self._repeated:
            return
        if isinstance(value, dict):
            for key in self._repeated.get(id(value), (value, []))[1]:
                yield (*path, key)
            for key, each in value.items():
                yield from self.paths_in(each, (*path, key))
        elif isinstance(value, list):
            for place, each in enumerate(value):
                yield from self.paths_in(each, (*path, place))
