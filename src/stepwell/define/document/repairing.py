"""Checks the templates in a graph of a document that was edited by hand, and finds again what they read."""

from __future__ import annotations

from ...codec import json_path
from ...errors import GraphError
from ...graph import Graph, NodeSpec
from ...graph.check import Problem
from ...handlers import Handlers
from ...ids import NodeId
from ...templates import TemplateError, compile_config, is_template
from .checking import ALWAYS
from .problems import Path


def with_templates_read(graph: Graph, handlers: Handlers) -> Graph:
    """The same graph with `needs` from the templates; GraphError lists what is wrong with them."""
    if not any(spec.templated for spec in graph):
        return graph
    problems: list[Problem] = []
    specs = [_checked(spec, graph, handlers, problems) if spec.templated else spec for spec in graph]
    if problems:
        raise GraphError(problems)
    return Graph(specs, state=graph.state, source=graph.source)


def _checked(spec: NodeSpec, graph: Graph, handlers: Handlers, problems: list[Problem]) -> NodeSpec:
    def report(message: str, *path: str | int) -> None:
        problems.append(Problem(spec.id, message, path=json_path(("nodes", spec.id, *path))))

    name = spec.job or ""
    handler = handlers.get(name) if ":" not in name else None
    if handler is None and ":" not in name:
        report(handlers.missing(name, {})[0], "job")
        return spec
    wrong: list[tuple[Path, TemplateError]] = []
    config = compile_config(spec.args, frozenset() if handler is None else handler.expressions, wrong)
    for path, error in wrong:
        report(f"the template is wrong: {error.problem}", "args", *path)
    for problem in () if handler is None else handler.check_config(dict(spec.args), is_template):
        report(problem.message, "args", *problem.path)
    needs: dict[NodeId, None] = {}
    for path, reference in config.references:
        if reference.name in graph.nodes:
            needs[NodeId(reference.name)] = None
        elif reference.name not in ALWAYS:
            report(f"the template names {reference.name!r}, which is no node", "args", *path)
    return spec._replace(needs=tuple(needs))
