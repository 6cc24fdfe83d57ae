"""What a step or a task depends on is what its decorator says."""

from __future__ import annotations

import pytest

from stepwell.core.graph import Graph
from stepwell.define import PREVIOUS, Workflow, step, task
from stepwell.errors import DefinitionError, GraphError
from tests.define.lines import place


def edges(graph: Graph) -> dict[str, tuple[str, ...]]:
    return {spec.id: tuple(map(str, spec.depends_on)) for spec in graph}


def test_the_graph_of_the_order_example_is_the_one_in_the_design() -> None:
    class OrderWorkflow(Workflow, on_failure="fail_fast"):
        order_id: int

        @step
        def validate(self) -> None: ...
        @step
        def enrich(self) -> None: ...
        @step(after_step=validate)
        def audit(self) -> None: ...
        @task(depends_on=enrich, retry=3, timeout=30)
        def check_fraud(self, enrich: None) -> None: ...
        @task(depends_on="enrich")
        async def check_inventory(self) -> None: ...
        @step(depends_on=[check_inventory, check_fraud])
        def charge(self) -> None: ...
        @step(also_depends_on=check_inventory)
        def ship(self, ctx: object) -> None: ...

    assert edges(OrderWorkflow.workflow_graph()) == {
        "validate": (),
        "audit": ("validate",),
        "enrich": ("audit",),
        "check_fraud": ("enrich",),
        "check_inventory": ("enrich",),
        "charge": ("check_inventory", "check_fraud"),
        "ship": ("charge", "check_inventory"),
    }


def test_explicit_dependencies_keep_the_place_in_the_chain() -> None:
    class Order(Workflow):
        @step
        def validate(self) -> None: ...
        @task(depends_on=validate)
        def check(self) -> None: ...
        @step(depends_on=check)
        def charge(self) -> None: ...
        @step
        def ship(self) -> None: ...
        @step(after_step=charge)
        def invoice(self) -> None: ...

    assert edges(Order.workflow_graph()) == {
        "validate": (),
        "check": ("validate",),
        "charge": ("check",),
        "invoice": ("charge",),
        "ship": ("invoice",),
    }


def test_none_is_an_entry_point() -> None:
    class Order(Workflow):
        @step
        def validate(self) -> None: ...
        @step(depends_on=None)
        def weather(self) -> None: ...
        @task(depends_on=None)
        def news(self) -> None: ...
        @step
        def ship(self) -> None: ...

    assert edges(Order.workflow_graph()) == {"validate": (), "weather": (), "news": (), "ship": ("weather",)}


def test_previous_can_be_one_dependency_of_several() -> None:
    class Order(Workflow):
        @step
        def validate(self) -> None: ...
        @task(depends_on=None)
        def news(self) -> None: ...
        @step(depends_on=[news, PREVIOUS])
        def ship(self) -> None: ...

    assert edges(Order.workflow_graph())["ship"] == ("news", "validate")


def test_nothing_is_previous_to_the_first_step() -> None:
    class Order(Workflow):
        @task(depends_on=None)
        def news(self) -> None: ...
        @step(also_depends_on=news)
        def validate(self) -> None: ...

    assert edges(Order.workflow_graph())["validate"] == ("news",)


def test_a_dependency_named_twice_is_one() -> None:
    class Order(Workflow):
        @step
        def validate(self) -> None: ...
        @step(also_depends_on=["validate", validate])
        def ship(self) -> None: ...

    assert edges(Order.workflow_graph())["ship"] == ("validate",)


def test_a_dependency_may_be_written_further_down() -> None:
    class Order(Workflow):
        @task(depends_on="ship")
        def report(self) -> None: ...
        @step
        def ship(self) -> None: ...

    assert edges(Order.workflow_graph())["report"] == ("ship",)


def test_a_method_is_known_by_the_name_it_has_in_the_class() -> None:
    def anything(self: object) -> None: ...

    class Order(Workflow):
        validate = step(anything)

        @step(depends_on=validate)
        def ship(self) -> None: ...

    assert edges(Order.workflow_graph()) == {"validate": (), "ship": ("validate",)}


def test_one_decorator_can_serve_many_methods() -> None:
    patient = step(retry=5)

    class Order(Workflow):
        @patient
        def validate(self) -> None: ...
        @patient
        def charge(self) -> None: ...
        @task(depends_on=validate)
        def check(self) -> None: ...

    assert edges(Order.workflow_graph()) == {"validate": (), "charge": ("validate",), "check": ("validate",)}


def test_unknown_dependencies_are_all_reported_with_their_lines() -> None:
    with pytest.raises(GraphError) as caught:

        class Order(Workflow):  # class
            @step(also_depends_on="external_validation")  # first
            def validate(self) -> None: ...
            @task(depends_on=edges)  # second
            def check(self) -> None: ...

    assert [str(problem) for problem in caught.value.problems] == [
        f"validate: depends on 'external_validation', which does not exist ({place(__file__, 'first')})",
        f"check: depends on 'edges', which does not exist ({place(__file__, 'second')})",
    ]
    assert caught.value.where == place(__file__, "class")


def test_a_cycle_is_refused_and_shown() -> None:
    with pytest.raises(GraphError, match="a cycle: ship -> validate -> ship"):

        class Order(Workflow):
            @step(depends_on="ship")
            def validate(self) -> None: ...
            @step
            def ship(self) -> None: ...


def test_a_task_needs_its_dependencies_spelled_out() -> None:
    for wrong in (task, lambda: task(depends_on=PREVIOUS), lambda: task(print)):
        with pytest.raises(DefinitionError, match=r"task\(depends_on=...\)"):
            wrong()


def test_depends_on_and_also_depends_on_exclude_each_other() -> None:
    with pytest.raises(DefinitionError, match="name everything there") as caught:
        step(depends_on="a", also_depends_on="b")  # both
    assert caught.value.where == place(__file__, "both")


def test_only_nodes_can_be_dependencies() -> None:
    with pytest.raises(DefinitionError, match="7 cannot be a dependency"):
        step(depends_on=["validate", 7])
    with pytest.raises(DefinitionError, match="8 cannot be a dependency"):
        step(depends_on=8)


def test_previous_is_one_object_with_a_name() -> None:
    assert repr(PREVIOUS) == "PREVIOUS"
