"""Where READY nodes may be: in runs that this worker knows, by pool, and in the workflows that it serves.

A pool is a kind of body; "!" marks nodes that must not be claimed ahead of a free slot. A pool is drained when a claim got
less than it asked for, until something says that there may be more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from ...base.ids import RunId
from ...core.model import Lane
from ..bodies.held import RunFacts
from ..bodies.run_queue import RunQueue
from .backpressure import KINDS, Pressure
from .batches import ClaimScope, Window, windows

POOLS = {kind: (f"{kind}!", kind) for kind in KINDS}
"""The pools of each kind of body. The careful one comes first: if the other were claimed ahead first, no slot would ever be
free for it."""
CAREFUL = frozenset(careful for careful, _ in POOLS.values())


class ReadyPools:
    """Where one worker has to look for READY nodes."""

    def __init__(self, queues: frozenset[str] | None, pressure: Pressure) -> None:
        self.queues = queues
        """The queues it takes nodes from; None means all."""
        self.by_pool = {pool: RunQueue() for pools in POOLS.values() for pool in pools}
        """The runs that may have READY nodes, by pool."""
        self.pools: set[str] = set()
        """The pools that have such a run."""
        self.windows: deque[Window] = deque()
        """Windows of the served workflows that may have READY nodes."""
        self.contended: list[ClaimScope] = []
        """Claims that skipped runs because other workers had locked them."""
        self.pressure = pressure
        """Told which runs wait, once there was any back-pressure."""
        self._in_flight = False
        self._meanwhile: set[RunId] = set()
        """Runs added after the batch in flight was sent: its answer does not show that they are drained."""
        self._withdrawn: set[str] = set()
        """Kinds of bodies that this worker can no longer run."""
        self._lanes: dict[frozenset[Lane], dict[str, tuple[Lane, ...]]] = {}

    def add(self, facts: RunFacts) -> None:
        """Note that this run may have READY nodes in any of its pools."""
        for pool in self.lanes_by_pool(facts.graph.lanes):
            self.by_pool[pool].add(facts.place)
            self.pools.add(pool)
            if self.pressure.ever:
                self.pressure.entered(pool.rstrip("!"), facts.run_id)
        if self._in_flight:
            self._meanwhile.add(facts.run_id)

    def forget(self, run: RunId) -> None:
        for pool in [*self.pools]:
            self._discard(pool, run)

    def withdraw(self, kind: str) -> None:
        """Stop looking for nodes with this kind of body."""
        self._withdrawn.add(kind)
        self._lanes.clear()
        for pool in POOLS[kind]:
            for run in [*self.by_pool[pool]]:
                self._discard(pool, run)

    def sent(self) -> None:
        """A batch was sent. Its answer will say nothing about runs that are added from now on."""
        self._in_flight = True
        self._meanwhile.clear()

    def answered(self) -> None:
        """The batch in flight was answered, or failed."""
        self._in_flight = False

    def serve(self, serves: Mapping[tuple[str, str], frozenset[Lane]]) -> None:
        """Note that runs of these workflows may have READY nodes."""
        self.windows = deque(windows(serves, self.lanes_by_pool))

    def drained(self, pool: str, asked: ClaimScope) -> None:
        """A claim got less than it asked for: this pool has no more READY nodes of these runs, or in this window."""
        if pool in self.pools or self.pressure.ever:
            for run in asked.runs:
                if run not in self._meanwhile:
                    self._discard(pool, run)
        if asked.window is not None:
            asked.window.pools.discard(pool)
            if not asked.window.pools and asked.window in self.windows:
                self.windows.remove(asked.window)

    def _discard(self, pool: str, run: RunId) -> None:
        waiting = self.by_pool[pool]
        waiting.discard(run)
        if not waiting:
            self.pools.discard(pool)
        if self.pressure.ever:
            kind = pool.rstrip("!")
            if not any(run in self.by_pool[each] for each in POOLS[kind]):
                self.pressure.left(kind, run)

    def lanes_of(self, pool: str, graphs: set[frozenset[Lane]]) -> Sequence[Lane]:
        """The lanes of these graphs that belong to a pool."""
        if len(graphs) == 1:
            (only,) = graphs
            return self.lanes_by_pool(only).get(pool, ())
        return sorted({lane for lanes in graphs for lane in self.lanes_by_pool(lanes).get(pool, ())})

    def lanes_by_pool(self, lanes: frozenset[Lane]) -> dict[str, tuple[Lane, ...]]:
        """The lanes of a graph by pool, without those in queues or for bodies that this worker does not take."""
        found = self._lanes.get(lanes)
        if found is None:
            found = {}
            for lane in sorted(lanes):
                pool = f"{lane.body}!" if lane.careful else lane.body
                if (self.queues is None or lane.queue in self.queues) and lane.body not in self._withdrawn:
                    found[pool] = (*found.get(pool, ()), lane)
            self._lanes[lanes] = found
        return found

    def suspect_lanes(self, graphs: Iterable[frozenset[Lane]]) -> tuple[Lane, ...]:
        """The lanes of these graphs for suspects: nodes that may have killed their workers."""
        own = {lane for lanes in set(graphs) for found in self.lanes_by_pool(lanes).values() for lane in found}
        return tuple(sorted(lane._replace(suspect=True) for lane in own))
