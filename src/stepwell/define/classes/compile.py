"""Compiles a class to a graph: lays out the chain, binds PREVIOUS, turns parameters into needs."""

from __future__ import annotations

import difflib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, NamedTuple

from ...base.ids import NodeId
from ...base.place import SourceLine
from ...core.graph import NO_ARGS, Graph, GraphProblem, NodeSpec
from ...core.graph.check import inspect
from ...errors import DefinitionError, GraphError
from ..code.conditions import Condition
from ..code.invoke import MethodBody, frozen_instance
from ..code.jobs import NamedJob, named_job
from ..options import NodeDefaults, RunOptions
from ..types.inputs import Input, inputs_of, stored_inputs
from ..types.signatures import CONTEXT, STATE, Signature, names_where_written, parameters_of, signature_of, yields
from ..types.state import StateType, state_of
from .conditions import DeclaredCondition, check_defaults, declared_conditions
from .decorators import Previous
from .gather import DeclaredNode, Gathered, Report, gathered


class StepPlacement(NamedTuple):
    """A step and its place: before or after another one, or else at the end."""

    name: str
    before: str | None = None
    after: str | None = None


def in_order(links: Sequence[StepPlacement]) -> list[str]:
    """The names in the order of the chain. Steps at one place are in the order of writing.

    A step whose place does not exist, or depends on itself, is left out.

    >>> audit, start = StepPlacement("audit", after="validate"), StepPlacement("open", before="validate")
    >>> in_order([StepPlacement("validate"), StepPlacement("ship"), audit, start])
    ['open', 'validate', 'audit', 'ship']
    """
    before: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    waiting: list[str] = []
    for link in links:
        if link.before is not None:
            before.setdefault(link.before, []).append(link.name)
        elif link.after is not None:
            after.setdefault(link.after, []).append(link.name)
        else:
            waiting.append(link.name)
    waiting.reverse()
    order: list[str] = []
    opened: set[str] = set()
    while waiting:  # a stack; each name is popped twice, first to put its neighbours around it
        name = waiting.pop()
        if name in opened:
            order.append(name)
            continue
        opened.add(name)
        waiting += reversed(after.get(name, ()))
        waiting.append(name)
        waiting += reversed(before.get(name, ()))
    return order


_SHOWN_ANCESTORS = 12


class Compiled(NamedTuple):
    """A compiled workflow class."""

    place: SourceLine
    options: RunOptions
    inputs: Mapping[str, Input]
    graph: Graph | None
    """None for a class without nodes, which is a base for others."""
    methods: Mapping[str, MethodBody]
    jobs: Mapping[str, Callable[..., Any]]
    state: StateType | None = None
    conditions: Mapping[str, Condition] = NO_ARGS
    """By node."""


RESERVED_PREFIX = "workflow_"
"""What `Workflow` has itself begins so: inputs, nodes and constants may have every other name but RESERVED."""
RESERVED = frozenset({"ctx", "self", "_compiled", "_triggers"})


