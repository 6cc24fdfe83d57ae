"""Conditions in graphs: how functions are stored, which nodes may be skipped, and which may have been when another runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...base.words import briefly
from .spec import NodeSpec

_AT_ONCE = 1_024
_ADDRESS = re.compile(r"[^():\s]+:[^():\s]+\Z")
_PAIR = re.compile(r"([^\s=(),]+)=([^\s=(),]+)\Z")


class StoredCondition(NamedTuple):
    """A function that is a condition, as a graph names it: its address, and which node each of its parameters stands for.

    >>> str(StoredCondition("shop.orders:is_risky", {"check": "n_8f3a2b11"}))
    'shop.orders:is_risky(check=n_8f3a2b11)'
    """

    address: str
    takes: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.address}({', '.join(f'{name}={node}' for name, node in self.takes.items())})"

    @classmethod
    def read(cls, when: str) -> StoredCondition | None:
        """None: it is none, but the name of a function of a class. In linear time, since anybody may write it."""
        address, bracket, rest = when.partition("(")
        if not bracket or not rest.endswith(")") or _ADDRESS.match(address) is None:
            return None
        pairs = [_PAIR.match(each) for each in rest[:-1].split(", ")] if rest != ")" else []
        takes = {pair[1]: pair[2] for pair in pairs if pair is not None}
        return cls(address, takes) if len(takes) == len(pairs) else None


def condition_problem(spec: NodeSpec) -> str | None:
    """What is wrong with the stored condition of a node. Expressions of documents are checked with their templates."""
    if spec.when is None or spec.templated or ":" not in spec.when:
        return None
    stored = StoredCondition.read(spec.when)
    if stored is None:
        example = "shop.orders:is_risky(check=n_8f3a2b11)"
        return f"when={briefly(spec.when)}: expected a function with its parameters, as in {example}"
    missing = [node for node in stored.takes.values() if node not in spec.needs]
    return f"when={briefly(spec.when)}: add {missing[0]!r} to needs" if missing else None


def may_be_skipped(
    specs: Sequence[NodeSpec], parents: Sequence[Sequence[int]], sequence: Sequence[int]
) -> frozenset[int]:
    """The positions of the nodes that have a condition, or run only after nodes that may be skipped."""
    if not any(spec.when is not None for spec in specs):
        return frozenset()
    skippable: set[int] = set()
    for position in sequence:
        own = [parent in skippable for parent in parents[position]]
        with_parents = (any if specs[position].join == "all" else all)(own) if own else False
        if with_parents or specs[position].when is not None:
            skippable.add(position)
    return frozenset(skippable)


def perhaps_skipped(
    specs: Sequence[NodeSpec],
    reads: Mapping[int, Sequence[int]],
    parents: Sequence[Sequence[int]],
    sequence: Sequence[int],
) -> Iterator[tuple[int, int]]:
    """Of the ancestors that nodes read: (position, ancestor) where the ancestor may have been skipped and the node runs.

    A node runs if one of its parents ran, so what has certainly run is what has run with each of them; with `join="all"`, with
    any of them.
    """
    skippable = may_be_skipped(specs, parents, sequence)
    asked = list(dict.fromkeys(above for own in reads.values() for above in own if above in skippable))
    for start in range(0, len(asked), _AT_ONCE):
        bits = {position: 1 << place for place, position in enumerate(asked[start : start + _AT_ONCE])}
        ran = _certainly_ran(bits, specs, parents, sequence)
        for position, own in reads.items():
            for above in own:
                if above in bits and not ran[position] & bits[above]:
                    yield position, above


def _certainly_ran(
    bits: Mapping[int, int], specs: Sequence[NodeSpec], parents: Sequence[Sequence[int]], sequence: Sequence[int]
) -> list[int]:
    """By position: the bits of the nodes that have certainly run when it runs."""
    ran = [0] * len(specs)
    for position in sequence:
        own = [ran[parent] | bits.get(parent, 0) for parent in parents[position]]
        if own:
            together = own[0]
            for each in own[1:]:
                together = together | each if specs[position].join == "all" else together & each
            ran[position] = together
    return ran
