"""A graph as a picture: text for Mermaid and for Graphviz. The same graph always gives the same text.

A step is a box, a task a rounded one, a node with a condition a hexagon.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from ..model.status import LOOKS
from .spec import NodeSpec


class Drawable(Protocol):
    """A graph, as far as its pictures need it."""

    def __iter__(self) -> Iterator[NodeSpec]: ...
    @property
    def in_order(self) -> tuple[NodeSpec, ...]: ...
    @property
    def parents(self) -> tuple[tuple[int, ...], ...]: ...


def to_mermaid(graph: Drawable, statuses: Mapping[str, str] | None = None) -> str:
    """A Mermaid flowchart; `statuses` (node id to status) are written below the names and colour the nodes.

    >>> from stepwell.core.graph.graph import Graph
    >>> print(to_mermaid(Graph([NodeSpec("a", "a"), NodeSpec("b", "b", depends_on=("a",))])), end="")
    flowchart TD
        n0["a"]
        n1["b"]
        n0 --> n1
    """
    lines = ["flowchart TD"]
    painted: dict[str, list[str]] = {}
    for place, spec in enumerate(graph.in_order):
        status = _status(spec, statuses)
        label = "<br/>".join(map(_mermaid_text, [spec.name, status] if status else [spec.name]))
        begin, end = ("{{", "}}") if spec.when is not None else ("(", ")") if spec.kind == "task" else ("[", "]")
        lines.append(f'n{place}{begin}"{label}"{end}')
        painted.setdefault(status, []).append(f"n{place}")
    lines += [f"n{parent} --> n{child}" for parent, child in _edges(graph)]
    for status, look in LOOKS.items():
        if status in painted:
            lines.append(f"classDef {status} fill:{look.fill},stroke:{look.stroke},color:#111827")
            lines.append(f"class {','.join(painted[status])} {status}")
    return "\n    ".join(lines) + "\n"


def to_dot(graph: Drawable, statuses: Mapping[str, str] | None = None) -> str:
    """A Graphviz digraph; `statuses` (node id to status) are written below the names and colour the nodes.

    >>> from stepwell.core.graph.graph import Graph
    >>> print(to_dot(Graph([NodeSpec("a", "a"), NodeSpec("b", "b", depends_on=("a",))])), end="")
    digraph {
        node [shape=box, fontname="sans-serif"]
        n0 [label="a"]
        n1 [label="b"]
        n0 -> n1
    }
    """
    lines = ["digraph {", 'node [shape=box, fontname="sans-serif"]']
    for place, spec in enumerate(graph.in_order):
        status = _status(spec, statuses)
        label = "\\n".join(map(_dot_text, [spec.name, status] if status else [spec.name]))
        attributes = [f'label="{label}"']
        look = LOOKS.get(status)
        if spec.when is not None:
            attributes.append("shape=hexagon")
        styles = (["rounded"] if spec.kind == "task" else []) + (["filled"] if look else [])
        if styles:
            attributes.append(f'style="{",".join(styles)}"')
        if look:
            attributes.append(f'fillcolor="{look.fill}", color="{look.stroke}"')
        lines.append(f"n{place} [{', '.join(attributes)}]")
    lines += [f"n{parent} -> n{child}" for parent, child in _edges(graph)]
    return "\n    ".join(lines) + "\n}\n"


def _edges(graph: Drawable) -> Iterator[tuple[int, int]]:
    for child, parents in enumerate(graph.parents):
        for parent in sorted(parents):
            yield parent, child


def _status(spec: NodeSpec, statuses: Mapping[str, str] | None) -> str:
    return str((statuses or {}).get(spec.id, ""))


def _mermaid_text(text: str) -> str:
    """Everything that could end a label, begin markup or be an entity, as a character code of Mermaid."""
    return "".join(char if char.isalnum() or char in " _-.,:/+=@" else f"#{ord(char)};" for char in text)


def _dot_text(text: str) -> str:
    """Text inside a quoted string of DOT, where only quotes, backslashes and control characters mean something."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(char if char.isprintable() else " " for char in escaped)
