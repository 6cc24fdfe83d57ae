"""Composes the claims in a worker's next commit: nodes of which runs, in which lanes, how many."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...ids import ClaimId, RunId, WorkerId
from ...model import Claim, Lane, ListReady, StoreLimits
from ..bodies.held import RunFacts
from ..bodies.run_queue import first_of
from .backpressure import KINDS
from .batches import ClaimScope, CommitBatch, Limits, Window
from .ready_pools import POOLS, ReadyPools
from .rejected_ops import Apart
from .slots import Slots
from .suspects import Suspects

SERVED_EVERY = 50_000
"""While a worker has work in runs that it knows, it looks for runs that others started after this many microseconds, or after
`SERVED_COMMITS` commits if these take longer."""
SERVED_COMMITS = 4


class Claims:
    """Composes the claims of one worker."""

    def __init__(
        self,
        worker: WorkerId,
        new_claim_id: Callable[[], ClaimId],
        limits: Limits,
        ready: ReadyPools,
        takes: StoreLimits,
    ) -> None:
        self.facts: dict[RunId, RunFacts] = {}
        """The runs that this worker knows."""
        self.serves: dict[tuple[str, str], frozenset[Lane]] = {}
        """The (workflow, digest) pairs it works for, whoever started the run, with the lanes of their graphs."""
        self.ready = ready
        self.slots = Slots(limits)
        self.suspects = Suspects()
        self._worker = worker
        self._new_claim_id = new_claim_id
        self._takes = takes
        self._served_at = 0
        self._served_every = SERVED_EVERY

    def committed(self, took: int) -> None:
        """A commit took this many microseconds: a slow store is asked for more at once, and less often for others' runs."""
        self.slots.committed(took)
        self._served_every = max(SERVED_EVERY, SERVED_COMMITS * took)

    def are_due(self, *, busy: bool) -> bool:
        """Whether there is something to claim, if there is room."""
        ready, suspects = self.ready, self.suspects
        return bool(ready.windows or ready.pools or (suspects.scopes and (suspects.waited or not busy)))

    def add_served_first(self, batch: CommitBatch, now: int) -> None:
        """Claim from all runs of the served workflows, if the last such claim is long ago. The batch then has no other ops."""
        if self.ready.windows and now - self._served_at >= self._served_every and not self.suspects.draining():
            self._add_served(batch, now)

    def add(self, batch: CommitBatch, now: int, *, busy: bool) -> None:
        if self.suspects.draining():
            self._add_suspects(batch, busy=busy)
            if self.suspects.draining() or batch.ops:
                return
        pools = self.ready.pools
        for kind, (careful, others) in POOLS.items():
            if careful in pools or others in pools:
                self._add_known(batch, kind, now)
        if self.ready.windows and not batch.ops:
            self._add_served(batch, now)
        self._add_suspects(batch, busy=busy)

    def add_apart(self, batch: CommitBatch, apart: Apart, now: int) -> None:
        """Claim alone what the store could not apply together with other claims."""
        graphs = {self.facts[run].graph.lanes for run in apart.runs} | {self.serves[pair] for pair in apart.serves}
        scope = {"runs": apart.runs} if apart.runs else {"serves": apart.serves}
        for kind, pools in POOLS.items():
            own = [pool for pool in pools if any(pool in self.ready.lanes_by_pool(lanes) for lanes in graphs)]
            self._add(batch, self._with_room(kind, own, now), graphs, **scope)

    def ask_for_suspects(self) -> ListReady:
        """The query that finds out whether there are suspects."""
        graphs = (*(facts.graph.lanes for facts in self.facts.values()), *self.serves.values())
        lanes = self.ready.suspect_lanes(graphs)
        return ListReady(lanes, tuple(self.facts), tuple(sorted(self.serves)), limit=1)

    def _add_known(self, batch: CommitBatch, kind: str, now: int) -> None:
        pools = [pool for pool in POOLS[kind] if pool in self.ready.pools]
        with_room = self._with_room(kind, pools, now)
        if with_room:
            runs = first_of([self.ready.by_pool[pool] for pool, _ in with_room], self._takes.runs)
            self._add(batch, with_room, {self.facts[run].graph.lanes for run in runs}, runs=runs)

    def _add_served(self, batch: CommitBatch, now: int) -> None:
        """Claim from one window; the next call takes the next window."""
        self._served_at = now
        windows = self.ready.windows
        for _ in range(len(windows)):
            window = windows[0]
            windows.rotate(-1)
            for kind in KINDS:
                pools = self._with_room(kind, [pool for pool in POOLS[kind] if pool in window.pools], now)
                self._add(batch, pools, window.graphs, window, serves=window.pairs)
            if batch.ops:
                return

    def _with_room(self, kind: str, pools: list[str], now: int) -> tuple[tuple[str, int], ...]:
        return self.slots.with_room(kind, pools, now, self._takes.nodes)

    def _add(
        self,
        batch: CommitBatch,
        pools: tuple[tuple[str, int], ...],
        graphs: Iterable[frozenset[Lane]],
        window: Window | None = None,
        **scope: Any,
    ) -> None:
        """Claim nodes of these pools. The limits are cumulative, so that all pools share the free slots."""
        distinct = set(graphs)
        wanted = tuple([(lane, limit) for pool, limit in pools for lane in self.ready.lanes_of(pool, distinct)])
        if wanted:
            batch.claims.append(ClaimScope(pools, scope.get("runs", ()), window))
            batch.ops.append(Claim(self._new_claim_id(), self._worker, wanted, **scope))

    def _add_suspects(self, batch: CommitBatch, *, busy: bool) -> None:
        suspects = self.suspects
        while suspects.scopes and not batch.ops and (suspects.waited or not busy):
            self._add_suspect(batch, suspects.next_scope())

    def _add_suspect(self, batch: CommitBatch, scope: str) -> None:
        """Claim a node that may have killed its worker, in a batch without other ops."""
        if scope == "known":
            lanes = self.ready.suspect_lanes(facts.graph.lanes for facts in self.facts.values())
            asked: dict[str, Any] = {"runs": tuple(self.facts)}
        else:
            lanes = self.ready.suspect_lanes(self.serves.values())
            asked = {"serves": tuple(sorted(self.serves))}
        if lanes:
            batch.claims.append(ClaimScope((), suspect=True))
            wanted = tuple((lane, 1) for lane in lanes)
            batch.ops.append(Claim(self._new_claim_id(), self._worker, wanted, **asked))
