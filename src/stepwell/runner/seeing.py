"""The state that the nodes of a run see, and the one it ends with: read from the store, folded, and remembered."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ..codec import decode
from ..define import StateType
from ..errors import StateError
from ..graph import Graph
from ..ids import RunId
from ..kernel.folding import Step, Unfoldable, ancestors, copied, fold, in_order, lineage, start
from ..model.outputs import delta_of
from ..words import briefly
from .recent import Recent

ReadOutputs = Callable[[RunId, tuple[int, ...]], Mapping[int, bytes]]

REMEMBERED = 256
"""States of one run: those that were looked at last. Each may be large."""


class Seen:
    """What nodes of one run have seen, as long as the run keeps its graph.

    What a node saw never changes once it has begun: nothing above a node that was attempted is attempted again.
    """

    def __init__(self, run_id: RunId, graph: Graph, state: StateType, read: ReadOutputs) -> None:
        self._run_id = run_id
        self._graph = graph
        self._state = state
        self._read = read
        self._known: Recent[int, Mapping[str, Any]] = Recent(REMEMBERED)
        self._lock = threading.Lock()

    def by(self, index: int) -> Mapping[str, Any]:
        """The fold of what is above a node. It is remembered, so nobody may change it."""
        with self._lock:
            known = self._known.get(index)
            return self._found(index) if known is None else known

    def _found(self, index: int) -> Mapping[str, Any]:
        base, below = lineage(self._graph, index, self._known)
        above = () if base in self._known else ancestors(self._graph, base)
        stored = self._read(self._run_id, (*above, *below))
        values = self._known.get(base)
        if values is None:
            values = self._known[base] = self._fold(start(self._state.channels), above, stored)
        if below:
            if len(below) > 1:  # what the parent saw, for its other children
                values = self._known[below[-1]] = self._fold(values, below[:-1], stored)
            values = self._known[index] = self._fold(values, below[-1:], stored)
        return values

    def _fold(self, before: Mapping[str, Any], indexes: Iterable[int], stored: Mapping[int, bytes]) -> dict[str, Any]:
        return folded(self._run_id, self._graph, self._state, before, indexes, stored)


def final_state(run_id: RunId, graph: Graph, state: StateType, stored: Mapping[int, bytes]) -> dict[str, Any]:
    """The fold over all nodes that have completed, of which these are the outputs."""
    values = folded(run_id, graph, state, start(state.channels), in_order(graph, stored), stored)
    return {name: copied(value) for name, value in values.items()}  # the defaults are everybody's


def folded(
    run_id: RunId,
    graph: Graph,
    state: StateType,
    before: Mapping[str, Any],
    indexes: Iterable[int],
    stored: Mapping[int, bytes],
) -> dict[str, Any]:
    """The state after these nodes; one that was skipped has no output."""
    steps = [step for index in indexes if index in stored and (step := step_of(graph, index, stored[index]))]
    return fold_steps(run_id, state, before, steps)


def step_of(graph: Graph, index: int, output: bytes) -> Step | None:
    """What a node did to the state; None if it left it alone."""
    delta = delta_of(output)
    return None if delta is None else Step(graph.in_order[index].name, decode(delta))


def fold_steps(run_id: RunId, state: StateType, before: Mapping[str, Any], steps: Collection[Step]) -> dict[str, Any]:
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
