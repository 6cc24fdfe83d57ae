"""A batch is sent until it is answered; what it stands for is never forgotten, and who waits for it is told."""

from __future__ import annotations

import pytest

from stepwell.ids import Digest, RunId
from stepwell.model import (
    Claim,
    Claimed,
    Create,
    GateState,
    HeldGate,
    Refusal,
    Refused,
    RunStatus,
    Settle,
)
from stepwell.runner.desk import MAX_SETTLEMENTS, Desk
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
