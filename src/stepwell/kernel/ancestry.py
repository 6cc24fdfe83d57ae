"""What an attempt stands on, in one hash: its node, its number, and the attempts its parents completed with.

The ancestry hash of an attempt is the SHA-256 of its node id, its number and the sorted ancestry hashes of its parents'
completed attempts, joined by `:`. So two attempts with one hash stood on the same attempts, all the way up.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from hashlib import sha256

from ..graph import Graph
from ..model import NodeRow, NodeStatus


def ancestry_hash(node: str, number: int, parents: Iterable[str]) -> str:
    """
    >>> ancestry_hash("charge", 2, [])[:12]
    '095afe19c805'
    """
    return sha256(":".join((node, str(number), *sorted(parents))).encode()).hexdigest()


def ancestors(graph: Graph, index: int, but: Container[int] = ()) -> set[int]:
    """The numbers of all ancestors of a node; not beyond those that are left out."""
    found: set[int] = set()
    stack = [index]
    while stack:
        for parent in graph.parents[stack.pop()]:
            if parent not in found and parent not in but:
                found.add(parent)
                stack.append(parent)
    return found


class Ancestry:
    """The ancestry hashes of a run, computed as far as they are asked for."""

    def __init__(self, graph: Graph, nodes: Mapping[int, NodeRow]) -> None:
        """`nodes`: by number, those that are asked for and their ancestors."""
        self._graph = graph
        self._nodes = nodes
        self._completed: dict[int, str] = {}

    def of(self, index: int, number: int) -> str | None:
        """Of attempt `number` of a node; None while some parent has neither completed nor been skipped."""
        for each in self._missing(index):
            self._completed[each] = self._hash(each, self._nodes[each].attempt)
        waits = any(
            self._nodes[parent].status not in (NodeStatus.COMPLETED, NodeStatus.SKIPPED)
            for parent in self._graph.parents[index]
        )
        return None if waits else self._hash(index, number)

    def _hash(self, index: int, number: int) -> str:
        own = (self._completed[parent] for parent in self._graph.parents[index] if parent in self._completed)
        return ancestry_hash(self._graph.order[index], number, own)

    def _missing(self, index: int) -> list[int]:
        """Completed ancestors whose hash is not known yet, parents before children."""
        found = ancestors(self._graph, index, self._completed)
        completed = (each for each in found if self._nodes[each].status is NodeStatus.COMPLETED)
        return sorted(completed, key=lambda each: self._graph.ranks[each])
