"""Deltas are folded in their order, by reducers of ours and of users, which can neither spoil nor confuse anybody's state."""

from __future__ import annotations

import enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell import reducers
from stepwell.core.graph import Graph, NodeSpec
from stepwell.core.kernel.folding import (
    Channel,
    FoldStep,
    Unfoldable,
    ancestors,
    copied,
    fold,
    in_order,
    lineage,
    plain,
    start,
)
from stepwell.core.kernel.healing import arrange
from tests.core.graph.dags import dags
from tests.core.kernel.facts import graph


def theirs(reduce: Any, default: Any = None, problems: Any = None) -> Channel:
    return Channel(default, reduce, problems, ours=False)


def folded(channel: Channel, *deltas: Any, before: Any = None) -> Any:
    steps = [FoldStep(f"n{number}", {"field": delta}) for number, delta in enumerate(deltas)]
    return fold({"field": channel}, {"field": channel.default if before is None else before}, steps)["field"]


def test_a_reducer_is_given_what_is_there_and_then_what_is_new_in_order() -> None:
    assert folded(theirs(lambda current, new: f"{current}{new}", ""), "a", "b", "c") == "abc"
    assert folded(theirs(lambda current, new: current - new, 10), 1, 2) == 7


def test_a_field_that_nobody_returns_stays_and_one_that_is_gone_is_passed_over() -> None:
    channels = {"kept": Channel([1], reducers.append), "given": Channel(0, reducers.add)}
    before = start(channels)
    assert before == {"kept": [1], "given": 0}
    after = fold(channels, before, [FoldStep("a", {"given": 2, "gone": 7}), FoldStep("b", {"given": 3})])
    assert after == {"kept": [1], "given": 5}


@pytest.mark.parametrize("reduce", [reducers.append, reducers.extend, reducers.union, reducers.merge])
def test_our_reducers_leave_the_state_before_as_it_was(reduce: Any) -> None:
    is_merge = reduce is reducers.merge
    before: Any = {"a": 1} if is_merge else [1]
    new: Any = {"b": 2} if is_merge else [2]
    assert folded(Channel(before, reduce), new, new, before=before) != before
    assert before == ({"a": 1} if is_merge else [1])


def test_a_users_reducer_may_change_all_that_it_is_given_and_spoils_nothing() -> None:
    def careless(current: Any, new: Any) -> Any:
        current["list"].append(new)
        current["deep"][0]["x"].append(new)
        return current

    before = {"list": [0], "deep": [{"x": [0]}]}
    assert folded(theirs(careless), 1, 2, before=before) == {"list": [0, 1, 2], "deep": [{"x": [0, 1, 2]}]}
    assert before == {"list": [0], "deep": [{"x": [0]}]}


def test_a_reducer_is_given_what_json_gives_back_after_every_step() -> None:
    seen: list[Any] = []

    def pairs(current: Any, new: Any) -> Any:
        seen.append(current)
        return (*current, (new, new))

    assert folded(theirs(pairs, []), 1, 2) == [[1, 1], [2, 2]]
    assert seen == [[], [[1, 1]]]


def test_one_that_raises_tells_field_node_and_value() -> None:
    def broken(current: Any, new: Any) -> Any:
        if new == 2:
            raise ZeroDivisionError("two")
        return new

    with pytest.raises(Unfoldable) as caught:
        folded(theirs(broken), 1, 2, 3)
    error = caught.value
    assert (error.field, error.node, error.value, error.problem) == ("field", "n1", 2, "raised ZeroDivisionError: two")
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_what_a_field_cannot_be_is_told_with_the_first_delta_that_made_it_so() -> None:
    def too_large(value: Any, name: str) -> list[str]:
        return [f"{name} is {value}", "and more"] if value > 5 else []

    channel = theirs(lambda current, new: current + new, 0, too_large)
    assert folded(channel, 2, 3) == 5
    with pytest.raises(Unfoldable) as caught:
        folded(channel, 2, 3, 4, 5)
    error = caught.value
    assert (error.field, error.node, error.value) == ("field", "n2", 4)
    assert error.problem == "gave what the field cannot be: field is 9"


def test_only_what_was_wrong_in_the_end_is_wrong_and_only_where_something_was_returned() -> None:
    def negative(value: Any, name: str) -> list[str]:
        return ["negative"] if value < 0 else []

    channels = {"a": theirs(lambda current, new: current + new, 0, negative), "b": theirs(max, -1, negative)}
    after = fold(channels, start(channels), [FoldStep("x", {"a": -1}), FoldStep("y", {"a": 2})])
    assert after == {"a": 1, "b": -1}


class Colour(enum.StrEnum):
    RED = "red"


