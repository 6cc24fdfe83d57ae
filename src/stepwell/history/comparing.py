"""Compares two runs: input, graphs and nodes. Pure: what is compared was read before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from ..base.codec import decode, json_path, text
from ..base.ids import NodeId, RunId
from ..core.graph import Graph, NodeSpec
from ..core.model import NodeStatus, RunStatus
from ..errors import NotJson

MOST_CHANGES = 20
"""How many places of one value are listed; then only that there are more."""
VALUE_UP_TO = 80
LARGEST_DECODED = 1_000_000
"""Bytes; of a larger value only the size is shown."""
NOTHING: Any = object()
"""Stands where one of two values has no such place."""
_OPTIONS = tuple(field for field in NodeSpec._fields if field not in ("id", "was"))


class NodeFacts(NamedTuple):
    """A node of one of the runs."""

    status: NodeStatus
    attempts: int
    seconds: float | None
    """The total time of its ended attempts."""
    output: str | None
    """A hash of its output; None until it has completed."""
    delta: str | None = None
    """A hash of its delta to the state; None if it has none."""


class Side(NamedTuple):
    """One of the two runs."""

    run_id: RunId
    workflow: str
    status: RunStatus
    seconds: float | None
    input: bytes
    graph: Graph
    nodes: Mapping[NodeId, NodeFacts]
    """Those of its present graph, in order."""


class Difference(NamedTuple):
    """One place in JSON that differs. Values are shown as JSON, shortened; None where there is nothing."""

    path: str
    first: str | None
    second: str | None

    def __str__(self) -> str:
        if self.first is None or self.second is None:
            return (
                f"{self.path}: only in the {'second' if self.first is None else 'first'}: {self.first or self.second}"
            )
        return f"{self.path}: {self.first} / {self.second}"


class Pair(NamedTuple):
    """A node as it is in both runs, or in one."""

    id: NodeId
    name: str
    first: NodeFacts | None
    second: NodeFacts | None
    differs: tuple[str, ...]
    """`output`, `delta` (to the state), `missing` (from one run), `status`, `attempts`; not the time, which always differs."""
    output: tuple[Difference, ...] = ()
    """Where the outputs differ; filled in only for the first nodes that differ in output or delta."""
    delta: tuple[Difference, ...] = ()
    """Where the deltas differ, of the same nodes."""

    @property
    def ratio(self) -> float | None:
        """The time of the second divided by that of the first."""
        if self.first is None or self.second is None or not self.first.seconds or self.second.seconds is None:
            return None
        return self.second.seconds / self.first.seconds


class Comparison(NamedTuple):
    """Two runs side by side; `same_outputs` and `same_deltas` say whether they had the same results."""

    first: Side
    second: Side
    pairs: tuple[Pair, ...]
    """All nodes of both; those that differ first."""
    input: tuple[Difference, ...]
    graph: tuple[Difference, ...]
    """Differences in the definition of common nodes: `$.ship.depends_on`."""

    @property
    def same_outputs(self) -> bool:
        return not any("output" in pair.differs for pair in self.pairs)

    @property
    def same_deltas(self) -> bool:
        """Whether the deltas of all nodes are equal; true without a state."""
        return not any("delta" in pair.differs for pair in self.pairs)

    @property
    def different(self) -> tuple[Pair, ...]:
        return tuple(pair for pair in self.pairs if pair.differs)

    def __str__(self) -> str:
        verdict = "the same outputs" if self.same_outputs else "different outputs"
        deltas = "" if self.same_deltas else ", different deltas"
        lines = [f"{self.first.run_id} and {self.second.run_id}: {verdict}{deltas}"]
        lines += [f"input {change}" for change in self.input]
        lines += [f"graph {change}" for change in self.graph]
        for pair in self.different[:MOST_CHANGES]:
            lines.append(f"{pair.name}: {', '.join(pair.differs)}")
            lines += [f"  {change}" for change in pair.output]
            lines += [f"  delta {change}" for change in pair.delta]
        return "\n".join(lines)


def compare(first: Side, second: Side) -> Comparison:
    """Compare two runs. Nodes with the same id are the same."""
    ids = [*first.nodes, *(node for node in second.nodes if node not in first.nodes)]
    pairs = [_pair(node, first, second) for node in ids]
    rank = {"output": 0, "delta": 1, "missing": 2, "status": 3, "attempts": 4}
    pairs.sort(key=lambda pair: min((rank[each] for each in pair.differs), default=len(rank)))
    graph = tuple(_bounded(_graph_changes(first.graph, second.graph)))
    return Comparison(first, second, tuple(pairs), json_changes(first.input, second.input), graph)


def _pair(node: NodeId, first: Side, second: Side) -> Pair:
    one, other = first.nodes.get(node), second.nodes.get(node)
    name = (first if one is not None else second).graph.nodes[node].name
    differs = [each for each in ("output", "delta") if getattr(one, each, None) != getattr(other, each, None)]
    if one is None or other is None:
        differs.append("missing")
    else:
        differs += [each for each in ("status", "attempts") if getattr(one, each) != getattr(other, each)]
    return Pair(node, name, one, other, tuple(differs))


def _graph_changes(first: Graph, second: Graph) -> Iterator[Difference]:
    both = {} if first.digest == second.digest else second.nodes
    for node, one in first.nodes.items():
        other = both.get(node)
        for option in () if other is None or one == other else _OPTIONS:
            here, there = getattr(one, option), getattr(other, option)
            if here != there:
                yield Difference(json_path((node, option)), _told(here), _told(there))


def json_changes(first: bytes | None, second: bytes | None) -> tuple[Difference, ...]:
    """Where two values that are kept as JSON differ.

    >>> [str(change) for change in json_changes(b'{"a":1,"b":[1,2]}', b'{"a":1,"b":[1,3],"c":null}')]
    ['$.b[1]: 2 / 3', '$.c: only in the second: null']
    """
    if first == second:
        return ()
    if max(len(first or b""), len(second or b"")) > LARGEST_DECODED:
        return (Difference("$", _size(first), _size(second)),)
    if first is None or second is None:
        given = [None if each is None else _told(decode(each)) for each in (first, second)]
        return (Difference("$", *given),)
    found = differing(decode(first), decode(second))
    return tuple(_bounded(Difference(json_path(path), _told(one), _told(other)) for path, one, other in found))


def differing(first: Any, second: Any) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    """The places where two JSON values differ, each with what stands there; NOTHING where one has no such place.

    1, 1.0 and true are equal in Python, but not in JSON.
    """
    stack: list[tuple[tuple[str | int, ...], Any, Any]] = [((), first, second)]
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


def _bounded(changes: Iterable[Difference]) -> Iterator[Difference]:
    for number, change in enumerate(changes):
        if number == MOST_CHANGES:
            yield Difference("$ ...", "more", "more")
            return
        yield change


def _told(value: Any) -> str | None:
    if value is NOTHING:
        return None
    try:
        told = text(dict(value) if isinstance(value, Mapping) else value)
    except NotJson:  # an option of a node
        told = repr(value)
    return told if len(told) <= VALUE_UP_TO else f"{told[: VALUE_UP_TO - 4]} ..."


def _size(value: bytes | None) -> str | None:
    return None if value is None else f"{len(value):,} bytes"
