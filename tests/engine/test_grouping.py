"""Graphs of any size as at most a thousand items: fans first, then kinds of names, levels, and ranges of levels."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from stepwell.core.graph import Graph, NodeSpec, Outline
from stepwell.engine.reports.grouping import MAX_ITEMS, MAX_VISIBLE, Group, Grouping, Item, _stem, edges


def grouped(*specs: NodeSpec, visible: int = MAX_VISIBLE) -> Grouping:
    return Grouping(Outline(Graph(specs).document.decode()), visible)


def fan(size: int, name: str = "part") -> list[NodeSpec]:
    members = [NodeSpec(f"{name}_{i}", f"{name}_{i}", depends_on=("first",)) for i in range(size)]
    return [NodeSpec("first", "first"), *members, NodeSpec("last", "last", depends_on=tuple(m.id for m in members))]


def chain(size: int) -> list[NodeSpec]:
    names = [chr(97 + i % 26) * (1 + i // 26) for i in range(size)]
    return [NodeSpec(name, name, depends_on=tuple(names[i - 1 : i])) for i, name in enumerate(names)]


def words(grouping: Grouping, items: Iterable[Item]) -> list[str]:
    return [item.id if isinstance(item, Group) else grouping.outline.names[item] for item in items]


def nodes_of(items: Iterable[Item]) -> list[int]:
    return sorted(place for item in items for place in (item.members if isinstance(item, Group) else (item,)))


def test_a_small_graph_is_shown_as_it_is() -> None:
    grouping = grouped(*fan(4))
    shown, opened = grouping.visible(())
    assert words(grouping, shown) == ["first", "part_0", "part_1", "part_2", "part_3", "last"]
    assert opened == []
    assert edges(grouping, shown) == [[], [0], [0], [0], [0], [1, 2, 3, 4]]


def test_a_fan_is_one_item_until_it_is_opened() -> None:
    grouping = grouped(*fan(9))
    shown, _ = grouping.visible(())
    assert words(grouping, shown) == ["first", "fan:1:part", "last"]
    assert edges(grouping, shown) == [[], [0], [1]]
    assert nodes_of(shown) == list(range(11))
    shown, (opened,) = grouping.visible(["fan:1:part", "fan:1:part", "nothing"])
    assert words(grouping, shown) == ["first", *(f"part_{i}" for i in range(9)), "last"]
    assert (opened.kind, opened.level, opened.name, len(opened.members)) == ("fan", 1, "part", 9)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("page_007", "page"),
        ("chunk-0xff", "chunk"),
        ("a._-7b", "a"),
        ("7th", "7th"),
        ("__8", "__8"),
        ("_x_", "_x_"),
        ("straße\u0663", "straße"),
        ("a²3", "a²"),
        ("", ""),
    ],
)
def test_the_kind_of_a_name_ends_before_its_first_digit(name: str, kind: str) -> None:
    assert _stem(name) == kind


def test_nodes_are_counted_in_every_group_that_they_are_in() -> None:
    grouping = grouped(*fan(MAX_ITEMS + 50))
    counts = grouping.count({"first", "part_3", "part_4", f"part_{MAX_ITEMS}"})
    assert counts["fan:1:part"] == 3
    assert sorted(count for name, count in counts.items() if name != "fan:1:part") == [1, 2]


def test_siblings_of_another_kind_or_with_other_parents_are_other_fans() -> None:
    root, *others = fan(5)[:-1]
    grouping = grouped(
        root,
        NodeSpec("other", "other"),
        *others,
        *(NodeSpec(f"load-{i}", f"load-{i}", depends_on=("first",)) for i in range(5)),
        *(NodeSpec(f"p{i}", f"part {i}", depends_on=("other",)) for i in range(5)),
    )
    assert words(grouping, grouping.items) == ["first", "other", "fan:1:part", "fan:1:load", "fan:1:part:12"]


def test_a_fan_of_very_many_opens_into_parts() -> None:
    grouping = grouped(*fan(30_001))
    (group,) = [item for item in grouping.items if isinstance(item, Group)]
    assert [item.id for item in group.items if isinstance(item, Group)] == [
        "fan:1:part/0-9999",
        "fan:1:part/10000-19999",
        "fan:1:part/20000-29999",
        "fan:1:part/30000-30000",
    ]
    deep = [group.id, f"{group.id}/10000-19999", f"{group.id}/19900-19999", f"{group.id}/none"]
    inner = f"{group.id}/19900-19999"
    shown, opened = grouping.visible(reversed(deep))
    assert [each.id for each in opened] == deep[:3]
    assert nodes_of(shown) == list(range(30_003))
    assert len(shown) <= MAX_VISIBLE
    assert {"part_19900", "part_19999"} <= set(words(grouping, shown))
    assert grouping.visible([inner])[1] == [], "the groups around it are closed"


@pytest.mark.parametrize(
    ("specs", "kind"),
    [
        ([NodeSpec(f"{w}{i}", f"{w}_{i}", depends_on=()) for w in "abc" for i in range(4)], "alike"),
        (fan(2) + [NodeSpec(w * 2, w * 2, depends_on=("first",)) for w in "abcdefghi"], "level"),
        (chain(40), "levels"),
    ],
)
def test_where_more_is_left_than_can_be_shown_it_is_grouped_further(specs: list[NodeSpec], kind: str) -> None:
    grouping = grouped(*specs, visible=10)
    shown, _ = grouping.visible(())
    assert len(shown) <= 10
    assert {item.kind for item in shown if isinstance(item, Group)} == {kind}
    assert nodes_of(shown) == list(range(len(specs)))
    assert all(set(own) <= set(range(len(shown))) - {at} for at, own in enumerate(edges(grouping, shown)))


def test_groups_open_only_as_long_as_there_is_room() -> None:
    specs = [NodeSpec(f"{w}{i}", f"{w}_{i}") for w in "abcde" for i in range(6)]
    grouping = grouped(*specs, visible=17)
    names = [group.id for group in grouping.items if isinstance(group, Group)]
    shown, opened = grouping.visible(names)
    assert [group.id for group in opened] == names[:2]
    assert len(shown) == 15
    assert nodes_of(shown) == list(range(30))


def test_no_open_group_shows_more_items_than_can_be_looked_at() -> None:
    grouping = grouped(*fan(1_000), *(NodeSpec(f"r{i}", f"r_{i}") for i in range(MAX_ITEMS)))
    sizes = {group.id: len(group.items) for group in grouping.items if isinstance(group, Group)}
    assert sizes == {"fan:1:part": 10, "fan:0:r": MAX_ITEMS}
