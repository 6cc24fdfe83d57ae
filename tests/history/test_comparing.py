"""Two runs side by side: what is told to differ, what is not, and that it stays readable however large they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stepwell.base.ids import NodeId, RunId
from stepwell.core.graph import Graph, NodeSpec
from stepwell.core.model import NodeStatus, RunStatus
from stepwell.history.comparing import NodeFacts, Side, compare
from stepwell.history.differences import MOST_CHANGES, json_changes
from tests.conformance.ops import graph

DONE, FAILED = NodeStatus.COMPLETED, NodeStatus.FAILED


def facts(output: str | None = "x", status: NodeStatus = DONE, attempts: int = 1, seconds: float = 1.0) -> NodeFacts:
    return NodeFacts(status, attempts, seconds, output)


def side(of: Graph, name: str = "r", given: bytes = b"{}", **nodes: NodeFacts) -> Side:
    found = {node: nodes.get(node, facts()) for node in of.nodes}
    return Side(RunId(name), "orders", RunStatus.COMPLETED, 1.0, given, of, found)  # type: ignore[arg-type]


def told(first: Any, second: Any) -> list[str]:
    return [str(change) for change in json_changes(json.dumps(first).encode(), json.dumps(second).encode())]


def test_equal_runs_have_no_difference() -> None:
    of = graph(a="", b="a")
    found = compare(side(of), side(of, b=facts(seconds=3)))
    assert found.same_outputs
    assert (found.different, found.input, found.graph) == ((), (), ())
    assert [pair.ratio for pair in found.pairs] == [1.0, 3.0]
    assert str(found) == "r and r: the same outputs"


def test_how_many_times_as_long_is_told_only_if_both_took_time() -> None:
    of = graph(a="")
    for first, second, ratio in [
        (2.0, 3.0, 1.5),
        (2.0, 0.0, 0.0),
        (0.0, 3.0, None),
        (None, 3.0, None),
        (2.0, None, None),
    ]:
        (pair,) = compare(side(of, a=facts(seconds=first)), side(of, a=facts(seconds=second))).pairs  # type: ignore[arg-type]
        assert pair.ratio == ratio


def test_one_delta_or_output_that_differs_is_enough() -> None:
    of = graph(a="", b="")
    other = compare(side(of), side(of, b=facts()._replace(delta="z")))
    assert (other.same_outputs, other.same_deltas) == (True, False)
    assert other.pairs[0].differs == ("delta",)
    other = compare(side(of), side(of, b=facts("y")))
    assert (other.same_outputs, other.same_deltas) == (False, True)


def test_what_differs_comes_first_and_outputs_before_all() -> None:
    of = graph(a="", b="", c="", d="")
    found = compare(side(of), side(of, b=facts(attempts=2), d=facts("y"), c=facts(status=NodeStatus.SKIPPED)))
    assert [(pair.id, pair.differs) for pair in found.pairs] == [
        ("d", ("output",)),
        ("c", ("status",)),
        ("b", ("attempts",)),
        ("a", ()),
    ]
    assert not found.same_outputs


def test_a_node_that_only_one_has_is_missing_and_its_output_too() -> None:
    found = compare(side(graph(a="", b="")), side(graph(a="", c=""), c=facts(None, FAILED)))
    assert [(pair.id, pair.differs) for pair in found.pairs] == [
        ("b", ("output", "missing")),
        ("c", ("missing",)),
        ("a", ()),
    ]
    assert found.pairs[0].ratio is None
    assert found.graph == ()


def test_a_completion_and_a_failure_are_different_outputs() -> None:
    of = graph(a="")
    found = compare(side(of), side(of, a=facts(None, FAILED)))
    assert found.pairs[0].differs == ("output", "status")
    assert "a: output, status" in str(found)


def test_nodes_that_are_defined_otherwise_are_told() -> None:
    first = graph(a="", b="")
    second = Graph([NodeSpec(NodeId("a"), "a"), NodeSpec(NodeId("b"), "b", (NodeId("a"),), args={"size": 3})])
    found = compare(side(first), side(second))
    assert [str(change) for change in found.graph] == [
        '$.b.args: only in the second: {"size":3}',
        '$.b.depends_on: only in the second: ["a"]',
    ]


@pytest.mark.parametrize(
    ("first", "second", "changes"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["$.a: 1 / 2"]),
        ({"a": None}, {}, ["$.a: only in the first: null"]),
        ({}, {"a": None}, ["$.a: only in the second: null"]),
        ([1, 2, 3], [1, 3], ["$[1]: 2 / 3", "$[2]: only in the first: 3"]),
        ({"b c": [{"d": True}]}, {"b c": [{"d": 1}]}, ['$["b c"][0].d: true / 1']),
        ({"a": 1}, [1], ['$: {"a":1} / [1]']),
        ([1], {"a": 1}, ['$: [1] / {"a":1}']),
        ({"a": {}}, {"a": []}, ["$.a: {} / []"]),
        (1, 1.0, ["$: 1 / 1.0"]),
        ("x" * 200, "y", [f'$: "{"x" * 120}" … / "y"']),
    ],
)
def test_where_values_differ(first: Any, second: Any, changes: list[str]) -> None:
    assert told(first, second) == changes


def test_deep_wide_and_large_values_are_bounded() -> None:
    first, second = [list(range(start, start + 10_000)) for start in (0, 1)]
    assert len(told(first, second)) == MOST_CHANGES + 1
    deep: list[Any] = [1]
    other: list[Any] = [2]
    for _ in range(150):
        deep, other = [deep], [other]
    assert told(deep, other) == [f"${'[0]' * 151}: 1 / 2"]
    large = json.dumps("x" * 1_000_001).encode()
    assert [str(change) for change in json_changes(large, b"1")] == ["$: 1,000,003 bytes / 1 bytes"]
    assert [str(change) for change in json_changes(None, b"1")] == ["$: only in the second: 1"]
    assert json_changes(None, None) == ()
