"""A graph is stored as a document and comes back the same."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from stepwell.core.graph import Graph, NodeSpec, Retry
from tests.core.graph.dags import dags

EVERYTHING = NodeSpec(
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
    was=("bill", "charge"),
)


def test_options_at_their_default_are_left_out() -> None:
    assert Graph([NodeSpec("a", "a", args={})]).document == b'[{"id":"a"}]'
    assert json.loads(Graph([NodeSpec("a", "a", retry=Retry(3))]).document) == [
        {"id": "a", "retry": {"max_attempts": 3}}
    ]


def test_every_option_survives_the_round_trip() -> None:
    graph = Graph([NodeSpec("a", "a"), EVERYTHING])
    loaded = Graph.load(graph.document)
    assert loaded.nodes["b"] == EVERYTHING
    assert loaded.document == graph.document
    assert loaded == graph
    assert hash(loaded) == hash(graph)


def test_nodes_stand_in_the_order_of_declaration() -> None:
    graph = Graph([NodeSpec("z", "z"), NodeSpec("a", "a")])
    assert [node["id"] for node in json.loads(graph.document)] == ["z", "a"]


@given(dags(), st.data())
def test_the_loaded_graph_is_the_graph_that_was_stored(specs: list[NodeSpec], data: st.DataObject) -> None:
    changed = [
        spec._replace(
            name=data.draw(st.sampled_from([spec.id, "other"])),
            retry=data.draw(st.sampled_from([None, Retry(2), Retry(2, retry_on=())])),
            timeout=data.draw(st.sampled_from([None, 1.5])),
            queue=data.draw(st.sampled_from(["default", "slow"])),
            args=data.draw(st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=2)),
        )
        for spec in specs
    ]
    graph = Graph(changed)
    loaded = Graph.load(graph.document)
    assert loaded.document == graph.document
    assert loaded.order == graph.order
    assert [graph.order_key(node) for node in graph.order] == [loaded.order_key(node) for node in graph.order]
    sets = [spec._replace(depends_on=tuple(sorted(spec.depends_on))) for spec in changed]
    assert list(loaded) == sets
