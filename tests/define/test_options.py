"""The options of a node reach its spec, and wrong ones are refused where they are written."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell.core.graph import Graph, NodeSpec, Retry
from stepwell.define import Workflow, step, task
from stepwell.errors import DefinitionError, GraphError
from tests.define.lines import place


def test_options_reach_the_spec() -> None:
    class Order(Workflow):
        @step(retry=3, timeout=30, on_lost="rerun", isolation="process", queue="slow")
        def validate(self) -> None: ...
        @task(depends_on=None, retry=Retry(2, retry_on=(OSError,)), on_lost="interrupt")
        def charge(self) -> None: ...

    validate, charge = Order.workflow_graph()
    assert validate == NodeSpec("validate", "validate", retry=Retry(3), timeout=30.0, body="process", queue="slow")
    assert charge.kind == "task"
    assert charge.on_lost == "interrupt"


def test_side_effects_reach_the_spec_and_at_their_default_change_no_digest() -> None:
    class Order(Workflow):
        @step(side_effects="pure")
        def price(self) -> None: ...
        @task(depends_on=None, side_effects="recordable")
        def charge(self) -> None: ...
        @step(side_effects="opaque")
        def ship(self) -> None: ...

    class Plain(Workflow):
        @step
        def ship(self) -> None: ...

    class AttemptOutput(Workflow):
        @step(side_effects="opaque")
        def ship(self) -> None: ...

    assert [spec.side_effects for spec in Order.workflow_graph()] == ["pure", "recordable", "opaque"]
    assert Plain.workflow_graph().digest == AttemptOutput.workflow_graph().digest


def test_the_graph_says_which_nodes_make_their_own_idempotency_keys() -> None:
    """So who has no code knows that such a key is not the one that the engine makes. What the function says is not in it."""

    class First(Workflow):
        @step(idempotency_key=lambda self: "key")
        def charge(self) -> None: ...
        @step
        def ship(self) -> None: ...

    class Second(Workflow):
        @step(idempotency_key=lambda self: "another")
        def charge(self) -> None: ...
        @step(idempotency_key=None)
        def ship(self) -> None: ...

    assert [spec.own_key for spec in Graph.load(First.workflow_graph().document)] == [True, False]
    assert First.workflow_graph().digest == Second.workflow_graph().digest


def test_where_a_body_runs_follows_from_how_it_is_written() -> None:
    class Order(Workflow):
        @step
        def in_thread(self) -> None: ...
        @step
        async def on_loop(self) -> None: ...
        @step(isolation="process")
        def in_process(self) -> None: ...
        @step(isolation="process")
        async def on_loop_in_process(self) -> None: ...

    assert [spec.body for spec in Order.workflow_graph()] == ["thread", "loop", "process", "process"]


def test_whole_and_broken_seconds_are_the_same_graph() -> None:
    class First(Workflow):
        @step(timeout=30)
        def work(self) -> None: ...

    class Second(Workflow):
        @step(timeout=30.0)
        def work(self) -> None: ...

    assert First.workflow_graph().digest == Second.workflow_graph().digest


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": True},
        {"timeout": "30"},
        {"timeout": float("nan")},
        {"timeout": float("inf")},
        {"timeout": 1e300},
        {"timeout": 10**400},
        {"retry": 0},
        {"retry": True},
        {"on_lost": "maybe"},
        {"isolation": "moon"},
        {"side_effects": "few"},
        {"idempotency_key": "order-7"},
        {"queue": ""},
        {"queue": "a/b"},
        {"queue": " "},
        {"queue": None},
        {"queue": "\ud800"},
    ],
)
def test_a_wrong_option_is_refused_with_its_line(wrong: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match="expected") as caught:
        step(**wrong)  # option
    assert caught.value.where == place(__file__, "option")
    with pytest.raises(DefinitionError, match="expected"):
        task(depends_on=None, **wrong)


def test_a_rule_of_the_graph_shows_the_line_of_the_node() -> None:
    with pytest.raises(GraphError, match="explicit retry_on") as caught:

        class Order(Workflow):
            @step(on_lost="interrupt", retry=3)  # rule
            def charge(self) -> None: ...

    assert place(__file__, "rule") in str(caught.value)


@pytest.mark.parametrize("wrong", [staticmethod(print), classmethod(print), property(print), print, int])
def test_only_methods_become_steps(wrong: Any) -> None:
    with pytest.raises(DefinitionError, match="@step goes on a method"):
        step(wrong)


def test_a_declaration_that_decorates_nothing_is_refused() -> None:
    with pytest.raises(GraphError, match=r"validate: step\(...\) decorates a method or names a job"):

        class Order(Workflow):
            validate = step(retry=3)
