"""Compares two runs: input, graphs and nodes. Pure: what is compared was read before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from ..base.ids import NodeId, RunId
from ..core.graph import Graph
from ..core.model import NodeStatus, RunStatus
from .differences import MOST_CHANGES, Difference, graph_changes, json_changes

Respect: TypeAlias = Literal["output", "delta", "missing", "status", "attempts"]
"""In which a node may differ."""
_RESULTS: tuple[Respect, ...] = ("output", "delta")
_COURSE: tuple[Respect, ...] = ("status", "attempts")


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


class Pair(NamedTuple):
    """A node as it is in both runs, or in one."""

    id: NodeId
    name: str
    first: NodeFacts | None
    second: NodeFacts | None
    differs: tuple[Respect, ...]
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
    pairs.sort(key=lambda pair: min((rank[difference] for difference in pair.differs), default=len(rank)))
    return Comparison(
        first,
        second,
        tuple(pairs),
        json_changes(first.input, second.input),
        graph_changes(first.graph, second.graph),
    )


def _pair(node: NodeId, first: Side, second: Side) -> Pair:
    one, other = first.nodes.get(node), second.nodes.get(node)
    name = (first if one is not None else second).graph.nodes[node].name
    differs = [field for field in _RESULTS if getattr(one, field, None) != getattr(other, field, None)]
    if one is None or other is None:
        differs.append("missing")
    else:
        differs += [field for field in _COURSE if getattr(one, field) != getattr(other, field)]
    return Pair(node, name, one, other, tuple(differs))
