"""The nodes of a run as a tree: each once, below the parent it waited for longest. Similar nodes can be folded.

A node below another in the same column comes after it; branches are indented.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ...core.model import FAILED_NODES, NodeStatus
from ..runs.overview import Overview

FOLD_FROM = 3
"""Siblings of one kind and status from which on they become one line; nodes at work, which people look for, need more."""
FOLD_AT_WORK_FROM = 10
FOLD_JOBS_FROM = 20
"""The same for siblings that only share a job: where every node runs one program, that says little."""

_AT_WORK = (NodeStatus.RUNNING, NodeStatus.WAITING)
_NAMED_UP_TO = 3
_DIGITS = re.compile(r"\d+")
Item = tuple[int, ...]
"""The places of the nodes in one row."""


class Row(NamedTuple):
    """A line of the tree: one node, or several similar ones of one status."""

    lead: str
    """What is drawn before it."""
    rail: str
    """What is drawn before its notes and errors."""
    places: Item
    """Of the nodes, in the overview."""
    name: str
    status: NodeStatus
    note: str = ""
    """Which other nodes come before it."""


class Gap(NamedTuple):
    """Rows that are left out, in their place."""

    lead: str
    counts: Counter[NodeStatus]
    """Their nodes."""


def tree(nodes: Overview, *, fold: bool) -> list[Row]:
    """The rows of a run."""
    below = _below(nodes)
    rows: list[Row] = []
    stack: list[tuple[Item, Item, str, str]] = []  # a chain may be longer than Python's stack is deep

    def draw_below(item: Item, rail: str) -> None:
        places = sorted(child for place in item for child in below.get(place, ()))
        siblings = _folded(places, nodes) if fold else _single(places)
        siblings.sort(key=lambda sibling: any(place in below for place in sibling))  # those with children last
        drawn = (_drawn(rail, place, len(siblings)) for place in range(len(siblings)))
        stack.extend(reversed([(sibling, item, *each) for sibling, each in zip(siblings, drawn, strict=True)]))

    draw_below((-1,), "")
    while stack:
        item, parent, lead, rail = stack.pop()
        # Members of a fan-out share the tuple of their parents.
        different = {id(own): own for own in map(nodes.parents.__getitem__, item)}
        rows.append(row_of(nodes, item, lead, rail, _note([*different.values()], set(parent), nodes)))
        draw_below(item, rail)
    return rows


def row_of(nodes: Overview, places: Item, lead: str = "", rail: str = "", note: str = "") -> Row:
    first, last = nodes.names[places[0]], nodes.names[places[-1]]
    name = " ".join((first if first == last else f"{first} .. {last}").split())
    return Row(lead, rail, places, name, nodes.statuses[places[0]], note)


def page(rows: Sequence[Row], limit: int) -> list[Row | Gap]:
    """At most `limit` rows, preferring those that failed or are at work, then those nearest to the root; and the gaps."""
    if len(rows) <= limit:
        return list(rows)

    def interest(place: int) -> tuple[int, int, int]:
        row = rows[place]
        return 0 if row.status in FAILED_NODES else 1 if row.status in _AT_WORK else 2, len(row.lead), place

    shown = set(sorted(range(len(rows)), key=interest)[:limit])
    found: list[Row | Gap] = []
    missing: Counter[NodeStatus] = Counter()
    lead = ""
    for place, row in enumerate(rows):
        if place not in shown:
            lead = lead if missing else row.lead
            missing[row.status] += len(row.places)
            continue
        if missing:
            found.append(Gap(_straight(lead), missing))
            missing = Counter()
        found.append(row)
    return [*found, Gap(_straight(lead), missing)] if missing else found


def _straight(lead: str) -> str:
    return lead.replace("├─", "│ ").replace("└─", "  ")


def _drawn(rail: str, place: int, of: int) -> tuple[str, str]:
    """What is drawn before a sibling, and before what is below it. An only child is not indented."""
    if of == 1:
        return rail, rail
    return (f"{rail}└─ ", f"{rail}   ") if place == of - 1 else (f"{rail}├─ ", f"{rail}│  ")


def _below(nodes: Overview) -> dict[int, list[int]]:
    """By place of a parent, -1 for none: the places of the nodes below it."""
    below: dict[int, list[int]] = {}
    last: dict[int, int] = {}  # members of a fan-out share the tuple of their parents: it is looked through once
    terminal = {status: status.terminal for status in NodeStatus}
    # When each ended, for comparing: never, if it has not; first, if it never began.
    ends = [end if terminal[status] else math.inf for status, end in zip(nodes.statuses, nodes.ended, strict=True)]
    for place, own in enumerate(nodes.parents):
        if id(own) not in last:
            last[id(own)] = max(zip(map(ends.__getitem__, own), own, strict=True), default=(0, -1))[1]
        below.setdefault(last[id(own)], []).append(place)
    return below


def _single(places: Iterable[int]) -> list[Item]:
    return [(place,) for place in places]


def _folded(places: Sequence[int], nodes: Overview) -> list[Item]:
    """Fold siblings whose names differ only in numbers, or that do one job after the same parents."""
    if len(places) < FOLD_FROM:
        return _single(places)
    names, sub = nodes.names, _DIGITS.sub
    sets: dict[tuple[int, ...], int] = {}
    numbers: dict[int, int] = {}  # members of a fan-out mostly share the tuple of their parents: it is hashed once

    def by_job(place: int) -> object:
        own = nodes.parents[place]
        if id(own) not in numbers:
            numbers[id(own)] = sets.setdefault(own, len(sets))
        return nodes.jobs[place], numbers[id(own)]

    groups, rest = _grouped(places, nodes, lambda place: sub("#", names[place]), FOLD_FROM)
    more, single = _grouped(rest, nodes, by_job, FOLD_JOBS_FROM)
    return sorted([*groups, *more, *_single(single)])


def _grouped(
    places: Sequence[int], nodes: Overview, kind: Callable[[int], object], enough: int
) -> tuple[list[Item], list[int]]:
    """(large enough groups, the rest). Nodes that failed are never grouped."""
    groups: dict[object, list[int]] = {}
    rest: list[int] = []
    for place in places:
        status = nodes.statuses[place]
        if status in FAILED_NODES:
            rest.append(place)
        else:
            groups.setdefault((status, kind(place)), []).append(place)
    large = []
    for members in groups.values():
        at_work = nodes.statuses[members[0]] in _AT_WORK
        if len(members) >= (max(enough, FOLD_AT_WORK_FROM) if at_work else enough):
            large.append(tuple(members))
        else:
            rest += members
    return large, rest


def _note(after: Sequence[Item], parent: set[int], nodes: Overview) -> str:
    others = sorted({place for own in after for place in own} - parent)
    if others:
        named = ", ".join(nodes.names[place] for place in others[:_NAMED_UP_TO])
        more = f" and {len(others) - _NAMED_UP_TO:,} more" if len(others) > _NAMED_UP_TO else ""
        return f"also after {named}{more}"
    if len(parent) > 1 and all(len(own) == len(parent) for own in after):
        return f"after all {len(parent):,}"
    return ""
