"""Walks through a graph, by the numbers of its nodes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence


def reachable(
    starts: Iterable[int], neighbours: Sequence[Sequence[int]], but: Container[int] = frozenset()
) -> set[int]:
    """Every node that these lead to; `neighbours` are the parents or the children of each node. `but` are never entered.

    >>> sorted(reachable([0], [[1], [2], [], []]))
    [1, 2]
    """
    found: set[int] = set()
    stack = list(starts)
    while stack:
        for neighbour in neighbours[stack.pop()]:
            if neighbour not in found and neighbour not in but:
                found.add(neighbour)
                stack.append(neighbour)
    return found
