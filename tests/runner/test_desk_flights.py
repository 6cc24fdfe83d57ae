"""A batch is sent until it is answered; what it stands for is never forgotten, and who waits for it is told."""

from __future__ import annotations

import pytest

from stepwell.clock import SECOND
from stepwell.errors import StoreError
from stepwell.graph import Retry
from stepwell.ids import Digest, RunId
from stepwell.model import (
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
)
from stepwell.runner.worker.rejected_ops import TRIES
from stepwell.runner.worker.scheduler import MAX_SETTLEMENTS, Desk
from tests.runner.desks import Submission, claims, desk, end, facts, granted, hold, land, news


def create(run: str) -> Create:
    return Create(RunId(run), "w", None, Digest("d"), b"{}", 1)


def test_a_batch_that_fell_is_sent_again_as_it_was() -> None:
    d = desk(threads=1)
    d.know(facts(width=3))
    (held,) = hold(d, ("r", 0))
    end(d, held)
    flight = d.next_flight(0)
    assert flight is not None
    assert d.fell(flight, OSError("disk")) == []
    again = d.next_flight(1)
    assert again is not None
    assert again.ops == flight.ops, "with the same claim ids, or what was granted would be claimed twice"
    landing = land(d, again, granted(claims(again)[0], ("r", 1)))
    assert [each.index for each in landing.begin] == [1]
    assert [(each, ok) for each, _, ok in landing.settled] == [(held, True)]


def test_those_who_wait_for_a_batch_that_fell_are_told_and_it_goes_on_without_them() -> None:
    d = desk()
    submission = Submission([create("new")], (facts("new"),))
    d.submit(submission)
    flight = d.next_flight(0)
    assert flight is not None
    assert [type(op) for op in flight.ops] == [Create, Claim]
    late = Submission([create("late")])
    d.submit(late)
    error = OSError("disk")
    assert d.fell(flight, error) == [submission, late], "also those whose ops were not sent yet"
    assert submission.error is late.error is error
    again = d.next_flight(0)
    assert again is not None
    assert [type(op) for op in again.ops] == [Claim]
    assert "new" not in d.facts


def test_the_answers_of_a_submission_are_its_own() -> None:
    d = desk()
    first, second = Submission([create("a"), create("b")]), Submission([create("c")])
    d.submit(first)
    d.submit(second)
    flight = d.next_flight(0)
    assert flight is not None
    landing = land(d, flight)
    assert landing.answered == [first, second]
    assert [receipt.run_id for receipt in first.receipts or ()] == ["a", "b"]  # type: ignore[union-attr]
    assert [receipt.run_id for receipt in second.receipts or ()] == ["c"]  # type: ignore[union-attr]


def test_a_run_that_was_not_created_is_forgotten() -> None:
    d = desk()
    d.submit(Submission([create("new")], (facts("new"),)))
    flight = d.next_flight(0)
    assert flight is not None
    d.landed(flight, [Refused(Refusal.CONFLICT), Claimed(())], 0)
    assert d.facts == {}


def test_only_the_batch_in_flight_can_land_or_fall() -> None:
    d = desk()
    d.know(facts())
    flight = d.next_flight(0)
    assert flight is not None
    land(d, flight)
    with pytest.raises(AssertionError):
        land(d, flight)
    with pytest.raises(AssertionError):
        d.fell(flight, OSError())


def test_a_very_long_queue_of_settlements_is_sent_in_parts() -> None:
    d = desk(threads=MAX_SETTLEMENTS + 10)
    d.know(facts(width=MAX_SETTLEMENTS + 10))
    for held in hold(d, *(("r", index) for index in range(MAX_SETTLEMENTS + 10))):
        end(d, held)
    flight = d.next_flight(0)
    assert flight is not None
    assert len(flight.settling) == MAX_SETTLEMENTS
    land(d, flight)
    flight = d.next_flight(0)
    assert flight is not None
    assert len(flight.settling) == 10


def stages(d: Desk) -> list[tuple[str, object]]:
    """What the desk says it holds, from the claim of a node to its settlement."""
    seen: list[tuple[str, object]] = []
    flight = d.next_flight(0)
    assert flight is not None
    seen.append(("claim on its way", d.holding()))
    d.fell(flight, OSError())
    seen.append(("claim to be sent again", d.holding()))
    flight = d.next_flight(0)
    assert flight is not None
    (held,) = land(d, flight, granted(claims(flight)[0], ("r", 0))).begin
    seen.append(("held", d.holding()))
    end(d, held)
    seen.append(("ended", d.holding()))
    d.closing = True
    flight = d.next_flight(0)
    assert flight is not None
    seen.append(("settlement on its way", d.holding()))
    d.fell(flight, OSError())
    seen.append(("settlement to be sent again", d.holding()))
    flight = d.next_flight(0)
    assert flight is not None
    land(d, flight)
    seen.append(("settled", d.holding()))
    return seen


