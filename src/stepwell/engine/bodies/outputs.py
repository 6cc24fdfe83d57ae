"""`ctx.outputs`: what the ancestors of a node returned."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from ...base.codec import decode
from ...core.kernel.folding import ancestors
from ...core.model.outputs import output_of
from .held import Held
from .visible_state import ReadOutputs


class Outputs(Mapping[str, Any]):
    """The outputs of a node's ancestors, read on demand, by node name or id.

    Other nodes are not visible: whether one had finished would depend on timing.
    """

    @abstractmethod
    def all(self) -> dict[str, Any]:
        """The outputs of all ancestors by node id, in one read. Nodes that were skipped have none."""

    @abstractmethod
    def parents(self) -> dict[str, Any]:
        """The outputs of the nodes that this one depends on, as declared, in one read: by name, or by id if names repeat.

        total = sum(ctx.outputs.parents().values())
        """

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
        self._skipped: set[int] = set()

    def __getitem__(self, name: str) -> Any:
        index = self._index(name)
        self._fetch((index,))
        if index in self._skipped:
            raise KeyError(f"node {name!r} was skipped and has no output: ctx.outputs.get({name!r}) gives None")
        return self._known[index]

    def __contains__(self, name: object) -> bool:
        index = self._find(name) if isinstance(name, str) else None
        return index is not None and bool(self._completed((index,)))

    def __iter__(self) -> Iterator[str]:
        graph = self._held.facts.graph
        return iter([graph.order[index] for index in self._completed(self._ancestors())])

    def __len__(self) -> int:
        return len(self._completed(self._ancestors()))

    def _completed(self, indexes: Iterable[int]) -> list[int]:
        """Without those that were skipped. Only what may have been skipped is read."""
        indexes, skippable = list(indexes), self._held.facts.graph.skippable
        self._fetch([index for index in indexes if index in skippable])
        return [index for index in indexes if index not in self._skipped]

    def all(self) -> dict[str, Any]:
        indexes = self._ancestors()
        self._fetch(indexes)
        graph = self._held.facts.graph
        return {graph.order[index]: self._known[index] for index in self._completed(indexes)}

    def parents(self) -> dict[str, Any]:
        facts = self._held.facts
        indexes = facts.graph.parents[self._held.index]
        self._fetch(indexes)
        indexes = tuple(self._completed(indexes))
        specs = [facts.specs[index] for index in indexes]
        unique = len({spec.name for spec in specs}) == len(specs)
        keys = [spec.name if unique else spec.id for spec in specs]
        return {key: self._known[index] for key, index in zip(keys, indexes, strict=True)}

    def some(self, names: Iterable[str]) -> dict[str, Any]:
        indexes = {name: self._index(name) for name in names}
        self._fetch(indexes.values())
        return {name: self._known[index] for name, index in indexes.items() if index not in self._skipped}

    def _fetch(self, indexes: Iterable[int]) -> None:
        unknown = tuple(index for index in indexes if index not in self._known and index not in self._skipped)
        if not unknown:
            return
        found = dict(self._read(self._held.facts.run_id, unknown))
        for index in unknown:
            completion = found.pop(index, None)  # so that no large output is there twice for long
            if completion is None and index in self._held.facts.graph.skippable:
                self._skipped.add(index)
                continue
            self._known[index] = None if completion is None else decode(output_of(completion.output))

    def _index(self, name: str) -> int:
        index = self._find(name)
        if index is None:
            raise KeyError(
                f"{name!r} is not an ancestor of node {self._held.spec.name!r}: add it to depends_on, "
                f"directly or through another node, to use its output"
            )
        return index

    def _find(self, name: str) -> int | None:
        """The ancestor with this id, or the only one with this name."""
        facts, own = self._held.facts, self._held.index
        is_ancestor = facts.graph.ancestry.is_ancestor
        for index, named in facts.lookups:
            if name in index and is_ancestor(index[name], own):
                return index[name]
            few = list(islice((each for each in named.get(name, ()) if is_ancestor(each, own)), 2))
            if len(few) == 1:
                return few[0]
        return None

    def _ancestors(self) -> tuple[int, ...]:
        return ancestors(self._held.facts.graph, self._held.index)
