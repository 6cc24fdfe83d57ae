"""Reads what checkpoints are derived from, at one moment, and derives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...clock import SECOND
from ...codec import decode
from ...define import Bodies, StateType
from ...errors import DefinitionError, InputError
from ...graph import Graph
from ...ids import Digest, RunId
from ...kernel.audit import ENDED_BY, Folded, earlier_graphs, folding
from ...model import AttemptRow, AttemptStatus, JournalRow, LineRow, Query, RunRow, queries
from ...model.lines import CHECKPOINT, EFFECT, KEY_BEGINS, PAYLOAD
from ...model.outputs import delta_of
from ...replay.effects.record import Effect, effects_by_attempt
from ...replay.history.checkpoint import Checkpoint, FrontierHistory, Frontiers, Label, joined_key
from ...store import Store
from ...store.reader import whole_at_one_moment
from ..bodies.visible_state import final_state
from ..recent import Recent
from .state_history import StateHistory

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
    history = _History(store, run_id, load, bodies)
    if isinstance(at, str) and at.startswith(KEY_BEGINS):
        return history.with_key(at, known)
    last = history.run.seq
    if isinstance(at, str):
        return history.at(history.step_of(at))
    step = last if at is None else at
    if type(step) is not int or not 1 <= step <= last:
        raise InputError(f"run {run_id} has no checkpoint {at!r}; there are 1 to {last}")
    return history.at(step)


class _History:
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
