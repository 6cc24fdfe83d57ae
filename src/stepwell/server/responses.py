"""Answers that are no JSON objects: ranges of bytes, and graphs as text and as pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from fastapi import Response

from ..base.codec import sha256
from ..core.graph import Graph, to_dot, to_mermaid
from ..errors import InputError
from .problems import HttpProblem

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})\Z")
Format: TypeAlias = Literal["json", "mermaid", "dot", "svg"]


def ranged(data: bytes, headers: Mapping[str, str]) -> Response:
    """An answer of JSON bytes, as Range and If-None-Match ask for it."""
    tag = f'"{sha256(data)}"'
    more = {"ETag": tag, "Accept-Ranges": "bytes", "Cache-Control": "private, no-cache"}
    if tag in (part.strip() for part in headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=more)
    asked = _RANGE.match(headers.get("range", ""))
    if asked is None or headers.get("if-range", tag) != tag or asked[1] == asked[2] == "":
        return Response(data, headers=more, media_type="application/json")
    size = len(data)
    if asked[1] == "":
        first, last = max(0, size - int(asked[2])), size - 1
    else:
        first, last = int(asked[1]), min(size - 1, int(asked[2] or size))
    if first > last:
        raise HttpProblem(416, f"the output has {size} bytes", headers={"Content-Range": f"bytes */{size}"})
    more["Content-Range"] = f"bytes {first}-{last}/{size}"
    return Response(data[first : last + 1], 206, more, "application/json")


def drawn(graph: Graph, statuses: Mapping[str, str] | None, form: Format) -> Response:
    if form == "svg":
        from ..core.graph.svg import MAX_SVG_NODES, to_svg

        if len(graph) > MAX_SVG_NODES:
            raise InputError(
                f"the graph has {len(graph):,} nodes, and a picture of more than {MAX_SVG_NODES:,} cannot be read; "
                f"format=json has them in groups, and format=dot one by one"
            )
        # Sandboxed: opened as a document, it could run scripts from the name of a node.
        return Response(
            to_svg(graph, statuses).encode(),
            media_type="image/svg+xml",
            headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"},
        )
    draw = to_dot if form == "dot" else to_mermaid
    return Response(draw(graph, statuses), media_type="text/plain; charset=utf-8")
