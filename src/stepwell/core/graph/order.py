"""The order of a graph: levels, path hashes, order keys.

`level` is the longest path from a root. The path hash of a node covers its id and the path hashes of its parents; the
order key is drawn from the path hash of its smallest-id parent and its place among that parent's children. Everything
that needs an order uses (level, order key, id), so it is the same on every machine, whatever finished first.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

from .spec import NodeSpec

START = b"__start__"


class Ordered(NamedTuple):
    """The nodes of a graph in order, by place in it. A graph may have a million: their hashes are no objects of their own."""

    positions: array[int]
    """Place in the order -> position in the declaration."""
    levels: array[int]
    order_keys: bytes
    """Eight for each, which compare as the numbers do that they are."""
    path_hashes: bytes
    """32 for each."""

    def order_key(self, place: int) -> bytes:
        return self.order_keys[8 * place : 8 * place + 8]

    def path_hash(self, place: int) -> bytes:
        return self.path_hashes[32 * place : 32 * place + 32]


def topological(parents: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """(positions parents-first, level of each position). Positions on a cycle, or below one, are left out."""
    level = _levels_as_declared(parents)
    if level is not None:
        return [*range(len(parents))], level
    waiting = [len(ps) for ps in parents]
    children: dict[int, list[int]] = {}
    for child, ps in enumerate(parents):
        for parent in ps:
            children.setdefault(parent, []).append(child)
    level = [0] * len(parents)
    sequence = [position for position, count in enumerate(waiting) if count == 0]
    for position in sequence:  # grows while it is walked
        below = level[position] + 1
        for child in children.get(position, ()):
            if level[child] < below:  # noqa: PLR1730 (max() is a call, and this is the innermost loop)
                level[child] = below
            waiting[child] -= 1
            if waiting[child] == 0:
                sequence.append(child)
    return sequence, level


def _levels_as_declared(parents: Sequence[Sequence[int]]) -> list[int] | None:
    """The level of each position when all were declared after their parents, as a builder does it; None if not."""
    level: list[int] = []
    siblings: Sequence[int] = ()
    below = 0
    for position, own in enumerate(parents):
        if own is not siblings:  # members of a fan-out share their parents
            siblings = own
            last = own[0] if len(own) == 1 else max(own, default=-1)
            if last >= position:
                return None
            if len(own) > 1:
                last = max(own, key=level.__getitem__)
            below = level[last] + 1 if own else 0
        level.append(below)
    return level


def ordered(
    specs: Sequence[NodeSpec], parents: Sequence[Sequence[int]], sequence: Sequence[int], level: Sequence[int]
) -> Ordered:
    """Put acyclic `specs` in order; `parents[i]` are the positions of the parents of `specs[i]`."""
    ids = [spec.id.encode() for spec in specs]
    hashes = _path_hashes(ids, parents, sequence)
    keys = _order_keys(specs, parents, hashes)
    # As bytes these compare as (level, order key, id) does, and faster.
    place = [level[i].to_bytes(4, "big") + keys[8 * i : 8 * i + 8] + ids[i] for i in range(len(specs))]
    positions = array("q", sorted(range(len(specs)), key=place.__getitem__))
    del ids, place
    return Ordered(
        positions,
        array("q", map(level.__getitem__, positions)),
        _arranged(keys, 8, positions),
        _arranged(hashes, 32, positions),
    )


def _arranged(parts: bytes, size: int, positions: Iterable[int]) -> bytes:
    """Parts of this size, in this order."""
    arranged = bytearray()
    for i in positions:
        arranged += parts[size * i : size * i + size]
    return bytes(arranged)


def _path_hashes(ids: Sequence[bytes], parents: Sequence[Sequence[int]], sequence: Sequence[int]) -> bytes:
    path = bytearray(32 * len(ids))
    siblings: Sequence[int] | None = None
    above = b""
    for position in sequence:
        own = parents[position]
        if own is not siblings:  # members of a fan-out share their parents
            siblings = own
            above = b"\0" + (b"".join(sorted(path[32 * p : 32 * p + 32] for p in own)) if own else START)
        path[32 * position : 32 * position + 32] = sha256(ids[position] + above).digest()
    return bytes(path)


def _order_keys(specs: Sequence[NodeSpec], parents: Sequence[Sequence[int]], path: bytes) -> bytes:
    """From the path hash of the smallest-id parent, and the place among *all* of its children (for a root: among the roots)."""
    children_so_far = [0] * len(parents)
    roots_so_far = 0
    siblings: Sequence[int] | None = None
    smallest, above = -1, START
    keys = bytearray()
    for own in parents:
        if own is not siblings:
            siblings = own
            smallest = own[0] if len(own) == 1 else min(own, key=lambda p: specs[p].id, default=-1)
            above = path[32 * smallest : 32 * smallest + 32] if own else START
        place = children_so_far[smallest] if own else roots_so_far
        keys += sha256(above + place.to_bytes(4, "big")).digest()[:8]
        for parent in own:
            children_so_far[parent] += 1
        roots_so_far += not own
    return bytes(keys)


def reachable(
    starts: Iterable[int], neighbours: Sequence[Sequence[int]], but: Container[int] = frozenset()
) -> set[int]:
    """Every node that these lead to; `neighbours` are the parents or the children of each node. `but` are never entered.

    >>> sorted(reachable([0], [[1], [2], [], []]))
    [1, 2]
    """
    reached: set[int] = set()
    stack = list(starts)
    while stack:
        for neighbour in neighbours[stack.pop()]:
            if neighbour not in reached and neighbour not in but:
                reached.add(neighbour)
                stack.append(neighbour)
    return reached
