"""Whether an edited graph may replace the graph of a run: what was done must stay as it is."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ...base.codec import json_path
from ...base.ids import NodeId
from ..graph import Graph, GraphProblem, NodeSpec
from ..model import NodeRow, NodeStatus

_DONE = ("name", "job", "args", "needs", "depends_on")
"""What a completed node did and depends on. Its options say how it would run again, and may change."""
_AS_IT_STANDS = tuple(field for field in NodeSpec._fields if field != "id")
_KEPT: Mapping[NodeStatus, tuple[str, tuple[str, ...], str]] = {
    NodeStatus.COMPLETED: ("has completed", _DONE, "put it back as it was, or start a new run with the edited graph"),
    NodeStatus.SKIPPED: ("was skipped", _DONE, "put it back as it was, or start a new run with the edited graph"),
    NodeStatus.RUNNING: ("is running", _AS_IT_STANDS, "put it back as it was, or wait until it has ended"),
}


def import_problems(old: Graph, nodes: Sequence[NodeRow], new: Graph) -> list[GraphProblem]:
    """Everything that forbids `new` in a run with the graph `old` and these `nodes`; empty if it is allowed.

    Nodes may be added, and those that did not complete changed or removed. What has completed, was skipped or is running keeps
    its name, job, args and parents; and nothing new may come before it, for it would come too late.
    """
    problems: list[GraphProblem] = []
    fixed: dict[str, str] = {}
    added = {node for node in new.nodes if node not in old.nodes}
    for row in nodes:
        spec = old.in_order[row.index]
        if row.status in _KEPT and old.nodes.get(spec.id) is spec:
            fixed[spec.id] = _KEPT[row.status][0]
            problems += _touched(spec, new.nodes.get(spec.id), row.status, added)
    problems += _too_late(new, added, fixed)
    if all(spec.job is not None for spec in old):
        message = "node {!r} has no job, and this run has no class whose method it could be; give it a job"
        problems += [_problem(spec.id, message.format(spec.name), "job") for spec in new if spec.job is None]
    return problems


def _touched(
    spec: NodeSpec, edited: NodeSpec | None, status: NodeStatus, added: Collection[str]
) -> Iterator[GraphProblem]:
    """What was changed in a node that must stay as it is."""
    state, fields, advice = _KEPT[status]
    if edited is None:
        yield _problem(spec.id, f"node {spec.name!r} {state} and cannot be removed; {advice}")
        return
    for field in fields:
        was, now = getattr(spec, field), getattr(edited, field)
        if field == "depends_on":
            # A new parent is reported as a node that comes too late.
            now = tuple(parent for parent in now if parent not in added)
        if not (set(was) == set(now) if field in ("depends_on", "needs") else _same(was, now)):
            yield _problem(spec.id, f"node {spec.name!r} {state}, so its {field} cannot change; {advice}", field)


def _too_late(new: Graph, added: Collection[str], fixed: Mapping[str, str]) -> Iterator[GraphProblem]:
    """New nodes above something that has begun."""
    seen: dict[str, NodeId] = {}
    waiting = [(NodeId(node), NodeId(node)) for node in sorted(fixed, reverse=True) if node in new.nodes]
    while waiting:
        at, below = waiting.pop()
        for parent in new.nodes[at].depends_on:
            if parent not in seen:
                seen[parent] = below
                waiting.append((parent, below))
    for node in new.nodes:
        if node in added and node in seen:
            late = new.nodes[seen[node]]
            yield _problem(
                node,
                f"node {new.nodes[node].name!r} is new and stands before {late.name!r} ({late.id}), which {fixed[late.id]}: it "
                f"would come too late; let only nodes depend on it that have not begun",
            )


def _problem(node: str, message: str, field: str = "") -> GraphProblem:
    path = ("nodes", node, field) if field else ("nodes", node)
    return GraphProblem(node, message, f".{field}" if field else "", json_path(path))


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON. Editors turn 1.0 into 1, which is no change; Python takes true and 1 for equal."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
