"""Conditions are checked where they are written: what they read, and what bodies receive of nodes that may be skipped."""

from __future__ import annotations

import re
from typing import Any

import pytest

from stepwell import Builder, Workflow, step, task
from stepwell.base.ids import NodeId
from stepwell.core.graph import Graph, NodeSpec, check
from stepwell.errors import DefinitionError, GraphError


def is_large(check: Any) -> Any:
    return check["large"]


async def later(check: Any) -> bool:
    return bool(check)


def job() -> None: ...


def test_what_a_condition_reads_is_part_of_what_its_node_needs() -> None:
    class Order(Workflow):
        @step
        def check(self) -> Any: ...
        @step(when=is_large)
        def review(self) -> Any: ...
        @step(when=lambda check, review=None: check)
        def ship(self, check: Any) -> Any: ...

    nodes = Order.workflow_graph().nodes
    assert (nodes["review"].needs, nodes["review"].when) == (("check",), "is_large")
    assert nodes["ship"].needs == ("check", "review")


def test_a_graph_with_conditions_is_stored_and_loaded_as_it_is() -> None:
    class Order(Workflow):
        @step
        def check(self) -> Any: ...
        @step(when="wanted", join="all")
        def review(self) -> Any: ...
        def wanted(self, check: Any) -> bool:
            return bool(check)

    graph = Order.workflow_graph()
    assert (graph.nodes["review"].when, graph.nodes["review"].join) == ("wanted", "all")
    assert Graph.load(graph.document).digest == graph.digest
    assert b"join" not in graph.document.replace(b'"join":"all"', b""), "the default is not written"


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        (lambda chek: chek, "nothing fills its parameter 'chek'"),
        (lambda self, total: total, "the input is self.total"),
        (later, "a condition is a plain function"),
        ("missing", "expected a function of what ancestors returned, got None"),
        (lambda ship: ship, "takes the output of 'ship', which is not one of its ancestors"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused_with_its_line(condition: Any, problem: str) -> None:
    with pytest.raises(GraphError, match=re.escape(problem)) as refused:

        class Order(Workflow):
            total: int = 1

            @step
            def check(self) -> Any: ...
            @step(when=condition)
            def review(self) -> Any: ...
            @step
            def ship(self, review: Any = None) -> Any: ...

    assert "test_conditions.py" in str(refused.value)


@pytest.mark.parametrize("condition", [7, "", ["check"]])
def test_what_is_no_function_is_refused(condition: Any) -> None:
    with pytest.raises(DefinitionError, match=r"when=.*expected a function of what ancestors returned"):
        step(when=condition)


def test_a_parameter_of_a_node_that_may_be_skipped_needs_a_default() -> None:
    with pytest.raises(
        GraphError, match=r"its parameter 'review' has no default, .* may be skipped: write review=None"
    ):

        class Order(Workflow):
            @step
            def check(self) -> Any: ...
            @step(when=is_large)
            def review(self) -> Any: ...
            @step(depends_on=[check, review])
            def ship(self, review: Any) -> Any: ...


def test_so_does_one_of_a_node_further_up_that_may_be_skipped() -> None:
    with pytest.raises(GraphError, match="'note' has no default"):

        class Order(Workflow):
            @step
            def check(self) -> Any: ...
            @step(when=is_large)
            def review(self) -> Any: ...
            @task(depends_on=review)
            def note(self) -> Any: ...
            @step(depends_on=[check, note])
            def ship(self, note: Any) -> Any: ...


def test_so_does_one_of_a_condition() -> None:
    with pytest.raises(GraphError, match="the parameter of its condition, 'review' has no default"):

        class Order(Workflow):
            @step
            def check(self) -> Any: ...
            @step(when=is_large)
            def review(self) -> Any: ...
            @step(depends_on=[check, review], when=lambda review: review)
            def ship(self) -> Any: ...


def test_none_is_needed_where_the_node_runs_only_if_the_other_ran() -> None:
    class Order(Workflow):
        @step
        def check(self) -> Any: ...
        @step(when=is_large)
        def review(self, check: Any) -> Any: ...
        @step
        def file(self, check: Any, review: Any) -> Any: ...
        @task(depends_on=[check, review], join="all")
        def both(self, check: Any, review: Any) -> Any: ...

    assert set(Order.workflow_graph().nodes["both"].needs) == {"check", "review"}


def test_a_builder_binds_the_parameters_of_a_condition_to_nodes_by_name() -> None:
    w = Builder("order")
    check = w.node("check", job=job)
    w.node("review", job=job, when=is_large)
    parts = w.fan_out(range(2), job=job, args=lambda _: {}, when=f"{__name__}:is_large")
    nodes = w.graph().nodes
    stored = f"{__name__}:is_large(check={check})"
    assert [(nodes[part].needs, nodes[part].when) for part in parts] == [((check,), stored)] * 2
    assert Graph.load(w.graph().document).nodes[parts[0]].when == stored


def test_a_builder_refuses_conditions_that_no_other_process_finds() -> None:
    w = Builder("order")
    w.node("check", job=job)
    with pytest.raises(DefinitionError, match="only its name is stored"):
        w.node("review", job=job, when=lambda check: check)
    with pytest.raises(DefinitionError, match="nothing fills its parameter 'check'; it takes ancestors by name"):
        Builder("order").node("review", job=job, when=is_large)
    with pytest.raises(DefinitionError, match="a condition is a plain function"):
        w.node("review", job=job, when=later)


def test_a_builder_refuses_a_condition_on_a_node_that_may_be_skipped_without_a_default() -> None:
    w = Builder("order")
    w.node("start", job=job)
    w.node("check", job=job, when=wants_start)
    w.node("review", job=job, depends_on=["start", "check"], when=is_large)
    with pytest.raises(GraphError, match="the parameter of its condition, 'check', has no default"):
        w.graph()


def wants_start(start: Any) -> Any:
    return start


class AsyncCallable:
    async def __call__(self, check: Any) -> bool:
        return False


@pytest.mark.parametrize("condition", [bool, dict, AsyncCallable(), iter])
def test_what_has_no_parameters_named_like_nodes_or_is_async_is_refused(condition: Any) -> None:
    w = Builder("order")
    w.node("check", job=job)
    with pytest.raises(DefinitionError, match="when="):
        w.node("review", job=job, when=condition)


@pytest.mark.parametrize(
    ("when", "needs", "problem"),
    [
        ("shop.jobs:is_large", ["a"], "expected a function with its parameters"),
        ("shop.jobs:is_large(check)", ["a"], "expected a function with its parameters"),
        ("shop.jobs:is_large(check=a", ["a"], "expected a function with its parameters"),
        ("shop.jobs:is_large(check=a, )", ["a"], "expected a function with its parameters"),
        ("shop.jobs:is_large(check=aother=a)", ["a"], "expected a function with its parameters"),
        ("shop.jobs:is_large(check=a, check=b)", ["a", "b"], "expected a function with its parameters"),
        pytest.param(
            "a:b(x=" + "yyyyyyyyyyyy=" * 5_000, ["a"], "expected a function with its parameters", id="hostile"
        ),
        ("shop.jobs:is_large(check=b)", ["a"], "add 'b' to needs"),
    ],
)
def test_a_stored_condition_says_what_its_parameters_stand_for(when: str, needs: list[str], problem: str) -> None:
    specs = [NodeSpec(NodeId(name), name, job="shop.jobs:job") for name in "ab"]
    wrong = NodeSpec(
        NodeId("c"), "c", (NodeId("a"), NodeId("b")), "shop.jobs:job", needs=tuple(map(NodeId, needs)), when=when
    )
    assert [problem in each.message and each.field == ".when" for each in check([*specs, wrong])] == [True]
