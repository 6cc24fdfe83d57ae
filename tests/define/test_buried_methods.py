"""A decorator above @step that leaves no method would lose the node silently: it is refused."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from stepwell.define import Workflow, step
from stepwell.errors import GraphError


@pytest.mark.parametrize(
    "outer",
    [
        staticmethod,
        classmethod,
        property,
        functools.cached_property,
        functools.lru_cache,
        functools.partialmethod,
        functools.singledispatchmethod,
    ],
)
def test_a_step_below_such_a_decorator_is_refused(outer: Callable[[Any], Any]) -> None:
    with pytest.raises(GraphError, match="work: is no method any more; @step goes above every other decorator"):

        class Order(Workflow):
            @outer
            @step
            def work(self) -> None: ...


def test_a_decorator_that_keeps_a_method_may_stand_on_either_side() -> None:
    def loudly(method: Any) -> Any:
        @functools.wraps(method)
        def wrapper(self: Any) -> str:
            return f"{method(self)}!"

        return wrapper

    class Order(Workflow):
        @loudly
        @step(retry=2)
        def above(self) -> str:
            return "above"

        @step(retry=2)
        @loudly
        def below(self) -> str:
            return "below"

    assert [(spec.id, spec.retry is not None) for spec in Order.workflow_graph()] == [("above", True), ("below", True)]
    assert (Order().above(), Order().below()) == ("above!", "below!")


class Moody:
    """Answers no question, as objects that stand for something not yet there do."""

    __isabstractmethod__ = False  # Python itself asks for this

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("not now")


def test_other_things_in_a_class_are_asked_nothing() -> None:
    class Order(Workflow):
        moody = Moody()
        helper = staticmethod(len)

        @step
        def work(self) -> None: ...

    assert list(Order.workflow_graph().nodes) == ["work"]
