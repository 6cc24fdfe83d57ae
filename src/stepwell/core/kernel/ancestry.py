"""Ancestry hashes: one hash for an attempt and everything it depends on.

The ancestry hash of an attempt is the SHA-256 of its node id, its number and the sorted ancestry hashes of its parents'
completed attempts, joined by `:`. So two attempts with one hash depended on the same attempts, all the way up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

from ..graph import Graph
from ..graph.order import reachable
from ..model import JournalRow, NodeRow, NodeStatus

STANDING = ("claimed", "completed", "shared", "rewrote")
"""Kinds of journal entries that tell on which attempts others depend."""


def ancestry_hash(node: str, number: int, parents: Iterable[str]) -> str:
    """
    >>> ancestry_hash("charge", 2, [])[:12]
    '095afe19c805'
    """
    return sha256(":".join((node, str(number), *sorted(parents))).encode()).hexdigest()


class AncestryHashes:
    """The ancestry hashes of a run, computed when they are asked for.

    After a completion was superseded, an attempt may depend on one that no longer counts: then the `journal` tells on which.
    """

    def __init__(self, graph: Graph, nodes: Mapping[int, NodeRow], journal: Iterable[JournalRow] = ()) -> None:
        """`nodes`: the nodes of interest and their ancestors, by number."""
        self._graph = graph
        self._nodes = nodes
        self._completed: dict[int, str] = {}
        self._told = _hashes(graph, journal)

    def of(self, index: int, number: int) -> str | None:
        """The hash of attempt `number` of a node; None while a parent has neither completed nor been skipped."""
        if (index, number) in self._told:
            return self._told[index, number]
        for ancestor in self._missing(index):
            self._completed[ancestor] = self._hash(ancestor, self._nodes[ancestor].attempt)
        waits = any(
            self._nodes[parent].status not in (NodeStatus.COMPLETED, NodeStatus.SKIPPED)
            for parent in self._graph.parents[index]
        )
        return None if waits else self._hash(index, number)

    def _hash(self, index: int, number: int) -> str:
        own = (self._completed[parent] for parent in self._graph.parents[index] if parent in self._completed)
        return ancestry_hash(self._graph.order[index], number, own)

    def _missing(self, index: int) -> list[int]:
        """Completed ancestors without a hash so far, parents first."""
        above = reachable([index], self._graph.parents, self._completed)
        completed = (node for node in above if self._nodes[node].status is NodeStatus.COMPLETED)
        return sorted(completed, key=lambda node: self._graph.ranks[node])


def _hashes(graph: Graph, journal: Iterable[JournalRow]) -> dict[tuple[int, int], str]:
    """The hashes of all attempts in a journal, by (index, number)."""
    counted: dict[int, int] = {}
    stands_on: dict[tuple[int, int], list[tuple[int, int]]] = {}
    shared: set[int] = set()
    for entry in journal:
        if entry.index is None:
            continue
        number = entry.attempt or 1
        if entry.kind == "claimed":
            above = [(parent, counted[parent]) for parent in graph.parents[entry.index] if parent in counted]
            stands_on[entry.index, number] = above
        elif entry.kind in ("completed", "shared"):
            counted[entry.index] = number
        elif entry.kind == "rewrote":
            counted.pop(entry.index, None)
        if entry.kind == "shared":
            shared.add(entry.index)
    for index in shared:
        stands_on[index, 1] = [(parent, 1) for parent in graph.parents[index] if parent in shared]
    hashes: dict[tuple[int, int], str] = {}
    for index, number in sorted(stands_on, key=lambda place: (graph.ranks[place[0]], place)):
        parents = (hashes[place] for place in stands_on[index, number])
        hashes[index, number] = ancestry_hash(graph.order[index], number, parents)
    return hashes
