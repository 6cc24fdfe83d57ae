"""Places the nodes of a graph in a drawing: in layers, with few crossings, deterministically.

The steps are the classic ones (Sugiyama). Every node gets a layer; an arrow across several layers gets a point in each; the
layers are ordered to have few crossings; then everything moves towards its neighbours without overlapping. Where many nodes
have the same parents, their arrows pass through one point, because P times C arrows would be too many.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from .order import topological

SWEEPS = 12
PATIENCE = 3
"""Sweeps without an improvement after which to stop."""
SWAPS_UP_TO = 4_000
ROUNDS = 10
POINTS_PER_NODE = 4
"""On average. If arrows would need more points to bend around nodes, the longest get none."""

_NODE_GAP, _POINT_GAP = 14.0, 7.0


class Arrangement(NamedTuple):
    """Which layer each vertex is in, and in which order. The first vertices are the nodes, the others points."""

    nodes: int
    joins: int
    """The first points: where arrows of several nodes to several nodes meet."""
    layer: list[int]
    segments: list[tuple[int, int]]
    """Arrows, cut where they pass points: each from a vertex to one in a later layer."""
    rows: list[list[int]]
    above: list[list[int]]
    below: list[list[int]]
    trunk: list[int]
    """Vertices with the same number should be aligned: the points of an arrow, the nodes of a chain."""


def arrange(parents: Sequence[Sequence[int]]) -> Arrangement:
    """Put acyclic nodes in layers; `parents[n]` come before `n`. Where nothing else matters they stay in this order."""
    joined = _joined(parents)
    layer = _layers(joined)
    trunk = list(range(len(layer)))
    segments = _cut(joined, layer, trunk, POINTS_PER_NODE * len(parents))
    above: list[list[int]] = [[] for _ in layer]
    below: list[list[int]] = [[] for _ in layer]
    for start, end in segments:
        if layer[end] == layer[start] + 1:  # the few that are longer do not pull
            above[end].append(start)
            below[start].append(end)
    for start, end in sorted(segments, key=lambda segment: layer[segment[0]]):
        if len(below[start]) == 1 and len(above[end]) == 1:
            trunk[end] = trunk[start]
    joins = len(joined) - len(parents)
    return Arrangement(len(parents), joins, layer, segments, _ordered(layer, above, below), above, below, trunk)


def _joined(parents: Sequence[Sequence[int]]) -> list[list[int]]:
    """The parents, joined by a point where several nodes share several parents and that saves arrows."""
    sharing: dict[tuple[int, ...], list[int]] = {}
    joined = [sorted(set(own)) for own in parents]
    for node, own in enumerate(joined):
        if len(own) > 1:
            sharing.setdefault(tuple(own), []).append(node)
    for shared, nodes in sharing.items():
        if len(shared) * len(nodes) > len(shared) + len(nodes) + 1:
            for node in nodes:
                joined[node] = [len(joined)]
            joined.append(list(shared))
    return joined


def _layers(parents: Sequence[Sequence[int]]) -> list[int]:
    """The longest path from a root; what has more children than parents then moves towards its children."""
    sequence, layer = topological(parents)
    children: list[list[int]] = [[] for _ in parents]
    for node, own in enumerate(parents):
        for parent in own:
            children[parent].append(node)
    for node in reversed(sequence):
        if len(children[node]) > len(parents[node]):
            layer[node] = min(layer[child] for child in children[node]) - 1
    return layer


def _cut(parents: Sequence[Sequence[int]], layer: list[int], trunk: list[int], points: int) -> list[tuple[int, int]]:
    """Cut long arrows into segments; those that leave one node share their points, by which `layer` and `trunk` grow."""
    reach: dict[int, int] = {}
    for node, own in enumerate(parents):
        for parent in own:
            reach[parent] = max(reach.get(parent, 0), layer[node] - layer[parent])
    longest = max(reach.values(), default=1)
    while sum(min(span, longest) - 1 for span in reach.values()) > points:
        longest = (longest + 1) // 2
    segments: list[tuple[int, int]] = []
    passed: dict[tuple[int, int], int] = {}
    for node, own in enumerate(parents):
        for parent in own:
            start = parent
            if layer[node] - layer[parent] <= longest:
                for between in range(layer[parent] + 1, layer[node]):
                    point = passed.get((parent, between))
                    if point is None:
                        point = passed[parent, between] = len(layer)
                        layer.append(between)
                        trunk.append(point if start == parent else trunk[start])
                        segments.append((start, point))
                    start = point
            segments.append((start, node))
    return segments


def _ordered(layer: Sequence[int], above: list[list[int]], below: list[list[int]]) -> list[list[int]]:
    """The vertices of each layer in an order with few crossings: the best that was seen in some sweeps."""
    rows: list[list[int]] = [[] for _ in range(max(layer) + 1)]
    for vertex in _as_explored(layer, above, below):
        rows[layer[vertex]].append(vertex)
    place = [0] * len(layer)
    for row in rows:
        _number(row, place)
    best, fewest = [list(row) for row in rows], _crossings(rows, below, place)
    found_in = 0
    for sweep in range(SWEEPS):
        if not fewest or sweep - found_in > PATIENCE:
            break
        down = sweep % 2 == 0
        neighbours = above if down else below
        for row in rows[1:] if down else rows[-2::-1]:
            middle = {
                vertex: sum(place[other] for other in near) / len(near)
                if (near := neighbours[vertex])
                else place[vertex]
                for vertex in row
            }
            row.sort(key=middle.__getitem__)
            _number(row, place)
        crossings = _crossings(rows, below, place)
        if crossings < fewest:
            best, fewest, found_in = [list(row) for row in rows], crossings, sweep
    if fewest and sum(map(len, below)) <= SWAPS_UP_TO:
        _swap(best, above, below)
    return best


def _swap(rows: Sequence[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    """Swap neighbours in a layer while that takes crossings away."""
    place = [0] * len(above)
    for row in rows:
        _number(row, place)

    def crossings(left: int, right: int) -> int:
        return sum(place[one] > place[other] for near in (above, below) for one in near[left] for other in near[right])

    for _ in range(SWEEPS):
        swapped = False
        for row in rows:
            for number in range(len(row) - 1):
                left, right = row[number], row[number + 1]
                if crossings(left, right) > crossings(right, left):
                    row[number], row[number + 1] = right, left
                    place[left], place[right] = number + 1, number
                    swapped = True
        if not swapped:
            return


def _as_explored(layer: Sequence[int], above: list[list[int]], below: list[list[int]]) -> list[int]:
    """Depth first from the roots in order, so that what belongs together begins together."""
    seen = [False] * len(layer)
    explored = []
    stack = [vertex for vertex in reversed(range(len(layer))) if not above[vertex]]
    while stack:
        vertex = stack.pop()
        if not seen[vertex]:
            seen[vertex] = True
            explored.append(vertex)
            stack += reversed(below[vertex])
    return explored


def _number(row: Sequence[int], place: list[int]) -> None:
    for number, vertex in enumerate(row):
        place[vertex] = number


def _crossings(rows: Sequence[Sequence[int]], below: list[list[int]], place: Sequence[int]) -> int:
    """Pairs of segments that cross: for each, how many before it end behind it (counted in a Fenwick tree)."""
    crossings = 0
    for row, under in pairwise(rows):
        tree = [0] * (len(under) + 1)
        counted = 0
        for vertex in row:
            ends = sorted(place[end] for end in below[vertex])
            for end in ends:
                before, at = 0, end + 1
                while at:
                    before += tree[at]
                    at &= at - 1
                crossings += counted - before
            for end in ends:
                at = end + 1
                while at < len(tree):
                    tree[at] += 1
                    at += at & -at
            counted += len(ends)
    return crossings


def place(arranged: Arrangement, extents: Sequence[float]) -> list[float]:
    """The position of each vertex across the flow, from 0; `extents[n]` is the size of node `n`.

    Every vertex is drawn towards its neighbours, layer by layer, while the order and the gaps in each layer are kept.
    """
    nodes, _, _, _, rows, above, below, trunk = arranged
    sizes = [*extents, *[0.0] * (len(above) - nodes)]
    across = [0.0] * len(sizes)
    offsets = [_offsets(row, sizes, nodes) for row in rows]
    for row, offset in zip(rows, offsets, strict=True):
        for vertex, distance in zip(row, offset, strict=True):
            across[vertex] = distance - offset[-1] / 2
    both = [[*above[vertex], *below[vertex]] for vertex in range(len(sizes))]
    lines: dict[int, float] = {}
    # How much a vertex is drawn to the line of its trunk, where each neighbour draws with 1: more and more.
    straight = 1.0
    for neighbours in (above, below, above, below, *[both] * ROUNDS):
        if neighbours is both:
            lines = _lines(trunk, across)
            straight *= 2
        for number in reversed(range(len(rows))) if neighbours is below else range(len(rows)):
            row, offset = rows[number], offsets[number]
            targets, weights = [], []
            for vertex, distance in zip(row, offset, strict=True):
                pull, weight = across[vertex] * 0.01, 0.01  # what has no neighbours stays where it is
                for neighbour in neighbours[vertex]:
                    pull += across[neighbour]
                    weight += 1
                if trunk[vertex] in lines:
                    pull += lines[trunk[vertex]] * straight
                    weight += straight
                targets.append(pull / weight - distance)
                weights.append(weight)
            for vertex, distance, fitted in zip(row, offset, _rising(targets, weights), strict=True):
                across[vertex] = fitted + distance
    first = min(at - size / 2 for at, size in zip(across, sizes, strict=True))
    return [at - first for at in across]


def _lines(trunk: Sequence[int], across: Sequence[float]) -> dict[int, float]:
    """Where the line of each trunk with several vertices is now: in their middle."""
    members: dict[int, list[float]] = {}
    for number, at in zip(trunk, across, strict=True):
        members.setdefault(number, []).append(at)
    return {number: sum(places) / len(places) for number, places in members.items() if len(places) > 1}


def _offsets(row: Sequence[int], sizes: Sequence[float], nodes: int) -> list[float]:
    """How far from the first vertex of a layer the others must be at least."""
    offsets = [0.0]
    for left, right in pairwise(row):
        gap = _POINT_GAP if left >= nodes and right >= nodes else _NODE_GAP
        offsets.append(offsets[-1] + (sizes[left] + sizes[right]) / 2 + gap)
    return offsets


def _rising(targets: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The numbers nearest to `wanted` (by weighted squares) of which none is less than the one before it."""
    blocks: list[tuple[float, float, int]] = []
    for target, weight in zip(targets, weights, strict=True):
        total, mass, count = target * weight, weight, 1
        while blocks and blocks[-1][0] * mass >= total * blocks[-1][1]:
            before = blocks.pop()
            total, mass, count = total + before[0], mass + before[1], count + before[2]
        blocks.append((total, mass, count))
    return [total / mass for total, mass, count in blocks for _ in range(count)]
