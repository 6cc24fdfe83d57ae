"""Where two JSON values or graphs differ, as texts for people: in a comparison of runs, and in a replay."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from ..base.codec import decode, json_path
from ..core.graph import Graph
from ..core.graph.document import node_document
from .effects.record import masked_value

MOST_CHANGES = 20
"""How many places are listed; then only that there are more."""
LARGEST_DECODED = 1_000_000
"""Bytes; of a larger value only the size is shown."""
VALUE_UP_TO = 120
"""Characters of a value that are shown."""
_BEFORE = 30
"""How many of them stand before the first difference of two long texts."""
NOTHING: Any = object()
"""Stands where one of two values has no such place."""
Path = tuple[str | int, ...]


class Difference(NamedTuple):
    """One place in JSON that differs. Values are shown as JSON, shortened; None where there is nothing."""

    path: str
    first: str | None
    second: str | None

    def __str__(self) -> str:
        if self == MORE:
            return "and more"
        if self.first is None or self.second is None:
            side = "second" if self.first is None else "first"
            return f"{self.path}: only in the {side}: {self.first or self.second}"
        return f"{self.path}: {self.first} / {self.second}"

    def since_recorded(self) -> str:
        """The same for a record and what is there now."""
        if self == MORE:
            return "and more"
        return f"{self.path}: recorded {self.first or 'nothing'}, now {self.second or 'nothing'}"


MORE = Difference("$ ...", "more", "more")


def json_changes(first: bytes | None, second: bytes | None) -> tuple[Difference, ...]:
    """Where two values that are kept as JSON differ.

    >>> [str(change) for change in json_changes(b'{"a":1,"b":[1,2]}', b'{"a":1,"b":[1,3],"c":null}')]
    ['$.b[1]: 2 / 3', '$.c: only in the second: null']
    """
    if first == second:
        return ()
    if max(len(first or b""), len(second or b"")) > LARGEST_DECODED:
        return (Difference("$", *(None if value is None else f"{len(value):,} bytes" for value in (first, second))),)
    return _bounded(_changes(*(NOTHING if value is None else decode(value) for value in (first, second))))


def graph_changes(first: Graph, second: Graph) -> tuple[Difference, ...]:
    """How the nodes that two graphs have in common differ. Secrets in their arguments are not shown."""
    return _bounded(_graph_changes(first, second))


def differences(recorded: Any, now: Any) -> tuple[str, ...]:
    """One line for each place where a value differs from the recorded one.

    >>> differences({"total": 12, "lines": [1, 2]}, {"total": 13, "lines": [1]})
    ('$.lines[1]: recorded 2, now nothing', '$.total: recorded 12, now 13')
    """
    return tuple(change.since_recorded() for change in _bounded(_changes(recorded, now)))


def graph_differences(recorded: Graph, now: Graph) -> tuple[str, ...]:
    """One line for each node that is gone, is new or has changed since a graph was recorded."""
    lines = [f"{spec.id}: it is gone" for spec in recorded if spec.id not in now.nodes]
    lines += [f"{spec.id}: it is new" for spec in now if spec.id not in recorded.nodes]
    lines += [change.since_recorded() for change in islice(_graph_changes(recorded, now), MOST_CHANGES + 1)]
    if len(lines) > MOST_CHANGES:
        return *lines[:MOST_CHANGES], "and more"
    return tuple(lines) or ("the same nodes, declared in another order",)


def differing(first: Any, second: Any) -> Iterator[tuple[Path, Any, Any]]:
    """The places where two JSON values differ, each with what stands there; NOTHING where one has no such place.

    1, 1.0 and true are equal in Python, but not in JSON.
    """
    stack: list[tuple[Path, Any, Any]] = [((), first, second)]
    while stack:
        path, one, other = stack.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            keys: Sequence[str | int] = sorted({*one, *other})
            stack += [((*path, key), one.get(key, NOTHING), other.get(key, NOTHING)) for key in reversed(keys)]
        elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
            places = enumerate(zip_longest(one, other, fillvalue=NOTHING))
            stack += reversed([((*path, place), *pair) for place, pair in places])
        elif type(one) is not type(other) or one != other:
            yield path, one, other


def _changes(first: Any, second: Any, below: Path = ()) -> Iterator[Difference]:
    for path, one, other in differing(first, second):
        start = _first_difference(one, other)
        yield Difference(json_path((*below, *path)), _shown(one, start), _shown(other, start))


def _graph_changes(first: Graph, second: Graph) -> Iterator[Difference]:
    common: Mapping[Any, Any] = {} if first.digest == second.digest else second.nodes
    for spec in first:
        other = common.get(spec.id)
        if other is None or spec == other:
            continue
        here, there = node_document(spec), node_document(other)
        if here != there:
            changes = list(_changes(masked_value(here), masked_value(there), (spec.id,)))
            yield from changes or [Difference(json_path((spec.id,)), "a secret", "another secret")]


def _bounded(changes: Iterable[Difference]) -> tuple[Difference, ...]:
    listed = tuple(islice(changes, MOST_CHANGES + 1))
    return listed if len(listed) <= MOST_CHANGES else (*listed[:MOST_CHANGES], MORE)


def _first_difference(first: Any, second: Any) -> int:
    if not isinstance(first, str) or not isinstance(second, str):
        return 0
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(first), len(second)))


def _shown(value: Any, start: int) -> str | None:
    """Short JSON; of a long text, the part around the first difference."""
    if value is NOTHING:
        return None
    if isinstance(value, str):
        begin = start - _BEFORE if start > VALUE_UP_TO - _BEFORE else 0
        text = json.dumps(value[begin : begin + VALUE_UP_TO], ensure_ascii=False)
        return f"{'… ' if begin else ''}{text}{' …' if len(value) > begin + VALUE_UP_TO else ''}"
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= VALUE_UP_TO else f"{text[:VALUE_UP_TO]} …"
