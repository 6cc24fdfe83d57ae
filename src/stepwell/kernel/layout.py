"""How a graph is handed to a store."""

from __future__ import annotations

from ..graph import Graph
from ..model import AddGraph, LayoutRow, StoreLimits


def layout_of(graph: Graph) -> tuple[LayoutRow, ...]:
    """The nodes by number."""
    index, removed = graph.index, graph.removed
    return tuple(
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


def add_graph(graph: Graph, workflow: str, *, chunk: int = StoreLimits().nodes) -> list[AddGraph]:
    """The ops that store a graph, chunk by chunk, in this order."""
    rows = layout_of(graph)
    return [
        AddGraph(
            graph.digest,
            workflow,
            graph.signature,
            None if start else graph.document,
            len(rows),
            start,
            rows[start : start + chunk],
        )
        for start in range(0, len(rows), chunk)
    ]
