"""A batch is sent until it is answered; what it stands for is never forgotten, and who waits for it is told."""

from __future__ import annotations

import pytest

from stepwell.base.clock import SECOND
from stepwell.base.ids import Digest, RunId
from stepwell.core.graph import Retry
from stepwell.core.model import (
    AttemptStatus,
    Claim,
    Claimed,
    Create,
    GateState,
    HeldGate,
    NodeStatus,
    Op,
    Refusal,
    Refused,
    RunStatus,
    Settle,
    StoreLimits,
)
from stepwell.engine.scheduling.outbox import TRIES
from stepwell.engine.scheduling.scheduler import Scheduler
from stepwell.errors import StoreError
from tests.conformance.ops import LANE
from tests.engine.schedulers import Submission, claims, commit_batch, end, facts, granted, hold, news, scheduler


def create(run: str) -> Create:
    return Create(RunId(run), "w", None, Digest("d"), b"{}", 1)


def test_a_batch_that_fell_is_sent_again_as_it_was() -> None:
    d = scheduler(threads=1)
    d.know(facts(width=3))
    (held,) = hold(d, ("r", 0))
    end(d, held)
    batch = d.next_batch(0)
    assert batch is not None
    assert d.failed(batch, OSError("disk")) == []
    again = d.next_batch(1)
    assert again is not None
    assert again.ops == batch.ops, "with the same claim ids, or what was granted would be claimed twice"
    result = commit_batch(d, again, granted(claims(again)[0], ("r", 1)))
    assert [each.index for each in result.begin] == [1]
    assert [(each, ok) for each, _, ok in result.settled] == [(held, True)]


def test_those_who_wait_for_a_batch_that_failed_are_told_and_it_goes_on_without_them() -> None:
    d = scheduler()
    submission = Submission([create("new")], (facts("new"),))
    d.submit(submission)
    batch = d.next_batch(0)
    assert batch is not None
    assert [type(op) for op in batch.ops] == [Create, Claim]
    late = Submission([create("late")])
    d.submit(late)
    error = OSError("disk")
    assert d.failed(batch, error) == [submission, late], "also those whose ops were not sent yet"
    assert submission.error is late.error is error
    again = d.next_batch(0)
    assert again is not None
    assert [type(op) for op in again.ops] == [Claim]
    assert "new" not in d.facts


def test_the_answers_of_a_submission_are_its_own() -> None:
    d = scheduler()
    first, second = Submission([create("a"), create("b")]), Submission([create("c")])
    d.submit(first)
    d.submit(second)
    batch = d.next_batch(0)
    assert batch is not None
    result = commit_batch(d, batch)
    assert result.answered == [first, second]
    assert [receipt.run_id for receipt in first.receipts or ()] == ["a", "b"]  # type: ignore[union-attr]
    assert [receipt.run_id for receipt in second.receipts or ()] == ["c"]  # type: ignore[union-attr]


def test_a_run_that_was_not_created_is_forgotten() -> None:
    d = scheduler()
    d.submit(Submission([create("new")], (facts("new"),)))
    batch = d.next_batch(0)
    assert batch is not None
    d.committed(batch, [Refused(Refusal.CONFLICT), Claimed(())], 0)
    assert d.facts == {}


def test_only_the_batch_in_flight_can_be_answered() -> None:
    d = scheduler()
    d.know(facts())
    batch = d.next_batch(0)
    assert batch is not None
    commit_batch(d, batch)
    with pytest.raises(AssertionError):
        commit_batch(d, batch)
    with pytest.raises(AssertionError):
        d.failed(batch, OSError())


def test_a_very_long_queue_of_settlements_is_sent_in_parts() -> None:
    d = scheduler(threads=StoreLimits().settlements + 10)
    d.know(facts(width=StoreLimits().settlements + 10))
    for held in hold(d, *(("r", index) for index in range(StoreLimits().settlements + 10))):
        end(d, held)
    batch = d.next_batch(0)
    assert batch is not None
    assert len(batch.settling) == StoreLimits().settlements
    commit_batch(d, batch)
    batch = d.next_batch(0)
    assert batch is not None
    assert len(batch.settling) == 10


