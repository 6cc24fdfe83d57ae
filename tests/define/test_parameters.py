"""A body gets what its parameters name."""

from __future__ import annotations

from types import FunctionType, new_class
from typing import Any

import pytest

from stepwell.define import Workflow, definition_of, step, task
from stepwell.errors import GraphError
from tests.define.lines import place


def test_a_parameter_named_like_any_ancestor_receives_its_output() -> None:
    class Order(Workflow):
        @step
        def validate(self) -> None: ...
        @step
        def enrich(self) -> None: ...
        @step
        def charge(self, enrich: Any, *, validate: Any = None) -> Any:
            return enrich, validate

    definition = definition_of(Order())
    spec = definition.graph.nodes["charge"]
    assert spec.needs == ("enrich", "validate")
    assert definition.bodies.find(spec).invoke({}, None, {"enrich": 1, "validate": 2}) == (1, 2)


def test_the_context_is_given_to_who_asks_for_it() -> None:
    class Order(Workflow):
        @step
        def validate(self, ctx: Any) -> Any:
            return ctx

        @step
        def ship(self) -> str:
            return "shipped"

    definition = definition_of(Order())
    assert [definition.bodies.find(spec).invoke({}, "context", {}) for spec in definition.graph] == [
        "context",
        "shipped",
    ]


def test_other_parameters_need_a_default() -> None:
    class Order(Workflow):
        @step
        def validate(self, limit: int = 3, *rest: Any, **more: Any) -> int:
            return limit + len(rest) + len(more)

    definition = definition_of(Order())
    assert definition.bodies.find(definition.graph.nodes["validate"]).invoke({}, None, {}) == 3


def test_a_parameter_that_nothing_fills_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(GraphError) as caught:

        class Order(Workflow):
            order_id: int

            @step
            def validate(self) -> None: ...
            @step  # enrich
            def enrich(self, order_id: int) -> None: ...
            @step
            def charge(self, enrich: Any) -> None: ...
            @task(depends_on=validate)  # check
            def check(self, amount: int) -> None: ...

    assert [str(problem) for problem in caught.value.problems] == [
        "enrich: nothing fills its parameter 'order_id'; a parameter without a default can be one of ctx, validate; "
        f"the input is self.order_id ({place(__file__, 'enrich')})",
        "check: nothing fills its parameter 'amount'; a parameter without a default can be one of ctx, validate "
        f"({place(__file__, 'check')})",
    ]


def test_of_many_ancestors_the_message_names_the_nearest() -> None:
    """Of two long branches as many of each."""

    def nothing(self: object) -> None: ...

    def join(self: object, amount: int) -> None: ...

    body: dict[str, Any] = {}
    for side in "ab":
        for number in range(20):
            body[f"{side}{number}"] = task(depends_on=body.get(f"{side}{number - 1}"))(
                FunctionType(nothing.__code__, {})
            )
    body["join"] = step(depends_on=[body["a19"], body["b19"]])(join)
    with pytest.raises(GraphError) as caught:
        new_class("Branches", (Workflow,), exec_body=lambda space: space.update(body))
    nearest = ", ".join(f"{side}{number}" for number in range(19, 13, -1) for side in "ab")
    assert f"can be one of ctx, {nearest}, or an ancestor further up" in str(caught.value)


def test_a_node_that_is_no_ancestor_is_refused() -> None:
    with pytest.raises(GraphError, match="check: takes the output of 'enrich', which is not one of its ancestors"):

        class Order(Workflow):
            @step
            def validate(self) -> None: ...
            @step
            def enrich(self) -> None: ...
            @task(depends_on=validate)
            def check(self, enrich: Any) -> None: ...


def test_outputs_are_given_by_name_so_the_parameter_must_have_one() -> None:
    with pytest.raises(GraphError) as caught:

        class Order(Workflow):
            @step
            def validate(self) -> None: ...
            @step  # ship
            def ship(self, validate: Any, ctx: Any, /) -> None: ...

    assert [str(problem) for problem in caught.value.problems] == [
        f"ship: its parameter {name!r} can be given by position only, and parameters are filled by name: remove the / after it "
        f"({place(__file__, 'ship')})"
        for name in ("validate", "ctx")
    ]


def test_a_method_takes_self() -> None:
    with pytest.raises(GraphError, match="a method takes self"):

        class Order(Workflow):
            @step
            def validate() -> None: ...


def test_a_body_that_yields_is_refused() -> None:
    with pytest.raises(GraphError) as caught:

        class Order(Workflow):
            @step
            def validate(self) -> Any:
                yield 1

            @step
            async def ship(self) -> Any:
                yield 1

    assert [problem.where for problem in caught.value.problems] == ["validate", "ship"]
    assert "return a list instead" in str(caught.value)
