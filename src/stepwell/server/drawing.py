"""Graphs as text and as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from fastapi import Response

from ..errors import InputError
from ..graph import Graph, to_dot, to_mermaid

Format: TypeAlias = Literal["json", "mermaid", "dot", "svg"]


def drawn(graph: Graph, statuses: Mapping[str, str] | None, form: Format) -> Response:
    if form == "svg":
        from ..graph.svg import MAX_SVG_NODES, to_svg

        if len(graph) > MAX_SVG_NODES:
            raise InputError(
                f"the graph has {len(graph):,} nodes, and a picture of more than {MAX_SVG_NODES:,} cannot be read; "
                f"format=json and format=dot are for programs that draw large graphs"
            )
        # Sandboxed: opened as a document, it could run scripts from the name of a node.
        return Response(
            to_svg(graph, statuses).encode(),
            media_type="image/svg+xml",
            headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"},
        )
    draw = to_dot if form == "dot" else to_mermaid
    return Response(draw(graph, statuses), media_type="text/plain; charset=utf-8")
