"""Lines in the scheduler's batches: before the settlement that would fence them, and never in its way."""

from __future__ import annotations

from stepwell.core.model import Append, Appended, Claim, Claimed, Receipt, Refusal, Refused, Settle, Settled
from stepwell.engine.bodies.held import Held
from stepwell.engine.scheduling.batches import CommitBatch
from stepwell.engine.scheduling.scheduler import Scheduler
from stepwell.errors import StoreError
from tests.engine import schedulers


def at_work(scheduler: Scheduler, nodes: int) -> list[Held]:
    scheduler.know(schedulers.facts(width=nodes))
    batch = scheduler.next_batch(0)
    assert batch is not None
    (claim,) = schedulers.claims(batch)
    grants = tuple(schedulers.grant(claim, number, index=number) for number in range(nodes))
    return scheduler.committed(batch, [Claimed(grants)], 0).begin


def say(scheduler: Scheduler, held: Held, lines: int = 1) -> None:
    said = scheduler.lines.of(held)
    assert said is not None
    for number in range(lines):
        said.log(1, "INFO", 20, "x", str(number))


def receipts(batch: CommitBatch) -> list[Receipt]:
    """What a store would say."""
    return [
        Appended()
        if isinstance(op, Append)
        else Claimed(())
        if isinstance(op, Claim)
        else Settled(False, schedulers.news())
        for op in batch.ops
    ]


def kinds(batch: CommitBatch | None) -> list[str]:
    return [] if batch is None else [type(op).__name__ for op in batch.ops]


def test_lines_wait_until_they_are_ripe() -> None:
    scheduler = schedulers.scheduler(threads=4)
    (held,) = at_work(scheduler, 1)
    say(scheduler, held)
    assert "Append" not in kinds(scheduler.next_batch(1))
    scheduler.lines.mark_due()
    assert kinds(scheduler.next_batch(1)) == ["Append"]


def test_lines_that_are_to_be_sent_again_are_something_to_say() -> None:
    scheduler = schedulers.scheduler(threads=4)
    (held,) = at_work(scheduler, 1)
    while (batch := scheduler.next_batch(1)) is not None:
        scheduler.committed(batch, receipts(batch), 1)
    assert scheduler.quiet
    say(scheduler, held)
    scheduler.lines.mark_due()
    batch = scheduler.next_batch(1)
    assert kinds(batch) == ["Append"]
    assert batch is not None
    scheduler.failed(batch, StoreError("away"))
    assert not scheduler.quiet


def test_the_rest_goes_before_the_settlement_ripe_or_not() -> None:
    scheduler = schedulers.scheduler(threads=4)
    first, second = at_work(scheduler, 2)
    for held in (first, second):
        say(scheduler, held, 2)
        schedulers.end(scheduler, held)
    batch = scheduler.next_batch(1)
    assert batch is not None
    assert kinds(batch)[:6] == ["Append"] * 4 + ["Settle"] * 2
    result = scheduler.committed(batch, receipts(batch), 1)
    assert [accepted for _, _, accepted in result.settled] == [True, True]


def test_refused_lines_change_nothing() -> None:
    scheduler = schedulers.scheduler(threads=4)
    (held,) = at_work(scheduler, 1)
    say(scheduler, held)
    schedulers.end(scheduler, held)
    batch = scheduler.next_batch(1)
    assert batch is not None
    answers = [Refused(Refusal.FENCED) if isinstance(op, Append | Settle) else Claimed(()) for op in batch.ops]
    result = scheduler.committed(batch, answers, 1)
    assert [accepted for _, _, accepted in result.settled] == [False]
    assert scheduler.idle


def test_a_batch_that_fell_is_sent_again_with_its_lines() -> None:
    scheduler = schedulers.scheduler(threads=4)
    (held,) = at_work(scheduler, 1)
    say(scheduler, held)
    schedulers.end(scheduler, held)
    batch = scheduler.next_batch(1)
    assert batch is not None
    scheduler.failed(batch, StoreError("full"))
    again = scheduler.next_batch(2)
    assert again is not None
    assert again.ops == batch.ops
    assert len(scheduler.committed(again, receipts(again), 2).settled) == 1


def test_many_lines_do_not_make_one_enormous_commit() -> None:
    scheduler = schedulers.scheduler(threads=20)
    for held in at_work(scheduler, 10):
        say(scheduler, held, 900)
        schedulers.end(scheduler, held)
    settled = 0
    while (batch := scheduler.next_batch(1)) is not None:
        assert kinds(batch).count("Append") < 3_000
        settled += len(scheduler.committed(batch, receipts(batch), 1).settled)
    assert settled == 10
