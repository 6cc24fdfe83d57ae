"""The links of a chain: one completion, and the claim of the node that follows it, over and over.

The scheduler would compose the same batch and draw the same conclusions. These do it with a third of the calls, because after
a commit everything runs from cold caches, and half of what a chain costs beyond its commits is calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ids import AttemptId
from ...model import AttemptStatus, GateState, Settle
from ...model.receipts import Claimed, Receipt, Settled
from ..bodies.held import Held
from .batches import ClaimScope, CommitBatch
from .claims import Claims
from .counters import Counters
from .outbox import Outbox


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

    def compose(self, held: Held, settle: Settle, now: int) -> CommitBatch | None:
        """Settle this attempt, and claim what follows. None, and nothing is changed, if there is anything else to do."""
        facts, spec = held.facts, held.spec
        if self._there_is_more() or len(self._held) != 1 or settle.status is not AttemptStatus.COMPLETED:
            return None
        if held.over or held.suspect or held.printed is not None or held.unstored or spec.timeout is not None:
            return None
        lanes = facts.graph.lanes
        if len(lanes) != 1 or facts.run_id not in self._facts:
            return None
        wanted = self._ready.lanes_by_pool(lanes).get("thread")
        if wanted is None:
            return None
        held.over = True
        del self._held[held.attempt]
        if held.recorded is not None:
            settle = Settle(*settle[:-1], held.recorded.lines())
        room, runs = self._slots.pass_on("thread", now, held.claimed_at, self._claims.takes.nodes), (facts.run_id,)
        claim = self._claims.new_claim(((wanted[0], room),), runs)
        self._ready.sent()
        return CommitBatch([settle, claim], [], [held], [ClaimScope((("thread", room),), runs)], 0, now, None, True)

    def _there_is_more(self) -> bool:
        """Whether anything else waits: to be committed, to be claimed, or for a free slot."""
        outbox, ready = self._outbox, self._ready
        if outbox.settlements or outbox.submissions or outbox.again or outbox.lines.is_due or outbox.isolation.apart:
            return True
        if ready.pools or ready.windows or ready.contended or ready.pressure.ever or self._slots.full:
            return True
        return self._suspects.draining_since is not None or self._suspects.waited

    def answered(self, batch: CommitBatch, receipts: Sequence[Receipt], now: int) -> Held | None:
        """The attempt that was granted. None, and nothing is changed, if it was not recorded, or not one node was granted."""
        settled, claimed = receipts
        if (
            self._there_is_more()
            or type(settled) is not Settled
            or type(claimed) is not Claimed
            or len(claimed.grants) != 1
        ):
            return None
        (ended,), (asked,), (grant,), run = batch.settling, batch.claims, claimed.grants, settled.run
        facts = ended.facts
        if run.gate is not GateState.OPEN or claimed.contended or self._facts.get(grant.run_id) is not facts:
            return None
        if grant.heals != facts.heals or asked.pools[0][1] == 1:
            return None
        took = now - batch.since
        self._ready.answered()
        self._counters.linked(took, now - ended.claimed_at)
        self._claims.committed(took)
        facts.active = run.active
        self._slots.take("thread")
        held = Held(grant.attempt, facts, grant.index, grant.number, grant.failures, grant.inputs, grant.generation)
        held.claimed_at, held.postponed = now, grant.postponed
        self._held[grant.attempt] = held
        return held
