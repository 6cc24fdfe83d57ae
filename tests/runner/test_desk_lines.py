"""Lines in the desk's flights: before the settlement that would fence them, and never in its way."""

from __future__ import annotations

from stepwell.errors import StoreError
from stepwell.model import Append, Appended, Claim, Claimed, Receipt, Refusal, Refused, Settle, Settled
from stepwell.runner.bodies.held import Held
from stepwell.runner.worker.batches import Flight
from stepwell.runner.worker.scheduler import Desk
from tests.runner import desks


def at_work(desk: Desk, nodes: int) -> list[Held]:
    desk.know(desks.facts(width=nodes))
    flight = desk.next_flight(0)
    assert flight is not None
    (claim,) = desks.claims(flight)
    grants = tuple(desks.grant(claim, number, index=number) for number in range(nodes))
    return desk.landed(flight, [Claimed(grants)], 0).begin


def say(desk: Desk, held: Held, lines: int = 1) -> None:
    said = desk.lines.of(held)
    assert said is not None
    for number in range(lines):
        said.log(1, "INFO", 20, "x", str(number))


def receipts(flight: Flight) -> list[Receipt]:
    """What a store would say."""
    return [
        Appended() if isinstance(op, Append) else Claimed(()) if isinstance(op, Claim) else Settled(False, desks.news())
        for op in flight.ops
    ]


def kinds(flight: Flight | None) -> list[str]:
    return [] if flight is None else [type(op).__name__ for op in flight.ops]


def test_lines_wait_until_they_are_ripe() -> None:
    desk = desks.desk(threads=4)
    (held,) = at_work(desk, 1)
    say(desk, held)
    assert "Append" not in kinds(desk.next_flight(1))
    desk.lines.ripen()
    assert kinds(desk.next_flight(1)) == ["Append"]


def test_the_rest_goes_before_the_settlement_ripe_or_not() -> None:
    desk = desks.desk(threads=4)
    first, second = at_work(desk, 2)
    for held in (first, second):
        say(desk, held, 2)
        desks.end(desk, held)
    flight = desk.next_flight(1)
    assert flight is not None
    assert kinds(flight)[:6] == ["Append"] * 4 + ["Settle"] * 2
    landing = desk.landed(flight, receipts(flight), 1)
    assert [accepted for _, _, accepted in landing.settled] == [True, True]


def test_refused_lines_change_nothing() -> None:
    desk = desks.desk(threads=4)
    (held,) = at_work(desk, 1)
    say(desk, held)
    desks.end(desk, held)
    flight = desk.next_flight(1)
    assert flight is not None
    answers = [Refused(Refusal.FENCED) if isinstance(op, Append | Settle) else Claimed(()) for op in flight.ops]
    landing = desk.landed(flight, answers, 1)
    assert [accepted for _, _, accepted in landing.settled] == [False]
    assert desk.idle


def test_a_batch_that_fell_is_sent_again_with_its_lines() -> None:
    desk = desks.desk(threads=4)
    (held,) = at_work(desk, 1)
    say(desk, held)
    desks.end(desk, held)
    flight = desk.next_flight(1)
    assert flight is not None
    desk.fell(flight, StoreError("full"))
    again = desk.next_flight(2)
    assert again is not None
    assert again.ops == flight.ops
    assert len(desk.landed(again, receipts(again), 2).settled) == 1


def test_many_lines_do_not_make_one_enormous_commit() -> None:
    desk = desks.desk(threads=20)
    for held in at_work(desk, 10):
        say(desk, held, 900)
        desks.end(desk, held)
    settled = 0
    while (flight := desk.next_flight(1)) is not None:
        assert kinds(flight).count("Append") < 3_000
        settled += len(desk.landed(flight, receipts(flight), 1).settled)
    assert settled == 10
