"""Isolates ops that the store cannot apply, and retries each alone, less and less often.

A store in trouble (full, locked, read-only) raises StoreError, and the same batch is sent until the store takes it. Any other
exception means that the store cannot apply one of the ops. The batch is then sent in halves until that op is alone
(`CommitBatch.halves`): a submission gets the error, a line is dropped, a settlement or a claim is isolated here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...base.clock import SECOND
from ...base.codec import clean, encode
from ...base.ids import AttemptId, RunId
from ...base.masking import mask
from ...core.kernel.settling import Failure, Verdict, after_failure
from ...core.model import AttemptStatus, Claim, Settle
from ...errors import NotStored
from ..bodies.held import Held

TRIES = 5
"""After this many failures on its own, a settlement is replaced: its attempt is settled as failed."""
FIRST_PAUSE = SECOND // 100
LONGEST_PAUSE = 10 * SECOND
_MESSAGE_UP_TO = 2_000
_NAMES = [f"{base.__module__}.{base.__qualname__}" for base in NotStored.__mro__]


class Rejected(NamedTuple):
    """A message about an op that the store could not apply, and the run that does not go on because of it."""

    told: str
    run_id: RunId | None = None


@dataclass(slots=True, eq=False)
class IsolatedOp:
    """A settlement, or the scope of a claim, that the store could not apply."""

    tries: int = 0
    due: int = 0
    held: Held | None = None
    settle: Settle | None = None
    stand_in: Settle | None = None
    """Sent in place of the settlement: the attempt failed, and why."""
    runs: tuple[RunId, ...] = ()
    """The claim asks for nodes of these runs,"""
    serves: tuple[tuple[str, str], ...] = ()
    """or of runs of these (workflow, digest) pairs."""
    divided: bool = False

    def wait(self, now: int) -> None:
        self.due = now + min(LONGEST_PAUSE, FIRST_PAUSE * 4 ** min(self.tries - 1, 10))

    def halves(self) -> tuple[IsolatedOp, IsolatedOp] | None:
        """Split the scope of a claim in two. None if it is a single run or pair."""
        for field in ("runs", "serves"):
            whole = getattr(self, field)
            if len(whole) > 1:
                middle = len(whole) // 2
                return IsolatedOp(**{field: whole[:middle]}), IsolatedOp(**{field: whole[middle:]})
        return None


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
    if op.status is AttemptStatus.COMPLETED:
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
