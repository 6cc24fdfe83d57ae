"""Where two JSON values differ, in lines that people can read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ...codec import json_path
from ...graph import Graph
from ...graph.document import node_document
from ..effects.record import masked_value

SHOWN_UP_TO = 20
"""Places that are shown."""
_SHOWN = 120
_BEFORE = 30
_LEFT_OUT = "… "
_ABSENT: Any = object()


def differences(recorded: Any, now: Any) -> tuple[str, ...]:
    """One line for each place that differs, the first of them if there are many.

    >>> differences({"total": 12, "lines": [1, 2]}, {"total": 13, "lines": [1]})
    ('$.lines[1]: recorded 2, now nothing', '$.total: recorded 12, now 13')
    """
    found = tuple(islice(_between(recorded, now, ()), SHOWN_UP_TO + 1))
    return found if len(found) <= SHOWN_UP_TO else (*found[:SHOWN_UP_TO], "and more")


def graph_differences(recorded: Graph, now: Graph) -> tuple[str, ...]:
    """What became of the nodes of a graph. Secrets in their arguments are not shown."""
    before, after = ({spec.id: node_document(spec) for spec in graph} for graph in (recorded, now))
    gone = [f"{node}: it is gone" for node in before if node not in after]
    joined = [f"{node}: it is new" for node in after if node not in before]
    changed = [
        f"{node}: {line.removeprefix('$.')}"
        for node, document in before.items()
        if node in after and document != after[node]
        for line in differences(masked_value(document), masked_value(after[node])) or ("a secret in it is another one",)
    ]
    found = [*gone, *joined, *changed] or ["the same nodes, declared in another order"]
    return tuple(found) if len(found) <= SHOWN_UP_TO else (*found[:SHOWN_UP_TO], "and more")


def _between(recorded: Any, now: Any, path: tuple[str | int, ...]) -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(now, dict):
        for key in sorted(recorded.keys() | now.keys()):
            yield from _between(recorded.get(key, _ABSENT), now.get(key, _ABSENT), (*path, key))
    elif isinstance(recorded, list | tuple) and isinstance(now, list | tuple):
        for place in range(max(len(recorded), len(now))):
            yield from _between(_at(recorded, place), _at(now, place), (*path, place))
    elif type(recorded) is not type(now) or recorded != now:  # 1, 1.0 and true are equal in Python, not in JSON
        start = _first_difference(recorded, now)
        yield f"{json_path(path)}: recorded {_shown(recorded, start)}, now {_shown(now, start)}"


def _at(values: Any, place: int) -> Any:
    return values[place] if place < len(values) else _ABSENT


def _first_difference(recorded: Any, now: Any) -> int:
    if not isinstance(recorded, str) or not isinstance(now, str):
        return 0
    pairs = enumerate(zip(recorded, now, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(recorded), len(now)))


def _shown(value: Any, start: int = 0) -> str:
    """As JSON and not too long; of a long text what is around the first difference."""
    if value is _ABSENT:
        return "nothing"
    if isinstance(value, str):
        begin = start - _BEFORE if start > _SHOWN - _BEFORE else 0
        text = json.dumps(value[begin : begin + _SHOWN], ensure_ascii=False)
        cut_off = " …" if len(value) > begin + _SHOWN else ""
        return f"{_LEFT_OUT if begin else ''}{text}{cut_off}"
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + " …"
