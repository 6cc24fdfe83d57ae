"""The nodes of a pipeline document, read into stages.

    state_scan         finds entities: `pattern`, `filter`
    state_read         a state that the nodes below it read as well: `path`, or `stateType`
    state_check,       a state that must exist before the nodes below it run, whatever it contains: `path`, or `stateType`
    state_gate
    state_transform    a stage: `input`, `output`, `transform` (a handler or a function), `config`, `minSize`, `collect` ...
    state_write        a stage that writes a text: `path` or `stateType`, `content` (what is above it, if left out)
    state_trigger      starts a workflow for each new state: `stateType` or `path`, `workflow`, `filter`, `existing`

`id` may be any text; other nodes refer to a node by its `name`. `connections` say which node is above which; a transform
or write without `input` reads the node above it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.forms.problems import Path, Problems
from ...base.forms.reading import read_form
from ...base.templates import TemplateError, compile_config
from ...define.code.address import is_address
from ...define.code.registry import ForData
from ...define.document.retry import retry_of
from ...errors import DefinitionError
from ...handlers import Handlers
from ...triggers.filters import compile_filter
from ..building.arguments import BodyParameters
from ..definition import PipelineDefinition
from ..patterns.pattern import Pattern
from ..stage import Stage, make_stage
from ..staleness.connections import find_cycle
from .bodies import SOLE_PARAMETER, FunctionBody, HandlerBody, StageConfig, TextBody, handler_signature
from .forms import (
    DATA,
    AnyData,
    ConnectionForm,
    MadeData,
    PipelineForm,
    ScanData,
    StateData,
    StateNodeForm,
    TransformData,
    TriggerData,
    WriteData,
)
from .names import as_pattern, pattern_scope, without_dollars

if TYPE_CHECKING:
    from ..definition import TypesOfPipelines

_STAGES = ("state_transform", "state_write")
_GATES = ("state_check", "state_gate")
_READS = ("state_read", *_GATES)


class StageNode(NamedTuple):
    id: str
    type: str
    name: str
    data: AnyData
    path: tuple[str | int, ...]
    """Where its data is in the document."""
    is_right: bool
    """Whether nothing is wrong with its data."""


class Nodes:
    """The nodes of one document. Adds what is wrong with them to `problems`."""

    def __init__(
        self,
        document: PipelineForm,
        problems: Problems,
        handlers: Callable[[], Handlers],
        jobs: tuple[str, ...],
        *,
        strict: bool,
    ) -> None:
        self.problems = problems
        self.handlers = handlers
        self.registry = ForData(jobs)
        self.strict = strict
        self.nodes = self._nodes(document.nodes)
        self.above = self._connections(document.connections)
        self.types: TypesOfPipelines = {}
        """What states other pipelines of the root make."""
        self.patterns: dict[str, Pattern] = {}
        """What each node finds or writes, by id."""
        self.stages: list[tuple[Stage, BodyParameters]] = []
        self.state_types: dict[str, str] = {}
        self.unknown_reads: dict[str, str] = {}
        self.triggers: list[dict[str, Any]] = []

    @property
    def names_types(self) -> bool:
        """Whether a node names a state by a type that this document does not make."""
        return any(_read_type(node) is not None and not self._makers(node) for node in self.nodes.values())

    def read(self, types: TypesOfPipelines) -> None:
        """Make stages and triggers of the nodes. `types` are those of the states that other pipelines of the root make."""
        self.types = types
        for node in self._in_order():
            self._read(node)

    def add_to(self, pipeline: PipelineDefinition) -> None:
        pipeline.add_all(self.stages)
        pipeline.state_types |= self.state_types
        pipeline.unknown_reads |= self.unknown_reads
        for trigger in self.triggers:
            pipeline.trigger(**trigger)

    # Structure

    def _nodes(self, items: list[Any]) -> dict[str, StageNode]:
        nodes: dict[str, StageNode] = {}
        names: set[str] = set()
        for number, item in enumerate(items):
            path = ("nodes", number)
            form = read_form(StateNodeForm, item, self.problems, path)
            if form is None or not form.id:
                continue
            if form.id in nodes:
                self.problems.add((*path, "id"), "another node has this id", found=form.id)
                continue
            kind = DATA.get(form.type_id)
            if kind is None:
                if form.type_id:
                    message = f"there is no type of node {form.type_id!r}"
                    self.problems.unknown((*path, "typeId"), message, form.type_id, DATA)
                continue
            name = form.name or form.id.replace("-", "_")
            if not name.isidentifier() or name == "entity" or name in names:
                rule = "expected a name of letters, digits and _, and not entity"
                self.problems.add((*path, "name"), "another node has this name" if name in names else rule, found=name)
            names.add(name)
            before = len(self.problems)
            data = read_form(kind, form.data, self.problems, (*path, "data"))
            if data is not None:
                is_right = len(self.problems) == before
                nodes[form.id] = StageNode(form.id, form.type_id, name, data, (*path, "data"), is_right)
        return nodes

    def _connections(self, items: list[Any]) -> dict[str, list[str]]:
        above: dict[str, list[str]] = {node_id: [] for node_id in self.nodes}
        for number, item in enumerate(items):
            path = ("connections", number)
            form = read_form(ConnectionForm, item, self.problems, path)
            if form is None:
                continue
            ends = {"sourceNodeId": form.source_node_id, "targetNodeId": form.target_node_id}
            unknown = {key: end for key, end in ends.items() if end not in self.nodes}
            for key, end in unknown.items():
                if end:  # else it was reported
                    self.problems.unknown((*path, key), f"there is no node {end!r}", end, self.nodes)
            if not unknown:
                above[form.target_node_id].append(form.source_node_id)
        return above

    def _makers(self, node: StageNode) -> list[StageNode]:
        """The nodes that make the state which a node names by its type."""
        kind = node.data.state_type if isinstance(node.data, StateData) and node.data.path is None else None
        return [
            other
            for other in self.nodes.values()
            if kind is not None and other.type in _STAGES and other.id != node.id
            if kind == other.name or (isinstance(other.data, WriteData) and kind == other.data.state_type)
        ]

    def _in_order(self) -> list[StageNode]:
        before = {
            node.id: [*self.above[node.id], *(each.id for each in self._makers(node) if _read_type(node) is not None)]
            for node in self.nodes.values()
        }
        if cycle := find_cycle(before):
            self.problems.add(("connections",), f"the nodes {' → '.join(cycle)} form a cycle")
            return []
        order: dict[str, StageNode] = {}
        waiting = list(reversed(self.nodes))
        while waiting:
            missing = [each for each in before[waiting[-1]] if each not in order]
            if missing:
                waiting += reversed(missing)
            else:
                node_id = waiting.pop()
                order.setdefault(node_id, self.nodes[node_id])
        return list(order.values())

    # Nodes

    def _read(self, node: StageNode) -> None:
        if isinstance(node.data, ScanData):
            self._pattern(node, "pattern", node.data.pattern)
        elif isinstance(node.data, TransformData | WriteData):
            self._stage(node, node.data)
        elif isinstance(node.data, TriggerData):
            self._trigger(node, node.data)
        else:
            self._state(node, node.data)

    def _patterns_above(self, node: StageNode) -> dict[str, Pattern]:
        """The pattern of every node above it, by name, and of the entity."""
        patterns: dict[str, Pattern] = {}
        waiting, seen = deque(self.above[node.id]), set()
        scan: Pattern | None = None
        while waiting:
            each = waiting.popleft()
            if each in seen:
                continue
            seen.add(each)
            if each in self.patterns:
                patterns[self.nodes[each].name] = self.patterns[each]
                if self.nodes[each].type == "state_scan" or scan is None:
                    scan = self.patterns[each]
            waiting += self.above[each]
        if scan is not None:
            patterns["entity"] = scan
        return patterns

    def _scope(self, node: StageNode) -> dict[str, dict[str, str]]:
        """What the patterns of a node can refer to: every node above it, and the entity."""
        return {name: pattern_scope(pattern) for name, pattern in self._patterns_above(node).items()}

    def _explained(self, node: StageNode, error: Exception) -> str:
        """What is wrong with a pattern, and which states nearby are not known: these have no variables."""
        nearby = (self.nodes[each] for each in self.above[node.id])
        unknown = [each.name for each in nearby if each.name in self.unknown_reads]
        hints = (
            f"; no pipeline in this root is known to make {self.unknown_reads[name]!r} ({name})" for name in unknown
        )
        return f"{error}{''.join(hints)}"

    def _pattern(self, node: StageNode, key: str, text: str) -> Pattern | None:
        if not text:
            return None  # it was reported
        try:
            pattern = Pattern(as_pattern(text, self._scope(node)))
        except (TemplateError, DefinitionError) as error:
            self.problems.add((*node.path, key), self._explained(node, error), found=text)
            return None
        self.patterns[node.id] = pattern
        return pattern

    def _state(self, node: StageNode, data: StateData) -> Pattern | None:
        """A state by its path, or by its type: the node that makes it, here or in another pipeline of the root, or
        `type/{entity}`.
        """
        if data.path is not None:
            return self._pattern(node, "path", data.path)
        kind = data.state_type
        if kind is None:
            if node.is_right:
                self.problems.add(node.path, "expected path or stateType")
            return None
        for maker in self._makers(node):
            if maker.id in self.patterns:
                return self.patterns.setdefault(node.id, self.patterns[maker.id])
        if node.type not in _STAGES:
            for types in self.types.values():
                if kind in types:
                    return self.patterns.setdefault(node.id, Pattern(types[kind]))
            self.unknown_reads[node.name] = kind
        entity = self._scope(node).get("entity", {"id": "{id}"})["id"]
        return self._pattern(node, "stateType", f"{kind}/{entity}")

    def _inputs(self, node: StageNode, data: MadeData, above: list[StageNode]) -> tuple[dict[str, str], dict[str, str]]:
        """The pattern that each parameter of a stage reads, and the name of the node it comes from."""
        inputs: dict[str, str] = {}
        names: dict[str, str] = {}
        if data.input is None:
            main = next((each for each in above if each.type not in _GATES), None)
            if main is not None:
                inputs[SOLE_PARAMETER], names[SOLE_PARAMETER] = self.patterns[main.id].text, main.name
        is_named = isinstance(data.input, dict)
        texts = (
            data.input if isinstance(data.input, dict) else {} if data.input is None else {SOLE_PARAMETER: data.input}
        )
        for key, text in texts.items():
            path = (*node.path, "input", *([key] if is_named else []))
            if not key.isidentifier():
                self.problems.expected(path, "the name of a parameter", key)
                continue
            try:
                inputs[key] = as_pattern(text, self._scope(node))
            except TemplateError as error:
                self.problems.add(path, self._explained(node, error), found=text)
                continue
            alike = (each.name for each in above if self.patterns[each.id].text == inputs[key])
            names[key] = next(alike, "" if key == SOLE_PARAMETER else key)
        for each in above:
            if each.type in _READS and self.patterns[each.id].text not in inputs.values():
                inputs[each.name], names[each.name] = self.patterns[each.id].text, each.name
        return inputs, names

    def _stage(self, node: StageNode, data: TransformData | WriteData) -> None:
        above = [self.nodes[each] for each in self.above[node.id] if each in self.patterns]
        inputs, names = self._inputs(node, data, above)
        if isinstance(data, WriteData):
            output, config, more = self._state(node, data), {"content": data.content}, {}
            if output is not None and data.path is None:
                self.state_types[str(data.state_type)] = output.text
        else:
            output, config = self._pattern(node, "output", data.output), data.config
            more = {name: getattr(data, name) for name in ("quiet", "priority", "limit", "version")}
            options = {"timeout": data.timeout, "retry": retry_of(data.retry)}
            more["options"] = {name: value for name, value in options.items() if value is not None}
        body = self._body(node, data, config, names)
        if output is None or body is None or not node.is_right:
            return
        filters = {
            name: scan.data.filter
            for scan in above
            if isinstance(scan.data, ScanData) and scan.data.filter is not None
            for name, text in inputs.items()
            if text == self.patterns[scan.id].text
        }
        gated = {self.patterns[each.id].text for each in above if each.type in _GATES}
        try:
            stage = make_stage(
                node.name,
                input=inputs or None,
                output=output.text,
                function=body,
                handler=body.name if isinstance(body, HandlerBody) else None,
                config=config,
                filter=filters or None,
                min_size=data.min_size,
                collect=data.collect,
                gates=[name for name, text in inputs.items() if text in gated],
                **more,
            )
        except DefinitionError as error:
            self.problems.add(node.path, self._explained(node, error))
            return
        self.stages.append((stage, handler_signature(stage)))

    def _body(
        self, node: StageNode, data: TransformData | WriteData, templates: dict[str, Any], names: Mapping[str, str]
    ) -> FunctionBody | HandlerBody | TextBody | None:
        path = node.path if isinstance(data, WriteData) else (*node.path, "config")
        wrong: list[tuple[Path, TemplateError]] = []
        compile_config(without_dollars(templates), (), wrong)
        for place, error in wrong:
            self.problems.add((*path, *place), str(error))
        if wrong:
            return None
        config = StageConfig(templates, names, self._patterns_above(node))
        if isinstance(data, WriteData):
            return TextBody(config)
        transform = data.transform
        if is_address(transform):
            try:
                return FunctionBody(self.registry.find(transform), config)
            except DefinitionError as error:
                self.problems.add((*node.path, "transform"), str(error))
                return None
        if self.strict and transform and transform not in self.handlers():
            message = f"there is no handler {transform!r} here"
            self.problems.unknown((*node.path, "transform"), message, transform, list(self.handlers()))
            return None
        return HandlerBody(transform, self.handlers, config)

    def _trigger(self, node: StageNode, data: TriggerData) -> None:
        pattern = self._state(node, data)
        is_input = any(node.id in above for above in self.above.values())
        if self.strict and data.workflow is None and not is_input:
            message = "it starts nothing: name a saved `workflow`, or connect it to the nodes that read the state"
            self.problems.add(node.path, message)
        if data.workflow is None and is_input:
            for key in ("filter", "existing"):
                if getattr(data, key):
                    message = f"`{key}` is of the `workflow` that it starts; the nodes below it work on every state"
                    self.problems.add((*node.path, key), message)
        if pattern is None:
            return
        if data.filter is not None:
            try:
                compile_filter(data.filter, pattern.variables)
            except TemplateError as error:
                self.problems.add((*node.path, "filter"), error.problem, found=data.filter)
                return
        state = data.state_type if data.path is None else pattern.text
        if data.workflow is not None:  # otherwise it is only an input of the nodes below it
            options = {"state": state, "workflow": data.workflow, "filter": data.filter, "existing": data.existing}
            self.triggers.append({"name": node.name, **options})


def _read_type(node: StageNode) -> str | None:
    """The type by which a node that is no stage names a state."""
    if not isinstance(node.data, StateData) or node.type in _STAGES or node.data.path is not None:
        return None
    return node.data.state_type