def compiled(cls: type, place: SourceLine, options: RunOptions) -> Compiled:
    """Compile a class; a GraphError lists all problems with their lines."""
    problems: list[GraphProblem] = []

    def report(where: str, message: str) -> None:
        problems.append(GraphProblem(where, message))

    members = gathered(cls, report)
    inputs = inputs_of(cls, report)
    state = state_of(cls, members.nodes, report)
    for name in sorted({*vars(cls), *members.nodes, *inputs}):
        if not name.startswith(RESERVED_PREFIX) and name not in RESERVED:
            continue
        node = members.nodes.get(name)
        report(name, "this name belongs to Stepwell; choose another" + (f" ({node.place})" if node else ""))
    for name in inputs:
        if name in members.nodes:
            node = members.nodes[name]
            report(name, f"is an input and a {node.declaration.kind}; one of them needs another name ({node.place})")
    jobs = _jobs(members, report)
    conditions = declared_conditions(cls, members, inputs, report)
    specs = _specs(members, inputs, jobs, conditions, report, options.nodes, has_state=state is not None)
    signatures = _signatures(cls, members, specs, jobs, report)
    if specs:
        inspected = inspect(specs)
        problems += [_with_place(problem, members) for problem in inspected.problems]
        if not problems:
            check_defaults(specs, inspected, members, conditions, jobs, report)
    if problems:
        raise GraphError(problems, where=place)
    defaults = stored_inputs(inputs, {name: each.default for name, each in inputs.items() if not each.required})
    typed = {name: each.shape for name, each in inputs.items() if each.shape.codec is not None}
    converted = Signature(typed, subject="the input")
    methods: dict[str, MethodBody] = {}
    for spec in specs:
        node = members.nodes[spec.id]
        if spec.job is None and node.method is not None:
            takes = parameters_of(node.method, method=True)
            methods[spec.id] = MethodBody(
                cls,
                defaults,
                node.method,
                tuple(need for need in spec.needs if need in takes.names),
                node.declaration.options.idempotency_key,
                iscoroutinefunction(node.method),
                takes.takes_ctx,
                state is not None and takes.takes_state,
                converted,
                signatures[spec.id],
            )
    made = {
        name: Condition(
            function, takes, annotations, partial(frozen_instance, cls, defaults, converted) if has_self else None
        )
        for name, (function, takes, annotations, has_self) in conditions.items()
    }
    functions = {job.address: job.function for job in jobs.values() if job.function is not None}
    graph = Graph(specs) if specs else None  # checked above, with places
    return Compiled(place, options, inputs, graph, methods, functions, state, made)


def _jobs(members: Gathered, report: Report) -> dict[str, NamedJob]:
    jobs: dict[str, NamedJob] = {}
    for node in members.nodes.values():
        if node.is_job and node.declaration.options.idempotency_key is not None:
            report(
                node.name,
                f"idempotency_key= is a function of self, and a job has none: give it to a method ({node.place})",
            )
        if node.is_job and node.declaration.job is not None:
            try:
                jobs[node.name] = named_job(node.declaration.job)
            except DefinitionError as error:
                report(node.name, f"{error} ({node.place})")
    return jobs


def _signatures(
    cls: type, members: Gathered, specs: Iterable[NodeSpec], jobs: Mapping[str, NamedJob], report: Report
) -> dict[str, Signature]:
    """The annotations of bodies, by node."""
    scope = names_where_written(cls)
    signatures: dict[str, Signature] = {}
    for spec in specs:
        node = members.nodes[spec.id]
        function = node.method if spec.job is None else jobs[spec.id].function
        if function is not None:
            signatures[spec.id] = signature_of(function, spec.needs, partial(_report_at, node, report), scope)
    return signatures


def _report_at(node: DeclaredNode, report: Report, problem: str) -> None:
    report(node.name, f"{problem} ({node.place})")


def _specs(
    members: Gathered,
    inputs: Iterable[str],
    jobs: Mapping[str, NamedJob],
    conditions: Mapping[str, DeclaredCondition],
    report: Report,
    defaults: NodeDefaults,
    *,
    has_state: bool,
) -> list[NodeSpec]:
    depends = _dependencies(members, report)
    specs = []
    for node in members.nodes.values():
        job = jobs.get(node.name)
        function = job.function if job is not None and job.function is not None else node.method
        needs = _needs(node, function, depends, inputs, report, has_state=has_state)
        condition, name = conditions.get(node.name), None
        if condition is not None:
            needs = tuple(sorted({*needs, *map(NodeId, condition.takes.values())}))
            name = getattr(condition.function, "__name__", "condition")
        specs.append(
            NodeSpec(
                id=NodeId(node.name),
                name=node.name,
                depends_on=tuple(map(NodeId, depends[node.name])),
                job=None if job is None else job.address,
                args=NO_ARGS,
                needs=needs,
                kind=node.declaration.kind,
                own_key=node.declaration.options.idempotency_key is not None,
                when=name,
                **node.declaration.options.under(defaults).of_spec(iscoroutinefunction(function)),
            )
        )
    return specs


