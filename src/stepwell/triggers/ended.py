"""Runs that ended: what triggers of `run_finished` follow."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..clock import SECOND
from ..codec import decode
from ..ids import RunId
from ..model import GetOutputs, ListEnded, NodeStatus, RunRow, RunStatus
from ..model.outputs import output_of
from ..store import Store, reader
from .definition import Trigger
from .kinds import RunFinished
from .state import State

LOOK_BACK = 30 * SECOND
"""How much later than its time the end of a run may become visible."""
KEEP_EVERY = 3_600 * SECOND
"""How often a mark is stored at least, so that a new process has little to read."""


class EndedRun(NamedTuple):
    store: Store
    row: RunRow

    @property
    def at(self) -> int:
        assert self.row.ended_at is not None
        return self.row.ended_at

    @property
    def told(self) -> tuple[str, int]:
        return self.row.id, self.at

    def start_id(self, trigger: str) -> str:
        """The id of the run that follows this end of a run; one that is retried may end again."""
        told = hashlib.sha256(f"{self.row.id}\0{self.at}".encode()).hexdigest()[:32]
        return f"{trigger}:after-{told}"

    def names(self, trigger: Trigger) -> dict[str, Any]:
        """What templates may name of it. Outputs are read only if one does."""
        row = self.row
        made = {"id": row.id, "workflow": row.workflow, "status": row.status.value, "input": decode(row.input)}
        if trigger.reads("run", "outputs"):
            made["outputs"] = _outputs(self.store, row.id)
        return made


def _outputs(store: Store, run_id: RunId) -> dict[str, Any]:
    """The outputs of the nodes that completed, by id."""
    names = {node.index: node.id for node in reader.all_nodes(store, run_id, NodeStatus.COMPLETED)}
    found = reader.rows(store, GetOutputs(run_id))
    return {names[index]: decode(output_of(completion.output)) for index, completion in found}


class EndedRuns:
    """The runs of a store that ended, each once for each trigger, as far as this process goes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looked: dict[str, int] = {}
        """By trigger: runs that ended up to this time were handled, except those seen late."""
        self._seen: dict[str, set[tuple[str, int]]] = {}

    def since(self, trigger: str, state: State, when: RunFinished) -> Iterator[EndedRun]:
        """Runs that ended later than the mark, or shortly before: a commit may be seen later than one that came after it."""
        now = self._store.now()
        first = max(state.since, max(state.mark, self._looked.get(trigger, 0)) - LOOK_BACK)
        seen = self._seen.setdefault(trigger, set())
        statuses = tuple(map(RunStatus, when.statuses))
        self._looked[trigger] = now
        for row in reader.rows(self._store, ListEnded(first, when.workflow, statuses)):
            ended = EndedRun(self._store, row)
            if ended.told not in seen:
                seen.add(ended.told)
                yield ended
        oldest = self._looked[trigger] - LOOK_BACK
        self._seen[trigger] = {each for each in seen if each[1] >= oldest}

    def hold(self, trigger: str, ended: EndedRun) -> None:
        """Handle this run, and those that ended later, again."""
        self._seen[trigger].discard(ended.told)
        self._looked[trigger] = min(self._looked[trigger], ended.at)

    def mark(self, trigger: str, mark: int, *, changed: bool) -> int:
        """The mark that should be stored: a later one if something is stored anyway, or if it has become old."""
        looked = self._looked[trigger]
        return max(mark, looked) if changed or looked > mark + KEEP_EVERY else mark
