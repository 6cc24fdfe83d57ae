"""The example that people read first does what it says."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from examples import orders
from examples.orders import OrderWorkflow
from stepwell.base import codec
from stepwell.define import definition_of, load_target


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(seconds: float) -> None: ...

    monkeypatch.setattr(orders, "time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setattr(orders, "asyncio", SimpleNamespace(sleep=at_once))


def outputs_of(workflow: OrderWorkflow) -> dict[str, Any]:
    """Every body in the order of the graph, each with the decoded outputs of the nodes it names."""
    definition = definition_of(workflow)
    outputs: dict[str, Any] = {}
    for spec in definition.graph.in_order:
        body = definition.bodies.find(spec)
        ctx = SimpleNamespace(
            idempotency_key=f"key of {spec.id}", attempt=3, check=lambda: None, progress=lambda *said: None
        )
        result = body.invoke(definition.input, ctx, {name: outputs[name] for name in spec.needs})
        outputs[spec.id] = codec.decode(codec.encode(asyncio.run(result) if body.is_async else result))
    return outputs


def test_the_graph_is_the_one_in_its_docstring() -> None:
    assert {spec.id: spec.depends_on for spec in OrderWorkflow.workflow_graph()} == {
        "validate": (),
        "audit": ("validate",),
        "enrich": ("audit",),
        "check_fraud": ("enrich",),
        "check_inventory": ("enrich",),
        "charge": ("check_inventory", "check_fraud"),
        "book_carrier": ("check_inventory", "check_fraud"),
        "pack": ("check_inventory", "check_fraud"),
        "ship": ("charge", "book_carrier", "pack"),
    }


def test_an_order_is_shipped_and_paid() -> None:
    outputs = outputs_of(OrderWorkflow(order_id=7, express=True))
    assert outputs["charge"] == {"amount": 32_800, "currency": "EUR", "payment": "key of charge"}
    assert outputs["ship"] == {
        "order": 7,
        "paid": 32_800,
        "pieces": 3,
        "carrier": "courier",
        "booking": "B-00007",
    }


def test_an_order_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no order 0"):
        outputs_of(OrderWorkflow(order_id=0))


def test_another_process_finds_it() -> None:
    assert load_target("examples.orders:OrderWorkflow") is OrderWorkflow
