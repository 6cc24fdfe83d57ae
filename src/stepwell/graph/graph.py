"""The compiled, immutable form of a workflow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

from ..codec import encode_checked, sha256
from ..errors import GraphError
from ..ids import Digest, NodeId
from .check import inspect
from .document import from_document, to_document
from .order import Ordered, ordered
from .spec import NodeSpec


class Graph:
    """Nodes and what they depend on, checked and put in order; nothing in it can change.

    `order` lists the node ids by (level, order key, id); the place of a node in it is the integer stores use for it.

    >>> graph = Graph([NodeSpec("a", "a"), NodeSpec("b", "b", depends_on=("a",))])
    >>> graph.nodes["b"].depends_on, graph.dependents("a"), graph.level("b")
    (('a',), ('b',), 1)
    """

    def __init__(self, specs: Sequence[NodeSpec], *, where: str | None = None) -> None:
        self._inspected = inspect(specs)
        if self._inspected.problems:
            raise GraphError(self._inspected.problems, where=where)
        self._specs = tuple(specs)
        self.nodes: Mapping[str, NodeSpec] = MappingProxyType({spec.id: spec for spec in self._specs})

    @classmethod
    def load(cls, document: bytes) -> Graph:
        """The graph whose `document` this is."""
        return cls(from_document(document))

    def __len__(self) -> int:
        return len(self._specs)

    def __iter__(self) -> Iterator[NodeSpec]:
        """The nodes in the order of declaration."""
        return iter(self._specs)

    def __repr__(self) -> str:
        return f"<Graph of {len(self)} nodes, {self.digest[:12]}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def document(self) -> bytes:
        """The canonical bytes of the graph: what is stored."""
        return to_document(self._specs)

    @cached_property
    def digest(self) -> Digest:
        """What tells this graph from every other."""
        return Digest(sha256(self.document))

    @cached_property
    def signature(self) -> str:
        """The shape in names only, for people: options do not change it."""
        names = {spec.id: spec.name for spec in self._specs}
        shape = sorted([spec.name, sorted(names[p] for p in spec.depends_on)] for spec in self._specs)
        return sha256(encode_checked(shape))

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
        found = []
        for position in self._ordered.positions:
            own = inspected[position]
            if id(own) not in shared:
                shared[id(own)] = tuple(places[parent] for parent in own)
            found.append(shared[id(own)])
        return tuple(found)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """By place in the order: the places of the children."""
        found: list[list[int]] = [[] for _ in self._specs]
        for child, parents in enumerate(self.parents):
            for parent in parents:
                found[parent].append(child)
        return tuple(map(tuple, found))

    @cached_property
    def lanes(self) -> frozenset[str]:
        """Every line that READY nodes of this graph may stand in."""
        return frozenset(spec.lane for spec in self._specs)

    def dependents(self, node: str) -> tuple[NodeId, ...]:
        return tuple(self.order[child] for child in self.children[self.index[node]])

    def level(self, node: str) -> int:
        return self._ordered.levels[self.index[node]]

    def order_key(self, node: str) -> int:
        return self._ordered.order_keys[self.index[node]]

    def path_hash(self, node: str) -> str:
        return self._ordered.path_hashes[self.index[node]].hex()

    @cached_property
    def _ordered(self) -> Ordered:
        return ordered(self._specs, self._inspected.parents, self._inspected.sequence, self._inspected.levels)
