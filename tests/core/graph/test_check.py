"""A graph that cannot run is refused with everything that is wrong with it."""

from __future__ import annotations

import datetime
import itertools
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.core.graph import Graph, NodeSpec, Retry, check
from stepwell.errors import DefinitionError, GraphError
from tests.core.graph.dags import dags


def messages(*specs: NodeSpec) -> list[str]:
    return [str(problem) for problem in check(specs)]


def test_every_problem_is_reported_at_once() -> None:
    found = messages(
        NodeSpec("a", "a", depends_on=("ghost",)),
        NodeSpec("a", "a"),
        NodeSpec("", "b", timeout=0),
        NodeSpec("c", "c", depends_on=("a", "a"), queue="x/y", on_lost="never", body="moon"),
        NodeSpec("d", "d", args={"when": datetime.date(2026, 1, 1)}),
        NodeSpec("e", "e", depends_on=("f",)),
        NodeSpec("f", "f", depends_on=("e",)),
    )
    assert found == [
        "a: two nodes have this id",
        "node 3: its id is empty",
        ": timeout=0: expected a positive number of seconds up to 315,360,000 (ten years)",
        "c: on_lost='never': expected one of rerun, interrupt",
        "c: queue='x/y': expected a name without '/'",
        "c: body='moon': expected one of thread, loop, process",
        "d: args: a value of type datetime.date cannot be kept as JSON (at $.when)",
        "a: depends on 'ghost', which does not exist",
        "c: names a dependency twice",
        "graph: it contains a cycle: f -> e -> f",
    ]


def test_a_graph_without_nodes_is_refused() -> None:
    with pytest.raises(GraphError, match="it has no nodes"):
        Graph([])


def test_a_graph_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["stepwell.core.graph.check"], "MAX_NODES", 2)
    assert messages(*(NodeSpec(name, name) for name in "ab")) == []
    assert messages(*(NodeSpec(name, name) for name in "abc")) == ["graph: it has 3 nodes; at most 2 are allowed"]


def test_outputs_of_very_many_ancestors_are_checked_in_reasonable_time() -> None:
    """More than are looked at in one walk, each wanted by a node two below it."""
    count = 5_000
    specs = [
        NodeSpec(str(i), str(i), depends_on=(str(i - 1),) if i else (), needs=(str(i - 2),) if i > 1 else ())
        for i in range(count)
    ]
    assert check(specs) == []
    wrong = [
        *specs,
        NodeSpec("stray", "stray"),
        NodeSpec("z", "z", depends_on=("0",), needs=("0", "7", str(count - 1))),
    ]
    assert [str(problem) for problem in check(wrong)] == [
        f"z: takes the output of '{name}', which is not one of its ancestors" for name in (7, count - 1)
    ]


def test_the_error_carries_the_problems_and_the_place() -> None:
    with pytest.raises(GraphError, match=r"2 problems:\n  - a: .*\n  - b: .*\n  defined at shop.py:3") as caught:
        Graph([NodeSpec("a", "a", depends_on=("x",)), NodeSpec("b", "b", depends_on=("y",))], where="shop.py:3")
    assert [problem.where for problem in caught.value.problems] == ["a", "b"]
    assert isinstance(caught.value, DefinitionError)


def test_the_cycle_itself_is_printed_and_not_what_hangs_below_it() -> None:
    specs = [
        NodeSpec("below", "below", depends_on=("c",)),
        NodeSpec("a", "a", depends_on=("start", "c")),
        NodeSpec("b", "b", depends_on=("a",)),
        NodeSpec("c", "c", depends_on=("b",)),
        NodeSpec("start", "start"),
    ]
    assert messages(*specs) == ["graph: it contains a cycle: a -> b -> c -> a"]


def test_a_node_that_depends_on_itself_is_a_cycle() -> None:
    assert messages(NodeSpec("a", "a", depends_on=("a",))) == ["graph: it contains a cycle: a -> a"]


def test_a_very_long_cycle_is_found_in_reasonable_time() -> None:
    count = 50_000
    started = time.perf_counter()
    (message,) = messages(*(NodeSpec(str(i), str(i), depends_on=(str((i + 1) % count),)) for i in range(count)))
    assert message.count("->") == count
    assert time.perf_counter() - started < 30  # about 0.5 s; the bound is for a busy machine


@given(dags(), st.data())
def test_an_edge_back_is_always_found(specs: list[NodeSpec], data: st.DataObject) -> None:
    assert check(specs) == []
    graph = Graph(specs)
    below = data.draw(st.sampled_from(specs)).id
    above = below
    while graph.nodes[above].depends_on:
        above = data.draw(st.sampled_from(graph.nodes[above].depends_on))
    closed = [spec._replace(depends_on=(*spec.depends_on, below)) if spec.id == above else spec for spec in specs]
    (problem,) = check(closed)
    text = problem.message.removeprefix("it contains a cycle: ")
    cycle = text.split(" -> ")
    assert cycle[0] == cycle[-1]
    parents = {spec.id: spec.depends_on for spec in closed}
    assert all(parent in parents[child] for parent, child in itertools.pairwise(cycle))


def test_outputs_are_taken_from_ancestors_only() -> None:
    first, second = NodeSpec("a", "a"), NodeSpec("b", "b", depends_on=("a",))
    assert messages(first, second, NodeSpec("c", "c", depends_on=("b",), needs=("a", "b"))) == []
    assert messages(first, second, NodeSpec("c", "c", depends_on=("a",), needs=("a", "b", "x"))) == [
        "c: takes the output of 'b', which is not one of its ancestors",
        "c: takes the output of 'x', which is not one of its ancestors",
    ]


def test_an_interrupted_node_is_retried_only_on_named_exceptions() -> None:
    (message,) = messages(NodeSpec("a", "a", on_lost="interrupt", retry=Retry(3)))
    assert "explicit retry_on" in message
    assert messages(NodeSpec("a", "a", on_lost="interrupt", retry=Retry(3, retry_on=(OSError,)))) == []