def stages(d: Scheduler) -> list[tuple[str, object]]:
    """What the scheduler says it holds, from the claim of a node to its settlement."""
    seen: list[tuple[str, object]] = []
    batch = d.next_batch(0)
    assert batch is not None
    seen.append(("claim on its way", d.holding()))
    d.failed(batch, OSError())
    seen.append(("claim to be sent again", d.holding()))
    batch = d.next_batch(0)
    assert batch is not None
    (held,) = commit_batch(d, batch, granted(claims(batch)[0], ("r", 0))).begin
    seen.append(("held", d.holding()))
    end(d, held)
    seen.append(("ended", d.holding()))
    d.closing = True
    batch = d.next_batch(0)
    assert batch is not None
    seen.append(("settlement on its way", d.holding()))
    d.failed(batch, OSError())
    seen.append(("settlement to be sent again", d.holding()))
    batch = d.next_batch(0)
    assert batch is not None
    commit_batch(d, batch)
    seen.append(("settled", d.holding()))
    return seen


def test_everything_under_the_lease_is_named_until_it_is_settled() -> None:
    """None says nothing about what is held: while a claim is on its way, nobody knows."""
    d = scheduler()
    d.know(facts())
    attempt = ("c1.0",)
    assert stages(d) == [
        ("claim on its way", None),
        ("claim to be sent again", None),
        ("held", attempt),
        ("ended", attempt),
        ("settlement on its way", attempt),
        ("settlement to be sent again", attempt),
        ("settled", ()),
    ]


def test_what_a_claim_brings_while_closing_is_given_back_at_once() -> None:
    d = scheduler()
    d.know(facts(on_lost="interrupt"))
    batch = d.next_batch(0)
    assert batch is not None
    d.closing = True
    assert commit_batch(d, batch, granted(claims(batch)[0], ("r", 0))).begin == []
    batch = d.next_batch(0)
    assert batch is not None
    (settle,) = batch.ops
    assert isinstance(settle, Settle)
    assert (settle.attempt, settle.status, settle.node) == ("c1.0", "RELEASED", "READY")


def test_it_is_idle_when_nothing_is_held_settled_or_asked() -> None:
    d = scheduler()
    assert d.idle
    d.know(facts())
    assert d.idle
    (held,) = hold(d, ("r", 0))
    assert not d.idle
    end(d, held)
    assert not d.idle
    while (batch := d.next_batch(0)) is not None:
        assert not d.idle
        commit_batch(d, batch)
    assert d.idle


def test_a_gate_that_closed_on_a_failure_is_reported_and_an_end_is_remembered() -> None:
    d = scheduler()
    d.know(facts())
    failed = news(gate=GateState.HELD, purpose="failed")
    assert d.apply_news([failed]) == [HeldGate(RunId("r"), "failed", b"")]
    assert "r" in d.facts
    assert d.apply_news([news(status=RunStatus.FAILED, gate=GateState.SHUT)]) == []
    assert "r" not in d.facts


def test_old_news_of_an_end_do_not_end_a_run_that_was_retried() -> None:
    d = scheduler()
    retried = facts()
    retried.since = 9
    d.know(retried)
    d.apply_news([news(status=RunStatus.FAILED, gate=GateState.SHUT, seq=8)])
    assert "r" in d.facts
    d.apply_news([news(status=RunStatus.FAILED, gate=GateState.SHUT, seq=12)])
    assert "r" not in d.facts


def test_a_batch_that_failed_with_only_submissions_leaves_nothing_to_send_again() -> None:
    d = scheduler()
    d.submit(Submission([create("a")]))
    batch = d.next_batch(0)
    assert batch is not None
    d.failed(batch, StoreError("away"))
    assert d.idle
    d.submit(Submission([create("b")]))
    assert d.next_batch(0) is not None, "or it would wait until somebody asks once more"


