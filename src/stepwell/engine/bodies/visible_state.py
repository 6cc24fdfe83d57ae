"""The state that the nodes of a run see, and its final state: read from the store, folded, and cached."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from ...base.codec import decode
from ...base.ids import RunId
from ...base.words import briefly
from ...core.graph import Graph
from ...core.kernel.folding import FoldStep, Unfoldable, ancestors, copied, fold, in_order, lineage, start
from ...core.model.outputs import Completion, delta_of
from ...define import StateType
from ...errors import StateError
from ..recent import Recent

ReadOutputs = Callable[[RunId, tuple[int, ...]], Mapping[int, Completion]]
"""Reads the completions of these nodes, all at one moment."""

REMEMBERED = 256
"""How many states of one run are cached, the latest ones used. Each may be large."""


class _SeenState(NamedTuple):
    """What one attempt of a node saw."""

    number: int
    values: Mapping[str, Any]


class VisibleState:
    """The states that nodes of one run have seen, as long as the run keeps its graph.

    What an attempt saw never changes: when an ancestor is attempted again, so is the node. So a cached state is valid while its
    attempt is the latest of the node.
    """

    def __init__(self, run_id: RunId, graph: Graph, state: StateType, read: ReadOutputs) -> None:
        self._run_id = run_id
        self._graph = graph
        self._state = state
        self._read = read
        self._known: Recent[int, _SeenState] = Recent(REMEMBERED)
        self._lock = threading.Lock()

    def by(self, index: int, number: int) -> Mapping[str, Any]:
        """The state folded from the ancestors of a node, for this attempt. It is cached, so nobody may change it."""
        with self._lock:
            known = self._known.get(index)
            if known is None or known.number != number:
                self._known.pop(index, None)
                self._find(index, number)
            return self._known[index].values

    def _find(self, index: int, number: int) -> None:
        base, before, dominator, after = lineage(self._graph, index, self._known)
        known = self._known.get(base)
        above = () if known is not None else ancestors(self._graph, base)
        stored = self._read(self._run_id, (*above, *before, *after))
        if known is None:
            values: Mapping[str, Any] = self._fold(start(self._state.channels), above, stored)
        elif base in stored and stored[base].number == known.number:
            values = known.values
        else:  # `base` was attempted again since, and so were all its descendants
            self._known.clear()
            self._find(index, number)
            return
        if after:
            self._keep(base, stored, values)
            if before:  # cache what the dominator saw, for what else is below it
                values = self._fold(values, before, stored)
                self._keep(dominator, stored, values)
            values = self._fold(values, after, stored)
        self._known[index] = _SeenState(number, values)

    def _keep(self, index: int, stored: Mapping[int, Completion], values: Mapping[str, Any]) -> None:
        """Cache what an ancestor saw, unless it was skipped: then it has no attempt."""
        if index in stored:
            self._known[index] = _SeenState(stored[index].number, values)

    def _fold(
        self, before: Mapping[str, Any], indexes: Iterable[int], stored: Mapping[int, Completion]
    ) -> dict[str, Any]:
        outputs = {index: found.output for index, found in stored.items()}
        return folded(self._run_id, self._graph, self._state, before, indexes, outputs)


def final_state(run_id: RunId, graph: Graph, state: StateType, stored: Mapping[int, bytes]) -> dict[str, Any]:
    """The state folded from all completed nodes, whose outputs are `stored`."""
    values = folded(run_id, graph, state, start(state.channels), in_order(graph, stored), stored)
    return {name: copied(value) for name, value in values.items()}  # copied, because the defaults are shared


def folded(
    run_id: RunId,
    graph: Graph,
    state: StateType,
    before: Mapping[str, Any],
    indexes: Iterable[int],
    stored: Mapping[int, bytes],
) -> dict[str, Any]:
    """The state after these nodes. Skipped ones have no output."""
    steps = [step for index in indexes if index in stored and (step := step_of(graph, index, stored[index]))]
    return fold_steps(run_id, state, before, steps)


def step_of(graph: Graph, index: int, output: bytes) -> FoldStep | None:
    """How a node changed the state; None if it did not."""
    delta = delta_of(output)
    return None if delta is None else FoldStep(graph.in_order[index].name, decode(delta))


def fold_steps(
    run_id: RunId, state: StateType, before: Mapping[str, Any], steps: Collection[FoldStep]
) -> dict[str, Any]:
    try:
        return fold(state.channels, before, steps)
    except Unfoldable as error:
        raise _explained(run_id, state, error) from error.__cause__


def _explained(run_id: RunId, state: StateType, error: Unfoldable) -> StateError:
    field = state.fields[error.field]
    advice = "give the field another reducer" if field.is_ours else "correct the reducer"
    cause = error.__cause__
    frames = traceback.extract_tb(cause.__traceback__)[1:] if cause is not None else []
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return StateError(
        f"the state of run {run_id} cannot be folded: the reducer of {state.name}.{error.field}, {field.reducer_name}, "
        f"{error.problem}{where}\n"
        f"  at the delta of node {error.node!r}: {error.field}={briefly(error.value)}\n"
        f"  {advice}, so that it takes every value that nodes return for the field, and `run.retry()`",
        field=error.field,
        node=error.node,
    )
