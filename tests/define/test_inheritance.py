"""A subclass inherits the chain and changes only its own copy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pytest

from stepwell.define import Workflow, definition_of, step, task
from stepwell.errors import DefinitionError
from tests.define.test_chain import chain


class Base(Workflow):
    order_id: int

    @step
    def validate(self) -> str:
        return "base"

    @step(retry=4, timeout=5)
    def ship(self) -> str:
        return "base"

    @step(after_step=validate)
    def audit(self) -> str:
        return "base"


def run(workflow: Workflow, node: str) -> object:
    definition = definition_of(workflow)
    return definition.bodies.find(definition.graph.nodes[node]).invoke(definition.input, None, {})


def test_a_subclass_has_the_nodes_and_inputs_of_its_base() -> None:
    class Child(Base):
        express: bool = False

    assert Child.workflow_graph() == Base.workflow_graph()
    assert Child(order_id=1).workflow_input() == {"order_id": 1, "express": False}


def test_a_subclass_inserts_into_its_own_copy_of_the_chain() -> None:
    class Child(Base):
        @step(after_step="validate")
        def enrich(self) -> None: ...
        @step(before_step=Base.validate)
        def receive(self) -> None: ...
        @step
        def thank(self) -> None: ...

    assert chain(Child.workflow_graph()) == ["receive", "validate", "audit", "enrich", "ship", "thank"]
    assert chain(Base.workflow_graph()) == ["validate", "audit", "ship"]


def test_an_overridden_method_keeps_its_place_and_options() -> None:
    class Child(Base):
        def ship(self) -> str:
            return "child of " + super().ship()

    assert Child.workflow_graph() == Base.workflow_graph()
    assert run(Child(order_id=1), "ship") == "child of base"
    assert run(Base(order_id=1), "ship") == "base"


def test_an_override_may_be_async_or_ask_for_other_outputs() -> None:
    class Child(Base):
        async def ship(self, audit: str) -> str:
            return audit

    spec = Child.workflow_graph().nodes["ship"]
    assert spec.body == "loop"
    assert spec.needs == ("audit",)
    assert spec.retry is not None


def test_a_method_that_is_decorated_anew_keeps_its_place_but_not_its_options() -> None:
    class Child(Base):
        @step(queue="slow")
        def audit(self) -> str:
            return "child"

        @step
        def ship(self) -> str:
            return "child"

    assert chain(Child.workflow_graph()) == ["validate", "audit", "ship"]
    assert Child.workflow_graph().nodes["audit"].queue == "slow"
    assert Child.workflow_graph().nodes["ship"].retry is None


def test_a_method_that_is_decorated_anew_can_move() -> None:
    class Child(Base):
        @step(after_step=Base.ship)
        def audit(self) -> str:
            return "child"

    assert chain(Child.workflow_graph()) == ["validate", "ship", "audit"]


def test_a_step_can_leave_the_chain_and_a_task_can_join_it() -> None:
    class Middle(Base):
        @task(depends_on="ship")
        def audit(self) -> str:
            return "child"

    assert Middle.workflow_graph().nodes["ship"].depends_on == ("validate",)
    assert Middle.workflow_graph().nodes["audit"].depends_on == ("ship",)

    class Child(Middle):
        @step
        def audit(self) -> str:
            return "grandchild"

    assert chain(Child.workflow_graph()) == ["validate", "ship", "audit"]


def test_the_method_of_a_base_still_names_the_node_that_overrides_it() -> None:
    class Middle(Base):
        @step
        def validate(self) -> str:
            return "middle"

    class Child(Middle):
        @task(depends_on=Base.validate)
        def check(self) -> None: ...

    assert Child.workflow_graph().nodes["check"].depends_on == ("validate",)


def test_a_mixin_brings_steps_of_its_own() -> None:
    class Thanking:
        @step
        def thank(self) -> None: ...

    class Child(Thanking, Base):
        @step(after_step="thank")
        def rest(self) -> None: ...

    assert chain(Child.workflow_graph()) == ["validate", "audit", "ship", "thank", "rest"]


def test_a_node_cannot_be_overridden_by_something_that_is_no_method() -> None:
    with pytest.raises(DefinitionError, match="audit: None takes the place of the step of this name"):

        class Child(Base):
            audit = None


def test_a_base_without_steps_holds_inputs_for_others() -> None:
    class Named(Workflow):
        name: str

    class Child(Named):
        @step
        def greet(self) -> str:
            return self.name

    assert run(Child(name="Ada"), "greet") == "Ada"
    with pytest.raises(DefinitionError, match="Named has no steps"):
        Named.workflow_graph()
    with pytest.raises(DefinitionError, match="Named has no steps"):
        definition_of(Named(name="Ada"))


def test_a_base_may_leave_a_step_abstract() -> None:
    class Delivery(Workflow, ABC):
        @step
        @abstractmethod
        def ship(self) -> str: ...

    class Post(Delivery):
        def ship(self) -> str:
            return "post"

    assert run(Post(), "ship") == "post"
    with pytest.raises(TypeError, match="abstract"):
        Delivery()


def test_what_a_run_does_on_failure_is_inherited_but_not_the_name() -> None:
    class Parent(Workflow, name="parent", on_failure="finish", deadline=60):
        @step
        def work(self) -> None: ...

    class Child(Parent): ...

    class Strict(Parent, on_failure="fail_fast", deadline=5): ...

    child, strict = definition_of(Child()), definition_of(Strict())
    assert (child.workflow, child.on_failure, child.deadline) == ("Child", "finish", 60.0)
    assert (strict.workflow, strict.on_failure, strict.deadline) == ("Strict", "fail_fast", 5.0)


OPTIONS: dict[str, tuple[Any, Any]] = {
    "on_failure": ("finish", "pause"),
    "deadline": (60.0, 5.0),
    "node_timeout": (30.0, 3.0),
    "side_effects": ("recordable", "pure"),
}


@pytest.mark.parametrize("changed", [None, *OPTIONS])
def test_every_option_of_a_class_is_inherited_unless_it_is_given_anew(changed: str | None) -> None:
    class Parent(Workflow, **{name: was for name, (was, _) in OPTIONS.items()}):
        @step
        def work(self) -> None: ...

    class Child(Parent, **({} if changed is None else {changed: OPTIONS[changed][1]})): ...

    class Grandchild(Child): ...

    for cls in (Child, Grandchild):
        made, (node,) = definition_of(cls()), cls.workflow_graph().in_order
        assert {
            "on_failure": made.on_failure,
            "deadline": made.deadline,
            "node_timeout": node.timeout,
            "side_effects": node.side_effects,
        } == {name: values[name == changed] for name, values in OPTIONS.items()}
