"""What the desk asks for on behalf of workflows it serves, whoever started the runs."""

from __future__ import annotations

from stepwell.runner.worker.scheduler import Desk
from tests.runner.desks import claims, desk, end, facts, granted, hold, land, lanes

PAIR = ("w", "digest")


def serving(d: Desk, *lanes: str) -> Desk:
    d.serves = {PAIR: frozenset(lanes)}
    d.look_around()
    return d


def test_served_workflows_are_asked_for_by_name_and_digest() -> None:
    flight = serving(desk(threads=3), "default/thread").next_flight(0)
    (claim,) = claims(flight)
    assert (claim.runs, claim.serves, claim.lanes) == (None, (PAIR,), (("default/thread", 3),))


def test_an_answer_that_is_full_is_followed_by_another_look() -> None:
    d = serving(desk(threads=1), "default/thread")
    flight = d.next_flight(0)
    assert flight is not None
    d.know(facts("stranger"))
    (held,) = land(d, flight, granted(claims(flight)[0], ("stranger", 0))).begin
    assert d.next_flight(0) is None
    end(d, held)
    flight = d.next_flight(0)
    assert flight is not None
    land(d, flight)
    assert claims(d.next_flight(0))[0].serves == (PAIR,)


def test_an_empty_answer_is_not_followed_by_another_look() -> None:
    d = serving(desk(), "default/thread")
    while (flight := d.next_flight(0)) is not None:
        land(d, flight)
    assert d.next_flight(0) is None
    d.look_around()
    assert lanes(d.next_flight(0)) == {"default/thread": 8}


def test_a_global_claim_is_a_batch_of_its_own() -> None:
    d = desk(threads=2)
    d.know(facts())
    (held,) = hold(d, ("r", 0))
    end(d, held)
    serving(d, "default/thread")
    flight = d.next_flight(0)
    assert flight is not None
    assert all(claim.serves is None for claim in claims(flight))


def test_a_kind_without_room_is_looked_for_when_there_is_room_again() -> None:
    d = desk(processes=1)
    d.know(facts(width=2, body="process"))
    (held,) = hold(d, ("r", 0))
    serving(d, "default/process", "default/thread")
    flight = d.next_flight(0)
    assert lanes(flight) == {"default/thread": 8}
    assert flight is not None
    land(d, flight)
    assert d.next_flight(0) is None
    end(d, held)
    flight = d.next_flight(0)
    assert flight is not None
    land(d, flight)
    flight = d.next_flight(0)
    assert lanes(flight) == {"default/process": 1}
    assert claims(flight)[0].serves == (PAIR,)


def test_a_known_run_that_waits_for_room_does_not_keep_it_from_looking_around() -> None:
    d = desk(processes=1)
    d.know(facts("known", width=2, body="process"))
    hold(d, ("known", 0))
    assert d.next_flight(0) is None
    serving(d, "default/thread")
    assert claims(d.next_flight(0))[0].serves == (PAIR,)


def test_a_refused_look_is_repeated_once_there_is_a_lease() -> None:
    from stepwell.model import Refusal, Refused

    d = serving(desk(), "default/thread")
    flight = d.next_flight(0)
    assert flight is not None
    assert land(d, flight, Refused(Refusal.LEASE_EXPIRED)).lease_lost
    assert d.next_flight(0) is None
    d.leased = True
    assert claims(d.next_flight(0))[0].serves == (PAIR,)


def test_what_was_granted_of_a_run_that_nobody_knows_is_left_to_the_renewals() -> None:
    """Its code was not found, or it ended at this moment: it must not stop everything else."""
    d = serving(desk(), "default/thread")
    flight = d.next_flight(0)
    assert flight is not None
    landing = land(d, flight, granted(claims(flight)[0], ("unknown", 0)))
    assert landing.begin == []
    assert d.holding() == ()
