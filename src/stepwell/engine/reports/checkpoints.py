"""Reads what checkpoints are derived from, at one moment, and derives them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...base.clock import SECOND
from ...base.codec import decode, encode_checked
from ...base.ids import Digest, RunId
from ...core.graph import Graph
from ...core.kernel.audit import ENDED_BY, Folded, earlier_graphs, folding
from ...core.kernel.folding import FoldStep, start
from ...core.model import AttemptRow, AttemptStatus, JournalRow, LineRow, Query, RunRow, queries
from ...core.model.lines import CHECKPOINT, EFFECT, KEY_BEGINS, PAYLOAD
from ...core.model.outputs import delta_of
from ...core.store import Store
from ...core.store.reader import whole_at_one_moment
from ...define import Bodies, StateType
from ...errors import DefinitionError, InputError, StateError
from ...history.effects.record import Effect, effects_by_attempt
from ...history.replay.checkpoint import Checkpoint, FrontierHistory, Frontiers, Label, joined_key
from ..bodies.visible_state import final_state, fold_steps, step_of
from ..recent import Recent

AHEAD = 256
"""Deltas that are folded again for each new one. Nodes complete roughly in order, so a new one seldom belongs far back."""


class StateHistory:
    """The state so far as canonical JSON; only what an entry touches is folded again.

    Deltas are folded in the order of the graph, not of completion. So the state before the last few is kept, and the rest is
    folded onto it.
    """

    def __init__(
        self, run_id: RunId, graph: Graph, state: StateType | None, attempts: Iterable[AttemptRow], folded: Folded
    ) -> None:
        self._run_id = run_id
        self._graph = graph
        self._state = state
        self._outputs = {(row.index, row.number): row.output for row in attempts if row.output is not None}
        self._places: list[tuple[int, int]] = []
        self._steps: list[FoldStep] = []
        self._forget_base()
        self._text: bytes | None = None
        for (index, number), status in folded.attempts.items():
            if status is AttemptStatus.COMPLETED:
                self._add(index, number)

    def follow(self, entry: JournalRow, folded: Folded) -> None:
        """A node has at most one delta, that of its completed attempt; a node that is to run again has none."""
        if entry.index is None or entry.kind == "claimed":
            return
        self._drop(entry.index)
        number = entry.attempt or 1
        if folded.attempts.get((entry.index, number)) is AttemptStatus.COMPLETED:
            self._add(entry.index, number)

    def text(self) -> bytes:
        if self._text is None:
            self._text = encode_checked(None if self._state is None else self._values(self._state))
        return self._text

    def _add(self, index: int, number: int) -> None:
        output = self._outputs.get((index, number))
        step = None if output is None or self._state is None else step_of(self._graph, index, output)
        if step is None or index in self._graph.removed:
            return
        place = self._graph.ranks[index], index
        at = bisect_left(self._places, place)
        self._places.insert(at, place)
        self._steps.insert(at, step)
        self._changed(at)

    def _drop(self, index: int) -> None:
        place = self._graph.ranks[index], index
        at = bisect_left(self._places, place)
        if at < len(self._places) and self._places[at] == place:
            del self._places[at], self._steps[at]
            self._changed(at)

    def _changed(self, at: int) -> None:
        self._text = None
        if at < self._folded:
            self._forget_base()

    def _forget_base(self) -> None:
        self._base: Mapping[str, Any] = {} if self._state is None else start(self._state.channels)
        self._folded = 0

    def _values(self, state: StateType) -> Mapping[str, Any]:
        try:
            if len(self._steps) - self._folded > 2 * AHEAD:
                until = len(self._steps) - AHEAD
                self._base = fold_steps(self._run_id, state, self._base, self._steps[self._folded : until])
                self._folded = until
            return fold_steps(self._run_id, state, self._base, self._steps[self._folded :])
        except StateError:  # a field may be invalid for a while: only the whole fold counts
            self._forget_base()
            return fold_steps(self._run_id, state, self._base, self._steps)


_COMPLETING = ("completed", "shared")

LoadGraph = Callable[[Digest], Graph]
FindBodies = Callable[[RunRow], Bodies]
KnownKeys = Recent[str, int]
"""The steps of checkpoints by their keys, as far as they are known; each is checked before it is used."""


def labels(store: Store, run_id: RunId, load: LoadGraph) -> list[Label]:
    """The labelled checkpoints of a run, in order."""
    run, lines = whole_at_one_moment(store, run_id, queries.ListLines(run_id, kind=CHECKPOINT))
    if not lines:
        return []
    nodes = tuple(sorted({line.node for line in lines}))
    completing = queries.ListJournal(run_id, kinds=_COMPLETING, indexes=nodes)
    _, entries, heals = whole_at_one_moment(store, run_id, completing, queries.ListJournal(run_id, kinds=("healed",)))
    # A heal between the two reads changes no earlier entry.
    graphs = _graphs(heals, run, load)
    return _labels(lines, sorted((*entries, *heals), key=lambda entry: entry.seq), graphs)


def checkpoint(
    store: Store, run_id: RunId, load: LoadGraph, bodies: FindBodies, at: int | str | None, known: KnownKeys
) -> Checkpoint:
    """The checkpoint of a run now, at a `seq`, at a label, or with an idempotency key."""
    history = _RunAtCheckpoints(store, run_id, load, bodies)
    if isinstance(at, str) and at.startswith(KEY_BEGINS):
        return history.with_key(at, known)
    if isinstance(at, str):
        return history.at(history.step_of(at))
    step = history.run.seq if at is None else at
    check_number(history.run, step)
    return history.at(step)


def check_number(run: RunRow, step: object) -> None:
    """InputError unless it is the number of an entry of the journal."""
    if type(step) is not int or not 1 <= step <= run.seq:
        raise InputError(f"run {run.id} has no checkpoint {step!r}; there are 1 to {run.seq}")


class _RunAtCheckpoints:
    """All that happened in a run."""

    def __init__(self, store: Store, run_id: RunId, load: LoadGraph, bodies: FindBodies) -> None:
        lines = (queries.ListLines(run_id, kind=kind) for kind in (PAYLOAD, EFFECT, CHECKPOINT))
        asked: list[Query] = [queries.ListAttempts(run_id), queries.ListJournal(run_id), *lines]
        found = whole_at_one_moment(store, run_id, *asked)
        self.run: RunRow = found[0]
        self._attempts: tuple[AttemptRow, ...] = found[1]
        self._journal: tuple[JournalRow, ...] = found[2]
        self._lines: tuple[LineRow, ...] = (*found[3], *found[4])
        self._graphs = _graphs(self._journal, self.run, load)
        self._labels = _labels(found[5], self._journal, self._graphs)
        self._state = self._found_state(bodies)

    def step_of(self, label: str) -> int:
        found = [each.step for each in self._labels if each.label == label]
        if not found:
            known = ", ".join(dict.fromkeys(each.label for each in self._labels)) or "none"
            raise InputError(f"run {self.run.id} has no checkpoint {label!r}; there are labels: {known}")
        return found[-1]

    def at(self, step: int) -> Checkpoint:
        for entry, graph, folded in self._walk():
            if entry.seq == step:
                state, frontier = self._state_of(graph, folded), Frontiers(graph).of(folded)
                label = next((each.label for each in reversed(self._labels) if each.step == step), None)
                return Checkpoint.of(self.run, entry, state, frontier, tuple(self._effects(step, graph)), label)
        raise InputError(f"the journal of run {self.run.id} ends before {step}")

    def with_key(self, key: str, known: KnownKeys) -> Checkpoint:
        """Searched from the beginning, because keys are not stored; those found on the way are remembered."""
        step = known.get(key)
        if step is not None and step <= self.run.seq:
            found = self.at(step)
            if found.idempotency_key == key:
                return found
        return self.at(self._step_with(key, known))

    def _step_with(self, key: str, known: KnownKeys) -> int:
        states: StateHistory | None = None
        frontier: FrontierHistory | None = None
        for entry, graph, folded in self._walk():
            if states is None or entry.kind == "healed":
                states = StateHistory(self.run.id, graph, self._state, self._attempts, folded)
            else:
                states.follow(entry, folded)
            if frontier is None or entry.kind in ("healed", "run"):  # when a gate opens, any node may have become READY
                frontier = FrontierHistory(graph, folded)
            else:
                frontier.follow(entry, folded)
            found = joined_key(self.run.id, entry.seq, frontier.items, states.text())
            known[found] = entry.seq
            if found == key:
                return entry.seq
        raise InputError(f"no checkpoint of run {self.run.id} has the idempotency key {key}")

    def _walk(self) -> Iterator[tuple[JournalRow, Graph, Folded]]:
        graphs = iter(self._graphs)
        graph = next(graphs)
        told = folding(self._graphs, self._journal)
        next(told)
        for entry, folded in zip(self._journal, told, strict=True):
            if entry.kind == "healed":
                graph = next(graphs)
            yield entry, graph, folded

    def _effects(self, step: int, graph: Graph) -> list[Effect]:
        """The effects of the attempts that had ended, with the names and in the order of that time."""
        ended = {
            (entry.index, entry.attempt)
            for entry in self._journal[:step]
            if entry.kind in ENDED_BY or entry.kind == "shared"
        }
        found = effects_by_attempt([row for row in self._lines if (row.node, row.number) in ended], graph.order)
        places = sorted(found, key=lambda place: (graph.ranks[place[0]], graph.order[place[0]], place))
        return [effect for place in places for effect in found[place]]

    def _found_state(self, bodies: FindBodies) -> StateType | None:
        """The type of the state. Its code may be missing if there is nothing to fold."""
        try:
            return bodies(self.run).state
        except DefinitionError:
            if any(row.output is not None and delta_of(row.output) is not None for row in self._attempts):
                raise
            return None

    def _state_of(self, graph: Graph, folded: Folded) -> dict[str, Any] | None:
        if self._state is None:
            return None
        outputs: Mapping[int, bytes] = {
            row.index: row.output
            for row in self._attempts
            if row.output is not None and folded.attempts.get((row.index, row.number)) is AttemptStatus.COMPLETED
        }
        return final_state(self.run.id, graph, self._state, outputs)


def _graphs(journal: Iterable[JournalRow], run: RunRow, load: LoadGraph) -> list[Graph]:
    """The graphs of a run so far, in order."""
    return [load(Digest(digest)) for digest in earlier_graphs(journal) or [run.digest]]


def _labels(lines: Iterable[LineRow], journal: Iterable[JournalRow], graphs: list[Graph]) -> list[Label]:
    """A label names the entry with which its attempt completed. Attempts that did not complete name nothing."""
    given: dict[tuple[int | None, int | None], list[str]] = {}
    for line in lines:
        given.setdefault((line.node, line.number), []).append(decode(line.data))
    found: list[Label] = []
    heals = 0
    for entry in journal:
        heals += entry.kind == "healed"
        if entry.kind in _COMPLETING and entry.index is not None:
            named = given.get((entry.index, entry.attempt), ())
            node = graphs[heals].order[entry.index] if named else ""
            found += [Label(label, entry.seq, entry.at / SECOND, node, entry.attempt or 1) for label in named]
    return found
