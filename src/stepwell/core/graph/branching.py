"""Which nodes may be skipped, and which of the ancestors of a node may have been skipped when it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .spec import NodeSpec

_AT_ONCE = 1_024


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
