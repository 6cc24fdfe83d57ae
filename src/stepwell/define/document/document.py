"""`Document`: a workflow as data, completely checked, with a canonical form and a graph."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, get_args

from ...base.codec import decode, encode, encode_checked, sha256
from ...base.forms.problems import Problem, Problems, TooManyProblems
from ...base.ids import NodeId
from ...core.graph import Graph, NodeSpec, is_name
from ...core.graph.document import DocumentSource
from ...errors import DocumentError, NotJson
from ...handlers import Handler, Handlers
from ...handlers.definition import DEFAULT_TIMEOUT
from ..options import OnFailure
from .checking import check_nodes
from .inputs import checked_input, read_schema
from .nodes import (
    HANDLER_OPTIONS,
    NAME_NEEDED,
    Node,
    Reader,
    canonical_node,
    description,
    needs,
    one_of,
    plain_number,
    read_node,
    seconds,
)
from .problems import Unreadable
from .text import Form, ParsedText, read_document, read_text

if TYPE_CHECKING:
    from ...triggers import Trigger

MAX_NODES = 100_000
MAX_EDGES = 1_000_000
MAX_TAGS = 20
MAX_TAG = 100
MODES = ("workflow", "pipeline")
IS_PIPELINE = "this is a pipeline: `stepwell pipeline` looks after it, and nothing can be started of it by name"
FIELDS = ("mode", "name", "description", "input", "on_failure", "deadline", "tags", "triggers", "nodes")
_NAME = needs(f"{NAME_NEEDED} without @", partial(is_name, without="@"))


class Document:
    """A workflow as data: JSON or YAML, completely checked when it is made.

        document = Document.load("summarise.yaml")
        run = engine.run(document, input={"url": "https://example.com"})

    A DocumentError lists every problem. Nothing that it names is imported or executed.
    """

    def __init__(
        self, data: Mapping[str, Any], handlers: Handlers | None = None, *, source: str = "the document"
    ) -> None:
        problems = Problems()
        with suppress(TooManyProblems):
            self._read(_copied(data, problems), Handlers() if handlers is None else handlers, problems)
        if problems:
            raise DocumentError(source, problems)
        self.source = source

    @classmethod
    def load(cls, path: str | os.PathLike[str], handlers: Handlers | None = None) -> Document:
        """The document in a file: JSON, or YAML if it is called .yaml or .yml. Without a name it has that of the file."""
        file = FilePath(path)
        read = read_document(file)
        if isinstance(read.data, dict) and file.name != "-":
            read = read._replace(data={"name": file.stem, **read.data})
        return cls._of(read, handlers, str(file))

    @classmethod
    def parse(
        cls,
        text: str | bytes,
        handlers: Handlers | None = None,
        *,
        form: Form | None = None,
        source: str = "the document",
    ) -> Document:
        """The document in a text."""
        try:
            read = read_text(text, form)
        except Unreadable as error:
            raise error.as_error(source) from None
        return cls._of(read, handlers, source)

    @classmethod
    def _of(cls, read: ParsedText, handlers: Handlers | None, source: str) -> Document:
        made = cls.__new__(cls)
        problems = Problems(read.repeated)
        with suppress(TooManyProblems):
            made._read(read.data, Handlers() if handlers is None else handlers, problems)
        if problems:
            raise DocumentError(source, problems.placed(read.marks()))
        made.source = source
        return made

    def _read(self, data: Any, handlers: Handlers, problems: Problems) -> None:
        if not isinstance(data, dict):
            problems.expected((), "an object with name and nodes", data)
            return

        def field(name: str, read: Reader, default: Any = None) -> Any:
            found = read(data[name], (name,), problems) if name in data else None
            return default if found is None else found

        self.mode: str = field("mode", one_of(MODES), "workflow")
        if self.mode == "pipeline":
            problems.add(("mode",), IS_PIPELINE, found="pipeline")
            return
        for key in data:
            if key not in FIELDS:
                problems.unknown((key,), f"a document has no field {key!r}", str(key), FIELDS)
        if "name" not in data:
            problems.add((), "a document needs its name", expected="name")
        self.name: str = field("name", _NAME, "")
        self.description: str | None = field("description", description)
        self.on_failure: OnFailure = field("on_failure", one_of(get_args(OnFailure)), "fail_fast")
        deadline = field("deadline", seconds)
        self.deadline: float | None = None if deadline is None else float(deadline)
        self.tags: tuple[str, ...] | dict[str, str] = _tags(data, problems)
        self.input: dict[str, Any] | None = field("input", read_schema)
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
        """Its content in canonical form: the names of documents, without defaults."""
        triggers = None
        if self.triggers:
            from ...triggers.definition import declared_form

            triggers = [declared_form(trigger) for trigger in self.triggers]
        tags = self.tags if isinstance(self.tags, dict) else list(self.tags)
        made = {
            "name": self.name,
            "description": self.description,
            "input": self.input,
            "on_failure": None if self.on_failure == "fail_fast" else self.on_failure,
            "deadline": None if self.deadline is None else plain_number(self.deadline),
            "tags": tags or None,
            "triggers": triggers,
            "nodes": [canonical_node(node) for node in self.nodes],
        }
        return {field: value for field, value in made.items() if value is not None}

    @cached_property
    def content(self) -> bytes:
        """Its canonical form as bytes, which are stored."""
        return encode_checked(self.canonical)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of its content."""
        return sha256(self.content)

    def checked_input(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The input of a run with defaults; InputError lists what does not fit."""
        return checked_input(self.name, self.input, values)

    @property
    def run_tags(self) -> dict[str, str]:
        """The tags of its runs: its own, if they are an object."""
        return self.tags if isinstance(self.tags, dict) else {}

    @cached_property
    def graph(self) -> Graph:
        """Its graph. It is untrusted: only registered handlers, and jobs of allowed modules, run for it."""
        source = DocumentSource(self.digest, self.input)
        return Graph([self._spec(node) for node in self.nodes], source=source)

    def node(self, name: str) -> Node | None:
        return next((each for each in self.nodes if each.id == name), None)

    def _spec(self, node: Node) -> NodeSpec:
        """A node of the graph. The handler has defaults for what the document leaves out."""
        handler: Handler | None = self.handlers.get(node.handler) if ":" not in node.handler else None
        defaults: dict[str, Any] = {"timeout": DEFAULT_TIMEOUT}
        if handler is not None:
            defaults = {
                option.name: option.of_code(getattr(handler, option.name)) for option in HANDLER_OPTIONS.values()
            }
            if node.options.get("on_lost") == "interrupt":
                del defaults["retry"]
        return NodeSpec(
            NodeId(node.id),
            node.name or node.id,
            tuple(map(NodeId, node.dependencies)),
            job=node.handler,
            args=_in_order(node.config),
            needs=self._needs[node.id],
            body="loop" if handler is not None and handler.is_async else "thread",
            templated=True,
            **{**defaults, **node.options},
        )


def _copied(data: Any, problems: Problems) -> Any:
    """A copy, so that nobody can change what was checked. What is not JSON is reported like any other problem."""
    try:
        return decode(encode(dict(data) if isinstance(data, Mapping) else data))
    except NotJson as error:
        problems.append(Problem(error.place, error.message))
        return {}


def _in_order(value: Any) -> Any:
    """The same with sorted keys, as it comes back from a store: results must not depend on where a config was read."""
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(each) for each in value] if isinstance(value, list) else value


def _nodes(data: dict[str, Any], problems: Problems) -> list[Node]:
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


def _tags(data: dict[str, Any], problems: Problems) -> tuple[str, ...] | dict[str, str]:
    value = data.get("tags", [])
    if isinstance(value, dict) and len(value) <= MAX_TAGS and all(map(_is_tag, (*value, *value.values()))):
        return value
    if not isinstance(value, list) or not all(map(_is_tag, value)):
        expected = f"a list of texts, or an object of at most {MAX_TAGS} texts, each of at most {MAX_TAG} characters,"
        problems.expected(("tags",), expected, value)
        return ()
    return tuple(dict.fromkeys(value))


def _triggers(data: dict[str, Any], name: str, problems: Problems) -> tuple[Trigger, ...]:
    if "triggers" not in data:
        return ()
    from ...triggers.definition import read_declared

    return read_declared(
        data["triggers"], name or "?", name, lambda path, message: problems.add(("triggers", *path), message)
    )


def _is_tag(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != "" and len(value) <= MAX_TAG and value.isprintable()
