"""Whether one node is an ancestor of another, and past which nodes all ways to it lead, without walking through the graph."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

_NONE = -1


class Ancestry:
    """Nodes are given by index. Built once for a graph, in time and memory that grow with its nodes and edges.

    Two forests decide nearly every case at once: in one every node hangs below its first parent, in the other below its
    first child. What they leave open is searched from join to join: between two joins, a node has no ancestors but those
    above it in the first forest.
    """

    def __init__(
        self, parents: Sequence[Sequence[int]], children: Sequence[Sequence[int]], ranks: Sequence[int]
    ) -> None:
        """Parents have smaller `ranks` than their children."""
        self._parents = parents
        self._ranks = ranks
        downwards = sorted(range(len(parents)), key=ranks.__getitem__)
        self._by_parent = _Forest([own[0] if own else _NONE for own in parents], downwards)
        self._by_child = _Forest([own[0] if own else _NONE for own in children], downwards[::-1])
        self._join = array("q", [_NONE]) * len(parents)
        """The nearest node with several parents: the node itself, or one above it in the first forest."""
        for node in downwards:
            own = parents[node]
            if own:
                self._join[node] = node if len(own) > 1 else self._join[own[0]]

    def is_ancestor(self, above: int, below: int) -> bool:
        if above == below or self._ranks[above] >= self._ranks[below]:
            return False
        if self._surely(above, below):
            return True
        seen = {self._join[below]}
        joins = [self._join[below]]
        while joins:
            join = joins.pop()
            if join == _NONE or self._ranks[join] <= self._ranks[above]:
                continue
            for parent in self._parents[join]:
                if parent == above or self._surely(above, parent):
                    return True
                further = self._join[parent]
                if further not in seen:
                    seen.add(further)
                    joins.append(further)
        return False

    def _surely(self, above: int, below: int) -> bool:
        return self._by_parent.is_above(above, below) or self._by_child.is_above(below, above)


class Dominators:
    """The nodes past which everything above a node leads: each other ancestor is above or below them.

    A dependency that follows from others does not count: a chain whose nodes all depend on a first one too is a chain.
    """

    REDUCED_UP_TO = 16
    """Parents. Among more, those that follow from others are not looked for, which only makes a dominator lie higher up."""

    def __init__(self, parents: Sequence[Sequence[int]], ranks: Sequence[int], ancestry: Ancestry) -> None:
        self._ranks = ranks
        count = len(parents)
        self.nearest = array("q", [_NONE]) * count
        """By node: its nearest dominator, or -1."""
        self._depth = array("q", [0]) * count
        self._jump = array("q", range(count))
        """A dominator further up, so that a search takes few steps: about as many as the logarithm of the depth."""
        shared: dict[int, int] = {}  # members of a fan-out share the tuple of their parents
        for node in sorted(range(count), key=ranks.__getitem__):
            own = parents[node]
            if id(own) not in shared:
                shared[id(own)] = self._of_all(_necessary(own, ancestry))
            self._add(node, shared[id(own)])

    def _add(self, node: int, above: int) -> None:
        if above == _NONE:
            return
        self.nearest[node] = above
        self._depth[node] = self._depth[above] + 1
        jump = self._jump[above]
        even = self._depth[above] - self._depth[jump] == self._depth[jump] - self._depth[self._jump[jump]]
        self._jump[node] = self._jump[jump] if even else above

    def _of_all(self, nodes: Sequence[int]) -> int:
        """The nearest node that is or dominates each of these."""
        nearest = nodes[0] if nodes else _NONE
        for node in nodes[1:]:
            if nearest == _NONE:
                break
            nearest = self._common(nearest, node)
        return nearest

    def _common(self, one: int, other: int) -> int:
        if self._depth[one] < self._depth[other]:
            one, other = other, one
        while self._depth[one] > self._depth[other]:
            jump = self._jump[one]
            one = jump if self._depth[jump] >= self._depth[other] else self.nearest[one]
        while one != other:
            if self._depth[one] == 0:
                return _NONE
            if self._jump[one] != self._jump[other]:
                one, other = self._jump[one], self._jump[other]
            else:
                one, other = self.nearest[one], self.nearest[other]
        return one


def _necessary(parents: Sequence[int], ancestry: Ancestry) -> Sequence[int]:
    """Without those that are ancestors of others."""
    if not 1 < len(parents) <= Dominators.REDUCED_UP_TO:
        return parents
    return [one for one in parents if not any(ancestry.is_ancestor(one, other) for other in parents)]


class _Forest:
    """Every node is numbered before those that hang below it, so those are one interval of numbers."""

    def __init__(self, hangs_below: Sequence[int], order: Sequence[int]) -> None:
        """`order` lists all nodes, none before the one that it hangs below."""
        size = array("q", [1]) * len(order)
        for node in reversed(order):
            if hangs_below[node] != _NONE:
                size[hangs_below[node]] += size[node]
        self._first = array("q", [0]) * len(order)
        self._end = array("q", [0]) * len(order)
        free = array("q", [0]) * len(order)
        """The next number to give to a node that hangs below this one."""
        roots = 0
        for node in order:
            root = hangs_below[node]
            if root == _NONE:
                first, roots = roots, roots + size[node]
            else:
                first = free[root]
                free[root] += size[node]
            self._first[node], self._end[node] = first, first + size[node]
            free[node] = first + 1

    def is_above(self, above: int, below: int) -> bool:
        return self._first[above] <= self._first[below] < self._end[above]