def test_everything_under_the_lease_is_named_until_it_is_settled() -> None:
    """None says nothing about what is held: while a claim is on its way, nobody knows."""
    d = desk()
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
    d = desk()
    d.know(facts(on_lost="interrupt"))
    flight = d.next_flight(0)
    assert flight is not None
    d.closing = True
    assert land(d, flight, granted(claims(flight)[0], ("r", 0))).begin == []
    flight = d.next_flight(0)
    assert flight is not None
    (settle,) = flight.ops
    assert isinstance(settle, Settle)
    assert (settle.attempt, settle.status, settle.node) == ("c1.0", "RELEASED", "READY")


def test_it_is_idle_when_nothing_is_held_settled_or_asked() -> None:
    d = desk()
    assert d.idle
    d.know(facts())
    assert d.idle
    (held,) = hold(d, ("r", 0))
    assert not d.idle
    end(d, held)
    assert not d.idle
    while (flight := d.next_flight(0)) is not None:
        assert not d.idle
        land(d, flight)
    assert d.idle


def test_a_gate_that_closed_on_a_failure_is_reported_and_an_end_is_remembered() -> None:
    d = desk()
    d.know(facts())
    failed = news(gate=GateState.HELD, purpose="failed")
    assert d.heard([failed]) == [HeldGate(RunId("r"), "failed", b"")]
    assert "r" in d.facts
    assert d.heard([news(status=RunStatus.FAILED, gate=GateState.SHUT)]) == []
    assert "r" not in d.facts


def test_old_news_of_an_end_do_not_end_a_run_that_was_retried() -> None:
    d = desk()
    retried = facts()
    retried.since = 9
    d.know(retried)
    d.heard([news(status=RunStatus.FAILED, gate=GateState.SHUT, seq=8)])
    assert "r" in d.facts
    d.heard([news(status=RunStatus.FAILED, gate=GateState.SHUT, seq=12)])
    assert "r" not in d.facts


def test_a_batch_that_failed_with_only_submissions_leaves_nothing_to_send_again() -> None:
    d = desk()
    d.submit(Submission([create("a")]))
    flight = d.next_flight(0)
    assert flight is not None
    d.fell(flight, StoreError("away"))
    assert d.idle
    d.submit(Submission([create("b")]))
    assert d.next_flight(0) is not None, "or it would wait until somebody asks once more"


def test_a_batch_that_cannot_be_applied_is_sent_in_halves_and_in_order() -> None:
    d = desk(threads=4)
    d.know(facts(width=8))
    for held in hold(d, *(("r", index) for index in range(4))):
        end(d, held)
    submission = Submission([create("new"), create("other")])
    d.submit(submission)
    whole = d.next_flight(0)
    assert whole is not None
    assert d.broke(whole, TypeError("no"), 0) == ([], None)
    sent: list[Op] = []
    while (flight := d.next_flight(0)) is not None and flight.ops[-1] in whole.ops:
        sent += flight.ops
        land(d, flight)
    assert sent == whole.ops
    assert submission.receipts is not None


def test_those_who_wait_are_told_of_a_store_in_trouble_also_while_a_batch_is_sent_in_parts() -> None:
    d = desk()
    submissions = [Submission([create(f"r{number}")]) for number in range(4)]
    for submission in submissions:
        d.submit(submission)
    flight = d.next_flight(0)
    assert flight is not None
    d.broke(flight, TypeError("no"), 0)
    half = d.next_flight(0)
    assert half is not None
    assert d.fell(half, StoreError("full")) == submissions
    assert d.idle


def test_a_settlement_that_is_kept_apart_stands_under_the_lease() -> None:
    d = desk()
    d.know(facts())
    (held,) = hold(d, ("r", 0))
    end(d, held)
    d.closing = True
    now = 0
    seen = []
    for _ in range(TRIES):
        flight = d.next_flight(now)
        assert flight is not None
        assert d.next_flight(now) is None
        _, rejected = d.broke(flight, TypeError("no"), now)
        seen.append((d.holding(), d.idle, rejected is None))
        now += SECOND
    assert seen == [(("c1.0",), False, True)] * (TRIES - 1) + [(("c1.0",), False, False)]
    flight = d.next_flight(now)
    assert flight is not None
    (settle,) = flight.ops
    assert isinstance(settle, Settle)
    assert (settle.attempt, settle.status, settle.node, settle.output) == ("c1.0", "FAILED", "FAILED", None)
    land(d, flight)
    assert d.idle


def test_what_was_given_back_and_cannot_be_stored_does_not_become_a_failure() -> None:
    d = desk()
    d.know(facts())
    (held,) = hold(d, ("r", 0))
    d.closing = True
    d.finished(held, Settle(held.attempt, AttemptStatus.RELEASED, NodeStatus.READY), 0)
    for turn in range(2 * TRIES):
        flight = d.next_flight(turn * 20 * SECOND)
        assert flight is not None
        (settle,) = flight.ops
        assert isinstance(settle, Settle)
        assert settle.status == "RELEASED"
        d.broke(flight, TypeError("no"), turn * 20 * SECOND)


