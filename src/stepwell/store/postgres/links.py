"""A link of a chain: one node completes, and its only child is claimed. One call with a few values: no sets, and no JSON."""

from __future__ import annotations

from typing import Any

from ...ids import RunId, attempt_id, split_attempt_id
from ...model import Answer, AttemptStatus, Batch, GateState, NodeStatus, ops, receipts
from ..rules.codes import RUN_STATUS
from ..rules.payloads import is_large
from .payloads import storable, texts
from .receipts import attempts

STATEMENT = """
SELECT o_now, o_child, o_number, o_failures, o_losses, o_generation, o_postponed, o_status, o_purpose, o_open, o_seq,
       o_ancestors, o_inputs, o_stop
  FROM {schema}.link_1(%s::text, %s::int, %b::bytea, %b::bytea, %s::text, %s::text, %s::text, %s::text[],
                       %s::bigint, %s::bigint)
"""
USUAL = 16
"""A run that refused a link is at work on several nodes: so many of its batches go the usual way before it is tried again."""
KEPT = 1_000


class Link:
    """A batch that may be a link."""

    def __init__(self, settle: ops.Settle, claim: ops.Claim) -> None:
        self._settle, self._claim = settle, claim

    @property
    def run(self) -> RunId:
        return self._claim.runs[0]

    def parameters(self) -> tuple[Any, ...]:
        op, claim = self._settle, self._claim
        given, ordinal = split_attempt_id(storable(op.attempt))
        wanted = (lane for lane, limit in claim.lanes if limit > 0)
        lanes = [f"{storable(e.body)} {e.careful:d} {e.suspect:d} {storable(e.queue)}" for e in wanted]
        ids = (storable(claim.claim_id), storable(claim.worker), storable(self.run))
        return given, ordinal, op.output, op.outcome, *ids, texts([*lanes])

    def answer(self, row: tuple[Any, ...]) -> Answer | None:
        """None: it was none, and nothing has happened."""
        now, child, number, failures, losses, generation, postponed, status, purpose, opened, seq, *rest = row
        if child is None:
            return None
        ancestors, inputs, stop = rest
        news = receipts.RunNews(self.run, RUN_STATUS[status], GateState.OPEN, purpose, opened, 1, 0, seq)
        taken = tuple(zip(ancestors, inputs, strict=True)) if ancestors else ()
        attempt = attempt_id(self._claim.claim_id, 0)
        grant = receipts.Grant(attempt, self.run, child, number, failures, losses, taken, generation, 0, postponed)
        return Answer([receipts.Settled(False, news), receipts.Claimed((grant,), (), False)], now, attempts(stop or ()))


class Links:
    """Which batches are tried as links."""

    def __init__(self) -> None:
        self._usual: dict[RunId, int] = {}
        """Runs that refused one, and how many of their batches go the usual way."""

    def find(self, batch: Batch) -> Link | None:
        if len(batch) != 2:
            return None
        op, claim = batch
        if (
            type(op) is not ops.Settle
            or type(claim) is not ops.Claim
            or claim.serves is not None
            or len(claim.runs) != 1
        ):
            return None
        if op.status is not AttemptStatus.COMPLETED or op.node is not NodeStatus.COMPLETED:
            return None
        if op.lines or op.postponed or op.error is not None:
            return None
        if (op.output and is_large(op.output)) or (op.outcome and is_large(op.outcome)):
            return None
        return None if self._goes_the_usual_way(claim.runs[0]) else Link(op, claim)

    def _goes_the_usual_way(self, run: RunId) -> bool:
        if not self._usual or run not in self._usual:
            return False
        self._usual[run] -= 1
        if self._usual[run] == 0:
            del self._usual[run]
        return True

    def refused(self, link: Link) -> None:
        if len(self._usual) >= KEPT:
            self._usual.clear()
        self._usual[link.run] = USUAL
