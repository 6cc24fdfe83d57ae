"""What a replay needs of a run: its completed attempts, what they were given, asked and returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..codec import decode
from ..errors import RunNotFound
from ..graph import Graph
from ..ids import Digest, RunId
from ..kernel.audit import earlier_graphs, fold
from ..model import (
    AttemptRow,
    AttemptStatus,
    GetRun,
    JournalRow,
    LineRow,
    ListAttempts,
    ListJournal,
    ListLines,
    RunRow,
    RunStatus,
)
from ..model.lines import EFFECT, PAYLOAD
from ..store import Store, reader
from .record import Effect, effects_of

_ALL = 2**40

LoadGraph = Callable[[Digest], Graph]


class RecordedNode(NamedTuple):
    """A completed attempt."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which no record needs
    run_id: RunId
    """The run it was done in: of a node that a fork shares, that of its origin."""
    input: bytes
    """The input that run had."""
    graph: Graph
    """The graph that run had when the attempt began."""
    attempt: int
    generation: int
    output: bytes
    effects: tuple[Effect, ...]
    stub: str | None = None
    """Why it cannot be run again, if that is so."""


class Recorded(NamedTuple):
    """A run as it was recorded, as far as a replay needs it."""

    run_id: RunId
    workflow: str
    target: str | None
    status: RunStatus
    graph: Graph
    input: bytes
    seed: int
    nodes: tuple[RecordedNode, ...]
    """In order."""


def read_recorded(store: Store, run_id: str, load: LoadGraph) -> Recorded:
    """What is recorded of a run, read at one moment; `load` gives a stored graph."""
    row = reader.require_run(store, run_id)
    found = _Reading(store, row, load)
    row, graph = found.row, load(found.row.digest)
    nodes = sorted(found.nodes(None), key=lambda node: (graph.ranks[node.index], node.index))
    return Recorded(row.id, row.workflow, row.target, row.status, graph, row.input, row.seed, tuple(nodes))


class _Reading:
    """One run, read at one moment."""

    def __init__(self, store: Store, row: RunRow, load: LoadGraph) -> None:
        self._store = store
        self._load = load
        self._journal: tuple[JournalRow, ...] = ()
        queries = (
            GetRun(row.id),
            ListAttempts(row.id, limit=_ALL),
            ListLines(row.id, kind=EFFECT, limit=_ALL),
            ListLines(row.id, kind=PAYLOAD, limit=_ALL),
        )
        found: list[Any] = store.read(queries)
        if found[0] is not None and _moved(found[0]):
            *found, self._journal = store.read([*queries, ListJournal(row.id, limit=_ALL)])
        run, attempts, effects, payloads = found
        if run is None:
            raise RunNotFound(row.id)
        self.row: RunRow = run
        self._attempts: tuple[AttemptRow, ...] = attempts
        self._lines: tuple[LineRow, ...] = (*payloads, *effects)

    def nodes(self, seq: int | None) -> list[RecordedNode]:
        """The completed attempts, now or as they were at a `seq`."""
        effects = self._effects()
        completed = self._completed(seq)
        graphs, shared = self._graphs()
        present = self._load(self.row.digest)
        origins = self._origin_nodes() if shared else {}
        found: list[RecordedNode] = []
        generations: dict[int, int] = {}
        for attempt in self._attempts:
            place = (attempt.index, attempt.number)
            if place in completed:
                if place in shared:
                    found.append(origins.get(attempt.index) or self._stub(attempt))
                else:
                    generation = generations.get(attempt.index, 0)
                    found.append(self._node(attempt, graphs.get(place, present), generation, effects.get(place, ())))
            if attempt.status is AttemptStatus.SUPERSEDED:
                generations[attempt.index] = generations.get(attempt.index, 0) + 1
        return found

    def _node(self, row: AttemptRow, graph: Graph, generation: int, effects: Iterable[Effect]) -> RecordedNode:
        assert row.output is not None, "a completed attempt has an output"
        run = self.row
        return RecordedNode(row.index, run.id, run.input, graph, row.number, generation, row.output, tuple(effects))

    def _stub(self, row: AttemptRow) -> RecordedNode:
        graph = self._load(self.row.digest)
        return self._node(row, graph, 0, ())._replace(stub="shared with a run that was deleted")

    def _completed(self, seq: int | None) -> set[tuple[int, int]]:
        if seq is None:
            return {(row.index, row.number) for row in self._attempts if row.status is AttemptStatus.COMPLETED}
        history = reader.list_journal(self._store, self.row.id)[:seq]
        digests = [Digest(digest) for digest in earlier_graphs(history)]
        graphs: dict[str, Graph] = {digest: self._load(digest) for digest in digests}
        last = graphs[digests[-1]] if digests else self._first_graph()
        folded = fold(last, history, graphs)
        return {place for place, status in folded.attempts.items() if status is AttemptStatus.COMPLETED}

    def _first_graph(self) -> Graph:
        digests = earlier_graphs(self._journal)
        return self._load(Digest(digests[0]) if digests else self.row.digest)

    def _effects(self) -> Mapping[tuple[int, int], list[Effect]]:
        found: dict[tuple[int, int], list[Effect]] = {}
        if not self._lines:
            return found
        graph = self._load(self.row.digest)
        by_node: dict[int, list[LineRow]] = {}
        for line in self._lines:
            by_node.setdefault(line.node, []).append(line)
        for index, lines in by_node.items():  # node by node: two nodes of different versions may have one id
            for effect in effects_of(lines, {index: graph.order[index]}):
                found.setdefault((index, effect.attempt), []).append(effect)
        return found

    def _graphs(self) -> tuple[Mapping[tuple[int, int], Graph], set[tuple[int, int]]]:
        """The graph under which each attempt began, where there were several, and the attempts that a fork shares."""
        digests = [Digest(digest) for digest in earlier_graphs(self._journal)] or [self.row.digest]
        graphs: dict[tuple[int, int], Graph] = {}
        shared: set[tuple[int, int]] = set()
        heals = 0
        for entry in self._journal:
            heals += entry.kind == "healed"
            if entry.index is not None and entry.kind == "claimed":
                graphs[entry.index, entry.attempt or 1] = self._load(digests[heals])
            elif entry.index is not None and entry.kind == "shared":
                shared.add((entry.index, 1))
        return graphs, shared

    def _origin_nodes(self) -> Mapping[int, RecordedNode]:
        """What the origin of a fork had done, by index; nothing when it was deleted."""
        assert self.row.fork is not None
        arguments: dict[str, Any] = decode(self.row.fork)
        row = reader.get_run(self._store, arguments["origin"])
        if row is None:
            return {}
        return {node.index: node for node in _Reading(self._store, row, self._load).nodes(arguments["seq"])}


def _moved(row: RunRow) -> bool:
    """Its attempts may have begun under other graphs, or in another run."""
    return row.heals > 0 or row.fork is not None
