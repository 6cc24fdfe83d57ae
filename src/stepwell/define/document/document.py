"""`Document`: a workflow as data, completely checked, with a canonical form and a graph."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from ...base.codec import decode, encode, encode_checked, sha256
from ...base.forms.problems import Problem, Problems, TooManyProblems
from ...base.ids import NodeId
from ...core.graph import Graph, NodeSpec
from ...core.graph.document import DocumentSource
from ...errors import DocumentError, NotJson
from ...handlers import Handler, Handlers
from ...handlers.definition import DEFAULT_TIMEOUT
from ..options import OnFailure
from .inputs import checked_input
from .problems import Unreadable
from .text import Form, ParsedText, read_document, read_text

if TYPE_CHECKING:
    from ...triggers import Trigger
    from .forms import DocumentForm, PlainNode

MAX_NODES = 100_000
MAX_EDGES = 1_000_000
IS_PIPELINE = "this is a pipeline: `stepwell pipeline` looks after it, and nothing can be started of it by name"


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
        from ...base.forms.reading import read_form
        from .checking import check_nodes
        from .forms import DocumentForm

        if isinstance(data, dict) and data.get("mode") == "pipeline":
            problems.add(("mode",), IS_PIPELINE, found="pipeline")
            return
        form = read_form(DocumentForm, data, problems)
        if form is None:
            return
        self._form = form
        self.name: str = form.name
        self.description: str | None = form.description
        self.on_failure: OnFailure = form.on_failure
        self.deadline: float | None = form.deadline
        self.tags: list[str] | dict[str, str] = form.tags
        self.input: dict[str, Any] | None = form.input
        self.triggers: tuple[Trigger, ...] = _triggers(form, problems)
        self.nodes: tuple[PlainNode, ...] = tuple(_nodes(form.nodes, problems))
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
        fields = self._form.written_fields | {"nodes": [node.canonical for node in self.nodes]}
        if self.triggers:
            from ...triggers.definition import declared_form

            fields["triggers"] = [declared_form(trigger) for trigger in self.triggers]
        return fields

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

    def node(self, name: str) -> PlainNode | None:
        return next((each for each in self.nodes if each.id == name), None)

    def _spec(self, node: PlainNode) -> NodeSpec:
        """A node of the graph. The handler has defaults for what the document leaves out."""
        from .forms import HANDLER_OPTIONS

        handler: Handler | None = self.handlers.get(node.handler) if ":" not in node.handler else None
        options: dict[str, Any] = {"timeout": DEFAULT_TIMEOUT}
        if handler is not None:
            options = {
                option.name: option.of_code(getattr(handler, option.name)) for option in HANDLER_OPTIONS.values()
            }
        written = node.options
        if written.get("on_lost") == "interrupt":
            options.pop("retry", None)
        return NodeSpec(
            NodeId(node.id),
            node.name or node.id,
            tuple(map(NodeId, node.dependencies)),
            job=node.handler,
            args=_in_order(node.config),
            needs=self._needs[node.id],
            body="loop" if handler is not None and handler.is_async else "thread",
            templated=True,
            **{**options, **written},
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


def _nodes(items: list[Any], problems: Problems) -> list[PlainNode]:
    """The nodes, with defaults for wrong fields, so that the rest can be checked."""
    from ...base.forms.reading import read_form
    from .forms import NodeForm

    if len(items) > MAX_NODES:
        problems.add(("nodes",), f"it has {len(items):,} nodes; at most {MAX_NODES:,} are allowed")
        return []
    nodes: list[PlainNode] = []
    for place, item in enumerate(items):
        node = read_form(NodeForm, item, problems, ("nodes", place))
        if node is not None:
            node.read_from(item, place)
            nodes.append(node)
    edges = sum(len(node.dependencies) for node in nodes)
    if edges > MAX_EDGES:
        problems.add(("nodes",), f"it has {edges:,} dependencies; at most {MAX_EDGES:,} are allowed")
        return []
    return nodes


def _triggers(form: DocumentForm, problems: Problems) -> tuple[Trigger, ...]:
    if not form.triggers:
        return ()
    from ...triggers.definition import read_declared

    return read_declared(
        form.triggers, form.name or "?", form.name, lambda path, message: problems.add(("triggers", *path), message)
    )