def test_a_batch_that_cannot_be_applied_is_sent_in_halves_and_in_order() -> None:
    d = scheduler(threads=4)
    d.know(facts(width=8))
    for held in hold(d, *(("r", index) for index in range(4))):
        end(d, held)
    submission = Submission([create("new"), create("other")])
    d.submit(submission)
    whole = d.next_batch(0)
    assert whole is not None
    assert d.rejected(whole, TypeError("no"), 0) == ([], None)
    sent: list[Op] = []
    while (batch := d.next_batch(0)) is not None and batch.ops[-1] in whole.ops:
        sent += batch.ops
        commit_batch(d, batch)
    assert sent == whole.ops
    assert submission.receipts is not None


def test_those_who_wait_are_told_of_a_store_in_trouble_also_while_a_batch_is_sent_in_parts() -> None:
    d = scheduler()
    submissions = [Submission([create(f"r{number}")]) for number in range(4)]
    for submission in submissions:
        d.submit(submission)
    batch = d.next_batch(0)
    assert batch is not None
    d.rejected(batch, TypeError("no"), 0)
    half = d.next_batch(0)
    assert half is not None
    assert d.failed(half, StoreError("full")) == submissions
    assert d.idle


def test_a_settlement_that_is_kept_apart_stands_under_the_lease() -> None:
    d = scheduler()
    d.know(facts())
    (held,) = hold(d, ("r", 0))
    end(d, held)
    d.closing = True
    now = 0
    seen = []
    for _ in range(TRIES):
        batch = d.next_batch(now)
        assert batch is not None
        assert d.next_batch(now) is None
        _, rejected = d.rejected(batch, TypeError("no"), now)
        seen.append((d.holding(), d.idle, rejected is None))
        now += SECOND
    assert seen == [(("c1.0",), False, True)] * (TRIES - 1) + [(("c1.0",), False, False)]
    batch = d.next_batch(now)
    assert batch is not None
    (settle,) = batch.ops
    assert isinstance(settle, Settle)
    assert (settle.attempt, settle.status, settle.node, settle.output) == ("c1.0", "FAILED", "FAILED", None)
    commit_batch(d, batch)
    assert d.idle


def test_what_was_given_back_and_cannot_be_stored_does_not_become_a_failure() -> None:
    d = scheduler()
    d.know(facts())
    (held,) = hold(d, ("r", 0))
    d.closing = True
    d.finished(held, Settle(held.attempt, AttemptStatus.RELEASED, NodeStatus.READY), 0)
    for turn in range(2 * TRIES):
        batch = d.next_batch(turn * 20 * SECOND)
        assert batch is not None
        (settle,) = batch.ops
        assert isinstance(settle, Settle)
        assert settle.status == "RELEASED"
        d.rejected(batch, TypeError("no"), turn * 20 * SECOND)


def test_a_run_that_cannot_be_claimed_of_is_found_and_the_others_are_claimed() -> None:
    d = scheduler(threads=100)
    for number in range(20):
        d.know(facts(f"r{number}"))
    served: set[str] = set()
    broken = 0
    while (batch := d.next_batch(0)) is not None:
        runs = {run for claim in claims(batch) for run in claim.runs or ()}
        if "r7" in runs:
            broken += 1
            d.rejected(batch, TypeError("no"), 0)
            continue
        served |= runs
        commit_batch(d, batch)
    assert served == {f"r{number}" for number in range(20)} - {"r7"}
    assert broken < 8
    d.mark_ready([RunId("r7"), RunId("r8")])
    batch = d.next_batch(0)
    assert [claim.runs for claim in claims(batch)] == [("r8",)], "it is not asked for with others"


def test_of_what_it_serves_a_pair_that_cannot_be_claimed_of_is_found() -> None:
    d = scheduler(threads=100)
    d.serves = {("w", f"d{number}"): frozenset({LANE}) for number in range(8)}
    d.look_around()
    served: set[str] = set()
    for _ in range(20):
        batch = d.next_batch(0)
        if batch is None:
            break
        pairs = {digest for claim in claims(batch) for _, digest in claim.serves or ()}
        if "d3" in pairs:
            d.rejected(batch, TypeError("no"), 0)
        else:
            served |= pairs
            commit_batch(d, batch)
    assert d.next_batch(0) is None
    assert served == {f"d{number}" for number in range(8)} - {"d3"}


