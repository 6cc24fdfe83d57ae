"""How a graph is handed to a store."""

from __future__ import annotations

from collections.abc import Iterator

from ..graph import Graph
from ..model import AddGraph, LayoutRow, StoreLimits


def add_graph(graph: Graph, workflow: str, *, chunk: int = StoreLimits().nodes) -> Iterator[AddGraph]:
    """The ops that store a graph, chunk by chunk, in this order. Each is made when it is asked for."""
    index, removed, specs, parents, ranks = graph.index, graph.removed, graph.in_order, graph.parents, graph.ranks
    for start in range(0, len(specs), chunk):
        rows = tuple(
            LayoutRow(
                specs[number].id,
                parents[number],
                () if number in removed else tuple(index[need] for need in specs[number].needs),
                specs[number].lane,
                ranks[number],
                number in removed,
            )
            for number in range(start, min(start + chunk, len(specs)))
        )
        document = None if start else graph.document
        yield AddGraph(graph.digest, workflow, graph.signature, document, len(specs), start, rows)
