"""What people see of a stored graph: names, jobs and edges, read from its document without making every node of it."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from ...base.codec import sha256
from ...base.ids import Digest, NodeId
from .document import DocumentSource, node_from_document
from .graph import Graph
from .order import topological
from .spec import NodeSpec

_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


class Outline:
    """A stored graph in columns, in the order of declaration. It takes a fraction of the time and memory of a `Graph`.

    The nodes of the document are read one after another; `nodes` makes those that are asked for.

    >>> outline = Outline(Graph([NodeSpec("a", "first"), NodeSpec("b", "b", depends_on=("a",))]).document.decode())
    >>> outline.names, outline.parents, outline.levels
    (['first', 'b'], [(), (0,)], [0, 1])
    >>> outline.nodes["b"].depends_on
    ('a',)
    """

    def __init__(self, text: str) -> None:
        """The document as text, which is half of what a large graph takes in memory."""
        self._text = text
        self._starts = array("q")
        """Where each node begins in the text."""
        self.ids: list[NodeId] = []
        self.names: list[str] = []
        self.jobs: list[str | None] = []
        self._lists: dict[tuple[str, ...], int] = {}
        self.list_of: list[int] = []
        """Which of the `lists` of parents each node has: members of a fan-out have the same."""
        form = self._read()
        self.source = DocumentSource.read(form.get("source"))
        self._pinned: bool | None = form.get("pinned")
        """None unless the run has had other versions of the graph."""
        removed: list[Any] = form.get("removed", [])
        self._removed = {index: node_from_document(node) for index, node in removed}
        self.removed = frozenset(self._removed)
        """As `Graph` has them: the numbers of nodes that only earlier versions of the graph had."""

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """By id."""
        return {node: place for place, node in enumerate(self.ids)}

    @cached_property
    def nodes(self) -> Mapping[str, NodeSpec]:
        return _NodesById(self)

    @cached_property
    def lists(self) -> list[tuple[int, ...]]:
        """Each list of parents that some node has, as places."""
        return [tuple(map(self.places.__getitem__, own)) for own in self._lists]

    @property
    def parents(self) -> list[tuple[int, ...]]:
        """The places of the parents."""
        return [self.lists[number] for number in self.list_of]

    @property
    def last(self) -> list[NodeId]:
        """The ids of the nodes that nothing depends on."""
        depended_on = {place for own in self.lists for place in own}
        return [node for place, node in enumerate(self.ids) if place not in depended_on]

    @cached_property
    def levels(self) -> list[int]:
        return topological(self.parents)[1]

    @cached_property
    def follows(self) -> Digest | None:
        """As `Graph` has it."""
        if self._pinned is None:
            return Digest(sha256(self._text.encode()))
        return None if self._pinned else Graph.load(self._text.encode()).follows

    def name(self, node: str) -> str:
        """The name of a node; an id that is not there is its own name."""
        place = self.places.get(node)
        return node if place is None else self.names[place]

    def former(self, index: int) -> str:
        """The name of a removed node."""
        return self._removed[index].name

    def alike(self, name: str) -> int:
        """How many nodes have this name."""
        return self.names.count(name)

    def spec(self, place: int) -> NodeSpec:
        return node_from_document(_scan(self._text, self._starts[place])[0])

    def _read(self) -> dict[str, Any]:
        """Fill the columns, and return what else the document has. Its text is canonical: there is no space in it."""
        text, form = self._text, dict[str, Any]()
        if text[0] == "[":
            self._read_nodes(0)
            return form
        at = 0
        while text[at] != "}":
            key, at = _scan(text, at + 1)
            if key == "nodes":
                at = self._read_nodes(at + 1)
            else:
                form[key], at = _scan(text, at + 1)
        return form

    def _read_nodes(self, at: int) -> int:
        """Read the list that begins there, and return where it ends."""
        text, jobs, lists = self._text, dict[str, str](), self._lists
        starts, ids, names, parents = self._starts.append, self.ids.append, self.names.append, self.list_of.append
        while text[at] != "]":
            starts(at + 1)
            node, at = _scan(text, at + 1)
            name, job = node["id"], node.get("job")
            ids(name)
            names(node.get("name", name))
            self.jobs.append(None if job is None else jobs.setdefault(job, job))
            parents(lists.setdefault(tuple(node.get("depends_on", ())), len(lists)))
        return at + 1


class _NodesById(Mapping[str, NodeSpec]):
    """Nodes by id; each is made when it is asked for."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline

    def __getitem__(self, node: str) -> NodeSpec:
        return self._outline.spec(self._outline.places[node])

    def __iter__(self) -> Iterator[str]:
        return iter(self._outline.ids)

    def __len__(self) -> int:
        return len(self._outline)
