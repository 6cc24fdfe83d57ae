"""One node per item, all free to run at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.define import Builder
from stepwell.errors import DefinitionError
from tests.define.lines import place
from tests.define.shop import charge, fetch
from tests.define.test_builder import edges
from tests.sizes import in_seconds, sized


def test_the_example_of_the_design() -> None:
    w = Builder("process-mutations")
    parts = w.fan_out([4, 8], job=fetch, name=lambda i: f"mutation_{i}", args=lambda i: {"mutation_id": i})
    w.node("aggregate", job=charge, args={"user_id": 7}, depends_on=parts)
    w.node("notify", job=charge, args={"user_id": 7})
    assert edges(w.graph()) == {
        "mutation_4": [],
        "mutation_8": [],
        "aggregate": ["mutation_4", "mutation_8"],
        "notify": ["aggregate"],
    }
    assert [w.graph().nodes[part].args for part in parts] == [{"mutation_id": 4}, {"mutation_id": 8}]
    assert {w.graph().nodes[part].body for part in parts} == {"loop"}


def test_names_and_args_have_defaults() -> None:
    w = Builder("w")
    w.fan_out("xy", job=charge)
    w.fan_out("z", job="shop.jobs:Mail.send")
    w.fan_out("z", job=charge, name="part")
    assert [(spec.name, spec.args) for spec in w.graph()] == [
        ("charge_0", {"item": "x"}),
        ("charge_1", {"item": "y"}),
        ("send_0", {"item": "z"}),
        ("part_0", {"item": "z"}),
    ]


def test_the_members_share_the_node_before_them() -> None:
    w = Builder("w")
    w.node("split", job=charge)
    w.fan_out("xy", job=charge)
    assert edges(w.graph()) == {"split": [], "charge_0": ["split"], "charge_1": ["split"]}


def test_the_members_share_the_parents_they_are_given() -> None:
    w = Builder("w")
    a = w.node("a", job=charge)
    w.node("b", job=charge, depends_on=None)
    w.fan_out("x", job=charge, depends_on=[a, "b"])
    w.fan_out("x", job=fetch, depends_on=None)
    assert edges(w.graph()) == {"a": [], "b": [], "charge_0": ["a", "b"], "fetch_0": []}


def test_what_follows_depends_on_all_members() -> None:
    w = Builder("w")
    w.fan_out("xy", job=charge)
    w.fan_out("xy", job=fetch)
    w.node("join", job=charge)
    assert edges(w.graph()) == {
        "charge_0": [],
        "charge_1": [],
        "fetch_0": ["charge_0", "charge_1"],
        "fetch_1": ["charge_0", "charge_1"],
        "join": ["fetch_0", "fetch_1"],
    }


def test_an_empty_fan_out_stands_for_its_parents() -> None:
    w = Builder("w")
    w.node("a", job=charge)
    w.node("b", job=charge, depends_on=None)
    nothing = w.fan_out([], job=charge, depends_on=["a", "b"])
    assert nothing == []
    w.node("after", job=charge)
    w.node("named", job=charge, depends_on=nothing)
    w.node("among others", job=charge, depends_on=[nothing, "after"])
    assert edges(w.graph()) == {
        "a": [],
        "b": [],
        "after": ["a", "b"],
        "named": ["a", "b"],
        "among others": ["a", "b", "after"],
    }


def test_an_empty_fan_out_at_the_start_stands_for_nothing() -> None:
    w = Builder("w")
    w.node("join", job=charge, depends_on=w.fan_out([], job=charge))
    assert edges(w.graph()) == {"join": []}


def test_several_fan_outs_can_be_depended_on_together() -> None:
    w = Builder("w")
    first = w.fan_out("x", job=charge)
    second = w.fan_out("y", job=fetch, depends_on=None)
    w.node("join", job=charge, depends_on=[first, second])
    assert edges(w.graph())["join"] == ["charge_0", "fetch_0"]


def test_options_are_those_of_every_member() -> None:
    w = Builder("w")
    w.fan_out("xy", job=charge, retry=2, timeout=3, queue="slow")
    assert {(spec.retry, spec.timeout, spec.queue) for spec in w.graph()} == {
        (next(iter(w.graph())).retry, 3.0, "slow")
    }


def test_a_fan_out_that_raises_leaves_no_trace() -> None:
    w = Builder("w")
    w.node("a", job=charge)

    def args(item: int) -> dict[str, Any]:
        return {"share": 1 / item}

    with pytest.raises(ZeroDivisionError):
        w.fan_out([2, 1, 0], job=charge, args=args)
    with pytest.raises(DefinitionError, match="cannot be a name"):
        w.fan_out(["x", ""], job=charge, name=str)
    w.node("b", job=charge)
    assert edges(w.graph()) == {"a": [], "b": ["a"]}


def test_args_of_a_fan_out_are_made_from_the_item() -> None:
    with pytest.raises(DefinitionError, match="expected a function that makes the args of one item") as caught:
        Builder("w").fan_out("x", job=charge, args={"a": 1})  # dict
    assert caught.value.where == place(__file__, "dict")


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["previous", "none", "all"])), min_size=1, max_size=8))
def test_any_sequence_of_calls_gives_the_edges_of_the_rules(calls: list[tuple[int, str]]) -> None:
    """0 to 3 members each, after the previous call, after nothing, or after everything so far."""
    w = Builder("w")
    w.node("root", job=charge)
    expected: dict[str, list[str]] = {"root": []}
    previous = ["root"]
    for number, (count, after) in enumerate(calls):
        parents = {"previous": previous, "none": [], "all": list(expected)}[after]
        given_parents: dict[str, Any] = {"none": {"depends_on": None}, "all": {"depends_on": list(expected)}}.get(
            after, {}
        )
        w.fan_out(range(count), job=charge, name=lambda item, number=number: f"{number}.{item}", **given_parents)
        members = [f"{number}.{item}" for item in range(count)]
        expected |= dict.fromkeys(members, parents)
        previous = members or parents
    w.node("last", job=charge)
    assert edges(w.graph()) == {**expected, "last": previous}


@pytest.mark.full_size
def test_a_hundred_thousand_members_are_built_quickly() -> None:
    size = sized(100_000)
    w = Builder("w")
    with in_seconds(10):  # about 0.9 s
        parts = w.fan_out(range(size), job=charge, name=lambda i: f"part_{i}", args=lambda i: {"part": i})
        w.node("join", job=charge, depends_on=parts)
        assert len(w.graph()) == size + 1


def test_an_empty_fan_out_without_parents_makes_what_follows_an_entry_point() -> None:
    w = Builder("w")
    w.node("a", job=charge)
    nothing = w.fan_out([], job=charge, depends_on=None)
    w.node("after", job=charge)
    w.node("named", job=charge, depends_on=nothing)
    assert edges(w.graph()) == {"a": [], "after": [], "named": []}


def test_an_empty_fan_out_after_an_empty_one_stands_for_the_parents_of_both() -> None:
    w = Builder("w")
    w.fan_out("xy", job=charge)
    first = w.fan_out([], job=charge)
    second = w.fan_out([], job=fetch, depends_on=first)
    w.fan_out("z", job=fetch, depends_on=second)
    assert edges(w.graph()) == {"charge_0": [], "charge_1": [], "fetch_0": ["charge_0", "charge_1"]}


def test_some_members_can_be_depended_on() -> None:
    w = Builder("w")
    parts = w.fan_out("xyz", job=charge)
    w.node("first", job=charge, depends_on=parts[0])
    w.node("rest", job=charge, depends_on=parts[1:])
    w.node("by name", job=charge, depends_on=["charge_0", parts[2]])
    found = edges(w.graph())
    assert (found["first"], found["rest"]) == (["charge_0"], ["charge_1", "charge_2"])
    assert found["by name"] == ["charge_0", "charge_2"]


def test_items_may_come_from_anywhere_and_are_taken_once() -> None:
    w = Builder("w")
    w.fan_out((item for item in range(3)), job=charge)
    w.fan_out({"a": 1}, job=fetch)
    assert [spec.args["item"] for spec in w.graph()] == [0, 1, 2, "a"]
