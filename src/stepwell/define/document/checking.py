"""Checks the nodes of a document: ids, dependencies, handlers, configs and templates; also those of an edited graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from ...base.codec import json_path
from ...base.forms.problems import Path, Problems
from ...base.ids import NodeId
from ...base.secret_refs import PREFIX, SecretRef
from ...base.templates import (
    Config,
    Reference,
    TemplateError,
    compile_condition,
    compile_config,
    is_template,
    parsing_at_most,
)
from ...core.graph import Graph, NodeSpec
from ...core.graph.branching import perhaps_skipped
from ...core.graph.check import GraphProblem, above_all, inspect
from ...core.graph.spec import conflicts
from ...errors import GraphError
from ...handlers import Handler, Handlers
from ..code.address import is_address

if TYPE_CHECKING:
    from .forms import PlainNode

ReadByNode: TypeAlias = "tuple[PlainNode, Path, Reference]"
"""What a template reads: its node, its path, and the name."""
ALWAYS = ("input", "run")
MAX_PARSED = 500_000
"""Characters inside the braces of all templates of one document, expressions that differ in names only counted once."""
MAX_CONFIG = 100_000
"""Values in the config of one node."""
_OF_RUN = ("id",)
_OF_ANY_NODE = ("output", "result")


def check_nodes(
    nodes: Sequence[PlainNode], handlers: Handlers, schema: Mapping[str, Any] | None, problems: Problems
) -> dict[str, tuple[NodeId, ...]]:
    """Check all nodes; by id, the nodes that the templates of each read.

    Compiled templates are not kept, because ten thousand of them would slow down every garbage collection. They are compiled
    again when a node first runs.
    """
    known = _check_ids(nodes, problems)
    _check_dependencies(nodes, known, problems)
    by_name = _find_handlers(nodes, handlers, problems)
    _check_promises(nodes, problems)
    reading = _References(known, by_name, schema, problems)
    needs: dict[str, tuple[NodeId, ...]] = {}
    with parsing_at_most(MAX_PARSED):
        for node in nodes:
            config = _check_config(node, by_name.get(node.handler), problems)
            read = reading.check(node, config.references, "config")
            condition = _check_condition(node, problems)
            needs[node.id] = tuple(dict.fromkeys((*read, *reading.check(node, condition, "when"))))
    if reading.far or reading.unguarded:
        _check_ancestors(known, reading, problems)
    return needs


def _check_ids(nodes: Sequence[PlainNode], problems: Problems) -> dict[str, PlainNode]:
    known: dict[str, PlainNode] = {}
    for node in nodes:
        if not node.id:
            continue  # reported already
        first = known.setdefault(node.id, node)
        if first is not node:
            problems.add(
                node.path("id"),
                f"{node.id!r} is the id of node {first.place + 1} already: ids must differ",
                found=node.id,
            )
    return known


def _check_promises(nodes: Sequence[PlainNode], problems: Problems) -> None:
    for node in nodes:
        for option, why in conflicts(node.options.get):
            problems.add(node.path(option), why)


def _check_dependencies(nodes: Sequence[PlainNode], known: Mapping[str, PlainNode], problems: Problems) -> None:
    for node in nodes:
        for name in node.dependencies:
            if name not in known:
                path = node.path("dependencies")
                problems.unknown(path, f"{name!r} is no node", name, _OtherNames(known, node.id))
            elif name == node.id:
                problems.add(node.path("dependencies"), f"{name!r} depends on itself", found=name)
    specs = [_shape(node, known) for node in known.values()]
    cycles = [each for each in inspect(specs).problems if "cycle" in each.message] if specs else []
    for each in cycles:
        problems.add(("nodes",), each.message.replace("it contains a cycle", "there is a cycle"))


def _shape(node: PlainNode, known: Mapping[str, PlainNode]) -> NodeSpec:
    parents = tuple(NodeId(each) for each in node.dependencies if each in known and each != node.id)
    return NodeSpec(NodeId(node.id), node.id, parents)


def _find_handlers(nodes: Sequence[PlainNode], handlers: Handlers, problems: Problems) -> dict[str, Handler | None]:
    """Handlers by name. An address is a function, of which nothing is known without importing it."""
    by_name: dict[str, Handler | None] = {}
    for node in nodes:
        name = node.handler
        if not name or is_address(name):
            continue
        if name not in by_name:
            by_name[name] = handlers.get(name)
        if by_name[name] is None:
            problems.unknown(node.path("handler"), f"there is no handler {name!r}", name, handlers)
    return by_name


def _check_config(node: PlainNode, handler: Handler | None, problems: Problems) -> Config:
    if sum(1 for _ in islice(_values_in(node.config), MAX_CONFIG + 1)) > MAX_CONFIG:
        problems.add(
            node.path("config"), f"it holds more than {MAX_CONFIG:,} values: give them as input, or read them in a job"
        )
        return compile_config({})
    wrong: list[tuple[Path, TemplateError]] = []
    expressions = handler.expressions if handler is not None else frozenset[str]()
    config = compile_config(node.config, expressions, wrong)
    for path, error in wrong:
        where = f" (line {error.line} of the template)" if error.line not in (None, 1) else ""
        problems.add(node.path("config", *path), f"the template is wrong: {error.problem}{where}")
    for path, value in _values_in(node.config):
        key = path[-1]
        if isinstance(key, str) and "{" in key and is_template(key):
            problems.add(node.path("config", *path), "a key is never a template")
        if _names_no_secret(value):
            message = "this names no secret: after secret: come letters, digits, _ . and -"
            problems.add(node.path("config", *path), message, found=value)
    if handler is not None and not node.lacks_config:
        for problem in handler.check_config(node.config, is_template):
            problems.add(node.path("config", *problem.place), problem.message)
        for name in expressions & node.config.keys():
            if not isinstance(node.config[name], str):
                problems.expected(node.path("config", name), "an expression, as text,", node.config[name])
    elif "ctx" in node.config and is_address(node.handler):
        problems.add(node.path("config", "ctx"), "a function gets its context by itself")
    return config


def _check_condition(node: PlainNode, problems: Problems) -> list[tuple[Path, Reference]]:
    """What the condition of a node reads."""
    when = node.options.get("when")
    if when is None:
        return []
    try:
        return [((), reference) for reference in compile_condition(when).references]
    except TemplateError as error:
        problems.add(node.path("when"), f"the condition is wrong: {error.problem}")
        return []


def _values_in(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Everything that a config holds, with its path."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key), each
            if isinstance(each, dict | list):
                yield from _values_in(each, (*path, key))


def _names_no_secret(value: Any) -> bool:
    """Whether a text looks like a secret, and is none."""
    looks_so = isinstance(value, str) and value.startswith(PREFIX) and " " not in value
    return looks_so and SecretRef.of(value) is None and not is_template(value)


class _OtherNames(Collection[str]):
    """All names but one; copied only by those who look at them."""

    def __init__(self, names: Collection[str], without: str) -> None:
        self._names, self._without = names, without

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._names if name != self._without)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name != self._without and name in self._names


class _References:
    """Checks what templates read. `far` collects nodes that are no direct dependencies, `unguarded` those without `default`."""

    def __init__(
        self,
        known: Mapping[str, PlainNode],
        handlers: Mapping[str, Handler | None],
        schema: Mapping[str, Any] | None,
        problems: Problems,
    ) -> None:
        self._known = known
        self._handlers = handlers
        self._inputs = _input_names(schema)
        self._problems = problems
        self._names = (*known, *ALWAYS)
        self._fields: dict[str, frozenset[str] | None] = {}
        self._some_conditional = any(node.options.get("when") is not None for node in known.values())
        self.far: list[ReadByNode] = []
        self.unguarded: list[ReadByNode] = []

    def check(self, node: PlainNode, references: Iterable[tuple[Path, Reference]], written: str) -> tuple[NodeId, ...]:
        """The nodes that the templates in a field of a node read, each once."""
        read: dict[NodeId, None] = {}
        own = list(references)
        if self._some_conditional:
            unguarded = [(below, each) for below, each in _unguarded(own) if each.name in self._known]
            self.unguarded += [(node, node.path(written, *below), each) for below, each in unguarded]
        for below, reference in own:
            name, field, path = reference.name, reference.field, node.path(written, *below)
            if name == "run":
                if field is not None and field not in _OF_RUN:
                    self._problems.unknown(path, f"the template reads run.{field}, which is not there", field, _OF_RUN)
            elif name == "input":
                if self._inputs is not None and field is not None and field not in self._inputs:
                    message = f"the template reads input.{field}, which the input does not have"
                    self._problems.unknown(path, message, field, self._inputs)
            elif name not in self._known:
                close = self._problems.nearest("node", name, _OtherNames(self._names, node.id))
                rest = f"did you mean {close!r}?" if close else "there are input, run and the ancestors of the node"
                message = f"the template names {name!r}, which is no node; {rest}"
                self._problems.add(path, message, found=name, nearest=close)
            else:
                read[NodeId(name)] = None
                if name not in node.dependencies:
                    self.far.append((node, path, reference))
                if reference.whole:
                    self._problems.add(path, _names_whole_node(name), found=name)
                if field is not None and field not in _OF_ANY_NODE:
                    self._check_field(path, self._known[name], field)
        return tuple(read)

    def _check_field(self, at: Path, node: PlainNode, field: str) -> None:
        if node.handler not in self._fields:
            handler = self._handlers.get(node.handler)
            self._fields[node.handler] = None if handler is None else handler.output_fields()
        known = self._fields[node.handler]
        if known is not None and field not in known:
            message = f"the template reads {node.id}.{field}, which {node.handler} does not return"
            self._problems.unknown(at, message, field, sorted({*known, "output"}))


def _check_ancestors(known: Mapping[str, PlainNode], reading: _References, problems: Problems) -> None:
    """A template may name only ancestors: whether another node has finished would depend on timing.

    For an ancestor that may be skipped it must say what stands for it.
    """
    specs = [_shape(node, known) for node in known.values()]
    positions = {spec.id: place for place, spec in enumerate(specs)}
    inspected = inspect(specs)
    if inspected.problems:
        return  # a cycle was reported

    def pair(node: PlainNode, reference: Reference) -> tuple[int, int]:
        return positions[NodeId(node.id)], positions[NodeId(reference.name)]

    pairs = {pair(node, each) for node, _, each in reading.far if node.id}
    above = above_all(pairs, inspected.parents, inspected.sequence)
    for node, path, reference in reading.far:
        if node.id and pair(node, reference) not in above:
            advice = f"add it to the dependencies of {node.id!r}, or of a node before it"
            other = f"{reference.name!r}, which is not one of its ancestors: {advice}"
            message = f"the template of {node.id!r} names {'itself' if reference.name == node.id else other}"
            problems.add(path, message, found=reference.name)
    reads: dict[int, list[int]] = {}
    for node, _, reference in reading.unguarded:
        if node.id and (reference.name in node.dependencies or pair(node, reference) in above):
            below, ancestor = pair(node, reference)
            reads.setdefault(below, []).append(ancestor)
    branching = [spec._replace(**known[spec.id].options) for spec in specs] if reads else []
    skipped = set(perhaps_skipped(branching, reads, inspected.parents, inspected.sequence))
    for node, path, reference in reading.unguarded:
        if node.id and pair(node, reference) in skipped:
            problems.add(path, _may_be_skipped(reference), found=reference.name)


def _unguarded(references: Sequence[tuple[Path, Reference]]) -> list[tuple[Path, Reference]]:
    """What templates read with nothing in its stead if it is missing: neither `default`, nor a test of the same template."""
    tested = {(path, each.name) for path, each in references if each.tested}
    seen: dict[tuple[Path, str], Reference] = {}
    for path, each in references:
        if not each.defaulted and not each.whole and (path, each.name) not in tested:
            seen.setdefault((path, each.name), each)
    return [(path, each) for (path, _), each in seen.items()]


def _may_be_skipped(reference: Reference) -> str:
    words = f"{reference.name}.{reference.field or 'result'}"
    return f"{reference.name!r} may be skipped: say what stands for it with {words} | default(...)"


def _names_whole_node(name: str) -> str:
    return f"{name} is a node: write {name}.output, or {name}.result for its main field"


def _input_names(schema: Mapping[str, Any] | None) -> list[str] | None:
    """The names of the inputs; None if there may be others."""
    if schema is None or "properties" not in schema:
        return None
    if {"$ref", "anyOf", "oneOf", "allOf"} & schema.keys() or schema.get("additionalProperties", False) is not False:
        return None
    return list(schema["properties"])


def with_templates_read(graph: Graph, handlers: Handlers) -> Graph:
    """The same graph with `needs` from the templates; GraphError lists what is wrong with them."""
    if not any(spec.templated for spec in graph):
        return graph
    problems: list[GraphProblem] = []
    unguarded: list[tuple[NodeId, Path, Reference]] = []
    with parsing_at_most(MAX_PARSED):
        specs = [
            _checked_templates(spec, graph, handlers, problems, unguarded) if spec.templated else spec for spec in graph
        ]
    if problems:
        raise GraphError(problems)
    read = Graph(specs, state=graph.state, source=graph.source)
    problems += _read_perhaps_skipped(read, unguarded)
    if problems:
        raise GraphError(problems)
    return read


def _read_perhaps_skipped(graph: Graph, unguarded: Sequence[tuple[NodeId, Path, Reference]]) -> list[GraphProblem]:
    positions = {spec.id: place for place, spec in enumerate(graph)}
    reads: dict[int, list[int]] = {}
    for node, _, each in unguarded:
        reads.setdefault(positions[node], []).append(positions[NodeId(each.name)])
    skipped = set(perhaps_skipped(list(graph), reads, *graph.shape))
    return [
        GraphProblem(node, _may_be_skipped(each), path=json_path(path))
        for node, path, each in unguarded
        if (positions[node], positions[NodeId(each.name)]) in skipped
    ]


def _checked_templates(
    spec: NodeSpec,
    graph: Graph,
    handlers: Handlers,
    problems: list[GraphProblem],
    unguarded: list[tuple[NodeId, Path, Reference]],
) -> NodeSpec:
    def report(message: str, *path: str | int) -> None:
        problems.append(GraphProblem(spec.id, message, path=json_path(("nodes", spec.id, *path))))

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
        report(problem.message, "args", *problem.place)
    needs: dict[NodeId, None] = {}
    references = [(("args", *path), reference) for path, reference in config.references]
    if spec.when is not None:
        try:
            references += [(("when",), reference) for reference in compile_condition(spec.when).references]
        except TemplateError as error:
            report(f"the condition is wrong: {error.problem}", "when")
    unguarded += [
        (spec.id, ("nodes", spec.id, *at), each) for at, each in _unguarded(references) if each.name in graph.nodes
    ]
    for at, reference in references:
        if reference.name in graph.nodes:
            needs[NodeId(reference.name)] = None
            if reference.whole:
                report(_names_whole_node(reference.name), *at)
        elif reference.name not in ALWAYS:
            report(f"the template names {reference.name!r}, which is no node", *at)
    return spec._replace(needs=tuple(needs))
