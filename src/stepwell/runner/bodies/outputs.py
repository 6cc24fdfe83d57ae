"""`ctx.outputs`: what the ancestors of a node returned."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...codec import decode
from ...graph import NodeSpec
from ...kernel.folding import ancestors, in_order
from ...model.outputs import output_of
from .held import Held
from .visible_state import ReadOutputs


class Outputs(Mapping[str, Any]):
    """The outputs of a node's ancestors, read on demand, by node name or id.

    Other nodes are not visible: whether one had finished would depend on timing.
    """

    @abstractmethod
    def all(self) -> dict[str, Any]:
        """The outputs of all ancestors by node id, in one read."""

    def some(self, names: Iterable[str]) -> dict[str, Any]:
        """The outputs of these ancestors, by the names given."""
        return {name: self[name] for name in names}

    def __iter__(self) -> Iterator[str]:
        return iter(self.all())

    def __len__(self) -> int:
        return len(self.all())


class StoredOutputs(Outputs):
    """Outputs read from the store, each once."""

    def __init__(self, held: Held, read: ReadOutputs) -> None:
        self._held = held
        self._read = read
        self._known: dict[int, Any] = {index: decode(output_of(output)) for index, output in held.inputs}
        self._ancestors: dict[str, int] | None = None

    def __getitem__(self, name: str) -> Any:
        index = self._index(name)
        if index not in self._known:
            self._fetch((index,))
        return self._known[index]

    def __iter__(self) -> Iterator[str]:
        graph = self._held.facts.graph
        return iter([graph.order[index] for index in self._in_order()])

    def __len__(self) -> int:
        return len(set(self._by_name().values()))

    def all(self) -> dict[str, Any]:
        indexes = self._in_order()
        self._fetch(indexes)
        graph = self._held.facts.graph
        return {graph.order[index]: self._known[index] for index in indexes}

    def some(self, names: Iterable[str]) -> dict[str, Any]:
        indexes = {name: self._index(name) for name in names}
        unknown = tuple(index for index in indexes.values() if index not in self._known)
        if unknown:
            self._fetch(unknown)
        return {name: self._known[index] for name, index in indexes.items()}

    def _fetch(self, indexes: tuple[int, ...]) -> None:
        found = self._read(self._held.facts.run_id, indexes)
        for index in indexes:
            self._known[index] = decode(output_of(found[index].output)) if index in found else None

    def _index(self, name: str) -> int:
        index = self._by_name().get(name)
        if index is None:
            raise KeyError(
                f"{name!r} is not an ancestor of node {self._held.spec.name!r}: add it to depends_on, "
                f"directly or through another node, to use its output"
            )
        return index

    def _in_order(self) -> tuple[int, ...]:
        return in_order(self._held.facts.graph, set(self._by_name().values()))

    def _by_name(self) -> dict[str, int]:
        """Ancestors by id and by name, without names that several of them have."""
        if self._ancestors is None:
            facts = self._held.facts
            above = ancestors(facts.graph, self._held.index)
            # Today's code asks for renamed nodes by their new names.
            self._ancestors = {} if facts.specs is facts.graph.in_order else _by_name(facts.specs, above)
            self._ancestors |= _by_name(facts.graph.in_order, above)
        return self._ancestors


def _by_name(specs: Sequence[NodeSpec], indexes: Sequence[int]) -> dict[str, int]:
    named: dict[str, list[int]] = {}
    for index in indexes:
        named.setdefault(specs[index].name, []).append(index)
    return {name: found[0] for name, found in named.items() if len(found) == 1} | {
        specs[index].id: index for index in indexes
    }
