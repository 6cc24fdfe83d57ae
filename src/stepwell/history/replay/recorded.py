"""What a replay needs of a run: its completed attempts with inputs, effects and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ...base.codec import decode, encode
from ...base.ids import Digest, RunId
from ...core.graph import Graph
from ...core.kernel.audit import earlier_graphs, fold
from ...core.model import (
    CONDITION,
    AttemptRow,
    AttemptStatus,
    JournalRow,
    LineRow,
    NodeStatus,
    Query,
    RunRow,
    RunStatus,
    queries,
)
from ...core.model.lines import EFFECT, PAYLOAD
from ...core.model.origin import is_origin, origin_of
from ...core.store import Store, reader
from ...core.store.reader import whole_at_one_moment
from ...errors import RunNotFound
from ..effects.record import Effect, effects_by_attempt

LoadGraph = Callable[[Digest], Graph]
NOTHING = encode(None)
Given = tuple[tuple[int, bytes], ...]
"""Outputs by index."""


class RecordedNode(NamedTuple):
    """A completed attempt, or one that found that the condition of its node does not hold."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which no record needs
    run_id: RunId
    """The run that did it: the origin, for a node that a fork shares."""
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
    given: Given = ()
    """Outputs of its ancestors that it was given, by index, where the run has other ones now."""
    skipped: bool = False
    """Its condition did not hold, so it has no output."""


class RecordedRun(NamedTuple):
    """A recorded run."""

    run_id: RunId
    workflow: str
    target: str | None
    status: RunStatus
    graph: Graph
    input: bytes
    seed: int
    nodes: tuple[RecordedNode, ...]
    """In order."""


def read_recorded(store: Store, run_id: str, load: LoadGraph) -> RecordedRun:
    """Read what is recorded of a run, at one moment; `load` gives a stored graph."""
    row = reader.require_run(store, run_id)
    reading = _RunReading(store, row.id, load)
    row, graph = reading.row, load(reading.row.digest)
    nodes = sorted(reading.nodes(None), key=lambda node: (graph.ranks[node.index], node.index))
    return RecordedRun(row.id, row.workflow, row.target, row.status, graph, row.input, row.seed, tuple(nodes))


class _Began(NamedTuple):
    """How attempts began, by (index, number), from the journal."""

    graphs: Mapping[tuple[int, int], Graph]
    """The graph that the run had then; empty if it has had only one."""
    seqs: Mapping[tuple[int, int], int]
    shared: set[tuple[int, int]]
    """Those that a fork shares."""


