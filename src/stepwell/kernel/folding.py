"""The state of a run, folded from the deltas of its nodes in the order of the graph.

A node sees the deltas of its ancestors, never those of a node beside it that happened to finish. So what it sees is a
function of the graph and of what its ancestors returned, whatever the timing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from ..codec import MAX_DEPTH
from ..graph import Graph
from ..words import message_of, short_name
from .reachable import reachable


class Channel(NamedTuple):
    """One field of a state, as far as folding goes."""

    default: Any
    reduce: Callable[[Any, Any], Any]
    problems: Callable[[Any, str], Iterable[str]] | None = None
    """What is wrong with a value of the field and its name; None for a reducer that makes nothing wrong of what is right."""
    ours: bool = True
    """Its reducer changes at most the list or object it is given and nothing in it, and returns plain data."""


Channels = Mapping[str, Channel]
Values = Mapping[str, Any]


class FoldStep(NamedTuple):
    """A node whose delta is folded, by name, and the delta."""

    node: str
    delta: Values


class Unfoldable(Exception):
    """A delta cannot be folded: the reducer of `field` raised (then that is the cause), or gave what it must not."""

    def __init__(self, field: str, node: str, value: Any, problem: str) -> None:
        super().__init__(problem)
        self.field = field
        self.node = node
        self.value = value
        self.problem = problem


def start(channels: Channels) -> dict[str, Any]:
    """The state before any node ran."""
    return {name: channel.default for name, channel in channels.items()}


def fold(channels: Channels, before: Values, steps: Collection[FoldStep]) -> dict[str, Any]:
    """The state after `steps`, of which `before` is the state before; that one is not changed.

    Fields that the state does not have (any more) are passed over: a run may be older than the class.
    """
    values = dict(before)
    touched = _apply(channels, values, steps)
    if any(_problem(channels[name], values[name], name) for name in touched):
        _find_culprit(channels, before, steps)
    return values


def _problem(channel: Channel, value: Any, name: str) -> str | None:
    return None if channel.problems is None else next(iter(channel.problems(value, name)), None)


def _apply(channels: Channels, values: dict[str, Any], steps: Iterable[FoldStep]) -> set[str]:
    """Fold into `values`; the names of the fields that were touched."""
    touched: set[str] = set()
    for node, delta in steps:
        for name, new in delta.items():
            channel = channels.get(name)
            if channel is None:
                continue
            if name not in touched:  # a reducer may change what it is given, and `before` is somebody else's
                values[name] = _shallow(values[name]) if channel.ours else copied(values[name])
                touched.add(name)
            try:
                reduced = channel.reduce(values[name], new)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # also SystemExit: a reducer is code of the user
                raise Unfoldable(name, node, new, f"raised {short_name(type(error))}: {message_of(error)}") from error
            # After every step: a reducer must be given the same whether or not somebody looked at the state in between.
            values[name] = reduced if channel.ours else plain(reduced)
    return touched


def _find_culprit(channels: Channels, before: Values, steps: Iterable[FoldStep]) -> None:
    """One by one, which checks the whole field after each: slow, but somebody must be told which delta it was."""
    values = dict(before)
    for step in steps:
        for name in sorted(_apply(channels, values, [step])):
            problem = _problem(channels[name], values[name], name)
            if problem is not None:
                raise Unfoldable(name, step.node, step.delta[name], f"gave what the field cannot be: {problem}")


def _shallow(value: Any) -> Any:
    """A copy for our own reducers, which change a list or an object but nothing in it."""
    return value.copy() if isinstance(value, list | dict) else value


def copied(value: Any) -> Any:
    """A copy of JSON data."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [copied(item) if isinstance(item, dict | list | tuple) else item for item in value]
    return value


def plain(value: Any, depth: int = 0) -> Any:
    """What JSON would give back: lists for tuples, and no subclasses. What it cannot keep stays, for others to refuse.

    >>> plain({"pairs": [(1, "a")]})
    {'pairs': [[1, 'a']]}
    """
    kind = type(value)
    if kind in PLAIN or depth > MAX_DEPTH:
        return value
    if isinstance(value, dict):
        if kind is dict and PLAIN.issuperset(map(type, value.values())):
            return value
        return {key: plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        if PLAIN.issuperset(map(type, value)):
            return value if kind is list else list(value)
        return [plain(item, depth + 1) for item in value]
    return next((made(value) for base, made in _SCALARS.items() if isinstance(value, base)), value)


PLAIN = frozenset({str, int, float, bool, type(None)})
_SCALARS: Mapping[type, Callable[[Any], Any]] = {str: str.__str__, int: int.__int__, float: float.__float__}
"""The type that an Enum of numbers or texts is kept as, and how to get at it."""


class Lineage(NamedTuple):
    """How to get at the state that a node sees."""

    base: int
    """The node whose state is to be known first: itself a join, a root, or one that is known already."""
    below: tuple[int, ...]
    """The nodes from the base on, each the only parent of the next; the last is the only parent of the node asked for."""


def lineage(graph: Graph, index: int, known: Collection[int]) -> Lineage:
    """Up from a node while there is one parent only: whatever that one saw, and its delta, is what the node sees."""
    chain: list[int] = []
    at = index
    while at not in known and len(graph.parents[at]) == 1:
        at = graph.parents[at][0]
        chain.append(at)
    return Lineage(at, tuple(reversed(chain)))


def ancestors(graph: Graph, index: int) -> tuple[int, ...]:
    """All nodes above one, in the order of the graph."""
    return in_order(graph, reachable([index], graph.parents))


def in_order(graph: Graph, indexes: Iterable[int]) -> tuple[int, ...]:
    """By (level, order key, id); without nodes that only earlier versions of the graph had."""
    ranks, removed = graph.ranks, graph.removed
    return tuple(sorted((index for index in indexes if index not in removed), key=lambda index: ranks[index]))
