"""Composes the claims in a worker's next commit: nodes of which runs, in which lanes, how many."""

from __future__ import annotations

from collections.abc import Callable

from ...base.ids import ClaimId, RunId, WorkerId
from ...core.model import Claim, Lane, ListReady, StoreLimits
from ..bodies.held import RunFacts
from ..bodies.kinds import KINDS, Limits
from .batches import ClaimScope, CommitBatch, IsolatedOp, Window
from .ready import ReadyPools, first_of
from .slots import POOLS, Slots

DRAIN_FOR = 10_000_000
"""Microseconds. For this long a worker claims nothing, so that a suspect can run alone; then it runs beside what is left."""


class Suspects:
    """Where one worker still has to look for suspects, and how many it holds."""

    __slots__ = ("draining_since", "held", "scopes", "waited")

    def __init__(self) -> None:
        self.scopes: list[str] = []
        """Where to look: in the runs it knows (`known`), in all runs of the workflows it serves (`served`)."""
        self.held = 0
        self.waited = False
        """It has waited long enough for the other bodies to end."""
        self.draining_since: int | None = None

    def look(self) -> None:
        """Look for a node that may have killed several workers, as soon as nothing else runs here."""
        self.scopes = ["known", "served"]

    def draining(self) -> bool:
        """Whether nothing else is claimed until a suspect was."""
        return self.draining_since is not None

    def drain(self, now: int) -> None:
        """There is a suspect: claim nothing else until it is claimed, or it has waited long enough."""
        self.look()
        if self.draining_since is None:
            self.draining_since = now

    def stop_draining(self) -> None:
        self.draining_since = None

    def update(self, now: int) -> None:
        """Find out whether it has waited long enough."""
        since = self.draining_since
        self.waited = since is not None and now - since >= DRAIN_FOR

    def next_scope(self) -> str:
        scope = self.scopes.pop(0)
        if not self.scopes:
            self.draining_since = None  # the last scope
        return scope


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
        self.takes = takes
        self._served_at = 0
        self._served_every = SERVED_EVERY

    def committed(self, took: int) -> None:
        """A commit took this many microseconds: a slow store is asked for more at once, and less often for others' runs."""
        self.slots.committed(took)
        pause = SERVED_COMMITS * took
        self._served_every = pause if pause > SERVED_EVERY else SERVED_EVERY

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
        if batch.ops:
            return
        if self.ready.windows:
            self._add_served(batch, now)
        self._add_suspects(batch, busy=busy)

    def add_apart(self, batch: CommitBatch, apart: IsolatedOp, now: int) -> None:
        """Claim alone what the store could not apply together with other claims."""
        graphs = {self.facts[run].graph.lanes for run in apart.runs} | {self.serves[pair] for pair in apart.serves}
        for kind, pools in POOLS.items():
            own = [pool for pool in pools if any(pool in self.ready.lanes_by_pool(lanes) for lanes in graphs)]
            pools_with_room = self._with_room(kind, own, now)
            self._add(batch, pools_with_room, graphs, apart.runs, None if apart.runs else apart.serves)

    def ask_for_ready(self, runs: tuple[RunId, ...]) -> ListReady:
        """The query that finds out which of these runs have READY nodes."""
        graphs = {facts.graph.lanes for run in runs if (facts := self.facts.get(run)) is not None}
        return ListReady(self.ready.own_lanes(graphs), runs, limit=len(runs))

    def ask_for_suspects(self) -> ListReady:
        """The query that finds out whether there are suspects."""
        graphs = (*(facts.graph.lanes for facts in self.facts.values()), *self.serves.values())
        lanes = self.ready.suspect_lanes(graphs)
        return ListReady(lanes, tuple(self.facts), tuple(sorted(self.serves)), limit=1)

    def _add_known(self, batch: CommitBatch, kind: str, now: int) -> None:
        ready, facts = self.ready, self.facts
        pools = self._with_room(kind, [pool for pool in POOLS[kind] if pool in ready.pools], now)
        if pools:
            runs = first_of([ready.by_pool[pool] for pool, _ in pools], self.takes.runs)
            self._add(batch, pools, {facts[run].graph.lanes for run in runs}, runs)

    def _add_served(self, batch: CommitBatch, now: int) -> None:
        """Claim from one window; the next call takes the next window."""
        self._served_at = now
        windows = self.ready.windows
        for _ in range(len(windows)):
            window = windows[0]
            windows.rotate(-1)
            for kind in KINDS:
                pools = self._with_room(kind, [pool for pool in POOLS[kind] if pool in window.pools], now)
                self._add(batch, pools, set(window.graphs), (), window.pairs, window)
            if batch.ops:
                return

    def _with_room(self, kind: str, pools: list[str], now: int) -> tuple[tuple[str, int], ...]:
        return self.slots.with_room(kind, pools, now, self.takes.nodes)

    def _add(
        self,
        batch: CommitBatch,
        pools: tuple[tuple[str, int], ...],
        graphs: set[frozenset[Lane]],
        runs: tuple[RunId, ...],
        serves: tuple[tuple[str, str], ...] | None = None,
        window: Window | None = None,
    ) -> None:
        """Claim nodes of these pools. The limits are cumulative, so that all pools share the free slots."""
        wanted = tuple([(lane, limit) for pool, limit in pools for lane in self.ready.lanes_of(pool, graphs)])
        if wanted:
            batch.claims.append(ClaimScope(pools, runs, window))
            batch.ops.append(Claim(self._new_claim_id(), self._worker, wanted, runs, serves))

    def _add_suspects(self, batch: CommitBatch, *, busy: bool) -> None:
        suspects = self.suspects
        while suspects.scopes and not batch.ops and (suspects.waited or not busy):
            self._add_suspect(batch, suspects.next_scope())

    def _add_suspect(self, batch: CommitBatch, scope: str) -> None:
        """Claim a node that may have killed its worker, in a batch without other ops."""
        if scope == "known":
            lanes = self.ready.suspect_lanes(facts.graph.lanes for facts in self.facts.values())
            runs, serves = tuple(self.facts), None
        else:
            lanes = self.ready.suspect_lanes(self.serves.values())
            runs, serves = (), tuple(sorted(self.serves))
        if lanes:
            batch.claims.append(ClaimScope((), suspect=True))
            wanted = tuple((lane, 1) for lane in lanes)
            batch.ops.append(Claim(self._new_claim_id(), self._worker, wanted, runs, serves))