def test_what_was_interrupted_and_cannot_be_stored_stays_interrupted() -> None:
    """Its body may be half done, so it must not be run again because of it."""
    d = scheduler()
    d.know(facts(on_lost="interrupt", retry=Retry(5, retry_on="builtins.TimeoutError")))
    (held,) = hold(d, ("r", 0))
    d.closing = True
    d.finished(held, Settle(held.attempt, AttemptStatus.TIMED_OUT, NodeStatus.INTERRUPTED, error=b'{"type":"x"}'), 0)
    for turn in range(TRIES):
        batch = d.next_batch(turn * SECOND)
        assert batch is not None
        d.rejected(batch, TypeError("no"), turn * SECOND)
    batch = d.next_batch(TRIES * SECOND)
    assert batch is not None
    (settle,) = batch.ops
    assert isinstance(settle, Settle)
    assert (settle.status, settle.node) == ("TIMED_OUT", "INTERRUPTED")
    assert b"NotStored" in (settle.error or b"")


def test_what_was_submitted_what_ended_and_what_may_be_ready_is_something_to_say() -> None:
    d = scheduler()
    assert d.quiet
    d.submit(Submission([create("new")], (facts("new"),)))
    assert not d.quiet
    (held,) = hold(d, ("new", 0))
    while (batch := d.next_batch(0)) is not None:
        commit_batch(d, batch)
    assert d.quiet, "a body is at work, and nobody needs to know"
    end(d, held)
    assert not d.quiet
    while (batch := d.next_batch(0)) is not None:
        commit_batch(d, batch)
    assert d.quiet
    d.mark_ready([RunId("new")])
    assert not d.quiet


def test_what_happened_to_a_batch_is_counted_and_the_runs_of_its_settlements_are_told() -> None:
    d = scheduler(threads=1)
    d.know(facts(width=3))
    (held,) = hold(d, ("r", 0))
    end(d, held)
    batch = d.next_batch(0)
    assert batch is not None
    d.failed(batch, OSError("disk"))
    assert d.counters.commits_failed == 1
    assert not d.quiet, "it is to be sent again"
    again = d.next_batch(1)
    assert again is not None
    d.rejected(again, ValueError("cannot be applied"), 1)
    assert d.counters.commits_failed == 2
    told = {}
    while (batch := d.next_batch(2)) is not None:
        told |= commit_batch(d, batch).news
    assert set(told) == {"r"}


def test_what_is_granted_of_a_run_that_was_healed_meanwhile_is_given_back_and_the_run_looked_at_anew() -> None:
    d = scheduler(threads=2)
    d.know(facts("old", width=2))
    d.know(facts("same", width=2))
    batch = d.next_batch(0)
    assert batch is not None
    (claim,) = claims(batch)
    both = granted(claim, ("old", 0), ("same", 0))
    healed = Claimed((both.grants[0]._replace(heals=1), both.grants[1]))
    result = commit_batch(d, batch, healed)
    assert [held.facts.run_id for held in result.begin] == ["same"]
    assert set(d.facts) == {"same"}
    back = d.next_batch(0)
    assert back is not None
    assert [op for op in back.ops if isinstance(op, Settle)] == [
        Settle(both.grants[0].attempt, AttemptStatus.RELEASED, NodeStatus.READY)
    ]


def test_of_two_lines_asked_for_together_the_one_that_gave_less_is_empty() -> None:
    d = scheduler(threads=2)
    d.know(facts("usual", width=9))
    d.know(facts("careful", width=9, on_lost="interrupt"))
    batch = d.next_batch(0)
    assert batch is not None
    (claim,) = claims(batch)
    assert [str(lane) for lane, _ in claim.lanes] == ["default/thread!", "default/thread"]
    first, second = commit_batch(d, batch, granted(claim, ("usual", 0), ("usual", 1))).begin
    end(d, first, now=10 * SECOND)
    end(d, second, now=10 * SECOND)
    asked = [str(lane) for claim in claims(d.next_batch(20 * SECOND)) for lane, _ in claim.lanes]
    assert asked == ["default/thread"], "there was nothing careful"