class Size(enum.IntEnum):
    LARGE = 3


class Text(str):
    __slots__ = ()


class Share(float):
    __slots__ = ()


class Bag(dict[str, Any]):
    pass


class Row(list[Any]):
    pass


@pytest.mark.parametrize(
    ("value", "made"),
    [
        (Colour.RED, "red"),
        (Size.LARGE, 3),
        (Text("a"), "a"),
        (Share(0.5), 0.5),
        (Bag(a=(1,)), {"a": [1]}),
        (Row([1]), [1]),
        (Row([(1,)]), [[1]]),
        ((1, "a"), [1, "a"]),
        ([{"a": (Text("b"),)}], [{"a": ["b"]}]),
        ({"a": Bag()}, {"a": {}}),
        (True, True),
        (None, None),
    ],
)
def test_plain_is_what_json_gives_back(value: Any, made: Any) -> None:
    def kinds(of: Any) -> Any:
        if isinstance(of, dict):
            return {key: kinds(item) for key, item in of.items()}, type(of)
        return ([kinds(item) for item in of], type(of)) if isinstance(of, list) else type(of)

    assert plain(value) == made
    assert kinds(plain(value)) == kinds(made)


def test_what_json_cannot_keep_stays_for_others_to_refuse() -> None:
    value = {1, 2}
    assert plain([value])[0] is value
    endless: list[Any] = []
    endless.append(endless)
    assert plain(endless)
    circle: dict[str, Any] = {}
    circle["in"] = [circle]
    assert plain(circle)


def test_a_copy_shares_nothing_that_can_change() -> None:
    value = {"a": [1, {"b": [2]}, (3, [4])]}
    copy = copied(value)
    assert copy == {"a": [1, {"b": [2]}, [3, [4]]]}
    copy["a"][1]["b"].append(5)
    copy["a"][2][1].append(6)
    assert value == {"a": [1, {"b": [2]}, (3, [4])]}


def test_the_way_up_leads_past_dominators_to_a_root_or_what_is_known() -> None:
    of = graph(a="", b="a", c="b", d="c", x="a", j="d x", k="j", m="k a")
    number = of.index

    def way(node: str, *known: str) -> tuple[str, list[str], list[str]]:
        found = lineage(of, number[node], {number[each] for each in known})
        return of.order[found.base], [of.order[each] for each in found.before], [of.order[each] for each in found.after]

    assert way("d") == ("a", ["a", "b"], ["c"])
    assert way("d", "b") == ("b", ["b"], ["c"])
    assert way("d", "d") == ("d", [], [])
    base, before, after = way("m")
    assert (base, before[0], before[-1], set(before), after) == ("a", "a", "j", set("abcdxj"), ["k"])
    assert way("m", "k") == ("k", [], ["k"])
    base, before, after = way("j")
    assert (base, before, after[0], set(after)) == ("a", [], "a", set("abcdx"))
    assert way("a") == ("a", [], [])


@given(dags(max_nodes=14), st.sets(st.integers(0, 13)))
def test_what_is_folded_on_the_way_is_every_ancestor_once_in_the_order_of_the_graph(
    specs: list[NodeSpec], known: set[int]
) -> None:
    of = Graph(specs)
    for index in range(len(of)):
        found = lineage(of, index, known)
        assert (*ancestors(of, found.base), *found.before, *found.after) == ancestors(of, index)
        assert (*ancestors(of, found.base), *found.before) == ancestors(of, found.dominator)


@given(dags(max_nodes=10))
def test_a_dominator_is_the_nearest_node_that_all_other_ancestors_are_above_or_below(specs: list[NodeSpec]) -> None:
    of = Graph(specs)
    is_ancestor = of.ancestry.is_ancestor
    for index in range(len(of)):
        above = ancestors(of, index)
        found = [
            each for each in above if all(each == a or is_ancestor(each, a) or is_ancestor(a, each) for a in above)
        ]
        assert of.dominators.nearest[index] == max(found, key=lambda each: of.ranks[each], default=-1)


def test_ancestors_are_in_the_order_of_the_graph_and_without_what_was_removed() -> None:
    of = graph(a="", b="a", c="b", x="", j="c x", beside="a")
    assert [of.order[each] for each in ancestors(of, of.index["j"])] == [
        node for node in of.order if node in ("a", "b", "c", "x")
    ]
    assert ancestors(of, of.index["a"]) == ()
    healed = arrange(of, graph(first="", a="first", c="a", j="c"))
    found = [healed.order[each] for each in in_order(healed, range(len(healed.order)))]
    assert found == ["first", "a", "c", "j"]
    assert [healed.order[each] for each in ancestors(healed, healed.index["j"])] == ["first", "a", "c"]
