"""The compiled, immutable form of a workflow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

from ...base.codec import decode, encode_checked, sha256, sha256_of_each
from ...base.ids import Digest, NodeId
from ...errors import GraphError
from ..model.lanes import Lane
from .ancestry import Ancestry, Dominators
from .branching import may_be_skipped
from .check import inspect
from .document import DocumentSource, node_document, node_from_document, nodes_from_document, to_document
from .order import Ordered, ordered
from .spec import NodeSpec

_NO_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType({})
_FOUND_OUT = (
    "_ordered",
    "_places",
    "order",
    "index",
    "parents",
    "children",
    "lanes",
    "ranks",
    "named",
    "ancestry",
    "signature",
)
"""Cached properties that are equal for all graphs with the same digest."""


class Graph:
    """Nodes and what they depend on, checked and put in order; nothing in it can change.

    `order` lists the node ids by (level, order key, id); the place of a node in it is the integer stores use for it.

    >>> graph = Graph([NodeSpec("a", "a"), NodeSpec("b", "b", depends_on=("a",))])
    >>> graph.nodes["b"].depends_on, graph.dependents("a"), graph.level("b")
    (('a',), ('b',), 1)
    """

    def __init__(
        self,
        specs: Sequence[NodeSpec],
        *,
        where: str | None = None,
        state: str | None = None,
        source: DocumentSource | None = None,
    ) -> None:
        self._inspected = inspect(specs)
        if self._inspected.problems:
            raise GraphError(self._inspected.problems, where=where)
        self._specs = tuple(specs)
        self.state = state
        """`package.module:Class` of the typed state of a dynamic workflow. A class-based one has its own in its class."""
        self.source = source
        """The document it came from; None when a program wrote it."""
        self.nodes: Mapping[str, NodeSpec] = MappingProxyType({spec.id: spec for spec in self._specs})
        self.trusted = source is None
        """Whether all its jobs were named by the user's own code. If not, only registered jobs may run."""
        self.removed: frozenset[int] = frozenset()
        """The numbers of nodes that only earlier versions of the graph had."""
        self.former_names: Mapping[str, tuple[str, ...]] = _NO_NAMES
        """The ids that renamed nodes had before, oldest first."""

    @staticmethod
    def load(document: bytes, digest: Digest | None = None) -> Graph:
        """The graph of a stored document. If `digest` is its digest, neither is computed again."""
        graph = Graph._read(decode(document))
        if digest is not None and sha256(document) == digest:
            graph.__dict__.update(document=document, digest=digest)  # where cached properties are stored
        return graph

    @staticmethod
    def _read(document: Any) -> Graph:
        if isinstance(document, dict) and "numbering" in document:
            return Arranged.read(document)
        form: dict[str, Any] = {"nodes": document} if isinstance(document, list) else document
        nodes = nodes_from_document(form["nodes"])
        return Graph(nodes, state=form.get("state"), source=DocumentSource.read(form.get("source")))

    def __len__(self) -> int:
        return len(self._specs)

    def __iter__(self) -> Iterator[NodeSpec]:
        """The nodes in the order of declaration."""
        return iter(self._specs)

    def __repr__(self) -> str:
        return f"<Graph of {len(self)} nodes, {self.digest[:12]}>"

    def _repr_svg_(self) -> str | None:
        """For notebooks; None for a graph that is too large to read."""
        from .svg import to_svg

        return to_svg(self) if len(self) <= 200 else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def document(self) -> bytes:
        """The canonical bytes of the graph: what is stored."""
        return to_document(self._specs, self.state, self.source)

    def drop_document(self) -> None:
        """Make the document again when it is asked for: that of a million nodes has 100 MB."""
        self.__dict__.pop("document", None)

    @cached_property
    def digest(self) -> Digest:
        """Identifies this graph."""
        return Digest(sha256(self.document))

    @cached_property
    def signature(self) -> str:
        """The shape in names only, for people: options do not change it."""
        nodes = self.nodes
        parents: dict[int, list[str]] = {}  # members of a fan-out share one tuple
        for spec in self._specs:
            if id(spec.depends_on) not in parents:
                parents[id(spec.depends_on)] = sorted(nodes[parent].name for parent in spec.depends_on)
        return sha256_of_each(sorted((spec.name, parents[id(spec.depends_on)]) for spec in self._specs))

    def take_over(self, same: Graph) -> None:
        """Take over what was computed for an equal graph. The nodes are not shared: they may hold other functions."""
        if type(self) is type(same) and self.digest == same.digest:
            self.__dict__.update({name: same.__dict__[name] for name in _FOUND_OUT if name in same.__dict__})

    @property
    def follows(self) -> Digest | None:
        """The digest of the definition that a run with this graph keeps up with; None when it is pinned."""
        return self.digest

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """By number: the place in the order. They are equal unless the run has had other versions of the graph."""
        return tuple(range(len(self._specs)))

    def identity(self, index: int) -> str:
        """The first id of a node, which identifies it forever."""
        node = self.order[index]
        return self.former_names.get(node, (node,))[0]

    @cached_property
    def order(self) -> tuple[NodeId, ...]:
        return tuple(self._specs[position].id for position in self._ordered.positions)

    @cached_property
    def in_order(self) -> tuple[NodeSpec, ...]:
        """The nodes by (level, order key, id); the index in this tuple is the integer that stores use for the node."""
        return tuple(self._specs[position] for position in self._ordered.positions)

    @cached_property
    def index(self) -> Mapping[str, int]:
        return {node: place for place, node in enumerate(self.order)}

    @cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """By place in the order: the places of the parents."""
        index, inspected = self.index, self._inspected.parents
        places = [index[spec.id] for spec in self._specs]
        shared: dict[int, tuple[int, ...]] = {}  # members of a fan-out share one tuple
        parents = []
        for position in self._ordered.positions:
            own = inspected[position]
            if id(own) not in shared:
                shared[id(own)] = tuple(places[parent] for parent in own)
            parents.append(shared[id(own)])
        return tuple(parents)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """By place in the order: the places of the children."""
        children: list[list[int]] = [[] for _ in self.order]
        for child, parents in enumerate(self.parents):
            for parent in parents:
                children[parent].append(child)
        shared: dict[tuple[int, ...], tuple[int, ...]] = {}  # what many nodes lead to is one tuple
        return tuple(shared.setdefault(own, own) for own in map(tuple, children))

    @cached_property
    def named(self) -> Mapping[str, Sequence[int]]:
        """The numbers of the nodes with each name."""
        return numbers_by_name(self.in_order)

    def alike(self, name: str) -> int:
        """How many nodes have this name, without those that were removed."""
        return len(set(self.named[name]) - self.removed)

    @cached_property
    def skippable(self) -> frozenset[int]:
        """The numbers of the nodes that may be skipped, by their own conditions or with their parents."""
        index = self.index
        positions = may_be_skipped(self._specs, *self.shape)
        return frozenset(index[self._specs[position].id] for position in positions)

    @property
    def shape(self) -> tuple[Sequence[Sequence[int]], Sequence[int]]:
        """By position in the declaration the positions of the parents, and all positions, parents first."""
        return self._inspected.parents, self._inspected.sequence

    @property
    def jobs(self) -> list[str | None]:
        """In the order of declaration."""
        return [spec.job for spec in self]

    @cached_property
    def ancestry(self) -> Ancestry:
        return Ancestry(self.parents, self.children, self.ranks)

    @cached_property
    def dominators(self) -> Dominators:
        return Dominators(self.parents, self.ranks, self.ancestry)

    @cached_property
    def last(self) -> tuple[int, ...]:
        """The numbers of the nodes that nothing depends on, in the order of declaration."""
        children = self.children
        return tuple(index for index in map(self.index.__getitem__, self.nodes) if not children[index])

    @cached_property
    def lanes(self) -> frozenset[Lane]:
        """Every lane that READY nodes of this graph may be in."""
        kinds = {(spec.queue, spec.body, spec.on_lost): spec for spec in self._specs}
        return frozenset(spec.lane for spec in kinds.values())

    def dependents(self, node: str) -> tuple[NodeId, ...]:
        return tuple(self.order[child] for child in self.children[self.index[node]])

    def level(self, node: str) -> int:
        return self._ordered.levels[self._places[node]]

    def order_key(self, node: str) -> int:
        return int.from_bytes(self._ordered.order_key(self._places[node]), "big")

    def path_hash(self, node: str) -> str:
        return self._ordered.path_hash(self._places[node]).hex()

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {self._specs[position].id: place for place, position in enumerate(self._ordered.positions)}

    @cached_property
    def _ordered(self) -> Ordered:
        return ordered(self._specs, self._inspected.parents, self._inspected.sequence, self._inspected.levels)


