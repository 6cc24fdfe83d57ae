"""How much READY work waits in the store for a free slot here. Back-pressure and hints to other processes depend on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain

from ...base.ids import RunId
from ..bodies.held import RunFacts
from .backpressure import KINDS, Pressure, RunPressure
from .counters import Counters
from .ready_pools import POOLS, ReadyPools
from .slots import Slots


class WaitingWork:
    def __init__(
        self,
        facts: Mapping[RunId, RunFacts],
        ready: ReadyPools,
        slots: Slots,
        pressure: Pressure,
        counters: Counters,
    ) -> None:
        self._facts, self._ready, self._slots = facts, ready, slots
        self._pressure, self._counters = pressure, counters
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
                self._counters.most_held[kind] = max(self._counters.most_held[kind], held)
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
