"""Conditions of the nodes of a class: what they read, and the defaults that their parameters need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

from ...base.ids import NodeId
from ...core.graph import NodeSpec
from ...core.graph.branching import perhaps_skipped
from ...core.graph.check import Inspection
from ...errors import DefinitionError
from ..code.conditions import check_condition, taken_by
from ..code.jobs import NamedJob
from ..types.signatures import Signature, names_where_written, parameters_of, signature_of
from .gather import DeclaredNode, Gathered, Report


class DeclaredCondition(NamedTuple):
    """A condition of a node of a class."""

    function: Callable[..., Any]
    takes: Mapping[str, str]
    annotations: Signature
    has_self: bool


def declared_conditions(
    cls: type, members: Gathered, inputs: Iterable[str], report: Report
) -> dict[str, DeclaredCondition]:
    """The conditions of nodes, by node."""
    conditions: dict[str, DeclaredCondition] = {}
    for node in members.nodes.values():
        when = node.declaration.options.when
        if when is None:
            continue
        written = f"when={when!r}" if isinstance(when, str) else f"when={getattr(when, '__name__', when)}"
        function = getattr(cls, when, None) if isinstance(when, str) else when
        try:
            check_condition(function, written)
        except DefinitionError as error:
            report(node.name, f"{error} ({node.place})")
            continue
        assert callable(function)
        has_self = next(iter(signature(function).parameters), None) == "self"
        try:
            names = taken_by(function, members.nodes, written, method=has_self)
        except DefinitionError as error:
            asked = set(parameters_of(function, method=has_self).required) & set(inputs)
            hint = f"; the input is self.{min(asked)}" if asked else ""
            report(node.name, f"{error}{hint} ({node.place})")
            continue
        takes = {name: name for name in names}
        annotations = signature_of(function, takes, partial(_report_at, node, report), names_where_written(cls))
        conditions[node.name] = DeclaredCondition(function, takes, annotations, has_self)
    return conditions


def check_defaults(
    specs: Sequence[NodeSpec],
    inspected: Inspection,
    members: Gathered,
    conditions: Mapping[str, DeclaredCondition],
    jobs: Mapping[str, NamedJob],
    report: Report,
) -> None:
    """A parameter with the name of an ancestor that may have been skipped needs a default."""
    positions = {spec.id: position for position, spec in enumerate(specs)}
    required: dict[int, dict[int, str]] = {}
    for position, spec in enumerate(specs):
        node, condition = members.nodes[spec.id], conditions.get(spec.id)
        function = node.method if spec.job is None else jobs[spec.id].function
        functions = [] if function is None else [(function, function is node.method, "its parameter")]
        if condition is not None:
            functions.append((condition.function, condition.has_self, "the parameter of its condition,"))
        for each, is_method, what in functions:
            for name in parameters_of(each, method=is_method).required:
                if name in spec.needs:
                    required.setdefault(position, {}).setdefault(positions[NodeId(name)], what)
    for position, above in perhaps_skipped(
        specs, {position: [*own] for position, own in required.items()}, inspected.parents, inspected.sequence
    ):
        name, what = specs[above].id, required[position][above]
        report(
            specs[position].id,
            f"{what} {name!r} has no default, and {name!r} may be skipped: write {name}=None "
            f"({members.nodes[specs[position].id].place})",
        )


def _report_at(node: DeclaredNode, report: Report, problem: str) -> None:
    report(node.name, f"{problem} ({node.place})")
