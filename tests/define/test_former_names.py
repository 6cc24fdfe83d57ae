"""`was=` tells which names a node had in earlier versions of its class."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from stepwell.define import Builder, Workflow, step, task
from stepwell.errors import DefinitionError, GraphError
from tests.define import shop
from tests.define.lines import place


def test_former_names_reach_the_spec() -> None:
    class Order(Workflow):
        @step
        def validate(self) -> None: ...
        @step(was="charge")
        def pay(self) -> None: ...
        @task(depends_on=pay, was=["mail", "notify", "mail"])
        def thank(self) -> None: ...

        report = step(job=shop.summarise, was=("summary",))

    assert {spec.id: spec.was for spec in Order.workflow_graph()} == {
        "validate": (),
        "pay": ("charge",),
        "thank": ("mail", "notify"),
        "report": ("summary",),
    }


def test_a_node_without_former_names_has_the_digest_it_always_had() -> None:
    class Order(Workflow):
        @step
        def validate(self) -> None: ...
        @step(was=())
        def ship(self) -> None: ...

    assert Order.workflow_graph().document == b'[{"id":"validate"},{"depends_on":["validate"],"id":"ship"}]'


def test_a_plain_override_keeps_the_former_names_and_one_that_is_decorated_anew_does_not() -> None:
    class Order(Workflow):
        @step(was="charge")
        def pay(self) -> None: ...

    class Same(Order):
        def pay(self) -> None: ...

    class Anew(Order):
        @step
        def pay(self) -> None: ...

    assert Same.workflow_graph().nodes["pay"].was == ("charge",)
    assert Anew.workflow_graph().nodes["pay"].was == ()


def test_a_former_name_that_could_mean_several_nodes_is_refused_with_its_line() -> None:
    with pytest.raises(GraphError) as caught:

        class Order(Workflow):
            @step(was="validate")  # own
            def validate(self) -> None: ...
            @step(was=["bill", "validate"])  # taken
            def pay(self) -> None: ...
            @step(was="bill")  # twice
            def ship(self) -> None: ...

    assert [str(problem) for problem in caught.value.problems] == [
        f"validate: was='validate': that is its name now; was= takes names it had before ({place(__file__, 'own')})",
        f"pay: was='validate': a node has this name now, so it is not a former one ({place(__file__, 'taken')})",
        f"ship: was='bill': 'pay' says this too; only one can be right ({place(__file__, 'twice')})",
    ]


def test_the_name_of_an_inherited_node_is_no_former_name() -> None:
    class Base(Workflow):
        @step
        def charge(self) -> None: ...

    with pytest.raises(GraphError, match="pay: was='charge': a node has this name now"):

        class Order(Base):
            @step(was="charge")
            def pay(self) -> None: ...


@pytest.mark.parametrize("wrong", [7, "", "\ud800", ["charge", None], [shop.charge], shop.charge])
def test_former_names_are_names(wrong: Any) -> None:
    with pytest.raises(DefinitionError, match="expected the name this node had in an earlier version") as caught:
        step(was=wrong)  # was
    assert caught.value.where == place(__file__, "was")
    with pytest.raises(DefinitionError, match="expected the name this node had in an earlier version"):
        task(depends_on=None, was=wrong)


def test_a_builder_has_no_versions_and_so_no_former_names() -> None:
    assert "was" not in inspect.signature(Builder.node).parameters
    assert "was" not in inspect.signature(Builder.fan_out).parameters
