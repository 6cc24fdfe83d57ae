"""What a scheduler counts: plain integers under its lock, which is held anyway, once for each commit where possible."""

from __future__ import annotations

from ...model import AttemptStatus, NodeStatus, Settle
from ..bodies.held import Held
from .backpressure import KINDS
from .batches import CommitBatch

_FAILURES = (AttemptStatus.FAILED, AttemptStatus.TIMED_OUT)


class Counters:
    """What a scheduler counts."""

    __slots__ = (
        "claimed",
        "claims",
        "commit_time",
        "commits",
        "commits_failed",
        "failures",
        "fenced",
        "most_held",
        "ops",
        "retries",
        "settled",
        "step_time",
        "unbegun",
    )

    def __init__(self) -> None:
        self.commits = self.commits_failed = self.ops = self.commit_time = 0
        self.claims = self.claimed = 0
        self.settled = self.unbegun = self.failures = self.retries = self.fenced = 0
        self.step_time = 0
        """How long the attempts that were executed took together, from the answer to their claim to that to their end."""
        self.most_held = dict.fromkeys(KINDS, 0)
        """Of each kind of body, the most attempts at once; only looked at where there is no slot left."""

    def committed(self, batch: CommitBatch, now: int) -> None:
        self.commits += 1
        self.ops += len(batch.ops)
        self.commit_time += now - batch.since
        self.claims += len(batch.claims)
        self.settled += len(batch.settling)

    def unusual(self, held: Held, op: Settle, now: int, *, recorded: bool) -> None:
        """A settlement that is no recorded completion."""
        self.fenced += not recorded
        if recorded:
            self.unbegun += not held.begun
            self.step_time += now - held.claimed_at if held.begun else 0
            self.failures += op.status in _FAILURES
            self.retries += op.node is NodeStatus.WAITING
