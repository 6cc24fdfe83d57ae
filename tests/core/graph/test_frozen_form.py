"""The frozen form says everything about a graph, and gives the same graph back."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell import Builder
from stepwell.core.graph import Graph, NodeSpec, Retry, from_frozen, to_frozen
from stepwell.core.graph.frozen_node import FIELDS, RETRY_FIELDS
from tests.core.graph.dags import graphs
from tests.define.shop import ShopWorkflow

FROZEN_AT = 1_768_473_000.25


def test_the_form_is_the_one_of_the_design() -> None:
    w = Builder("orders")
    node = w.node("validate", job="shop.jobs:validate", args={"order_id": 123})
    assert to_frozen(w.graph(), FROZEN_AT) == {
        "version": 1,
        "signature": w.graph().signature,
        "frozen_at": "2026-01-15T10:30:00Z",
        "nodes": {
            node: {
                "name": "validate",
                "job": "shop.jobs:validate",
                "args": {"order_id": 123},
                "depends_on": [],
                "position": 0,
            }
        },
    }


def test_options_that_differ_from_their_default_are_added() -> None:
    everything = NodeSpec(
        "b",
        "the second",
        depends_on=("a",),
        job="shop.jobs:charge",
        args={"amount": 3, "lines": [{"sku": "lamp"}]},
        needs=("a",),
        kind="task",
        retry=Retry(5, base_delay=0.5, max_delay=9, retry_on=(ConnectionError, "shop.errors.Busy")),
        timeout=2.5,
        on_lost="interrupt",
        body="process",
        queue="slow",
        side_effects="recordable",
    )
    form = to_frozen(Graph([NodeSpec("a", "a"), everything]), FROZEN_AT)
    assert form["nodes"]["a"] == {"name": "a", "args": {}, "depends_on": [], "position": 0}
    assert form["nodes"]["b"] == {
        "name": "the second",
        "job": "shop.jobs:charge",
        "args": {"amount": 3, "lines": [{"sku": "lamp"}]},
        "depends_on": ["a"],
        "position": 1,
        "needs": ["a"],
        "kind": "task",
        "retry": {
            "max_attempts": 5,
            "base_delay": 0.5,
            "max_delay": 9,
            "retry_on": ["builtins.ConnectionError", "shop.errors.Busy"],
        },
        "timeout": 2.5,
        "on_lost": "interrupt",
        "body": "process",
        "queue": "slow",
        "side_effects": "recordable",
    }


def test_every_field_of_a_node_and_of_a_retry_has_its_place_in_the_form() -> None:
    """Whoever adds an option to NodeSpec adds it to `FIELDS` too, or an exported graph could not be imported."""
    assert set(FIELDS) == {*NodeSpec._fields, "position"} - {"id"}
    assert set(RETRY_FIELDS) == {name for name, field in Retry.__dataclass_fields__.items() if field.init}


def test_a_method_of_a_class_has_no_job() -> None:
    form = to_frozen(ShopWorkflow.workflow_graph(), FROZEN_AT)
    assert "job" not in form["nodes"]["validate"]
    assert from_frozen(form) == ShopWorkflow.workflow_graph()


@settings(deadline=None)  # busy machines are slow
@given(graphs(), st.sampled_from(["text", "bytes", "utf-16", "data"]))
def test_the_graph_that_comes_back_is_the_one_that_was_frozen(graph: Graph, way: str) -> None:
    form = to_frozen(graph, FROZEN_AT)
    text = json.dumps(form)
    data = {"text": text, "bytes": text.encode(), "utf-16": text.encode("utf-16"), "data": form}[way]
    loaded = from_frozen(data)
    assert loaded.digest == graph.digest
    assert loaded.order == graph.order
    assert to_frozen(loaded, FROZEN_AT) == form


def test_the_form_shares_nothing_with_the_graph() -> None:
    graph = Graph([NodeSpec("a", "a", args={"lines": [1]})])
    form = to_frozen(graph, FROZEN_AT)
    form["nodes"]["a"]["args"]["lines"].append(2)
    assert graph.nodes["a"].args == {"lines": [1]}
    loaded = from_frozen(form)
    form["nodes"]["a"]["args"]["lines"].append(3)
    assert loaded.nodes["a"].args == {"lines": [1, 2]}


def node(**fields: object) -> dict[str, object]:
    return {"name": "some", "job": "shop:work", "depends_on": [], **fields}


def loaded(**nodes: object) -> Graph:
    return from_frozen({"version": 1, "nodes": nodes})


def test_positions_put_the_nodes_in_order() -> None:
    graph = loaded(c=node(position=9), a=node(position=0), b=node(position=3))
    assert list(graph.nodes) == ["a", "b", "c"]


def test_equal_positions_stand_as_written_and_nodes_without_one_come_last() -> None:
    graph = loaded(last=node(), b=node(position=1), later=node(position=None), c=node(position=1), a=node(position=0))
    assert list(graph.nodes) == ["a", "b", "c", "last", "later"]


def test_what_is_left_out_has_its_default() -> None:
    graph = loaded(a=node(job=None, retry=None, timeout=None))
    assert graph.nodes["a"] == NodeSpec("a", "some")


def test_a_whole_number_of_seconds_is_the_same_timeout() -> None:
    assert loaded(a=node(timeout=30)).digest == loaded(a=node(timeout=30.0)).digest


def test_the_signature_is_not_compared_because_an_edited_graph_has_another() -> None:
    form = to_frozen(Graph([NodeSpec("a", "a")]), FROZEN_AT)
    assert from_frozen({**form, "signature": "of another time", "frozen_at": "yesterday"}) == Graph(
        [NodeSpec("a", "a")]
    )


def test_loading_imports_nothing() -> None:
    before = set(sys.modules)
    loaded(a=node(job="antigravity:geohash"), b=node(job="this:d", depends_on=["a"]))
    assert set(sys.modules) - before == set()


@pytest.mark.parametrize("text", ["ß", "日本", "a b", "💧", "…"])
def test_any_printable_text_can_be_an_id(text: str) -> None:
    assert list(loaded(**{text: node()}).nodes) == [text]