class _RunReading:
    """One run, read at one moment."""

    def __init__(self, store: Store, run_id: RunId, load: LoadGraph, *, with_journal: bool = False) -> None:
        self._store = store
        self._load = load
        self._journal: tuple[JournalRow, ...] = ()
        lines = (queries.ListLines(run_id, kind=kind) for kind in (PAYLOAD, EFFECT))
        skipped = queries.ListNodes(run_id, statuses=(NodeStatus.SKIPPED,))
        wanted_rows: list[Query] = [queries.ListAttempts(run_id), *lines, skipped]
        results = [] if with_journal else whole_at_one_moment(store, run_id, *wanted_rows)
        # The attempts of a run that healed, or of a fork, may have begun with other graphs or in another run.
        if not results or results[0].heals > 0 or results[0].fork is not None:
            *results, self._journal = whole_at_one_moment(store, run_id, *wanted_rows, queries.ListJournal(run_id))
        self.row: RunRow = results[0]
        self._attempts: tuple[AttemptRow, ...] = results[1]
        self._lines: tuple[LineRow, ...] = (*results[2], *results[3])
        self._skipped = {(node.index, node.attempt) for node in results[4] if node.reason == CONDITION and node.attempt}

    def nodes(self, seq: int | None) -> list[RecordedNode]:
        """The completed attempts, now or as they were at a `seq`."""
        effects = effects_by_attempt(self._lines, self._load(self.row.digest).order)
        completed = self._completed(seq)
        began = self._began()
        superseded = Superseded(self._attempts, self._journal)
        origins = self._origin_nodes() if began.shared else {}
        nodes: list[RecordedNode] = []
        generations: dict[int, int] = {}
        handed: dict[int, str] = {}
        for attempt in self._attempts:
            place = (attempt.index, attempt.number)
            if attempt.status is AttemptStatus.PARKED and attempt.output is not None:
                handed[attempt.index] = f"performed by run {decode(attempt.output)['run']}"
            if seq is None and place in self._skipped:
                recorded = effects.get(place, ())
                skipped = self._node(
                    attempt._replace(output=NOTHING), began, generations.get(attempt.index, 0), recorded
                )
                given = superseded.above(skipped.graph, skipped.index, began.seqs.get(place, 0))
                nodes.append(skipped._replace(skipped=True, given=given))
            if place in completed:
                node = self._node(attempt, began, generations.get(attempt.index, 0), effects.get(place, ()))
                if place in began.shared:
                    node = _shared(node, origins.get(node.index))
                outputs_then = dict(superseded.above(node.graph, node.index, began.seqs.get(place, 0))) | dict(
                    node.given
                )
                node = node._replace(stub=handed[attempt.index]) if attempt.index in handed else node
                nodes.append(node._replace(given=tuple(sorted(outputs_then.items()))) if outputs_then else node)
            if attempt.status is AttemptStatus.SUPERSEDED:
                handed.pop(attempt.index, None)
                generations[attempt.index] = generations.get(attempt.index, 0) + 1
        return nodes

    def _node(self, row: AttemptRow, began: _Began, generation: int, effects: Iterable[Effect]) -> RecordedNode:
        assert row.output is not None, "a completed attempt has an output"
        run = self.row
        graph = began.graphs.get((row.index, row.number))
        graph = self._load(run.digest) if graph is None else graph
        return RecordedNode(row.index, run.id, run.input, graph, row.number, generation, row.output, tuple(effects))

    def _completed(self, seq: int | None) -> set[tuple[int, int]]:
        if seq is None:
            return {(row.index, row.number) for row in self._attempts if row.status is AttemptStatus.COMPLETED}
        history = self._journal[:seq]
        digests = [Digest(digest) for digest in earlier_graphs(history)]
        graphs: dict[str, Graph] = {digest: self._load(digest) for digest in digests}
        later = earlier_graphs(self._journal)
        last = graphs[digests[-1]] if digests else self._load(Digest(later[0]) if later else self.row.digest)
        folded = fold(last, history, graphs)
        return {place for place, status in folded.attempts.items() if status is AttemptStatus.COMPLETED}

    def _began(self) -> _Began:
        digests = [Digest(digest) for digest in earlier_graphs(self._journal)] or [self.row.digest]
        graphs: dict[tuple[int, int], Graph] = {}
        seqs: dict[tuple[int, int], int] = {}
        shared: dict[tuple[int, int], int] = {}
        heals = 0
        for entry in self._journal:
            heals += entry.kind == "healed"
            if entry.index is not None and entry.kind == "claimed":
                place = (entry.index, entry.attempt or 1)
                graphs[place], seqs[place] = self._load(digests[heals]), entry.seq
            elif entry.index is not None and entry.kind == "shared":
                shared[entry.index, 1] = entry.seq
        # For a fork, all that it shares was done before it began.
        seqs.update(dict.fromkeys(shared, max(shared.values(), default=0)))
        return _Began(graphs, seqs, set(shared))

    def _origin_nodes(self) -> Mapping[int, RecordedNode]:
        """What the origin of a fork had done, by index; empty if the origin was deleted, even if its id is used again."""
        origin = origin_of(self.row)
        assert origin is not None
        try:
            reading = _RunReading(self._store, origin.run_id, self._load, with_journal=True)
        except RunNotFound:
            return {}
        if reading.row.purpose == "delete" or not is_origin(reading.row, self.row):
            return {}
        return {node.index: node for node in reading.nodes(origin.seq)}


class _Span(NamedTuple):
    since: int
    until: int
    output: bytes


class Superseded:
    """The superseded outputs of a run, each from the `seq` that added it to the `seq` that superseded it.

    What completed below a node is superseded with it. But if a heal has separated the two, only the node runs again, and what
    the other was given is no longer the output of the run.
    """

    def __init__(self, attempts: Iterable[AttemptRow], journal: Iterable[JournalRow]) -> None:
        self._spans: dict[int, list[_Span]] = {}
        outputs = {
            (row.index, row.number): row.output
            for row in attempts
            if row.status is AttemptStatus.SUPERSEDED and row.output is not None
        }
        if outputs:
            self._read(outputs, journal)

    def _read(self, outputs: dict[tuple[int, int], bytes], journal: Iterable[JournalRow]) -> None:
        counted: dict[int, tuple[int, int]] = {}
        for entry in journal:
            if entry.index is None:
                continue
            if entry.kind in ("completed", "shared"):
                counted[entry.index] = entry.seq, entry.attempt or 1
            elif entry.kind in ("woken", "rewrote") and entry.index in counted:
                since, number = counted.pop(entry.index)
                output = outputs.get((entry.index, number))
                if output is not None:
                    self._spans.setdefault(entry.index, []).append(_Span(since, entry.seq, output))

    def above(self, graph: Graph, index: int, seq: int) -> Given:
        """The outputs above a node that counted at `seq` and no longer do."""
        then = [
            (place, span.output)
            for place, spans in sorted(self._spans.items())
            for span in spans
            if span.since <= seq < span.until
        ]
        return tuple((place, output) for place, output in then if graph.ancestry.is_ancestor(place, index))


def _shared(own: RecordedNode, theirs: RecordedNode | None) -> RecordedNode:
    """A node that a fork shares: its output is in the fork, the rest in the origin."""
    if theirs is None:
        return own._replace(effects=(), stub="shared with a run that was deleted")
    effects = tuple(effect._replace(attempt=theirs.attempt) for effect in own.effects)
    return theirs._replace(output=own.output, effects=effects)
