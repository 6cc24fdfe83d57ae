"""The frozen form of a graph: JSON for people, to keep, to read, to repair by hand and to load again.

    {"version": 1, "signature": "…", "frozen_at": "2026-01-15T10:30:00Z",
     "nodes": {"n_8f3a2b11": {"name": "validate", "job": "shop.jobs:validate", "args": {"order_id": 123},
                              "depends_on": [], "position": 0}}}

Options of a node are there when they differ from their default; so is `state`, the address of a dynamic workflow's state.
A node without a `job` is a method of the workflow's class. Loading one imports and executes nothing: a job is only a name
until its node runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...base.clock import utc_text
from ...base.codec import decode, encode, json_path
from ...errors import GraphError
from .check import MAX_NODES, GraphProblem
from .document import to_document
from .frozen_node import read_node, shown
from .graph import Graph
from .parse import parse
from .spec import NodeSpec

VERSION = 1

_PARENT = re.compile(r"\.depends_on\[(\d+)\]")
_TOP_LEVEL = ("version", "signature", "frozen_at", "state", "nodes")


def to_frozen(graph: Graph, frozen_at: float) -> dict[str, Any]:
    """The frozen form, as data that `json.dump` takes; it shares nothing with the graph. `frozen_at` is in seconds."""
    nodes: dict[str, Any] = {}
    for position, options in enumerate(decode(to_document(tuple(graph)))):
        node = options.pop("id")
        frozen: dict[str, Any] = {"name": options.pop("name", node)}
        if "job" in options:
            frozen["job"] = options.pop("job")
        frozen["args"] = options.pop("args", {})
        frozen["depends_on"] = options.pop("depends_on", [])
        frozen["position"] = position
        nodes[node] = frozen | options
    form = {"version": VERSION, "signature": graph.signature, "frozen_at": utc_text(frozen_at)}
    return form | ({} if graph.state is None else {"state": graph.state}) | {"nodes": nodes}


def from_frozen(data: str | bytes | Mapping[str, Any]) -> Graph:
    """The graph that a frozen form describes; a GraphError lists everything that is wrong with it, each with its path.

    `position` puts the nodes in order: gaps mean nothing, equal ones stand as they are written, and nodes without one come
    last. `signature` and `frozen_at` are not compared with anything: an edited graph has another signature.
    """
    problems: list[GraphProblem] = []
    if isinstance(data, str | bytes):
        form, copied = parse(data, problems), lambda value: value  # parsed data needs no copy
    else:
        # A copy: later changes to the caller's data must not change the graph.
        form, copied = data, lambda value: decode(encode(dict(value)))
    nodes = _checked_form(form, problems)
    placed: list[tuple[float, NodeSpec]] = []
    for node, fields in nodes.items():
        spec, position = read_node(node, fields, problems, copied)
        placed.append((math.inf if position is None else position, spec))
    placed.sort(key=lambda each: each[0])
    specs = [spec for _, spec in placed if spec.id]  # an empty id has been reported
    try:
        graph = Graph(specs, state=form.get("state")) if specs else None
    except GraphError as error:
        graph = None
        problems += _located(error.problems, specs)
    if graph is None or problems:
        raise GraphError(problems)
    return graph


def _checked_form(form: Any, problems: list[GraphProblem]) -> Mapping[str, Any]:
    """The nodes, after the fields around them were checked."""

    def report(message: str, *path: str) -> None:
        problems.append(GraphProblem("graph", message, path=json_path(path)))

    if not isinstance(form, Mapping):
        report(f"expected an object with version and nodes, got {shown(form)}")
        return {}
    for field in form:
        if field not in _TOP_LEVEL:
            report(f"there is no such field; there are {', '.join(_TOP_LEVEL)}", str(field))
    version = form.get("version")
    if type(version) is not int or version != VERSION:
        said = "is missing" if "version" not in form else f"is {shown(version)}"
        report(f"the version of the form {said}; this Stepwell reads version {VERSION}", "version")
    for field in ("signature", "frozen_at", "state"):
        if field in form and not isinstance(form[field], str):
            report(f"expected a string, got {shown(form[field])}", field)
    nodes = form.get("nodes")
    if not isinstance(nodes, Mapping):
        found = "nothing" if "nodes" not in form else shown(nodes)
        report(f"expected an object of nodes by id, got {found}", "nodes")
        return {}
    if not nodes:
        report("it has no nodes", "nodes")
    if len(nodes) > MAX_NODES:
        report(f"it has {len(nodes):,} nodes; at most {MAX_NODES:,} are allowed", "nodes")
        return {}
    return nodes


def _located(problems: Iterable[Any], specs: list[NodeSpec]) -> Iterator[GraphProblem]:
    """What `check` found, with its JSON path; a name in place of an id is the likeliest slip, so it is explained."""
    by_id = {spec.id: spec for spec in specs}
    by_name: dict[str, list[str]] = {}
    for spec in specs:
        by_name.setdefault(spec.name, []).append(spec.id)
    for problem in problems:
        own = by_id.get(problem.where)
        if own is None:
            yield problem._replace(path="$.nodes")
            continue
        message, found = problem.message, _PARENT.fullmatch(problem.field)
        meant = by_name.get(own.depends_on[int(found[1])]) if found else None
        if meant:
            message += f"; expected an id, and this is the name of {', '.join(meant[:3])}"
        yield problem._replace(message=message, path=json_path(("nodes", own.id)) + problem.field)
