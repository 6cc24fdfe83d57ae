"""`Document`: a workflow as data, checked whole, with one canonical form and the graph it means."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, get_args

from ...clock import POSITIVE_SECONDS_NEEDED, is_seconds
from ...codec import decode, encode, encode_checked, json_path, sha256
from ...errors import NotJson
from ...graph import MAX_NAME, Graph, NodeSpec
from ...graph.document import Source
from ...handlers import Handler, Handlers
from ...handlers.definition import DEFAULT_TIMEOUT
from ...ids import NodeId
from ..options import OnFailure
from .checking import check_nodes
from .inputs import checked_input, read_schema
from .nodes import MAX_DESCRIPTION, Node, canonical_node, read_node
from .problems import Collected, DocumentError, Path, Problem
from .text import Form, Read, form_of, read_file, read_text
from .unreadable import Unreadable

if TYPE_CHECKING:
    from ...triggers import Trigger

MAX_NODES = 100_000
MAX_EDGES = 1_000_000
MAX_TAGS = 20
MAX_TAG = 100
MODES = ("workflow", "pipeline")
IS_PIPELINE = "this is a pipeline: `stepwell pipeline` looks after it, and nothing can be started of it by name"
FIELDS = ("mode", "name", "description", "input", "on_failure", "timeout", "tags", "triggers", "nodes")


class Document:
    """A workflow that is data: JSON or YAML, checked whole when it is made.

        document = Document.load("summarise.yaml")
        run = engine.run(document, input={"url": "https://example.com"})

    A DocumentError lists everything that is wrong with it. Nothing that it names is imported or executed.
    """

    def __init__(
        self, data: Mapping[str, Any], handlers: Handlers | None = None, *, source: str = "the document"
    ) -> None:
        problems = Collected()
        self._read(_copied(data, problems), Handlers() if handlers is None else handlers, problems)
        if problems:
            raise DocumentError(source, [each for _, each in problems.found])
        self.source = source

    @classmethod
    def load(cls, path: str | os.PathLike[str], handlers: Handlers | None = None) -> Document:
        """The document in a file: JSON, or YAML if it is called .yaml or .yml."""
        file = FilePath(path)
        try:
            data = read_file(file)
        except Unreadable as error:
            raise _unreadable(str(file), error) from None
        return cls.parse(data, handlers, form=form_of(file), source=str(file))

    @classmethod
    def parse(
        cls,
        text: str | bytes,
        handlers: Handlers | None = None,
        *,
        form: Form | None = None,
        source: str = "the document",
    ) -> Document:
        """The document that a text is."""
        try:
            read = read_text(text, form)
        except Unreadable as error:
            raise _unreadable(source, error) from None
        made = cls.__new__(cls)
        problems = Collected()
        for path in read.repeated:
            problems.add(path, "this key is there more than once", found=path[-1])
        made._read(read.data, Handlers() if handlers is None else handlers, problems)
        if problems:
            raise DocumentError(source, _placed(problems, read))
        made.source = source
        return made

    def _read(self, data: Any, handlers: Handlers, problems: Collected) -> None:
        if not isinstance(data, dict):
            problems.needed((), "an object with name and nodes", data)
            return
        self.mode: str = _choice(data, "mode", MODES, "workflow", problems)
        if self.mode == "pipeline":
            problems.add(("mode",), IS_PIPELINE, found="pipeline")
            return
        for key in data:
            if key not in FIELDS:
                problems.unknown((key,), f"a document has no field {key!r}", str(key), FIELDS)
        self.name: str = _name(data, problems)
        self.description: str | None = _description(data, problems)
        self.on_failure: OnFailure = _choice(data, "on_failure", get_args(OnFailure), "fail_fast", problems)
        self.timeout: float | None = _timeout(data, problems)
        self.tags: tuple[str, ...] | dict[str, str] = _tags(data, problems)
        self.input: dict[str, Any] | None = None
        if "input" in data:
            self.input = read_schema(data["input"], ("input",), problems)
        self.triggers: tuple[Trigger, ...] = _triggers(data, self.name, problems)
        self.nodes: tuple[Node, ...] = tuple(_nodes(data, problems))
        self.handlers = handlers
        self._needs: dict[str, tuple[NodeId, ...]] = check_nodes(self.nodes, handlers, self.input, problems)

    def __repr__(self) -> str:
        return f"<Document {self.name!r} of {len(self.nodes)} nodes, {self.digest[:12]}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Document) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def canonical(self) -> dict[str, Any]:
        """The one form of its content: its own names, nothing that is at its default."""
        made: dict[str, Any] = {"name": self.name}
        if self.description is not None:
            made["description"] = self.description
        if self.input is not None:
            made["input"] = self.input
        if self.on_failure != "fail_fast":
            made["on_failure"] = self.on_failure
        if self.timeout is not None:
            made["timeout"] = int(self.timeout) if self.timeout == int(self.timeout) else self.timeout
        if self.tags:
            made["tags"] = self.tags if isinstance(self.tags, dict) else list(self.tags)
        if self.triggers:
            from ...triggers.definition import declared_form

            made["triggers"] = [declared_form(trigger) for trigger in self.triggers]
        return made | {"nodes": [canonical_node(node) for node in self.nodes]}

    @cached_property
    def content(self) -> bytes:
        """The bytes of its canonical form: what is stored."""
        return encode_checked(self.canonical)

    @cached_property
    def digest(self) -> str:
        """What tells it from every other: SHA-256 of its content."""
        return sha256(self.content)

    def checked_input(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """An input for a run of it, with defaults; InputError says what does not fit."""
        return checked_input(self.name, self.input, values)

    @property
    def run_tags(self) -> dict[str, str]:
        """What its runs are found by: its tags, if they are an object."""
        return self.tags if isinstance(self.tags, dict) else {}

    @cached_property
    def graph(self) -> Graph:
        """What runs. It came from elsewhere: only registered handlers, and jobs of allowed modules, run for it."""
        source = Source(self.digest, self.input)
        return Graph([self._spec(node) for node in self.nodes], source=source)

    def node(self, name: str) -> Node | None:
        return next((each for each in self.nodes if each.id == name), None)

    def _spec(self, node: Node) -> NodeSpec:
        """A node of the graph. What the document does not say is said by the handler."""
        handler: Handler | None = self.handlers.get(node.handler) if ":" not in node.handler else None
        retry = node.retry
        if retry is None and handler is not None and node.on_lost == "rerun":
            retry = handler.retry
        timeout = node.timeout or (DEFAULT_TIMEOUT if handler is None else handler.timeout)
        return NodeSpec(
            NodeId(node.id),
            node.name or node.id,
            tuple(map(NodeId, node.dependencies)),
            job=node.handler,
            args=_in_order(node.config),
            needs=self._needs[node.id],
            retry=retry,
            timeout=float(timeout),
            on_lost=node.on_lost,
            body="loop" if handler is not None and handler.is_async else "thread",
            queue=node.queue,
            side_effects=node.side_effects or ("opaque" if handler is None else handler.side_effects),
            templated=True,
        )


def _copied(data: Any, problems: Collected) -> Any:
    """A copy, so that nobody can change what was checked; what is no JSON is told as every other problem."""
    try:
        return decode(encode(dict(data) if isinstance(data, Mapping) else data))
    except NotJson as error:
        problems.found.append(((), Problem(error.path, error.message)))
        return {}


def _in_order(value: Any) -> Any:
    """The same with sorted keys, as it comes back from a store: what is made of a config must not depend on who has read it."""
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(each) for each in value] if isinstance(value, list) else value


def _unreadable(source: str, error: Unreadable) -> DocumentError:
    return DocumentError(source, [Problem("$", error.message, error.line, error.column)])


def _placed(problems: Collected, read: Read) -> list[Problem]:
    """The problems with their lines and columns, in the order of the file."""
    marks = read.marks()
    placed = []
    for path, problem in problems.found:
        line, column = marks.at(path)
        placed.append(problem._replace(line=line, column=column))
    return sorted(placed, key=lambda each: (each.line, each.column))


def _nodes(data: dict[str, Any], problems: Collected) -> list[Node]:
    given = data.get("nodes")
    if "nodes" not in data or given == []:
        problems.add(("nodes",) if "nodes" in data else (), "it has no nodes: at least one is needed", expected="nodes")
        return []
    if not isinstance(given, list):
        advice = ": write a list of objects, each with its id" if isinstance(given, dict) else ""
        problems.add(("nodes",), f"a list of nodes is needed{advice}", found=given, expected="a list of nodes")
        return []
    if len(given) > MAX_NODES:
        problems.add(("nodes",), f"it has {len(given):,} nodes; at most {MAX_NODES:,} are allowed")
        return []
    read = (read_node(each, place, problems) for place, each in enumerate(given))
    found = [node for node in read if node is not None]
    edges = sum(len(node.dependencies) for node in found)
    if edges > MAX_EDGES:
        problems.add(("nodes",), f"it has {edges:,} dependencies; at most {MAX_EDGES:,} are allowed")
        return []
    return found


def _name(data: dict[str, Any], problems: Collected) -> str:
    if "name" not in data:
        problems.add((), "a document needs its name", expected="name")
        return ""
    name = data["name"]
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME or not name.isprintable() or "@" in name:
        problems.needed(("name",), f"a name of 1 to {MAX_NAME} printable characters without @", name)
        return ""
    return name


def _choice(data: dict[str, Any], field: str, choices: tuple[str, ...], default: str, problems: Collected) -> Any:
    value = data.get(field, default)
    if value not in choices:
        problems.needed((field,), f"one of {', '.join(choices)}", value)
        return default
    return value


def _description(data: dict[str, Any], problems: Collected) -> str | None:
    value = data.get("description")
    if "description" in data and (not isinstance(value, str) or len(value) > MAX_DESCRIPTION):
        problems.needed(("description",), f"a text of at most {MAX_DESCRIPTION:,} characters", value)
        return None
    return value


def _timeout(data: dict[str, Any], problems: Collected) -> float | None:
    value: Any = data.get("timeout")
    if "timeout" not in data:
        return None
    if not is_seconds(value, positive=True):
        problems.needed(("timeout",), POSITIVE_SECONDS_NEEDED, value)
        return None
    return float(value)


def _tags(data: dict[str, Any], problems: Collected) -> tuple[str, ...] | dict[str, str]:
    value = data.get("tags", [])
    if isinstance(value, dict) and len(value) <= MAX_TAGS and all(map(_is_tag, (*value, *value.values()))):
        return value
    if not isinstance(value, list) or not all(map(_is_tag, value)):
        expected = f"a list of texts, or an object of at most {MAX_TAGS} texts, each of at most {MAX_TAG} characters,"
        problems.needed(("tags",), expected, value)
        return ()
    return tuple(dict.fromkeys(value))


def _triggers(data: dict[str, Any], name: str, problems: Collected) -> tuple[Trigger, ...]:
    if "triggers" not in data:
        return ()
    from ...triggers.definition import read_declared

    return read_declared(
        data["triggers"], name or "?", name, lambda path, message: problems.add(("triggers", *path), message)
    )


def _is_tag(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != "" and len(value) <= MAX_TAG and value.isprintable()


__all__ = ["FIELDS", "MODES", "Document", "DocumentError", "Path", "Problem", "json_path"]
