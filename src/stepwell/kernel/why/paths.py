"""Paths from a node up to what holds it up."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from ...graph import Graph
from ...ids import NodeId


def above(graph: Graph, node: str) -> dict[NodeId, NodeId]:
    """Every ancestor of a node, with the next node on a shortest path down to it."""
    below: dict[NodeId, NodeId] = {}
    queue = deque([NodeId(node)])
    while queue:
        at = queue.popleft()
        spec = graph.nodes.get(at)
        for parent in () if spec is None else spec.depends_on:
            if parent not in below:
                below[parent] = at
                queue.append(parent)
    return below


def way_up(below: Mapping[NodeId, NodeId], node: str, ancestor: NodeId) -> list[NodeId]:
    """The nodes from below `node` up to `ancestor`, which is the last."""
    way = [ancestor]
    while (nearer := below[way[-1]]) != node:
        way.append(nearer)
    return way[::-1]
