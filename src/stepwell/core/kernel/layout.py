"""How a graph is handed to a store."""

from __future__ import annotations

from ..graph import Graph
from ..model import AddGraph, LayoutRow, StoreLimits


def add_graph(graph: Graph, workflow: str, *, chunk: int = StoreLimits().nodes) -> list[AddGraph]:
    """The ops that store a graph, chunk by chunk, in this order."""
    index, removed = graph.index, graph.removed
    rows = tuple(
        LayoutRow(
            spec.id,
            parents,
            tuple(index[need] for need in spec.needs) if spec.needs and number not in removed else (),
            spec.lane,
            rank,
            number in removed,
        )
        for number, (spec, parents, rank) in enumerate(zip(graph.in_order, graph.parents, graph.ranks, strict=True))
    )
    ops = []
    for start in range(0, len(rows), chunk):
        document, part = None if start else graph.document, rows[start : start + chunk]
        ops.append(AddGraph(graph.digest, workflow, graph.signature, document, len(rows), start, part))
    return ops
