"""The links of a chain: one completion, and the claim of the node that follows it, over and over.

The scheduler would compose the same batch and draw the same conclusions. These do it with half of the calls, because after
a commit everything runs from cold caches, and half of what a chain costs beyond its commits is calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ids import AttemptId, RunId
from ...model import AttemptStatus, GateState, Lane, Settle
from ...model.receipts import Claimed, Receipt, Settled
from ..bodies.held import Held, RunFacts
from .batches import ClaimScope, CommitBatch
from .claims import Claims
from .counters import Counters
from .outbox import Outbox

SLOW = 1_000
"""Microseconds. What is claimed ahead, and how often others' runs are looked for, depends only on commits that take longer."""


class Links:
    """Composes and concludes the links of one worker, while it does nothing else. Only bodies in threads have links."""

    def __init__(self, claims: Claims, outbox: Outbox, counters: Counters, held: dict[AttemptId, Held]) -> None:
        self._claims, self._outbox, self._counters, self._held = claims, outbox, counters, held
        self._facts, self._ready, self._slots, self._suspects = (
            claims.facts,
            claims.ready,
            claims.slots,
            claims.suspects,
        )
        self._room = min(claims.slots.most["thread"], claims.takes.nodes)
        """How many nodes a link claims: as many as there are slots, which are all free."""
        self._latest: tuple[RunFacts, ClaimScope, tuple[tuple[Lane, int], ...]] | None = None
        """The run of the latest link, and what its links claim."""

    def compose(self, held: Held, settle: Settle, now: int) -> CommitBatch | None:
        """Settle this attempt, and claim what follows. None, and nothing is changed, if there is anything else to do."""
        facts, ready, outbox = held.facts, self._ready, self._outbox
        if ready.pools or ready.windows or ready.contended or ready.pressure.ever or self._slots.full:
            return None
        if (
            outbox.due
            or outbox.again
            or outbox.isolation.apart
            or len(self._held) != 1
            or facts.run_id not in self._facts
        ):
            return None
        if self._suspects.draining_since is not None or held.suspect or held.spec.timeout is not None:
            return None
        if held.over or held.printed is not None or held.unstored or settle.status is not AttemptStatus.COMPLETED:
            return None
        latest = self._latest
        if latest is None or latest[0] is not facts:
            by_pool = ready.lanes_by_pool(facts.graph.lanes)
            if len(by_pool) != 1 or "thread" not in by_pool:
                return None
            scope = ClaimScope((("thread", self._room),), (facts.run_id,))
            self._latest = latest = (facts, scope, tuple([(lane, self._room) for lane in by_pool["thread"]]))
        held.over = True
        del self._held[held.attempt]
        self._slots.pass_on("thread", now, held.claimed_at)
        if held.recorded is not None:
            settle = Settle(*settle[:-1], held.recorded.lines())
        _, scope, lanes = latest
        ready.sent()
        return CommitBatch(
            [settle, self._claims.new_claim(lanes, scope.runs)], [], [held], [scope], since=now, link=True
        )

    def forget(self, run: RunId) -> None:
        """Do not keep the graph of a run that this worker no longer works on."""
        if self._latest is not None and self._latest[0].run_id == run:
            self._latest = None

    def answered(self, batch: CommitBatch, receipts: Sequence[Receipt], now: int) -> Held | None:
        """The one attempt that was granted. None, and nothing is changed, if it went otherwise or there is more to do now."""
        settled, claimed = receipts
        if type(settled) is not Settled or type(claimed) is not Claimed or len(claimed.grants) != 1:
            return None
        ready, (ended,), (grant,), run = self._ready, batch.settling, claimed.grants, settled.run
        facts = ended.facts
        if ready.pools or ready.windows or self._outbox.due or self._suspects.draining_since is not None:
            return None
        if run.gate is not GateState.OPEN or claimed.contended or grant.heals != facts.heals:
            return None
        if self._facts.get(facts.run_id) is not facts:
            return None
        took = now - batch.since
        ready.answered()
        counters = self._counters
        counters.links += 1
        counters.commit_time += took
        counters.step_time += now - ended.claimed_at
        if took > SLOW:
            self._claims.committed(took)
        self._slots.counts["thread"] += 1  # with one slot, which would be full now, there are no links
        facts.active = run.active
        attempt, _, index, number, failures, _, inputs, generation, _, postponed = grant
        held = Held(attempt, facts, index, number, failures, inputs, generation, False, now, postponed)
        self._held[attempt] = held
        return held