def numbers_by_name(specs: Iterable[NodeSpec]) -> dict[str, list[int]]:
    """The places of the nodes with each name."""
    named: dict[str, list[int]] = {}
    for place, spec in enumerate(specs):
        named.setdefault(spec.name, []).append(place)
    return named


class Arranged(Graph):
    """The graph of a run that has had other versions of it: every node keeps its first number.

    `order` lists all nodes by number, those that were removed included; what the other versions had is not in `nodes`.
    """

    def __init__(
        self,
        specs: Sequence[NodeSpec],
        numbering: Sequence[NodeId],
        removed: Mapping[int, NodeSpec],
        former_names: Mapping[str, tuple[str, ...]],
        *,
        pinned: bool,
        state: str | None = None,
        trusted: bool = True,
        source: DocumentSource | None = None,
    ) -> None:
        super().__init__(specs, state=state, source=source)
        self.trusted = trusted
        self._numbering = tuple(numbering)
        self._removed = dict(sorted(removed.items()))
        self.removed = frozenset(removed)
        self.former_names = {node: tuple(names) for node, names in sorted(former_names.items())}
        self.pinned = pinned

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Arranged:
        return cls(
            nodes_from_document(document["nodes"]),
            document["numbering"],
            {index: node_from_document(node) for index, node in document["removed"]},
            document["former_names"],
            pinned=document["pinned"],
            state=document.get("state"),
            trusted=document.get("trusted", True),
            source=DocumentSource.read(document.get("source")),
        )

    @cached_property
    def document(self) -> bytes:
        return encode_checked(
            {
                "nodes": [node_document(spec) for spec in self],
                "numbering": self._numbering,
                "removed": [[index, node_document(spec)] for index, spec in self._removed.items()],
                "former_names": self.former_names,
                "pinned": self.pinned,
                **({} if self.state is None else {"state": self.state}),
                **({} if self.trusted else {"trusted": False}),
                **({} if self.source is None else {"source": self.source.written()}),
            }
        )

    @cached_property
    def follows(self) -> Digest | None:
        return None if self.pinned else Digest(sha256(to_document(tuple(self), self.state, self.source)))

    @cached_property
    def order(self) -> tuple[NodeId, ...]:
        return self._numbering

    @cached_property
    def index(self) -> Mapping[str, int]:
        gone: dict[str, int] = {spec.id: index for index, spec in self._removed.items()}
        return gone | {node: index for index, node in enumerate(self._numbering) if index not in self._removed}

    @cached_property
    def in_order(self) -> tuple[NodeSpec, ...]:
        return tuple(self._removed.get(index) or self.nodes[node] for index, node in enumerate(self._numbering))

    @cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """A node that was removed waits for nothing, and nothing waits for it."""
        index = self.index
        return tuple(
            () if place in self._removed else tuple(index[parent] for parent in dict.fromkeys(spec.depends_on))
            for place, spec in enumerate(self.in_order)
        )

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        last, places = len(self._numbering), self._places
        return tuple(last if index in self._removed else places[node] for index, node in enumerate(self._numbering))
