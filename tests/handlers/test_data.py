"""`transform`, `compute` and `aggregate` as nodes of runs."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from stepwell import Document, Engine
from stepwell.engine import Run


def brought_together(config: dict[str, Any], **values: Any) -> Run:
    """A run that brings values together, each made by a node of its own; in the order given."""
    nodes = [{"id": name, "handler": "transform", "config": {"template": value}} for name, value in values.items()]
    last = {"id": "all", "handler": "aggregate", "config": config, "dependencies": list(values)}
    with Engine("memory://") as engine:
        run = engine.run(Document({"name": "data", "nodes": [*nodes, last]}), check=False, wait=20)
        run.found = run.output("all") if str(run.status) == "COMPLETED" else run.node("all").error.message
        run.tries = len(run.node("all").attempts)
        return run


@pytest.mark.parametrize(
    ("config", "values", "result"),
    [
        ({}, {"b": 1, "a": [2]}, {"b": 1, "a": [2]}),
        ({"how": "mapping", "field": None}, {"b": 1}, {"b": {"result": 1}}),
        ({"how": "list"}, {"b": 1, "a": None, "c": "x"}, [1, None, "x"]),
        ({"how": "list", "field": "missing"}, {"b": 1}, [{"result": 1}]),
        ({"how": "sum"}, {"b": 1, "a": 2.5}, 3.5),
        ({"how": "sum"}, {"b": 1, "a": 2}, 3),
        ({"how": "join"}, {"b": "x", "a": {"z": None}, "c": 1.0}, 'x\n{"z":null}\n1.0'),
        ({"how": "join", "separator": ", "}, {"b": "x", "a": "y"}, "x, y"),
        ({"how": "merge"}, {"b": {"x": 1, "y": 1}, "a": {"y": 2}}, {"x": 1, "y": 2}),
    ],
)
def test_outputs_are_brought_together_in_the_order_of_the_dependencies(config, values, result):
    found = brought_together(config, **values).found
    assert found == {"result": result, "count": len(values)}
    if isinstance(result, list):
        assert found["result"] == list(values.values()) or config.get("field")


@pytest.mark.parametrize(
    ("how", "value", "told"),
    [
        ("sum", "1", "aggregate with how: sum needs a number of every parent, and 'odd' gave a text"),
        ("sum", True, "needs a number of every parent, and 'odd' gave true or false"),
        ("sum", None, "gave null"),
        ("sum", 1.7e308, "the sum is too large"),
        ("merge", [1], "aggregate with how: merge needs an object of every parent, and 'odd' gave a list"),
        ("merge", 7, "gave a number"),
    ],
)
def test_what_does_not_go_together_fails_at_once_and_names_the_parent(how, value, told):
    run = brought_together({"how": how}, fine=1.7e308 if how == "sum" else {}, odd=value)
    assert told in run.found
    assert run.tries == 1


def test_values_keep_their_type_and_expressions_need_no_braces():
    nodes = [
        {"id": "order", "handler": "transform", "config": {"template": {"price": "{{ input.price }}", "n": 3}}},
        {
            "id": "text",
            "handler": "transform",
            "config": {"template": "{{ order.result.n }} x"},
            "dependencies": ["order"],
        },
        {"id": "total", "handler": "compute", "config": {"expression": "order.result.price * order.result.n"}},
        {"id": "many", "handler": "compute", "config": {"expression": "total.result > 5 and input.price < 3"}},
    ]
    for before, node in itertools.pairwise(nodes):
        node.setdefault("dependencies", [before["id"], "order"])
    with Engine("memory://") as engine:
        run = engine.run(Document({"name": "data", "nodes": nodes}), input={"price": 2.5})
        assert {node.name: run.output(node.name)["result"] for node in run.nodes()} == {
            "order": {"price": 2.5, "n": 3},
            "text": "3 x",
            "total": 7.5,
            "many": True,
        }
        assert len(run.replay().executed) == 4
