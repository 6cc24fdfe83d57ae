"""How a field of a workflow's state takes up what nodes return: named in its annotation, `Annotated[list[str], append]`.

A reducer is called with the value that the field has and with what one node returned for it, and returns the new value.
The first is the reducer's own: it may change it and return it. It must not look at anything else (clock, files, globals),
or the same run would not always give the same state. Any function of two parameters can be one:

    def longest(current: str, new: str) -> str:
        return new if len(new) > len(current) else current
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

__all__ = ["add", "append", "extend", "last", "maximum", "merge", "minimum", "union"]


def append(current: list[Any], new: Any) -> list[Any]:
    """Put `new` at the end; of a list, each of its items.

    >>> append(append(["a"], "b"), ["c", "d"])
    ['a', 'b', 'c', 'd']
    """
    if isinstance(new, list):
        current += new
    else:
        current.append(new)
    return current


def extend(current: list[Any], new: list[Any]) -> list[Any]:
    """Put the items of `new` at the end: for lists of lists, where `append` would not know one from the other."""
    current += new
    return current


def add(current: float, new: float) -> float:
    """The sum."""
    return current + new


def maximum(current: Any, new: Any) -> Any:
    """The larger one; the first of equals. None is less than everything: nothing was found yet."""
    if current is None or new is None:
        return new if current is None else current
    return new if new > current else current


def minimum(current: Any, new: Any) -> Any:
    """The smaller one; the first of equals. None is not compared: nothing was found yet."""
    if current is None or new is None:
        return new if current is None else current
    return new if new < current else current


def merge(current: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """All keys of both; of a key that both have, the later value."""
    current.update(new)
    return current


def union(current: list[Any], new: list[Any]) -> list[Any]:
    """The items of both, each once, sorted: a set, as JSON can keep it.

    >>> union(["a", "c"], ["b", "a"])
    ['a', 'b', 'c']
    """
    for item in new:
        place = bisect_left(current, item)
        if place == len(current) or current[place] != item:
            current.insert(place, item)
    return current


def last(current: Any, new: Any) -> Any:
    """The later one, in the order of the graph. What a field without a reducer does."""
    return new
