"""What a large graph takes: its nodes are few objects each, and what is stored of them is made a chunk at a time."""

from __future__ import annotations

import tracemalloc

from stepwell.base.ids import NodeId
from stepwell.core.graph import Graph, NodeSpec
from stepwell.core.kernel.layout import add_graph

SIZE = 10_000


def fan() -> list[NodeSpec]:
    first = NodeSpec(NodeId("first"), "first")
    above = (first.id,)  # as from a builder, members of a fan-out share it
    middle = [NodeSpec(NodeId(f"n{number}"), f"node_{number}", above) for number in range(SIZE)]
    return [first, *middle, NodeSpec(NodeId("last"), "last", tuple(spec.id for spec in middle))]


def test_a_graph_that_is_stored_takes_few_bytes_a_node() -> None:
    specs = fan()
    tracemalloc.start()
    try:
        graph = Graph(specs)
        stored = sum(len(op.rows) for op in add_graph(graph, "wide", chunk=1_000))
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert stored == len(specs)
    assert kept < 420 * SIZE
    assert peak < 800 * SIZE
