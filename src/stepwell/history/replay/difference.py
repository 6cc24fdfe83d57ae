"""Lists where two JSON values or graphs differ, for people."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

from ...base.codec import json_path
from ...core.graph import Graph
from ...core.graph.document import node_document
from ..comparing import NOTHING, differing
from ..effects.record import masked_value

SHOWN_UP_TO = 20
"""Places that are shown."""
_SHOWN = 120
_BEFORE = 30
_LEFT_OUT = "… "


def differences(recorded: Any, now: Any) -> tuple[str, ...]:
    """One line for each place that differs, at most 20.

    >>> differences({"total": 12, "lines": [1, 2]}, {"total": 13, "lines": [1]})
    ('$.lines[1]: recorded 2, now nothing', '$.total: recorded 12, now 13')
    """
    return _first([_line(*each) for each in islice(differing(recorded, now), SHOWN_UP_TO + 1)])


def graph_differences(recorded: Graph, now: Graph) -> tuple[str, ...]:
    """How the nodes of two graphs differ. Secrets in their arguments are not shown."""
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
    return _first(found)


def _first(lines: list[str]) -> tuple[str, ...]:
    return tuple(lines) if len(lines) <= SHOWN_UP_TO else (*lines[:SHOWN_UP_TO], "and more")


def _line(path: tuple[str | int, ...], recorded: Any, now: Any) -> str:
    start = _first_difference(recorded, now)
    return f"{json_path(path)}: recorded {_shown(recorded, start)}, now {_shown(now, start)}"


def _first_difference(recorded: Any, now: Any) -> int:
    if not isinstance(recorded, str) or not isinstance(now, str):
        return 0
    pairs = enumerate(zip(recorded, now, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(recorded), len(now)))


def _shown(value: Any, start: int = 0) -> str:
    """Short JSON; of a long text, the part around the first difference."""
    if value is NOTHING:
        return "nothing"
    if isinstance(value, str):
        begin = start - _BEFORE if start > _SHOWN - _BEFORE else 0
        text = json.dumps(value[begin : begin + _SHOWN], ensure_ascii=False)
        cut_off = " …" if len(value) > begin + _SHOWN else ""
        return f"{_LEFT_OUT if begin else ''}{text}{cut_off}"
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + " …"
