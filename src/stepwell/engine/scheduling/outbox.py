"""What waits to be committed: submissions, lines and settlements of bodies, and batches that the store has not taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ...base.ids import AttemptId, RunId
from ...core.model import Op, Settle, StoreLimits
from ..bodies.held import Held
from ..bodies.log_lines import UnstoredLines
from .batches import CommitBatch, Submission
from .rejected_ops import Isolation


class Outbox:
    def __init__(self, takes: StoreLimits) -> None:
        self._takes = takes
        """How much the store takes in one commit."""
        self.lines = UnstoredLines()
        """What bodies have logged and printed and no batch has taken yet."""
        self.submissions: deque[Submission] = deque()
        self.settlements: deque[tuple[Held, Settle]] = deque()
        self.again: deque[CommitBatch] = deque()
        """Batches that failed, or parts of them, in order. They are sent before anything else."""
        self.isolation = Isolation()

    @property
    def due(self) -> bool:
        """Whether anything waits for its first commit."""
        return bool(self.submissions or self.settlements or self.lines.is_due)

    @property
    def empty(self) -> bool:
        """Whether nothing waits but lines, which a settlement or the next commit takes along."""
        waiting = self.settlements or self.submissions or self.again
        return not (waiting or any(self.isolation.attempts()))

    def attempts(self) -> Iterator[AttemptId]:
        """The attempts that have ended and are not settled."""
        yield from (held.attempt for held, _ in self.settlements)
        yield from (held.attempt for batch in self.again for held in batch.settling)
        yield from self.isolation.attempts()

    def claims_run(self, run: RunId) -> bool:
        """Whether claims of this run are isolated."""
        return bool(self.isolation.apart) and self.isolation.has_run(run)

    def fill(self, batch: CommitBatch) -> None:
        """Move all that waits for its first commit into a batch, as far as the store takes it at once."""
        while self.submissions:
            submission = self.submissions.popleft()
            batch.submissions.append(submission)
            batch.ops += submission.ops
        settles: list[Op] = []
        lines, riding, size = self.lines.due() if self.lines.is_due else [], 0, 0
        most = self._takes.settlements
        while (
            self.settlements and len(settles) < most and len(lines) + riding < most and size < self._takes.batch_bytes
        ):
            held, settle = self.settlements.popleft()
            if held.unstored:
                lines += held.unstored
            if held.printed is not None:
                lines += held.printed.rest()
            if held.recorded is not None:
                recorded = held.recorded.lines()
                settle = Settle(*settle[:-1], recorded)
                riding += len(recorded)
                size += sum(len(data) for _, data in recorded)
            if settle.output is not None:
                size += len(settle.output)
            batch.settling.append(held)
            settles.append(settle)
        if lines:
            batch.lines = len(lines)
            batch.ops += lines
        batch.ops += settles

    def failed(self, batch: CommitBatch) -> list[Submission]:
        """The store is in trouble. Keep the batch without its submissions; returns these and all others that wait."""
        failed = [batch, *self.again]
        told = [*(submission for each in failed for submission in each.submissions), *self.submissions]
        rest = [each.without_submissions() for each in failed]
        self.again = deque(each for each in rest if each.ops)
        self.submissions.clear()
        return told

    def halve(self, batch: CommitBatch) -> bool:
        """The store cannot apply a batch: have it sent again in halves. False if it cannot be split."""
        halves = batch.halves()
        if halves is not None:
            self.again.extendleft(reversed(halves))
        return halves is not None


def alone(held: Held, settle: Settle) -> list[Op]:
    """The ops that settle one attempt in a transaction of its own: what it printed, and its settlement with its effects."""
    if held.printed is not None:
        held.unstored = (*held.unstored, *held.printed.rest())
    if held.recorded is not None:
        settle = Settle(*settle[:-1], held.recorded.lines())
    return [*held.unstored, settle]
