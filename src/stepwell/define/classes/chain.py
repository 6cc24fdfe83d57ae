"""The order of a chain: steps one after another, and steps inserted before or after them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Link(NamedTuple):
    """A step and its place: before or after another one, or else at the end."""

    name: str
    before: str | None = None
    after: str | None = None


def in_order(links: Sequence[Link]) -> list[str]:
    """The names in the order of the chain. Steps at one place are in the order of writing.

    A link whose place does not exist, or depends on itself, is left out.

    >>> in_order([Link("validate"), Link("ship"), Link("audit", after="validate"), Link("open", before="validate")])
    ['open', 'validate', 'audit', 'ship']
    """
    before: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    waiting: list[str] = []
    for link in links:
        if link.before is not None:
            before.setdefault(link.before, []).append(link.name)
        elif link.after is not None:
            after.setdefault(link.after, []).append(link.name)
        else:
            waiting.append(link.name)
    waiting.reverse()
    found: list[str] = []
    opened: set[str] = set()
    while waiting:  # a stack; each name is popped twice, first to put its neighbours around it
        name = waiting.pop()
        if name in opened:
            found.append(name)
            continue
        opened.add(name)
        waiting += reversed(after.get(name, ()))
        waiting.append(name)
        waiting += reversed(before.get(name, ()))
    return found
