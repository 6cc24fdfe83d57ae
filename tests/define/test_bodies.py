"""Whoever runs a node finds its body, here or in another process."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import Any

import pytest

from stepwell.core.graph import Graph, NodeSpec
from stepwell.define import Bodies, Builder, Workflow, bodies_for, definition_of, step
from stepwell.errors import DefinitionError, MissingJob
from tests.define import shop


def test_a_workflow_instance_is_defined_by_its_class() -> None:
    definition = definition_of(shop.ShopWorkflow(order_id=7))
    assert definition.workflow == "ShopWorkflow"
    assert definition.target == "tests.define.shop:ShopWorkflow"
    assert definition.graph is shop.ShopWorkflow.workflow_graph()
    assert definition.input == {"order_id": 7, "tags": []}
    assert (definition.on_failure, definition.deadline) == ("fail_fast", None)


def test_a_builder_is_defined_by_its_nodes() -> None:
    w = Builder("nightly", on_failure="finish", deadline=60)
    w.node("charge", job=shop.charge, args={"amount": 3})
    definition = definition_of(w)
    assert definition[:2] == ("nightly", None)
    assert (definition.input, definition.on_failure, definition.deadline) == ({}, "finish", 60.0)
    (spec,) = definition.graph
    assert definition.bodies.find(spec).invoke({}, None, {}) == "3 EUR"


def test_a_class_is_not_an_instance() -> None:
    with pytest.raises(TypeError, match=r"an instance with its input: ShopWorkflow\(order_id=..., tags=...\)"):
        definition_of(shop.ShopWorkflow)


def test_other_things_cannot_be_run() -> None:
    with pytest.raises(TypeError, match="7 cannot be run: give an instance of a Workflow class, or a Builder"):
        definition_of(7)


def test_a_method_gets_the_input_and_what_it_asks_for() -> None:
    definition = definition_of(shop.ShopWorkflow(order_id=7, tags=["a"]))
    body = definition.bodies.find(definition.graph.nodes["collect"])
    assert not body.is_async
    assert body.invoke(definition.input, None, {"validate": {"order": 7}}) == [7, {"order": 7}, ["a"]]


def test_an_async_method_gives_a_coroutine() -> None:
    definition = definition_of(shop.ShopWorkflow(order_id=7))
    body = definition.bodies.find(definition.graph.nodes["look"])
    assert body.is_async
    coroutine = body.invoke(definition.input, "context", {"validate": 1})
    assert inspect.iscoroutine(coroutine)
    assert asyncio.run(coroutine) == ("context", 1)


def test_a_stored_run_finds_the_methods_of_its_class() -> None:
    graph = Graph.load(shop.ShopWorkflow.workflow_graph().document)
    bodies = bodies_for("tests.define.shop:ShopWorkflow")
    assert bodies.find(graph.nodes["validate"]).invoke({"order_id": 3}, None, {}) == {"order": 3}
    report = bodies.find(graph.nodes["report"])
    assert report.invoke({"order_id": 3}, "context", {"validate": 1}) == {"validated": 1, "ctx": "context"}


def test_a_stored_run_without_a_class_finds_its_jobs_by_address() -> None:
    w = Builder("nightly")
    w.node("fetch", job="tests.define.shop:fetch", args={"item": 4})
    w.node("ctx", job=shop.with_ctx, args={"item": 1})
    w.node("total", job=shop.Register.total, args={"amount": 5})
    graph = Graph.load(w.graph().document)
    bodies = bodies_for(None)
    fetch, ctx, total = (bodies.find(spec) for spec in graph)
    assert fetch.is_async
    assert asyncio.run(fetch.invoke({}, None, {})) == 8
    assert ctx.invoke({}, "context", {}) == (1, "context")
    assert total.invoke({}, None, {}) == 5


def test_a_function_that_makes_builders_has_no_methods() -> None:
    with pytest.raises(DefinitionError, match="methods of a Workflow class"):
        bodies_for("tests.define.shop:nightly")


@pytest.mark.parametrize("job", ["tests.define.shop:gone", "no_such_module:gone", "tests.define.shop:not_a_function"])
def test_a_missing_job_names_the_node_and_the_ways_out(job: str) -> None:
    w = Builder("nightly")
    node = w.node("clean up", job=job)
    with pytest.raises(MissingJob) as caught:
        bodies_for(None).find(w.graph().nodes[node])
    for part in (f"'clean up' ({node})", f"restore {job}", "run.retry()", "run.cancel()", "run.export_graph()"):
        assert part in str(caught.value)
    missing = caught.value
    assert (missing.node, missing.node_id, missing.job) == ("clean up", node, job)
    assert (missing.run_id, missing.frozen_at) == (None, None)


def test_a_missing_method_names_the_node_and_the_ways_out() -> None:
    with pytest.raises(MissingJob) as caught:
        bodies_for("tests.define.shop:ShopWorkflow").find(NodeSpec("gone", "gone"))
    for part in ("node 'gone'", "ShopWorkflow has no step or task 'gone'", "restore the method 'gone'"):
        assert part in str(caught.value)
    with pytest.raises(MissingJob, match="no class of this run has a method 'gone'"):
        bodies_for(None).find(NodeSpec("gone", "gone"))


def test_a_helper_method_is_not_a_body() -> None:
    class Order(Workflow):
        @step
        def work(self) -> None: ...
        def helper(self) -> None: ...

    with pytest.raises(MissingJob):
        definition_of(Order()).bodies.find(NodeSpec("helper", "helper"))


def test_a_node_of_an_older_graph_gets_only_what_that_graph_promised() -> None:
    class Order(Workflow):
        @step
        def validate(self) -> None: ...
        @step
        def enrich(self) -> None: ...
        @step
        def charge(self, validate: Any, enrich: Any = "not promised then") -> Any:
            return validate, enrich

    older = Order.workflow_graph().nodes["charge"]._replace(needs=("gone", "validate"))
    body = definition_of(Order()).bodies.find(older)
    assert body.invoke({}, None, {"validate": 1, "gone": 2}) == (1, "not promised then")


def test_what_one_attempt_does_to_its_args_the_next_does_not_see() -> None:
    w = Builder("nightly")
    w.node("spoil", job=shop.spoil, args={"lines": (1, 2)})
    (spec,) = w.graph()
    bodies = definition_of(w).bodies
    assert bodies.find(spec).invoke({}, None, {}) == [1, 2, 99]
    assert bodies.find(spec).invoke({}, None, {}) == [1, 2, 99]


def test_args_that_a_job_does_not_take_raise_when_it_is_called() -> None:
    w = Builder("nightly")
    w.node("total", job=shop.Register.total, args={"amount": 3})
    (spec,) = w.graph()
    with pytest.raises(TypeError, match="euros"):
        definition_of(w).bodies.find(spec._replace(args={"euros": 3})).invoke({}, None, {})


def test_finding_and_calling_a_body_costs_next_to_nothing() -> None:
    definition = definition_of(shop.ShopWorkflow(order_id=7))
    spec = definition.graph.nodes["validate"]
    started = time.perf_counter()
    for _ in range(10_000):
        definition.bodies.find(spec).invoke(definition.input, None, {})
    assert (time.perf_counter() - started) / 10_000 < 50e-6  # about 1.5 µs; the bound is for a busy machine


def test_what_a_job_returns_is_known_where_its_module_is_imported() -> None:
    """Nobody gave the function to a builder here: another process did."""
    spec = NodeSpec("n", "n", job="tests.define.shop:charge")  # type: ignore[arg-type]
    found = Bodies().returns_of(spec)
    assert found is not None
    assert found.problems(7, "it")
    assert not found.problems("3 EUR", "it")
    assert Bodies().returns_of(spec._replace(job="tests.define.nowhere:charge")) is None
