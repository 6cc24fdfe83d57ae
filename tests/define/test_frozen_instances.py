"""Every attempt has its own frozen instance."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from stepwell.define import Workflow, definition_of, step
from stepwell.errors import FrozenInstance


class Order(Workflow):
    order_id: int
    tags: list[str] = []  # noqa: RUF012

    @step
    def assign(self) -> None:
        self.total = 3

    @step
    def look(self) -> Any:
        return self

    @step
    def spoil(self) -> list[str]:
        self.tags.append("spoilt")
        return self.tags


def invoke(node: str, input: dict[str, Any] | None = None) -> Any:
    definition = definition_of(Order(order_id=1))
    given = definition.input if input is None else input
    return definition.bodies.find(definition.graph.nodes[node]).invoke(given, None, {})


def test_assigning_to_self_raises_with_advice() -> None:
    with pytest.raises(FrozenInstance, match=r"Order.total cannot be assigned.*Return it.*ctx.outcome\['total'\]"):
        invoke("assign")


def test_an_instance_is_frozen_from_the_start() -> None:
    order = Order(order_id=1)
    with pytest.raises(FrozenInstance):
        order.order_id = 2
    with pytest.raises(FrozenInstance):
        del order.order_id
    assert copy.deepcopy(order).workflow_input() == order.workflow_input()


def test_each_call_sees_an_instance_of_its_own() -> None:
    first, second = invoke("look"), invoke("look")
    assert type(first) is Order
    assert first is not second
    assert first.workflow_input() == {"order_id": 1, "tags": []}


def test_what_one_attempt_does_to_its_input_the_next_does_not_see() -> None:
    stored = {"order_id": 1, "tags": ["new"]}
    assert invoke("spoil", stored) == ["new", "spoilt"]
    assert invoke("spoil", stored) == ["new", "spoilt"]
    assert stored == {"order_id": 1, "tags": ["new"]}


def test_stored_inputs_are_not_checked_again() -> None:
    assert invoke("look", {"order_id": "kept as it was"}).order_id == "kept as it was"


def test_an_input_that_is_younger_than_the_run_has_its_default() -> None:
    assert invoke("look", {"order_id": 1}).tags == []
    assert invoke("spoil", {"order_id": 1}) == ["spoilt"]
    assert invoke("spoil", {"order_id": 1}) == ["spoilt"]
