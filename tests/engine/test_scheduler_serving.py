"""What the scheduler asks for on behalf of workflows it serves, whoever started the runs."""

from __future__ import annotations

from stepwell.engine.scheduling.claims import SERVED_EVERY
from stepwell.engine.scheduling.scheduler import Scheduler
from tests.conformance.ops import LANE, lane
from tests.engine.schedulers import claims, commit_batch, end, facts, granted, hold, lanes, scheduler

PAIR = ("w", "digest")


def serving(d: Scheduler, *lanes: str) -> Scheduler:
    d.serves = {PAIR: frozenset(map(lane, lanes))}
    d.look_around()
    return d


def test_served_workflows_are_asked_for_by_name_and_digest() -> None:
    batch = serving(scheduler(threads=3), "default/thread").next_batch(0)
    (claim,) = claims(batch)
    assert (claim.runs, claim.serves, claim.lanes) == ((), (PAIR,), ((LANE, 3),))


def test_an_answer_that_is_full_is_followed_by_another_look() -> None:
    d = serving(scheduler(threads=1), "default/thread")
    batch = d.next_batch(0)
    assert batch is not None
    d.know(facts("unknown"))
    (held,) = commit_batch(d, batch, granted(claims(batch)[0], ("unknown", 0))).begin
    assert d.next_batch(0) is None
    end(d, held)
    batch = d.next_batch(0)
    assert batch is not None
    commit_batch(d, batch)
    assert claims(d.next_batch(0))[0].serves == (PAIR,)


def test_an_empty_answer_is_not_followed_by_another_look() -> None:
    d = serving(scheduler(), "default/thread")
    while (batch := d.next_batch(0)) is not None:
        commit_batch(d, batch)
    assert d.next_batch(0) is None
    d.look_around()
    assert lanes(d.next_batch(0)) == {"default/thread": 8}


def test_a_global_claim_is_a_batch_of_its_own() -> None:
    d = scheduler(threads=2)
    d.know(facts())
    (held,) = hold(d, ("r", 0))
    end(d, held)
    serving(d, "default/thread")
    batch = d.next_batch(0)
    assert batch is not None
    assert all(claim.serves is None for claim in claims(batch))


def test_a_kind_without_room_is_looked_for_when_there_is_room_again() -> None:
    d = scheduler(processes=1)
    d.know(facts(width=2, body="process"))
    (held,) = hold(d, ("r", 0))
    serving(d, "default/process", "default/thread")
    batch = d.next_batch(0)
    assert lanes(batch) == {"default/thread": 8}
    assert batch is not None
    commit_batch(d, batch)
    assert d.next_batch(0) is None
    end(d, held)
    batch = d.next_batch(0)
    assert batch is not None
    commit_batch(d, batch)
    batch = d.next_batch(0)
    assert lanes(batch) == {"default/process": 1}
    assert claims(batch)[0].serves == (PAIR,)


def test_looking_around_takes_a_part_of_the_commits_only_however_long_they_take() -> None:
    d = scheduler(threads=8)
    d.know(facts(width=90))
    now, found = SERVED_EVERY, []
    for turn in range(12):
        serving(d, "default/thread")
        batch = d.next_batch(now)
        assert batch is not None
        (claim,) = claims(batch)
        found.append("around" if claim.serves else "known")
        now += 2 * SERVED_EVERY
        for held in commit_batch(d, batch, granted(claim, ("r", turn)), now=now).begin:
            end(d, held, now)
    assert found.count("around") == 3, found


def test_a_known_run_that_waits_for_room_does_not_keep_it_from_looking_around() -> None:
    d = scheduler(processes=1)
    d.know(facts("known", width=2, body="process"))
    hold(d, ("known", 0))
    assert d.next_batch(0) is None
    serving(d, "default/thread")
    assert claims(d.next_batch(0))[0].serves == (PAIR,)


def test_a_refused_look_is_repeated_once_there_is_a_lease() -> None:
    from stepwell.core.model import Refusal, Refused

    d = serving(scheduler(), "default/thread")
    batch = d.next_batch(0)
    assert batch is not None
    assert commit_batch(d, batch, Refused(Refusal.LEASE_EXPIRED)).lease_lost
    assert d.next_batch(0) is None
    d.leased = True
    assert claims(d.next_batch(0))[0].serves == (PAIR,)


def test_what_was_granted_of_a_run_that_nobody_knows_is_left_to_the_renewals() -> None:
    """Its code was not found, or it ended at this moment: it must not stop everything else."""
    d = serving(scheduler(), "default/thread")
    batch = d.next_batch(0)
    assert batch is not None
    result = commit_batch(d, batch, granted(claims(batch)[0], ("unknown", 0)))
    assert result.begin == []
    assert d.holding() == ()
