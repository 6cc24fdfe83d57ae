"""A scheduler, and answers for its batches, without any store, thread or clock."""

from __future__ import annotations

from typing import Any

from stepwell.base.ids import AttemptId, ClaimId, RunId, WorkerId
from stepwell.core.graph import Graph, NodeSpec
from stepwell.core.model import (
    Claim,
    Claimed,
    Create,
    Created,
    GateState,
    Grant,
    Receipt,
    Refusal,
    Refused,
    RunNews,
    RunStatus,
    Settle,
    Settled,
)
from stepwell.define import Bodies
from stepwell.engine.bodies.attempt import Attempt
from stepwell.engine.bodies.held import Held, RunFacts
from stepwell.engine.bodies.host import Services
from stepwell.engine.bodies.kinds import Limits
from stepwell.engine.scheduling.batches import CommitBatch, CommitResult, Submission
from stepwell.engine.scheduling.scheduler import Scheduler


def facts(run: str = "r", width: int = 1, **options: Any) -> RunFacts:
    """A run whose nodes have no dependencies."""
    graph = Graph([NodeSpec(f"n{number}", f"n{number}", **options) for number in range(width)])  # type: ignore[arg-type]
    return RunFacts(RunId(run), "w", None, graph, b"{}", 1, Bodies())


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> ClaimId:
        self.count += 1
        return ClaimId(f"c{self.count}")


def scheduler(**limits: int) -> Scheduler:
    return Scheduler(WorkerId("me"), Limits(**limits), Counter())


def claims(batch: CommitBatch | None) -> list[Claim]:
    return [] if batch is None else [op for op in batch.ops if isinstance(op, Claim)]


def lanes(batch: CommitBatch | None) -> dict[str, int]:
    """Every lane that a batch asks for, with its limit."""
    return {str(lane): limit for claim in claims(batch) for lane, limit in claim.lanes}


def grant(claim: Claim, ordinal: int, run: str = "r", index: int = 0, number: int = 1) -> Grant:
    return Grant(AttemptId(f"{claim.claim_id}.{ordinal}"), RunId(run), index, number, 0, 0)


def granted(claim: Claim, *places: tuple[str, int]) -> Claimed:
    """The answer to a claim: the nodes (run, index) it was granted."""
    return Claimed(tuple(grant(claim, ordinal, run, index) for ordinal, (run, index) in enumerate(places)))


def news(run: str = "r", status: RunStatus = RunStatus.RUNNING, seq: int = 5, **more: Any) -> RunNews:
    gate = more.pop("gate", GateState.OPEN)
    return RunNews(RunId(run), status, gate, more.pop("purpose", None), 1, 1, 0, seq)


def commit_batch(scheduler: Scheduler, batch: CommitBatch, *answers: Receipt, now: int = 0) -> CommitResult:
    """Commit the batch. Claims get `answers`, in order; other ops their usual receipts."""
    given = iter(answers)
    receipts: list[Receipt] = []
    for op in batch.ops:
        match op:
            case Claim():
                receipts.append(next(given, Claimed(())))
            case Settle():
                receipts.append(Settled(False, news()))
            case Create():
                receipts.append(Created(op.run_id, False, 1, 1))
            case _:
                receipts.append(Refused(Refusal.UNKNOWN))
    return scheduler.committed(batch, receipts, now)


def hold(scheduler: Scheduler, *places: tuple[str, int]) -> list[Held]:
    """Have the scheduler claim these nodes."""
    batch = scheduler.next_batch(0)
    assert batch is not None
    (claim,) = claims(batch)
    return commit_batch(scheduler, batch, granted(claim, *places)).begin


def end(scheduler: Scheduler, held: Held, now: int = 0) -> None:
    """The body of an attempt returns."""
    scheduler.finished(held, Attempt(held, Services(lambda *_: {}, scheduler.lines)).returned(None), now)


__all__ = [
    "Submission",
    "claims",
    "commit_batch",
    "end",
    "facts",
    "grant",
    "granted",
    "hold",
    "lanes",
    "news",
    "scheduler",
]
