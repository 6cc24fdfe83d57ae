"""The nodes of a run as a tree: each once, below the parent it waited for longest. Similar nodes can be folded.

A node below another in the same column comes after it; branches are indented.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ...graph import Graph
from ...model import FAILED_NODES, NodeStatus
from ..runs.views import NodeView

FOLD_FROM = 3
"""Siblings of one kind and status from which on they become one line; nodes at work, which people look for, need more."""
FOLD_AT_WORK_FROM = 10
FOLD_JOBS_FROM = 20
"""The same for siblings that only share a job: where every node runs one program, that says little."""

_AT_WORK = (NodeStatus.RUNNING, NodeStatus.WAITING)
_NAMED_UP_TO = 3
_DIGITS = re.compile(r"\d+")
_Item = tuple[int, ...]
"""The places of the nodes in one row."""


class Row(NamedTuple):
    """A line of the tree: one node, or several similar ones of one status."""

    lead: str
    """What is drawn before it."""
    rail: str
    """What is drawn before its notes and errors."""
    nodes: tuple[NodeView, ...]
    note: str
    """Which other nodes come before it."""

    @property
    def status(self) -> NodeStatus:
        return self.nodes[0].status

    @property
    def name(self) -> str:
        first, last = self.nodes[0].name, self.nodes[-1].name
        return " ".join((first if first == last else f"{first} .. {last}").split())


class Gap(NamedTuple):
    """Rows that are left out, in their place."""

    lead: str
    nodes: tuple[NodeView, ...]


def tree(nodes: Sequence[NodeView], graph: Graph, *, fold: bool) -> list[Row]:
    """The rows of a run; `nodes` are all of its nodes in the order to show them."""
    position = {node.row.index: place for place, node in enumerate(nodes)}
    below = _below(nodes, graph, position)
    rows: list[Row] = []
    stack: list[tuple[_Item, _Item, str, str]] = []  # a chain may be longer than Python's stack is deep

    def draw_below(item: _Item, rail: str) -> None:
        places = sorted(child for place in item for child in below.get(place, ()))
        siblings = _folded(places, nodes, graph) if fold else _single(places)
        siblings.sort(key=lambda sibling: any(place in below for place in sibling))  # those with children last
        drawn = (_drawn(rail, place, len(siblings)) for place in range(len(siblings)))
        stack.extend(reversed([(sibling, item, *each) for sibling, each in zip(siblings, drawn, strict=True)]))

    draw_below((-1,), "")
    while stack:
        item, parent, lead, rail = stack.pop()
        parents = (graph.parents[nodes[place].row.index] for place in item)
        different = {id(own): own for own in parents}.values()  # members of a fan-out share the tuple of their parents
        after = [tuple(position[each] for each in own) for own in different]
        rows.append(Row(lead, rail, tuple(nodes[place] for place in item), _note(after, set(parent), nodes)))
        draw_below(item, rail)
    return rows


def page(rows: Sequence[Row], limit: int) -> list[Row | Gap]:
    """At most `limit` rows, preferring those that failed or are at work, then those nearest to the root; and the gaps."""
    if len(rows) <= limit:
        return list(rows)

    def interest(place: int) -> tuple[int, int, int]:
        row = rows[place]
        return 0 if row.status in FAILED_NODES else 1 if row.status in _AT_WORK else 2, len(row.lead), place

    shown = set(sorted(range(len(rows)), key=interest)[:limit])
    found: list[Row | Gap] = []
    missing: list[NodeView] = []
    lead = ""
    for place, row in enumerate(rows):
        if place not in shown:
            lead = lead if missing else row.lead
            missing += row.nodes
            continue
        if missing:
            found.append(Gap(_straight(lead), tuple(missing)))
            missing = []
        found.append(row)
    return [*found, Gap(_straight(lead), tuple(missing))] if missing else found


def _straight(lead: str) -> str:
    return lead.replace("├─", "│ ").replace("└─", "  ")


def _drawn(rail: str, place: int, of: int) -> tuple[str, str]:
    """What is drawn before a sibling, and before what is below it. An only child is not indented."""
    if of == 1:
        return rail, rail
    return (f"{rail}└─ ", f"{rail}   ") if place == of - 1 else (f"{rail}├─ ", f"{rail}│  ")


def _below(nodes: Sequence[NodeView], graph: Graph, position: dict[int, int]) -> dict[int, list[int]]:
    """By place of a parent, -1 for none: the places of the nodes below it."""
    below: dict[int, list[int]] = {}
    last: dict[int, int] = {}  # members of a fan-out share the tuple of their parents: it is looked through once
    for place, node in enumerate(nodes):
        own = graph.parents[node.row.index]
        if id(own) not in last:
            waited_for = (position[parent] for parent in own)
            last[id(own)] = max(waited_for, key=lambda parent: (_ended(nodes[parent]), parent), default=-1)
        below.setdefault(last[id(own)], []).append(place)
    return below


def _ended(node: NodeView) -> float:
    """When a node ended, for comparing: never, if it has not; first, if it never began."""
    if not node.status.terminal:
        return math.inf
    return max((attempt.row.ended_at or 0 for attempt in node.attempts), default=0)


def _single(places: Iterable[int]) -> list[_Item]:
    return [(place,) for place in places]


def _folded(places: Sequence[int], nodes: Sequence[NodeView], graph: Graph) -> list[_Item]:
    """Fold siblings whose names differ only in numbers, or that do one job after the same parents."""
    if len(places) < FOLD_FROM:
        return _single(places)

    def by_name(place: int) -> object:
        return _DIGITS.sub("#", nodes[place].name)

    sets: dict[tuple[int, ...], int] = {}
    numbers: dict[int, int] = {}  # members of a fan-out mostly share the tuple of their parents: it is hashed once

    def by_job(place: int) -> object:
        index = nodes[place].row.index
        own = graph.parents[index]
        if id(own) not in numbers:
            numbers[id(own)] = sets.setdefault(own, len(sets))
        return graph.in_order[index].job, numbers[id(own)]

    groups, rest = _grouped(places, nodes, by_name, FOLD_FROM)
    more, single = _grouped(rest, nodes, by_job, FOLD_JOBS_FROM)
    return sorted([*groups, *more, *_single(single)])


def _grouped(
    places: Sequence[int], nodes: Sequence[NodeView], kind: Callable[[int], object], enough: int
) -> tuple[list[_Item], list[int]]:
    """(large enough groups, the rest). Nodes that failed are never grouped."""
    groups: dict[object, list[int]] = {}
    rest: list[int] = []
    for place in places:
        status = nodes[place].status
        if status in FAILED_NODES:
            rest.append(place)
        else:
            groups.setdefault((status, kind(place)), []).append(place)
    large = []
    for members in groups.values():
        at_work = nodes[members[0]].status in _AT_WORK
        if len(members) >= (max(enough, FOLD_AT_WORK_FROM) if at_work else enough):
            large.append(tuple(members))
        else:
            rest += members
    return large, rest


def _note(after: Sequence[_Item], parent: set[int], nodes: Sequence[NodeView]) -> str:
    others = sorted({place for own in after for place in own} - parent)
    if others:
        named = ", ".join(nodes[place].name for place in others[:_NAMED_UP_TO])
        more = f" and {len(others) - _NAMED_UP_TO:,} more" if len(others) > _NAMED_UP_TO else ""
        return f"also after {named}{more}"
    if len(parent) > 1 and all(len(own) == len(parent) for own in after):
        return f"after all {len(parent):,}"
    return ""
