"""The counters of a scheduler: plain integers, updated under its lock, once per commit where possible."""

from __future__ import annotations

from ...core.model import AttemptStatus, NodeStatus, Settle
from ..bodies.held import Held
from .backpressure import KINDS
from .batches import CommitBatch

_FAILURES = (AttemptStatus.FAILED, AttemptStatus.TIMED_OUT)


class Counters:
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
        """Total microseconds of all executed attempts, from the answer to the claim to the answer to the settlement."""
        self.most_held = dict.fromkeys(KINDS, 0)
        """The most attempts held at once, by kind of body. Updated only while no slot is free."""

    def committed(self, batch: CommitBatch, now: int) -> None:
        self.commits += 1
        self.ops += len(batch.ops)
        self.commit_time += now - batch.since
        self.claims += len(batch.claims)
        self.settled += len(batch.settling)

    def unusual(self, held: Held, op: Settle, now: int, *, recorded: bool) -> None:
        """Count a settlement that is not a recorded completion."""
        self.fenced += not recorded
        if recorded:
            self.unbegun += not held.begun
            self.step_time += now - held.claimed_at if held.begun else 0
            self.failures += op.status in _FAILURES
            self.retries += op.node is NodeStatus.WAITING
