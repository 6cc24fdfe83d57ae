"""Errors help: they say what was probably meant, and stay readable in large classes."""

from __future__ import annotations

import functools

import pytest

from stepwell.core.graph import Retry
from stepwell.define import Workflow, step, task
from stepwell.errors import DefinitionError, GraphError
from tests.define import shop
from tests.define.lines import place


def test_only_the_nearest_of_very_many_ancestors_are_listed() -> None:
    body = {f"s{number:02}": step(eval("lambda self: None")) for number in range(40)}
    body["last"] = step(eval("lambda self, amount: None"))
    with pytest.raises(GraphError) as caught:
        type(Workflow)("Long", (Workflow,), body)
    (problem,) = caught.value.problems
    assert "one of ctx, s39, s38, s37," in problem.message
    assert "s28, or an ancestor further up (" in problem.message
    assert "s27" not in problem.message


def test_a_node_of_another_class_is_not_taken_for_the_one_of_this_name() -> None:
    with pytest.raises(GraphError) as caught:

        class Order(Workflow):
            @step
            def validate(self) -> None: ...
            @step(after_step=shop.ShopWorkflow.validate)  # inserted
            def audit(self) -> None: ...
            @task(depends_on=shop.ShopWorkflow.validate)  # depends
            def check(self) -> None: ...

    after, depends = map(str, caught.value.problems)
    assert after.startswith("audit: after_step='ShopWorkflow.validate': that is no step of this class")
    assert after.endswith(f"({place(__file__, 'inserted')})")
    assert depends.startswith("check: depends on 'ShopWorkflow.validate', which does not exist")
    assert depends.endswith(f"({place(__file__, 'depends')})")


def test_a_plain_method_that_overrides_a_node_can_be_named_too() -> None:
    class Order(shop.ShopWorkflow):
        def spoil(self) -> list[str]:
            return []

        @task(depends_on=spoil)
        def report_twice(self) -> None: ...

    assert Order.workflow_graph().nodes["report_twice"].depends_on == ("spoil",)


def test_a_wrapper_of_a_step_may_be_decorated_anew() -> None:
    class Order(shop.ShopWorkflow):
        @step(retry=3)
        @functools.wraps(shop.ShopWorkflow.spoil)
        def spoil(self) -> list[str]:
            return []

    assert Order.workflow_graph().nodes["spoil"].retry == Retry(3)
    assert shop.ShopWorkflow.workflow_graph().nodes["spoil"].retry is None


def test_a_wrong_retry_policy_shows_its_own_line() -> None:
    for wrong in ({"max_attempts": 0}, {"max_attempts": 2, "max_delay": "1"}, {"max_attempts": 2, "retry_on": 7}):
        with pytest.raises(DefinitionError) as caught:
            Retry(**wrong)  # policy
        assert caught.value.where == place(__file__, "policy")
        assert str(caught.value).count("defined at") == 1


def test_a_builtin_method_of_a_value_is_no_job() -> None:
    with pytest.raises(GraphError, match="expected a function of a module"):

        class Order(Workflow):
            shout = step(job="text".upper)
