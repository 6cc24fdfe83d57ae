"""Steps, tasks, methods and inputs share one namespace: nothing is lost by writing a name twice."""

from __future__ import annotations

import functools

import pytest

from stepwell.define import Workflow, step, task
from stepwell.errors import DefinitionError
from stepwell.testing import speedrun
from tests.define.lines import place


def test_a_step_and_a_task_of_one_name_are_refused() -> None:
    with pytest.raises(DefinitionError, match="'validate' is defined twice") as caught:

        class Order(Workflow):
            @step  # first step
            def validate(self) -> None: ...
            @task(depends_on=None)  # second task
            def validate(self) -> None: ...  # noqa: F811

    assert f"first at {place(__file__, 'first step')}" in str(caught.value)
    assert caught.value.where == place(__file__, "second task")


def test_a_plain_method_cannot_silently_take_the_place_of_a_step() -> None:
    with pytest.raises(DefinitionError, match="'validate' is defined twice") as caught:

        class Order(Workflow):
            @step
            def validate(self) -> None: ...
            def validate(self) -> None: ...  # noqa: F811 # helper

    assert caught.value.where == place(__file__, "helper")


def test_a_step_cannot_silently_take_the_place_of_a_plain_method() -> None:
    with pytest.raises(DefinitionError, match="'validate' is defined twice"):

        class Order(Workflow):
            def validate(self) -> None: ...
            @step
            def validate(self) -> None: ...  # noqa: F811


def test_one_method_under_two_names_is_refused() -> None:
    with pytest.raises(DefinitionError, match="check: is 'validate' under another name"):

        class Order(Workflow):
            @step
            def validate(self) -> None: ...

            check = validate


def test_an_input_and_a_step_of_one_name_are_refused() -> None:
    with pytest.raises(DefinitionError, match="order: is an input and a step"):

        class Order(Workflow):
            order: int

            @step
            def order(self) -> None: ...


@pytest.mark.parametrize(
    "name", ["workflow_graph", "workflow_input", "workflow_target", "workflow_name", "workflow_anything", "ctx"]
)
def test_names_that_stepwell_uses_itself_are_refused(name: str) -> None:
    with pytest.raises(DefinitionError, match=f"{name}: this name belongs to Stepwell"):
        type(Workflow)("Order", (Workflow,), {name: step(lambda self: None)})
    with pytest.raises(DefinitionError, match=f"{name}: this name belongs to Stepwell"):
        type(Workflow)("Order", (Workflow,), {"__annotations__": {name: int}})
    with pytest.raises(DefinitionError, match=f"{name}: this name belongs to Stepwell"):
        type(Workflow)("Order", (Workflow,), {name: "a constant"})


def test_inputs_steps_and_constants_may_have_every_name_without_the_prefix() -> None:
    class Draw(Workflow):
        target: str
        graph: dict[str, int]
        run = "a constant"

        @step
        def input(self) -> str:
            return self.target

        @step
        def output(self, input: str) -> list[object]:
            return [input, self.graph, self.run]

    drawn = Draw(target="a", graph={"b": 1})
    assert drawn.workflow_input() == {"target": "a", "graph": {"b": 1}}
    assert [spec.name for spec in Draw.workflow_graph()] == ["input", "output"]
    assert Draw.workflow_target.endswith(".Draw")
    assert speedrun(drawn).result == ["a", {"b": 1}, "a constant"]


def test_plain_methods_and_class_constants_are_left_alone() -> None:
    class Order(Workflow):
        LIMIT = 3

        @step
        def validate(self) -> int:
            return self.helper() + self.LIMIT

        def helper(self) -> int:
            return 1

        @property
        def double(self) -> int:
            return 2 * self.LIMIT

    assert list(Order.workflow_graph().nodes) == ["validate"]
    assert Order().double == 6


def test_a_wrapper_may_take_the_place_of_the_method_it_wraps() -> None:
    class Order(Workflow):
        @step(retry=2)
        def validate(self) -> int:
            return 1

        @functools.wraps(validate)
        def loudly(self, inner=validate) -> int:
            return 1 + inner(self)

        validate = loudly
        del loudly

    assert list(Order.workflow_graph().nodes) == ["validate"]
    assert Order().validate() == 2
