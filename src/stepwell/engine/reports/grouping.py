"""Large graphs as a few items: nodes and groups of nodes. A pure function of a graph, so the same graph has the same groups.

A fan (siblings of one job and kind of name) is always one group. If more items are left than can be shown, those of one level
and kind of name become groups, then those of one level, then those of neighbouring levels. An open group shows its items in
place; one with very many is divided into parts. Maps and child runs will be further kinds of groups.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from ...core.graph import Outline

MAX_VISIBLE = 1_000
"""Items that one answer shows at most, in open groups too."""
FAN_FROM = 5
"""Siblings from which on they are a group."""
PART = 100
"""An open group has about this many parts at most, and as many items are in the smallest ones."""
MAX_ITEMS = 250
"""Items from which on a group is divided into parts."""

GroupKind: TypeAlias = Literal["fan", "alike", "level", "levels", "part"]
_DIGIT = re.compile(r"\d")


@dataclass(slots=True, eq=False)
class Group:
    """Nodes that are shown as one item until it is opened."""

    id: str
    """Stable for a graph: it is made of levels, names and places."""
    kind: GroupKind
    name: str
    level: int
    """Of its first node."""
    items: list[Item]
    parent: Group | None = None
    """The group that it is in."""
    members: list[int] = field(default_factory=list)
    """Its nodes, with those of the groups in it: their places in the outline, by level and then as declared."""


Item: TypeAlias = int | Group
"""A node, by its place in the outline, or a group."""


class Grouping:
    """The groups of one graph."""

    def __init__(self, outline: Outline, visible: int = MAX_VISIBLE) -> None:
        self.outline, self._visible = outline, visible
        self.stems = [*map(_stem, outline.names)]
        self.levels = outline.levels
        span = 1 + max(self.levels, default=0) // (visible // 2)
        ordered = sorted(range(len(outline)), key=self.levels.__getitem__)
        self._groups: dict[str, Group] = {}
        self.items: list[Item] = self._gathered(ordered, "fan", self._fan_of, FAN_FROM)
        """What is shown while no group is open."""
        steps: tuple[tuple[GroupKind, Callable[[Item], Hashable]], ...] = (
            ("alike", lambda item: (self._level(item), self._stem(item))),
            ("level", self._level),
            ("levels", lambda item: self._level(item) // span),
        )
        for kind, key in steps:
            if len(self.items) > visible:
                self.items = self._gathered(self.items, kind, key, 2)
        for group in [*self._groups.values()]:
            self._divide(group)
        for group in self._groups.values():
            group.members = [*self._members(group.items)]

    def visible(self, open_groups: Iterable[str], show: int | None = None) -> tuple[list[Item], list[Group]]:
        """The items that are shown, and the groups that are open. A group is left closed that is not there, whose own group
        is closed, or for which there is no room. The groups around the node `show` are opened before all others."""
        shown, opened = list(self.items), list[Group]()
        wanted = (self._groups[name] for name in dict.fromkeys(open_groups) if name in self._groups)
        around = [] if show is None else self._around(show)
        for group in dict.fromkeys([*around, *sorted(wanted, key=_depth)]):
            is_shown = group.parent is None or group.parent in opened
            if is_shown and len(shown) + len(group.items) - 1 <= self._visible:
                at = shown.index(group)
                shown[at : at + 1] = group.items
                opened.append(group)
        return shown, opened

    def count(self, nodes: Container[str]) -> dict[str, int]:
        """How many of these nodes are in each group, closed or open; without groups that have none of them."""
        chosen = [node in nodes for node in self.outline.ids]
        counts = {group.id: sum(map(chosen.__getitem__, group.members)) for group in self._groups.values()}
        return {name: count for name, count in counts.items() if count}

    @cached_property
    def outermost(self) -> list[Group | None]:
        """By place: the group in which a node is while no group is open."""
        found: list[Group | None] = [None] * len(self.outline)
        for item in self.items:
            if isinstance(item, Group):
                for place in item.members:
                    found[place] = item
        return found

    def _around(self, place: int) -> list[Group]:
        """The groups that a node is in, the outermost first."""
        around, items = list[Group](), self.items
        while group := next((item for item in items if isinstance(item, Group) and place in item.members), None):
            around.append(group)
            items = group.items
        return around

    def _gathered(
        self, items: Sequence[Item], kind: GroupKind, key: Callable[[Any], Hashable], at_least: int
    ) -> list[Item]:
        """These items, those with one key in a group."""
        alike: dict[Hashable, list[Item]] = {}
        for item in items:
            alike.setdefault(key(item), []).append(item)
        return [item for own in alike.values() for item in (own if len(own) < at_least else [self._made(kind, own)])]

    def _made(self, kind: GroupKind, items: list[Item]) -> Group:
        level, last = self._level(items[0]), self._level(items[-1])
        name = {"level": f"level {level}", "levels": f"levels {level} to {last}"}.get(kind, self._stem(items[0]))
        group = Group(f"{kind}:{level}:{name}", kind, name, level, items)
        if group.id in self._groups:  # two fans of one level whose members have the same kind of name
            group.id += f":{_first(items[0])}"
        return self._keep(group)

    def _divide(self, group: Group) -> None:
        """Put the items of a group with very many of them into parts, and these into larger ones."""
        items, size = group.items, 1
        while len(group.items) > MAX_ITEMS:
            size *= PART
            group.items = [self._part(group, start, size, items) for start in range(0, len(items), size)]
        self._keep(group)

    def _part(self, group: Group, start: int, size: int, items: Sequence[Item]) -> Group:
        """From the items of the group, or from the parts that were made of them."""
        last = min(start + size, len(items)) - 1
        smaller = size // PART
        own = group.items[start // smaller : (start + size) // smaller]
        name = f"{group.name} {start:,} to {last:,}"
        return self._keep(Group(f"{group.id}/{start}-{last}", "part", name, self._level(own[0]), own))

    def _keep(self, group: Group) -> Group:
        self._groups[group.id] = group
        for item in group.items:
            if isinstance(item, Group):
                item.parent = group
        return group

    def _fan_of(self, place: int) -> Hashable:
        outline = self.outline
        return outline.list_of[place], outline.jobs[place], self.stems[place]

    def _level(self, item: Item) -> int:
        return item.level if isinstance(item, Group) else self.levels[item]

    def _stem(self, item: Item) -> str:
        return item.name if isinstance(item, Group) else self.stems[item]

    def _members(self, items: Iterable[Item]) -> Iterator[int]:
        for item in items:
            if isinstance(item, Group):
                yield from self._members(item.items)
            else:
                yield item


def _stem(name: str) -> str:
    """The kind of a name: what stands before its first digit, without the punctuation between. A name is anybody's, so a
    pattern that tries `_*` at each of many `_` is too slow.

    >>> _stem("page_007"), _stem("chunk-0xff"), _stem("7th"), _stem("__plain__")
    ('page', 'chunk', '7th', '__plain__')
    """
    digit = _DIGIT.search(name)
    end = len(name) if digit is None else digit.start()
    while digit is not None and end and not name[end - 1].isalnum():
        end -= 1
    return name[:end] or name


def _depth(group: Group) -> int:
    return 0 if group.parent is None else 1 + _depth(group.parent)


def _first(item: Item) -> int:
    while isinstance(item, Group):
        item = item.items[0]
    return item


def edges(grouping: Grouping, shown: Sequence[Item]) -> list[list[int]]:
    """The items that each shown item depends on, by their numbers among the shown ones."""
    outline = grouping.outline
    number = [0] * len(outline)
    for index, item in enumerate(shown):
        for place in item.members if isinstance(item, Group) else (item,):
            number[place] = index
    above = [{number[place] for place in own} for own in outline.lists]
    found: list[list[int]] = []
    for index, item in enumerate(shown):
        lists = (
            {outline.list_of[place] for place in item.members} if isinstance(item, Group) else {outline.list_of[item]}
        )
        parents = set().union(*(above[own] for own in lists)) - {index}
        found.append(sorted(parents))
    return found
