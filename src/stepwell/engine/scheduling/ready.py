"""Where READY nodes may be: in runs that this worker knows, by pool, and in the workflows that it serves.

A pool is a kind of body; "!" marks nodes that must not be claimed ahead of a free slot. A pool is drained when a claim got
less than it asked for, until something says that there may be more.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import merge
from itertools import chain, islice

from ...base.ids import RunId
from ...core.model import Lane
from ..bodies.held import QueueKey, RunFacts
from ..bodies.kinds import KINDS
from .batches import ClaimScope, Window
from .pressure import Pressure, RunPressure
from .slots import POOLS, Slots, pool_of

MAX_PAIRS_NAMED = 256
"""The most (workflow, digest) pairs in one claim. Every graph that is built at run time adds a pair."""


def windows(
    serves: Mapping[tuple[str, str], frozenset[Lane]], by_pool: Callable[[frozenset[Lane]], Iterable[str]]
) -> Iterator[Window]:
    """Split all that is served into windows; those without a pool are left out."""
    pairs = sorted(serves)
    for start in range(0, len(pairs), MAX_PAIRS_NAMED):
        named = tuple(pairs[start : start + MAX_PAIRS_NAMED])
        graphs = [*{serves[pair] for pair in named}]
        pools = {pool for lanes in graphs for pool in by_pool(lanes)}
        if pools:
            yield Window(named, graphs, pools)


class RunQueue:
    """A set of runs in the order in which their nodes are claimed: by priority, then the one known longest."""

    __slots__ = ("_order", "_places")

    def __init__(self) -> None:
        self._places: dict[RunId, QueueKey] = {}
        self._order: list[QueueKey] = []

    def add(self, place: QueueKey) -> None:
        if place[2] not in self._places:
            self._places[place[2]] = place
            insort(self._order, place)

    def discard(self, run: RunId) -> None:
        place = self._places.pop(run, None)
        if place is not None:
            del self._order[bisect_left(self._order, place)]

    def __bool__(self) -> bool:
        return bool(self._order)

    def __contains__(self, run: RunId) -> bool:
        return run in self._places

    def __iter__(self) -> Iterator[RunId]:
        return (run for _, _, run in self._order)

    def first(self, count: int) -> tuple[RunId, ...]:
        order = self._order
        return (order[0][2],) if len(order) == 1 else tuple([run for _, _, run in order[:count]])


def first_of(queues: Sequence[RunQueue], count: int) -> tuple[RunId, ...]:
    """The first `count` runs of several queues together, each once."""
    if len(queues) == 1:
        return queues[0].first(count)
    merged = dict.fromkeys(run for _, _, run in merge(*(queue._order for queue in queues)))
    return tuple(islice(merged, count))


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
                pool = pool_of(lane.body, careful=lane.careful)
                if (self.queues is None or lane.queue in self.queues) and lane.body not in self._withdrawn:
                    found[pool] = (*found.get(pool, ()), lane)
            self._lanes[lanes] = found
        return found

    def suspect_lanes(self, graphs: Iterable[frozenset[Lane]]) -> tuple[Lane, ...]:
        """The lanes of these graphs for suspects: nodes that may have killed their workers."""
        return tuple(lane._replace(suspect=True) for lane in self.own_lanes(graphs))

    def own_lanes(self, graphs: Iterable[frozenset[Lane]]) -> tuple[Lane, ...]:
        """The lanes of these graphs that this worker takes."""
        own = {lane for lanes in set(graphs) for pool in self.lanes_by_pool(lanes).values() for lane in pool}
        return tuple(sorted(own))


class WaitingWork:
    """How much READY work waits in the store for a free slot here. Back-pressure and hints to others depend on it."""

    def __init__(
        self,
        facts: Mapping[RunId, RunFacts],
        ready: ReadyPools,
        slots: Slots,
        pressure: Pressure,
    ) -> None:
        self._facts, self._ready, self._slots, self._pressure = facts, ready, slots, pressure
        self._closing = False

    def close(self, now: int) -> None:
        """Nothing more is claimed, so nothing waits for a slot here."""
        self._closing = True
        self._update(now)

    def update(self, now: int) -> None:
        """Update back-pressure: for which kinds work waits in the store, and for which it no longer does."""
        if self._slots.full or self._pressure.active:
            self._update(now)

    def _update(self, now: int) -> None:
        for kind, held in self._slots.counts.items():
            slots = self._slots.most[kind]
            if held >= slots or kind in self._pressure.active:
                self._slots.most_held[kind] = max(self._slots.most_held[kind], held)
                self._pressure.update(kind, held, slots, partial(self._of_kind, kind), now)

    def _of_kind(self, kind: str) -> Iterator[tuple[RunId, int]]:
        """The runs that may have READY nodes for this kind, each with the most nodes it can have waiting in the store."""
        if self._closing:
            return
        careful, others = (self._ready.by_pool[pool] for pool in POOLS[kind])
        for run in chain(careful, (run for run in others if run not in careful)):
            facts = self._facts[run]
            yield run, max(0, facts.active - facts.held)

    def blocked_runs(self) -> dict[RunId, RunPressure]:
        """What back-pressure has cost the runs that this worker works on, or did until lately."""
        ready = (
            (kind, run) for kind in KINDS for run in {run for pool in POOLS[kind] for run in self._ready.by_pool[pool]}
        )
        return self._pressure.of_runs(ready) if self._pressure.ever else {}

    def surplus(self) -> dict[str, int]:
        """By queue: the most nodes that can be waiting in the store because all slots for them are taken here."""
        found: Counter[str] = Counter()
        for pool in (pool for kind in self._slots.full for pool in POOLS[kind]):
            for run in self._ready.by_pool[pool]:
                facts = self._facts[run]
                waiting = facts.active - facts.held
                for lane in self._ready.lanes_by_pool(facts.graph.lanes).get(pool, ()) if waiting > 0 else ():
                    found[lane.queue] += waiting
        return dict(found)
