"""The child runs of a worker's attempts: what their bodies hand over, and the runs it then works on."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Protocol

from ...base.ids import RunId
from ...core.kernel.children import MAX_DEPTH, child_id, child_seed
from ...core.kernel.layout import add_graph
from ...core.model import Create, Op, RunRow, Settle
from ...core.store import Store, reader
from ...define import Definition, Performer
from ...errors import InputError, NotStored
from ..bodies.handing import handed_over
from ..bodies.held import Held, RunFacts
from ..scheduling.batches import Submission
from ..scheduling.outbox import failed_instead
from ..scheduling.scheduler import Scheduler


class ChildPort(Protocol):
    """How an engine starts a workflow."""

    def definition(self, workflow: Performer) -> Definition:
        """What to run, remembered as everything that is started here."""

    def create(
        self, definition: Definition, run_id: RunId, *, seed: int, priority: int, tags: Mapping[str, str]
    ) -> Create:
        """The op that creates a run of it."""

    def facts(self, definition: Definition, create: Create) -> RunFacts:
        """What a worker must know of the run."""


class Children:
    def __init__(self, store: Store, scheduler: Scheduler, lock: threading.Lock, port: ChildPort) -> None:
        self._store, self._scheduler, self._port = store, scheduler, port
        self._lock = lock
        """The lock of the scheduler."""

    def hand_over(self, held: Held, workflow: Performer) -> Settle:
        """The node of an attempt is performed by a run of this workflow. Its graph is committed before the settlement."""
        row = reader.require_run(self._store, held.facts.run_id)
        if row.depth >= MAX_DEPTH:
            raise InputError(self._too_deep(held, row))
        definition = self._port.definition(workflow)
        facts, graph = held.facts, held.facts.graph
        node = graph.order[held.index]
        create = self._port.create(
            definition,
            child_id(row.id, row.depth, node, held.number),
            seed=child_seed(facts.seed, graph.identity(held.index)),
            priority=row.priority,
            tags=dict(row.tags),
        )
        create = create._replace(parent=row.id, parent_node=held.index, depth=row.depth + 1)
        held.child = self._port.facts(definition, create)
        self._store_graph(held.child)
        return handed_over(held, create)

    def again(self, held: Held, settlement: Settle) -> Settle:
        """What to commit after the store has refused it: the same with the graph, which was collected meanwhile; if that is
        refused, too, the attempt has failed."""
        assert held.child is not None
        if held.refused:
            return failed_instead(held, settlement, NotStored(f"run {held.child.run_id} could not be created"))
        held.refused = True
        self._store_graph(held.child)
        return settlement

    def _store_graph(self, facts: RunFacts) -> None:
        """With the next commit, or as much before it as is too much for one."""
        chunks: list[Op] = [*add_graph(facts.graph, facts.workflow, chunk=self._store.limits.nodes)]
        for chunk in chunks[:-1]:
            self._store.commit([chunk])
        with self._lock:
            self._scheduler.submit(Submission(chunks[-1:]))

    def _too_deep(self, held: Held, row: RunRow) -> str:
        chain = [row.workflow]
        while row.parent is not None and len(chain) <= MAX_DEPTH:
            row = reader.require_run(self._store, row.parent)
            chain.append(row.workflow)
        named = " > ".join(reversed(chain))
        return (
            f"node {held.spec.name!r} cannot be performed by another run: {MAX_DEPTH} runs are above it already ({named}). "
            "Does a workflow start itself without end?"
        )