def _dependencies(members: Gathered, report: Report) -> dict[str, list[str]]:
    """What each node depends on, by name. PREVIOUS is the step before it in the finished chain."""
    chain = in_order(_links(members, report))
    previous = dict(zip(chain[1:], chain, strict=False))
    similar = Similar(members.nodes)
    depends: dict[str, list[str]] = {}
    for node in members.nodes.values():
        names: dict[str, None] = {}  # a set in the order of writing
        for each in node.declaration.depends_on:
            name = previous.get(node.name) if isinstance(each, Previous) else members.name_of(each)
            if name is None:  # there is nothing before the first step
                continue
            if name in members.nodes:
                names[name] = None
            else:
                meant = similar.to(name)
                hint = f"; did you mean {meant!r}?" if meant else ""
                report(node.name, f"depends on {name!r}, which does not exist{hint} ({node.place})")
        depends[node.name] = list(names)
    return depends


def _links(members: Gathered, report: Report) -> list[StepPlacement]:
    steps = {name: node for name, node in members.nodes.items() if node.declaration.kind == "step"}
    similar = Similar(steps)
    links = []
    for node in steps.values():
        anchors = []
        for option, reference in (("before_step", node.before), ("after_step", node.after)):
            anchor = None if reference is None else members.name_of(reference)
            if anchor is not None and anchor not in steps:
                meant = None if anchor in members.nodes else similar.to(anchor)
                unknown = f"no step; did you mean {meant!r}?" if meant else "no step of this class"
                known = "a task, and not in the chain" if anchor in members.nodes else unknown
                report(node.name, f"{option}={anchor!r}: that is {known} ({node.place})")
                anchor = None
            anchors.append(anchor)
        links.append(StepPlacement(node.name, *anchors))
    placed = set(in_order(links))
    for name, node in steps.items():
        if name not in placed:
            report(name, f"before_step and after_step put it next to itself, in a circle ({node.place})")
    return links


def _needs(
    node: DeclaredNode,
    function: Callable[..., Any] | None,
    depends: Mapping[str, list[str]],
    inputs: Iterable[str],
    report: Report,
    *,
    has_state: bool,
) -> tuple[NodeId, ...]:
    """The nodes whose outputs a body takes: its parameters with the name of a node."""
    if function is None:
        return ()
    if yields(function):
        report(node.name, f"it yields, but a body returns its result once: return a list instead ({node.place})")
    is_method = function is node.method
    parameters = parameters_of(function, method=is_method)
    if is_method and not parameters.has_self:
        report(node.name, f"a method takes self as its first parameter ({node.place})")
    names = sorted(name for name in parameters.names if name in depends)
    own = {CONTEXT: None, STATE: None} if has_state else {CONTEXT: None}
    for name in parameters.required:
        if name not in parameters.names:
            report(
                node.name,
                f"its parameter {name!r} can be given by position only, and parameters are filled by name: remove the / "
                f"after it ({node.place})",
            )
        elif name not in names and name not in own:
            allowed = ", ".join([*own, *_nearest_ancestors(node.name, depends)])
            hint = f"; the input is self.{name}" if is_method and name in inputs else ""
            if name == STATE and not hint:
                hint = "; a workflow has a state when it declares one, class State: ..."
            report(
                node.name,
                f"nothing fills its parameter {name!r}; a parameter without a default can be one of {allowed}{hint} "
                f"({node.place})",
            )
    return tuple(map(NodeId, names))


def _nearest_ancestors(name: str, depends: Mapping[str, list[str]]) -> list[str]:
    """The ancestors of a node for a message: all of them sorted, or the nearest if there are too many."""
    seen: dict[str, None] = {}
    waiting = deque(depends[name])
    while waiting and len(seen) <= _SHOWN_ANCESTORS:
        each = waiting.popleft()
        if each in depends and each not in seen:
            seen[each] = None
            waiting += depends[each]
    if len(seen) <= _SHOWN_ANCESTORS:
        return sorted(seen)
    return [*list(seen)[:_SHOWN_ANCESTORS], "or an ancestor further up"]


class Similar:
    """Suggests similar names. That is slow, so only the first of many mistakes get a suggestion."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)
        self._left = 20

    def to(self, name: str) -> str | None:
        self._left -= 1
        close = difflib.get_close_matches(name, self._names, n=1) if self._left >= 0 else ()
        return close[0] if close else None


def _with_place(problem: GraphProblem, members: Gathered) -> GraphProblem:
    node = members.nodes.get(problem.where)
    return problem if node is None else GraphProblem(problem.where, f"{problem.message} ({node.place})")
