"""The state of a run, folded from the deltas of its nodes in the order of the graph.

A node sees the deltas of its ancestors, never those of a node beside it that happened to finish. So what it sees is a
function of the graph and of what its ancestors returned, whatever the timing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import Any, NamedTuple

from ...base.codec import MAX_DEPTH
from ...base.words import message_of, short_name
from ..graph import Graph
from ..graph.order import reachable


class Channel(NamedTuple):
    """What folding needs to know of one field of a state."""

    default: Any
    reduce: Callable[[Any, Any], Any]
    problems: Callable[[Any, str], Iterable[str]] | None = None
    """Finds what is wrong with a value, given the name of the field; None if the reducer cannot make a value invalid."""
    ours: bool = True
    """Whether it is a built-in reducer: those change at most the top level of what they are given, and return plain data."""


Channels = Mapping[str, Channel]
Values = Mapping[str, Any]


class FoldStep(NamedTuple):
    """A node whose delta is folded, by name, and the delta."""

    node: str
    delta: Values


class Unfoldable(Exception):
    """A delta cannot be folded: the reducer of `field` raised, which is the cause, or returned an invalid value."""

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
    """The state after `steps`, starting from `before`, which is not changed.

    Unknown fields are ignored: a run may be older than the class.
    """
    values = dict(before)
    touched = _apply(channels, values, steps)
    if any(_problem(channels[name], values[name], name) for name in touched):
        _find_invalid_delta(channels, before, steps)
    return values


def _problem(channel: Channel, value: Any, name: str) -> str | None:
    return None if channel.problems is None else next(iter(channel.problems(value, name)), None)


def _apply(channels: Channels, values: dict[str, Any], steps: Iterable[FoldStep]) -> set[str]:
    """Fold into `values`; the names of the changed fields."""
    touched: set[str] = set()
    for node, delta in steps:
        for name, new in delta.items():
            channel = channels.get(name)
            if channel is None:
                continue
            if name not in touched:  # a reducer may change what it is given, which belongs to the caller
                value = values[name]  # built-in reducers change a list or an object but nothing in it
                shallow = value.copy() if channel.ours and isinstance(value, list | dict) else value
                values[name] = shallow if channel.ours else copied(value)
                touched.add(name)
            try:
                reduced = channel.reduce(values[name], new)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # also SystemExit: a reducer is code of the user
                raise Unfoldable(name, node, new, f"raised {short_name(type(error))}: {message_of(error)}") from error
            # After every step, so that a reducer gets the same values however many deltas are folded at once.
            values[name] = reduced if channel.ours else plain(reduced)
    return touched


def _find_invalid_delta(channels: Channels, before: Values, steps: Iterable[FoldStep]) -> None:
    """Fold one delta at a time and check after each: slow, but the error must name the delta."""
    values = dict(before)
    for step in steps:
        for name in sorted(_apply(channels, values, [step])):
            problem = _problem(channels[name], values[name], name)
            if problem is not None:
                raise Unfoldable(name, step.node, step.delta[name], f"gave what the field cannot be: {problem}")


def copied(value: Any) -> Any:
    """A copy of JSON data."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [copied(item) if isinstance(item, dict | list | tuple) else item for item in value]
    return value


def plain(value: Any, depth: int = 0) -> Any:
    """What JSON would give back: lists for tuples, and no subclasses. What it cannot keep is left as it is.

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
    return next((convert(value) for base, convert in _SCALARS.items() if isinstance(value, base)), value)


PLAIN = frozenset({str, int, float, bool, type(None)})
_SCALARS: Mapping[type, Callable[[Any], Any]] = {str: str.__str__, int: int.__int__, float: float.__float__}
"""The types that Enums of numbers or texts are kept as, and how to convert to them."""


class Lineage(NamedTuple):
    """How to compute the state that a node sees."""

    base: int
    """The node whose state comes first: one without a dominator, or whose state is known."""
    before: tuple[int, ...]
    """The base, and what is between it and the nearest dominator of the node: together what that dominator saw."""
    dominator: int
    """The nearest dominator of the node; the node itself if it is the base."""
    after: tuple[int, ...]
    """The dominator, and what is between it and the node."""


def lineage(graph: Graph, index: int, known: Container[int]) -> Lineage:
    """Walk up past dominators: what is folded before one of them, for itself, is folded first for everything below it."""
    nearest = graph.dominators.nearest
    base = dominator = index if index in known or nearest[index] < 0 else nearest[index]
    while base not in known and nearest[base] >= 0:
        base = nearest[base]
    return Lineage(base, _between(graph, base, dominator), dominator, _between(graph, dominator, index))


def _between(graph: Graph, dominator: int, index: int) -> tuple[int, ...]:
    """The dominator and what is below it and above a node, in the order of the graph."""
    if dominator == index:
        return ()
    ranks = graph.ranks
    lowest = ranks[dominator]
    between: set[int] = {dominator}
    stack = [index]
    while stack:
        for parent in graph.parents[stack.pop()]:
            if ranks[parent] > lowest and parent not in between:
                between.add(parent)
                stack.append(parent)
    return in_order(graph, between)


def ancestors(graph: Graph, index: int) -> tuple[int, ...]:
    """All nodes above one, in the order of the graph."""
    return in_order(graph, reachable([index], graph.parents))


def in_order(graph: Graph, indexes: Iterable[int]) -> tuple[int, ...]:
    """By (level, order key, id); without nodes that only earlier versions of the graph had."""
    ranks, removed = graph.ranks, graph.removed
    return tuple(sorted((index for index in indexes if index not in removed), key=lambda index: ranks[index]))