def test_a_run_that_cannot_be_claimed_of_is_found_and_the_others_are_claimed() -> None:
    d = desk(threads=100)
    for number in range(20):
        d.know(facts(f"r{number}"))
    served: set[str] = set()
    broken = 0
    while (flight := d.next_flight(0)) is not None:
        runs = {run for claim in claims(flight) for run in claim.runs or ()}
        if "r7" in runs:
            broken += 1
            d.broke(flight, TypeError("no"), 0)
            continue
        served |= runs
        land(d, flight)
    assert served == {f"r{number}" for number in range(20)} - {"r7"}
    assert broken < 8
    d.hungry([RunId("r7"), RunId("r8")])
    flight = d.next_flight(0)
    assert [claim.runs for claim in claims(flight)] == [("r8",)], "it is not asked for with others"


def test_of_what_it_serves_a_pair_that_cannot_be_claimed_of_is_found() -> None:
    d = desk(threads=100)
    d.serves = {("w", f"d{number}"): frozenset({"default/thread"}) for number in range(8)}
    d.look_around()
    served: set[str] = set()
    for _ in range(20):
        flight = d.next_flight(0)
        if flight is None:
            break
        pairs = {digest for claim in claims(flight) for _, digest in claim.serves or ()}
        if "d3" in pairs:
            d.broke(flight, TypeError("no"), 0)
        else:
            served |= pairs
            land(d, flight)
    assert d.next_flight(0) is None
    assert served == {f"d{number}" for number in range(8)} - {"d3"}


def test_what_was_interrupted_and_cannot_be_stored_stays_interrupted() -> None:
    """Its body may be half done, so it must not be run again because of it."""
    d = desk()
    d.know(facts(on_lost="interrupt", retry=Retry(5, retry_on="builtins.TimeoutError")))
    (held,) = hold(d, ("r", 0))
    d.closing = True
    d.finished(held, Settle(held.attempt, AttemptStatus.TIMED_OUT, NodeStatus.INTERRUPTED, error=b'{"type":"x"}'), 0)
    for turn in range(TRIES):
        flight = d.next_flight(turn * SECOND)
        assert flight is not None
        d.broke(flight, TypeError("no"), turn * SECOND)
    flight = d.next_flight(TRIES * SECOND)
    assert flight is not None
    (settle,) = flight.ops
    assert isinstance(settle, Settle)
    assert (settle.status, settle.node) == ("TIMED_OUT", "INTERRUPTED")
    assert b"NotStored" in (settle.error or b"")


def test_what_happened_to_a_batch_is_counted_and_the_runs_of_its_settlements_are_told() -> None:
    d = desk(threads=1)
    d.know(facts(width=3))
    (held,) = hold(d, ("r", 0))
    end(d, held)
    flight = d.next_flight(0)
    assert flight is not None
    d.fell(flight, OSError("disk"))
    assert d.counters.commits_failed == 1
    assert not d.quiet, "it is to be sent again"
    again = d.next_flight(1)
    assert again is not None
    d.broke(again, ValueError("cannot be applied"), 1)
    assert d.counters.commits_failed == 2
    told = {}
    while (flight := d.next_flight(2)) is not None:
        told |= land(d, flight).news
    assert set(told) == {"r"}


def test_what_is_granted_of_a_run_that_was_healed_meanwhile_is_given_back_and_the_run_looked_at_anew() -> None:
    d = desk(threads=2)
    d.know(facts("old", width=2))
    d.know(facts("same", width=2))
    flight = d.next_flight(0)
    assert flight is not None
    (claim,) = claims(flight)
    both = granted(claim, ("old", 0), ("same", 0))
    healed = Claimed((both.grants[0]._replace(heals=1), both.grants[1]))
    landing = land(d, flight, healed)
    assert [held.facts.run_id for held in landing.begin] == ["same"]
    assert set(d.facts) == {"same"}
    back = d.next_flight(0)
    assert back is not None
    assert [op for op in back.ops if isinstance(op, Settle)] == [
        Settle(both.grants[0].attempt, AttemptStatus.RELEASED, NodeStatus.READY)
    ]


def test_of_two_lines_asked_for_together_the_one_that_gave_less_is_empty() -> None:
    d = desk(threads=2)
    d.know(facts("usual", width=9))
    d.know(facts("careful", width=9, on_lost="interrupt"))
    flight = d.next_flight(0)
    assert flight is not None
    (claim,) = claims(flight)
    assert [lane for lane, _ in claim.lanes] == ["default/thread!", "default/thread"]
    first, second = land(d, flight, granted(claim, ("usual", 0), ("usual", 1))).begin
    end(d, first, now=10 * SECOND)
    end(d, second, now=10 * SECOND)
    asked = [lane for claim in claims(d.next_flight(20 * SECOND)) for lane, _ in claim.lanes]
    assert asked == ["default/thread"], "there was nothing careful"
