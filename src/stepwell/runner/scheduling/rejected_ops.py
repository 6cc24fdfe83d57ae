"""What the store cannot apply is kept apart from everything else: tried again by itself, less and less often.

A store in trouble (full, locked, read-only) raises StoreError and is sent the same batch until it takes it. Whatever else
it raises is a defect that one op brings out. The batch is sent again in halves until that op is alone (`CommitBatch.halves`):
those who wait for it are told, a line is left out, a settlement or a claim comes here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...clock import SECOND
from ...codec import clean, encode
from ...errors import NotStored
from ...ids import AttemptId, RunId
from ...kernel.settling import Failure, Verdict, after_failure
from ...masking import mask
from ...model import AttemptStatus, Claim, Settle
from ..bodies.held import Held

TRIES = 5
"""How often a settlement fails alone before its attempt is settled as failed instead."""
FIRST_PAUSE = SECOND // 100
LONGEST_PAUSE = 10 * SECOND
_MESSAGE_UP_TO = 2_000
_NAMES = [f"{base.__module__}.{base.__qualname__}" for base in NotStored.__mro__]


class Rejected(NamedTuple):
    """What the store could not apply, for people, and the run that does not go on because of it."""

    told: str
    run_id: RunId | None = None


@dataclass(slots=True, eq=False)
class Apart:
    """A settlement, or what a claim may ask for, that the store could not apply."""

    tries: int = 0
    due: int = 0
    held: Held | None = None
    settle: Settle | None = None
    stand_in: Settle | None = None
    """What is sent in place of the settlement: the attempt failed, and why."""
    runs: tuple[RunId, ...] = ()
    """What a claim asks for: nodes of these runs,"""
    serves: tuple[tuple[str, str], ...] = ()
    """or of runs of these (workflow, digest) pairs."""
    divided: bool = False

    def wait(self, now: int) -> None:
        self.due = now + min(LONGEST_PAUSE, FIRST_PAUSE * 4 ** min(self.tries - 1, 10))

    def halves(self) -> tuple[Apart, Apart] | None:
        """What a claim asks for, in two parts; None when it is one run or pair."""
        for field in ("runs", "serves"):
            whole = getattr(self, field)
            if len(whole) > 1:
                middle = len(whole) // 2
                return Apart(**{field: whole[:middle]}), Apart(**{field: whole[middle:]})
        return None


class Isolation:
    """All that is kept apart."""

    def __init__(self) -> None:
        self.apart: list[Apart] = []

    def add(self, *apart: Apart) -> None:
        self.apart += apart

    def take_due(self, now: int) -> Apart | None:
        for place, apart in enumerate(self.apart):
            if apart.due <= now:
                return self.apart.pop(place)
        return None

    def attempts(self) -> Iterator[AttemptId]:
        return (apart.held.attempt for apart in self.apart if apart.held is not None)

    def has_run(self, run: RunId) -> bool:
        return any(run in apart.runs for apart in self.apart)

    def not_settled(self, held: Held, op: Settle, apart: Apart | None, error: Exception, now: int) -> Rejected | None:
        """This settlement failed alone. After some tries its attempt is settled as failed, or it would never end."""
        apart = apart or Apart(held=held, settle=op)
        apart.tries += 1
        apart.wait(now)
        self.add(apart)
        if apart.tries < TRIES:
            return None
        place = f"node {held.spec.name!r} of run {held.facts.run_id}, attempt {held.number}"
        if apart.stand_in is not None or not _has_payload(op):
            apart.stand_in = None
            return Rejected(
                f"{place}: its end cannot be stored, and is tried again: {in_words(error)}", held.facts.run_id
            )
        apart.stand_in = failed_instead(held, op, error)
        apart.due = now
        return Rejected(f"{place}: what it ended with cannot be stored, so it has failed: {in_words(error)}")

    def not_claimed(
        self, op: Claim, apart: Apart | None, error: Exception, now: int, *, suspect: bool
    ) -> Rejected | None:
        """This claim failed alone. What it asked for is asked for in halves, until it is one run that cannot be claimed."""
        if suspect:
            return Rejected(f"nodes that may have killed their workers cannot be claimed: {in_words(error)}")
        apart = apart or Apart(runs=op.runs or (), serves=op.serves or ())
        if apart in self.apart or apart.divided:  # by another claim of the same batch
            return None
        halves = apart.halves()
        if halves is not None:
            apart.divided = True
            self.add(*halves)
            return None
        apart.tries += 1
        apart.wait(now)
        self.add(apart)
        if apart.tries != TRIES:
            return None
        run, what = (apart.runs[0], f"run {apart.runs[0]}") if apart.runs else (None, f"runs of {apart.serves}")
        return Rejected(f"nodes of {what} cannot be claimed, which is tried again: {in_words(error)}", run)


def failed_instead(held: Held, op: Settle, error: Exception) -> Settle:
    """The settlement of an attempt whose own settlement cannot be stored."""
    message = f"{_contents(op)} of node {held.spec.name!r} cannot be stored: {in_words(error)}"
    verdict = Verdict(op.status, op.node, op.delay)  # one that failed anyway fails as it would have
    if op.status is AttemptStatus.COMPLETED:
        verdict = after_failure(
            held.spec, Failure(_NAMES), failures=held.failures, postponed=held.postponed, seed=held.facts.seed
        )
    record = encode({"type": NotStored.__name__, "message": message})
    return Settle(held.attempt, verdict.status, verdict.node, None, record, None, verdict.delay)


def _has_payload(op: Settle) -> bool:
    return not (op.output is None and op.error is None and op.outcome is None and not op.lines)


def _contents(op: Settle) -> str:
    """What a settlement holds, for people."""
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
