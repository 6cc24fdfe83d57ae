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

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...base.forms.problems import Problems
from ...base.templates import TemplateError, compile_config
from ...define.code.address import is_address
from ...define.code.registry import ForData
from ...errors import DefinitionError
from ...handlers import Handlers
from ...triggers.filters import compile_filter
from ..building.arguments import BodyParameters
from ..definition import PipelineDefinition
from ..patterns.pattern import Pattern
from ..stage import FILTERS, Stage, make_stage
from ..staleness.connections import find_cycle
from ..trigger import make_trigger
from .bodies import SOLE_PARAMETER, FunctionBody, HandlerBody, StageConfig, TextBody, handler_signature
from .names import as_pattern, pattern_scope, without_dollars
from .schema import DATA, NODE_FIELDS

_STAGES = ("state_transform", "state_write")
_GATES = ("state_check", "state_gate")
_READS = ("state_read", *_GATES)


class StageNode(NamedTuple):
    id: str
    type: str
    name: str
    data: Mapping[str, Any]
    path: tuple[str | int, ...]
    """Where its data is in the document."""


class Nodes:
    """The nodes of one document. Adds what is wrong with them to `problems`."""

    def __init__(
        self,
        document: Mapping[str, Any],
        problems: Problems,
        handlers: Callable[[], Handlers],
        jobs: tuple[str, ...],
        *,
        types: Callable[[], list[Mapping[str, str]]],
        strict: bool,
    ) -> None:
        self.problems = problems
        self.handlers = handlers
        self.registry = ForData(jobs)
        self.types = types
        """What states other pipelines of the root make, by type."""
        self.strict = strict
        self.nodes = self._nodes(document.get("nodes"))
        self.above = self._connections(document.get("connections", []))
        self.patterns: dict[str, Pattern] = {}
        """What each node finds or writes, by id."""
        self.stages: list[tuple[Stage, BodyParameters]] = []
        self.state_types: dict[str, str] = {}
        self.triggers: list[dict[str, Any]] = []
        for node in self._in_order():
            self._read(node)

    def add_to(self, pipeline: PipelineDefinition) -> None:
        for stage, signature in self.stages:
            pipeline.add(stage, signature)
        pipeline.state_types |= self.state_types
        for trigger in self.triggers:
            pipeline.triggers[trigger["name"]] = make_trigger(**trigger, stages=pipeline.stages)

    # Structure

    def _nodes(self, given: Any) -> dict[str, StageNode]:
        if not isinstance(given, list) or not given:
            self.problems.expected(("nodes",), "a list of nodes", given)
            return {}
        found: dict[str, StageNode] = {}
        names: set[str] = set()
        for at, each in enumerate(given):
            path = ("nodes", at)
            if not isinstance(each, dict):
                self.problems.expected(path, "an object with id, typeId and data", each)
                continue
            for key in each:
                if key not in NODE_FIELDS:
                    self.problems.unknown((*path, key), f"a node has no field {key!r}", str(key), NODE_FIELDS)
            node_id, kind, data = each.get("id"), each.get("typeId"), each.get("data", {})
            name = each.get("name", str(node_id).replace("-", "_"))
            if not isinstance(node_id, str) or not node_id or node_id in found:
                said = "another node has this id" if node_id in found else "some text is needed as id"
                self.problems.add((*path, "id"), said, found=node_id)
                continue
            if kind not in DATA:
                self.problems.unknown((*path, "typeId"), f"there is no type of node {kind!r}", str(kind), DATA)
                continue
            if not isinstance(name, str) or not name.isidentifier() or name == "entity" or name in names:
                rule = "a name has letters, digits and _, and is not entity"
                self.problems.add((*path, "name"), "another node has this name" if name in names else rule, found=name)
            names.add(name)
            if not isinstance(data, dict):
                self.problems.expected((*path, "data"), "an object", data)
                continue
            for key in data:
                if key not in DATA[kind]:
                    self.problems.unknown((*path, "data", key), f"{kind} has no {key!r}", str(key), DATA[kind])
            found[node_id] = StageNode(node_id, kind, name, data, (*path, "data"))
        return found

    def _connections(self, given: Any) -> dict[str, list[str]]:
        above: dict[str, list[str]] = {node_id: [] for node_id in self.nodes}
        if not isinstance(given, list):
            self.problems.expected(("connections",), "a list of connections", given)
            return above
        for at, each in enumerate(given):
            ends = []
            for key in ("sourceNodeId", "targetNodeId"):
                end = each.get(key) if isinstance(each, dict) else None
                if isinstance(end, str) and end in self.nodes:
                    ends.append(end)
                else:
                    self.problems.unknown(("connections", at, key), f"there is no node {end!r}", str(end), self.nodes)
            if len(ends) == 2:
                above[ends[1]].append(ends[0])
        return above

    def _in_order(self) -> list[StageNode]:
        if cycle := find_cycle(self.above):
            self.problems.add(("connections",), f"the nodes {' → '.join(cycle)} form a cycle")
            return []
        order: dict[str, StageNode] = {}

        def place(node_id: str) -> None:
            if node_id not in order:
                for each in self.above[node_id]:
                    place(each)
                order[node_id] = self.nodes[node_id]

        # Triggers last: they may name any state of the document.
        for node in sorted(self.nodes.values(), key=lambda each: each.type == "state_trigger"):
            place(node.id)
        return list(order.values())

    # Nodes

    def _read(self, node: StageNode) -> None:
        if node.type == "state_scan":
            self._pattern(node, "pattern", node.data.get("pattern"))
            if node.data.get("filter") not in (None, *FILTERS):
                message = f"there is no filter {node.data['filter']!r}"
                self.problems.unknown((*node.path, "filter"), message, str(node.data["filter"]), FILTERS)
        elif node.type in _READS:
            self._state(node)
        elif node.type in _STAGES:
            self._stage(node)
        else:
            self._trigger(node)

    def _scope(self, node: StageNode) -> dict[str, dict[str, str]]:
        """What the patterns of a node can refer to: every node above it, and the entity."""
        scope: dict[str, dict[str, str]] = {}
        waiting, seen = list(self.above[node.id]), set()
        scan: dict[str, str] | None = None
        while waiting:
            each = waiting.pop(0)
            if each in seen:
                continue
            seen.add(each)
            if each in self.patterns:
                scope[self.nodes[each].name] = pattern_scope(self.patterns[each])
                if self.nodes[each].type == "state_scan" or scan is None:
                    scan = scope[self.nodes[each].name]
            waiting += self.above[each]
        if scan is not None:
            scope["entity"] = scan
        return scope

    def _pattern(self, node: StageNode, key: str, text: Any) -> Pattern | None:
        path = (*node.path, key)
        if not isinstance(text, str) or not text:
            self.problems.expected(path, "a pattern of paths", text)
            return None
        try:
            made = Pattern(as_pattern(text, self._scope(node)))
        except (TemplateError, DefinitionError) as error:
            self.problems.add(path, str(error), found=text)
            return None
        self.patterns[node.id] = made
        return made

    def _state(self, node: StageNode) -> Pattern | None:
        """A state by its path, or by its type: the node that makes it, here or in another pipeline of the root, or
        `type/{entity}`.
        """
        if "path" in node.data:
            return self._pattern(node, "path", node.data["path"])
        kind = node.data.get("stateType")
        if not isinstance(kind, str) or not kind:
            self.problems.expected(node.path, "path or stateType", node.data)
            return None
        for each in self.nodes.values():
            makes = each.type in _STAGES and kind in (each.name, each.data.get("stateType"))
            if makes and each.id != node.id and each.id in self.patterns:
                return self.patterns.setdefault(node.id, self.patterns[each.id])
        if node.type not in _STAGES:
            for types in self.types():
                if kind in types:
                    return self.patterns.setdefault(node.id, Pattern(types[kind]))
        entity = self._scope(node).get("entity", {"id": "{id}"})["id"]
        return self._pattern(node, "stateType", f"{kind}/{entity}")

    def _inputs(self, node: StageNode, above: list[StageNode]) -> tuple[dict[str, str], dict[str, str]]:
        """The pattern that each parameter of a stage reads, and the name of the node it comes from."""
        given = node.data.get("input")
        inputs: dict[str, str] = {}
        names: dict[str, str] = {}
        if given is None:
            main = next((each for each in above if each.type not in _GATES), None)
            if main is not None:
                inputs[SOLE_PARAMETER], names[SOLE_PARAMETER] = self.patterns[main.id].text, main.name
            given = {}
        for key, text in given.items() if isinstance(given, dict) else [(SOLE_PARAMETER, given)]:
            path = (*node.path, "input", *([key] if isinstance(given, dict) else []))
            if not isinstance(text, str) or not str(key).isidentifier():
                self.problems.expected(path, "a pattern of paths", text)
                continue
            try:
                inputs[key] = as_pattern(text, self._scope(node))
            except TemplateError as error:
                self.problems.add(path, str(error), found=text)
                continue
            alike = (each.name for each in above if self.patterns[each.id].text == inputs[key])
            names[key] = next(alike, "" if key == SOLE_PARAMETER else key)
        for each in above:
            if each.type in _READS and self.patterns[each.id].text not in inputs.values():
                inputs[each.name], names[each.name] = self.patterns[each.id].text, each.name
        return inputs, names

    def _stage(self, node: StageNode) -> None:
        data = node.data
        above = [self.nodes[each] for each in self.above[node.id] if each in self.patterns]
        inputs, names = self._inputs(node, above)
        transforms = node.type == "state_transform"
        output = self._pattern(node, "output", data.get("output")) if transforms else self._state(node)
        body = self._body(node, names)
        if output is None or body is None:
            return
        if "stateType" in data and "path" not in data:
            self.state_types[data["stateType"]] = output.text
        filters = {
            name: scan.data["filter"]
            for scan in above
            if scan.type == "state_scan" and scan.data.get("filter")
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
                handler=data.get("transform") if isinstance(body, HandlerBody) else None,
                config=data.get("config") if transforms else {"content": data.get("content", "")},
                filter=filters or None,
                min_size=data.get("minSize", 0),
                **{key: data[key] for key in ("collect", "quiet", "priority", "limit", "version") if key in data},
                options={key: data[key] for key in ("timeout", "retry") if key in data},
                gates=[name for name, text in inputs.items() if text in gated],
            )
        except DefinitionError as error:
            self.problems.add(node.path, str(error))
            return
        self.stages.append((stage, handler_signature(stage)))

    def _body(self, node: StageNode, names: Mapping[str, str]) -> FunctionBody | HandlerBody | TextBody | None:
        path, writes = node.path, node.type == "state_write"
        transform = node.data.get("transform")
        given = node.data.get("config", {})
        if writes:
            given = {"content": node.data.get("content", "{{ input.content }}")}
        if not isinstance(given, dict):
            self.problems.expected((*path, "config"), "an object", given)
            return None
        wrong: list[tuple[Any, TemplateError]] = []
        compile_config(without_dollars(given), (), wrong)
        for where, error in wrong:
            self.problems.add((*path, *(() if writes else ("config",)), *where), str(error))
        if wrong:
            return None
        config = StageConfig(given, names, {name: Pattern(each["path"]) for name, each in self._scope(node).items()})
        if writes:
            return TextBody(config)
        if not isinstance(transform, str) or not transform:
            self.problems.expected((*path, "transform"), "the name of a handler, or module:function", transform)
            return None
        if is_address(transform):
            try:
                return FunctionBody(self.registry.find(transform), config)
            except DefinitionError as error:
                self.problems.add((*path, "transform"), str(error))
                return None
        if self.strict and transform not in self.handlers():
            message = f"there is no handler {transform!r} here"
            self.problems.unknown((*path, "transform"), message, transform, list(self.handlers()))
            return None
        return HandlerBody(transform, self.handlers, config)

    def _trigger(self, node: StageNode) -> None:
        data = node.data
        pattern = self._state(node)
        workflow = data.get("workflow")
        if workflow is not None and not isinstance(workflow, str):
            self.problems.expected((*node.path, "workflow"), "the name of a saved workflow", workflow)
        if self.strict and workflow is None and not any(node.id in above for above in self.above.values()):
            message = "it starts nothing: name a saved `workflow`, or connect it to the nodes that read the state"
            self.problems.add(node.path, message)
        if pattern is None:
            return
        condition = data.get("filter")
        if condition is not None:
            try:
                compile_filter(str(condition), pattern.variables)
            except TemplateError as error:
                self.problems.add((*node.path, "filter"), error.problem, found=condition)
                return
            condition = str(condition)
        state = pattern.text if "path" in data else data["stateType"]
        given = {"state": state, "workflow": workflow, "condition": condition, "existing": bool(data.get("existing"))}
        self.triggers.append({"name": node.name, **given})
