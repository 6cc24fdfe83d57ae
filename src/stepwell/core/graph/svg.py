"""A graph as an SVG picture that needs no other program, readable on light and on dark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple
from unicodedata import east_asian_width
from xml.sax.saxutils import escape

from ..model.status import LOOKS
from .draw import Drawable
from .layout import Arrangement, arrange, place
from .spec import NodeSpec

MAX_SVG_NODES = 10_000
NAME_CELLS = 30
"""Longer names are cut in the middle; a browser shows them whole under the pointer."""

_CELL, _HEIGHT, _MARGIN, _PADDING = 7.25, 30.0, 20.0, 13.0
_SCREEN = (16.0, 10.0)
_ARROW = 6.0

_REFUSED = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

_STYLE = """
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; text-anchor: middle;
  dominant-baseline: central; fill: #111827 }
rect { fill: #ffffff; stroke: #6b7280; stroke-width: 1.2 }
.arrows { fill: none; stroke: #9ca3af; stroke-width: 1.3 } .heads { fill: #9ca3af }
"""
_DARK = "text { fill: #e5e7eb } rect { fill: #1f2937; stroke: #9ca3af } .arrows { stroke: #6b7280 } .heads { fill: #6b7280 }"


class _Box(NamedTuple):
    """Where a vertex is drawn: its middle and half its size."""

    x: float
    y: float
    half_width: float
    half_height: float


def to_svg(graph: Drawable, statuses: Mapping[str, str] | None = None) -> str:
    """An SVG drawing; `statuses` (node id to status) colour the nodes. Ask only up to `MAX_SVG_NODES`.

    It flows from left to right or from top to bottom, whichever fits a screen better.
    """
    specs = list(graph)
    statuses = statuses or {}
    labels = [_label(spec, statuses.get(spec.id, "")) for spec in specs]
    widths = [_cells(label) * _CELL + 2 * _PADDING for label in labels]
    position = {spec.id: number for number, spec in enumerate(specs)}
    arranged = arrange([[position[parent] for parent in spec.depends_on] for spec in specs])
    sideways = _fits_sideways(arranged, widths)
    boxes, size = _boxes(arranged, widths, sideways)
    arrows, heads = _arrows(boxes, arranged, sideways)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]:.0f}" height="{size[1]:.0f}" '
        f'viewBox="0 0 {size[0]:.0f} {size[1]:.0f}" role="img">',
        f"<style>{_STYLE}{_paints(statuses)}</style>",
        f'<path class="arrows" d="{arrows}"/>',
        f'<path class="heads" d="{heads}"/>',
        *(
            _node(spec, label, box, statuses.get(spec.id, ""))
            for spec, label, box in zip(specs, labels, boxes, strict=False)
        ),
        "</svg>\n",
    ]
    return "\n".join(drawn)


def _fits_sideways(arranged: Arrangement, widths: Sequence[float]) -> bool:
    """Whether it fits a screen better when it flows to the right, by an estimate."""
    rows = [[widths[node] for node in row if node < arranged.nodes] for row in arranged.rows]
    gap = 50.0
    across = max(sum(row) + len(row) * gap / 3 for row in rows), len(rows) * (_HEIGHT + gap)
    along = sum(max(row, default=0.0) + gap for row in rows), max(map(len, rows)) * (_HEIGHT + gap / 3)
    return max(along[0] / _SCREEN[0], along[1] / _SCREEN[1]) < max(across[0] / _SCREEN[0], across[1] / _SCREEN[1])


def _boxes(arranged: Arrangement, widths: Sequence[float], sideways: bool) -> tuple[list[_Box], tuple[float, float]]:
    """Layers are as thick as their nodes; between them is room for the arrows, more where they go far across."""
    places = place(arranged, [_HEIGHT] * len(widths) if sideways else widths)
    count = len(arranged.rows)
    thick, steep = [0.0] * count, [0.0] * count
    for node, width in enumerate(widths):
        thick[arranged.layer[node]] = max(thick[arranged.layer[node]], width if sideways else _HEIGHT)
    for start, end in arranged.segments:
        before = arranged.layer[end] - 1
        steep[before] = max(steep[before], abs(places[end] - places[start]))
    gaps = [min(150.0, max(34.0, 0.2 * far)) for far in steep]
    starts = [0.0, *accumulate(thickness + gap for thickness, gap in zip(thick, gaps, strict=True))]
    boxes = []
    for vertex, (layer, across) in enumerate(zip(arranged.layer, places, strict=True)):
        along = starts[layer] + thick[layer] / 2 + _MARGIN
        own = (widths[vertex] / 2, _HEIGHT / 2) if vertex < arranged.nodes else None
        if sideways:
            boxes.append(_Box(along, across + _MARGIN, *(own or (thick[layer] / 2, 0.0))))
        else:
            boxes.append(_Box(across + _MARGIN, along, *(own or (0.0, thick[layer] / 2))))
    return boxes, (
        max(box.x + box.half_width for box in boxes) + _MARGIN,
        max(box.y + box.half_height for box in boxes) + _MARGIN,
    )


def _arrows(boxes: Sequence[_Box], arranged: Arrangement, sideways: bool) -> tuple[str, str]:
    """The path of all arrows, and that of their heads and the points where they meet."""
    lines, heads = [], []
    for start, end in arranged.segments:
        (x, y, out_x, out_y), (to_x, to_y, in_x, in_y) = boxes[start], boxes[end]
        head = _ARROW if end < arranged.nodes else 0.0
        if sideways:
            x, to_x = x + out_x, to_x - in_x - head
            middle = (x + to_x) / 2
            curve = f"C{middle:.1f} {y:.1f} {middle:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
            onwards, tip = f"h{2 * in_x:.1f}", f"l-{head} -3.5v7z"
        else:
            y, to_y = y + out_y, to_y - in_y - head
            middle = (y + to_y) / 2
            curve = f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"
            onwards, tip = f"v{2 * in_y:.1f}", f"l-3.5 -{head}h7z"
        lines.append(f"M{x:.1f} {y:.1f}{curve}{'' if head else onwards}")
        if head:
            heads.append(f"M{to_x + (head if sideways else 0):.1f} {to_y + (0 if sideways else head):.1f}{tip}")
    for join in boxes[arranged.nodes : arranged.nodes + arranged.joins]:
        heads.append(f"M{join.x - 3:.1f} {join.y:.1f}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z")
    return "".join(lines), "".join(heads)


def _node(spec: NodeSpec, label: str, box: _Box, status: str) -> str:
    """Tasks are rounder than steps, as in the other drawings."""
    rounded = _HEIGHT / 2 if spec.kind == "task" else 5
    title = _text(f"{spec.name}: {status}" if status else spec.name)
    painted = f' class="{status}"' if status in LOOKS else ""
    return (
        f"<g{painted}><title>{title}</title>"
        f'<rect x="{box.x - box.half_width:.1f}" y="{box.y - box.half_height:.1f}" width="{2 * box.half_width:.1f}" '
        f'height="{2 * box.half_height:.0f}" rx="{rounded:g}"/>'
        f'<text x="{box.x:.1f}" y="{box.y:.1f}">{_text(label)}</text></g>'
    )


def _paints(statuses: Mapping[str, str]) -> str:
    used = [status for status in LOOKS if status in set(statuses.values())]
    light = "\n".join(f".{s} rect {{ fill: {LOOKS[s].fill}; stroke: {LOOKS[s].stroke} }}" for s in used)
    dark = "\n".join(f".{s} rect {{ fill: {LOOKS[s].stroke}38; stroke: {LOOKS[s].stroke} }}" for s in used)
    return f"{light}\n@media (prefers-color-scheme: dark) {{ {_DARK}\n{dark} }}\n"


def _label(spec: NodeSpec, status: str) -> str:
    """The name. A long one is cut in the middle, because both ends are informative."""
    name = " ".join(spec.name.split()) or spec.id
    if _cells(name) > NAME_CELLS:
        name = f"{_within(name, NAME_CELLS // 3)}…{_within(name[::-1], NAME_CELLS * 2 // 3 - 1)[::-1]}"
    return f"{LOOKS[status].symbol} {name}" if status in LOOKS else name


def _within(text: str, cells: int) -> str:
    """The longest prefix that fits into this many cells."""
    for length, used in enumerate(accumulate(map(_cells, text))):
        if used > cells:
            return text[:length]
    return text


def _cells(text: str) -> int:
    """How many cells of a fixed-width font a text takes."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def _text(text: str) -> str:
    """What XML may hold: no control characters, no halves of characters."""
    return escape(_REFUSED.sub("\ufffd", text))
