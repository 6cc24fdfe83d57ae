"""What waits to be committed: submissions, lines and settlements of bodies, and batches that the store has not taken.

A store in trouble (full, locked, read-only) raises StoreError, and the same batch is sent until the store takes it. Any other
exception means that the store cannot apply one of the ops. The batch is then sent in halves until that op is alone
(`CommitBatch.halves`): a submission gets the error, a line is dropped, a settlement or a claim is isolated (`Isolation`) and
tried again alone, less and less often.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from ...base.codec import clean, encode
from ...base.ids import AttemptId, RunId
from ...base.masking import mask
from ...core.kernel.settling import Failure, Verdict, after_failure
from ...core.model import AttemptStatus, Claim, Op, Settle, StoreLimits
from ...errors import NotStored
from ..bodies.held import Held
from ..bodies.log_lines import UnstoredLines
from .batches import CommitBatch, IsolatedOp, Submission

TRIES = 5
"""After this many failures on its own, a settlement is replaced: its attempt is settled as failed."""
_MESSAGE_UP_TO = 2_000
_NAMES = [f"{base.__module__}.{base.__qualname__}" for base in NotStored.__mro__]


class Rejected(NamedTuple):
    """A message about an op that the store could not apply, and the run that does not go on because of it."""

    told: str
    run_id: RunId | None = None


class Isolation:
    """Everything that is isolated."""

    def __init__(self) -> None:
        self.apart: list[IsolatedOp] = []

    def add(self, *apart: IsolatedOp) -> None:
        self.apart += apart

    def take_due(self, now: int) -> IsolatedOp | None:
        for place, apart in enumerate(self.apart):
            if apart.due <= now:
                return self.apart.pop(place)
        return None

    def attempts(self) -> Iterator[AttemptId]:
        return (apart.held.attempt for apart in self.apart if apart.held is not None)

    def has_run(self, run: RunId) -> bool:
        return any(run in apart.runs for apart in self.apart)

    def not_settled(
        self, held: Held, op: Settle, apart: IsolatedOp | None, error: Exception, now: int
    ) -> Rejected | None:
        """Isolate a settlement that failed alone. After some tries its attempt is settled as failed, or it would never end."""
        apart = apart or IsolatedOp(held=held, settle=op)
        apart.tries += 1
        apart.wait(now)
        self.add(apart)
        if apart.tries < TRIES:
            return None
        place = f"node {held.spec.name!r} of run {held.facts.run_id}, attempt {held.number}"
        if apart.stand_in is not None or not _has_payload(op):
            apart.stand_in = None
            return Rejected(
                f"{place}: its settlement cannot be stored; it is tried again: {in_words(error)}", held.facts.run_id
            )
        apart.stand_in = failed_instead(held, op, error)
        apart.due = now
        return Rejected(f"{place}: its result cannot be stored, so the attempt has failed: {in_words(error)}")

    def not_claimed(
        self, op: Claim, apart: IsolatedOp | None, error: Exception, now: int, *, suspect: bool
    ) -> Rejected | None:
        """Isolate a claim that failed alone. Its scope is split until a single run or pair is left that cannot be claimed."""
        if suspect:
            return Rejected(f"nodes that may have killed their workers cannot be claimed: {in_words(error)}")
        apart = apart or IsolatedOp(runs=op.runs or (), serves=op.serves or ())
        if apart in self.apart or apart.divided:  # another claim of the same batch has isolated it
            return None
        halves = apart.halves()
        if halves is not None:
            apart.divided = True
            self.add(*halves)
            return None
        apart.tries += 1
        apart.wait(now)
        self.add(apart)
        if apart.tries < TRIES:  # later too: somebody may have begun to wait since
            return None
        run, what = (apart.runs[0], f"run {apart.runs[0]}") if apart.runs else (None, f"runs of {apart.serves}")
        return Rejected(f"nodes of {what} cannot be claimed; the claim is tried again: {in_words(error)}", run)


def failed_instead(held: Held, op: Settle, error: Exception) -> Settle:
    """The settlement that replaces one which cannot be stored: the attempt fails."""
    message = f"{_contents(op)} of node {held.spec.name!r} cannot be stored: {in_words(error)}"
    verdict = Verdict(op.status, op.node, op.delay)  # an attempt that failed anyway keeps its verdict
    if op.status in (AttemptStatus.COMPLETED, AttemptStatus.PARKED):
        verdict = after_failure(
            held.spec, Failure(_NAMES), failures=held.failures, postponed=held.postponed, seed=held.facts.seed
        )
    record = encode({"type": NotStored.__name__, "message": message})
    return Settle(held.attempt, verdict.status, verdict.node, None, record, None, verdict.delay)


def _has_payload(op: Settle) -> bool:
    return not (op.output is None and op.error is None and op.outcome is None and not op.lines)


def _contents(op: Settle) -> str:
    """What a settlement contains, for error messages."""
    parts = [
        f"{what} ({len(data):,} bytes)"
        for what, data in (("the output", op.output), ("the error", op.error), ("the outcome", op.outcome))
        if data is not None
    ]
    if op.lines:
        effects = sum(len(data) for _, data in op.lines)
        parts.append(f"what was recorded of its effects ({effects:,} bytes)")
    return " or ".join(parts)


def in_words(error: Exception) -> str:
    return clean(mask(f"{type(error).__name__}: {error}"))[:_MESSAGE_UP_TO]


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
