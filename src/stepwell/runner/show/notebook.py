"""A run as notebooks show it: its graph as a picture, its nodes as a tree."""

from __future__ import annotations

import io
from html import escape

from rich.console import Console

from ...graph.svg import to_svg
from ..runs.stored import StoredRun
from .run import Command, print_run

DRAWN_UP_TO = 200
"""Nodes; a larger picture shows nothing any more."""
_WIDTH = 110
_FORMAT = (
    '<pre style="line-height: 1.3; font-size: 0.85em; white-space: pre; overflow-x: auto"><code>{code}</code></pre>'
)


def run_html(run: StoredRun, command: Command) -> str:
    """The picture and the tree, in one piece of HTML."""
    screen = Console(file=io.StringIO(), record=True, width=_WIDTH, force_jupyter=False, highlight=False, emoji=False)
    print_run(screen, run, command, tracebacks=False, whole=False, all_of_it="run.show(whole=True)")
    told = screen.export_html(inline_styles=True, code_format=_FORMAT)
    graph = run.graph
    if len(graph) > DRAWN_UP_TO:
        return f"<p>{escape(repr(graph))}</p>{told}"
    statuses: dict[str, str] = {node.id: node.status for node in run.nodes()}
    return f'<div style="overflow-x: auto">{to_svg(graph, statuses)}</div>{told}'
