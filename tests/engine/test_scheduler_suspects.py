"""A node that may have killed its worker is claimed alone, so that the next loss is certainly its own."""

from __future__ import annotations

from stepwell.core.model import StoreLimits
from stepwell.engine.scheduling.batches import CommitBatch
from stepwell.engine.scheduling.claims import DRAIN_FOR
from stepwell.engine.scheduling.scheduler import Scheduler
from tests.conformance.ops import LANE
from tests.engine.schedulers import claims, commit_batch, end, facts, granted, hold, lanes, scheduler


def next_suspect_claim(d: Scheduler) -> CommitBatch:
    """The batch with which it asks for a suspect, after usual claims that found nothing."""
    for _ in range(10):
        batch = d.next_batch(0)
        assert batch is not None, "it never asked for suspects"
        if "default/thread?" in lanes(batch):
            return batch
        commit_batch(d, batch)
    raise AssertionError("it never asked for suspects")


def test_a_run_that_becomes_known_is_also_searched_for_suspects() -> None:
    d = scheduler()
    d.know(facts())
    batch = next_suspect_claim(d)
    assert [type(op).__name__ for op in batch.ops] == ["Claim"]
    assert lanes(batch) == {"default/thread?": 1}


def test_suspects_of_every_queue_are_found() -> None:
    d = scheduler()
    d.know(facts("a", queue="apples"))
    d.know(facts("p", queue="pears"))
    while (batch := d.next_batch(0)) is not None:
        found = lanes(batch)
        commit_batch(d, batch)
        if "apples/thread?" in found:
            break
    assert found == {"apples/thread?": 1, "pears/thread?": 1}


def test_no_suspect_is_claimed_beside_anything_else() -> None:
    d = scheduler()
    d.know(facts(width=3))
    (held,) = hold(d, ("r", 0))
    d.look_for_suspects()
    while (batch := d.next_batch(0)) is not None:
        assert "default/thread?" not in lanes(batch)
        commit_batch(d, batch)
    end(d, held)
    next_suspect_claim(d)


def test_nothing_is_claimed_beside_a_suspect() -> None:
    d = scheduler()
    d.know(facts())
    batch = next_suspect_claim(d)
    (held,) = commit_batch(d, batch, granted(claims(batch)[0], ("r", 0))).begin
    assert held.suspect
    d.know(facts("other"))
    assert d.next_batch(0) is None
    end(d, held)
    assert d.next_batch(0) is not None


def test_after_a_suspect_it_looks_for_the_next() -> None:
    d = scheduler()
    d.know(facts(width=2))
    batch = next_suspect_claim(d)
    (held,) = commit_batch(d, batch, granted(claims(batch)[0], ("r", 0))).begin
    end(d, held)
    next_suspect_claim(d)


def test_a_suspect_is_found_among_any_number_of_runs() -> None:
    d = scheduler()
    for number in range(StoreLimits().runs + 10):
        d.know(facts(f"r{number}"))
    named: set[str] = set()
    while (batch := d.next_batch(0)) is not None:
        for claim in claims(batch):
            if claim.lanes[0][0].suspect:
                named.update(claim.runs or ())
        commit_batch(d, batch)
    assert len(named) == StoreLimits().runs + 10


def test_a_worker_that_only_serves_looks_for_suspects_too() -> None:
    d = scheduler()
    d.serves = {("w", "digest"): frozenset({LANE})}
    d.look_around()
    batch = next_suspect_claim(d)
    assert claims(batch)[0].serves == (("w", "digest"),)


def test_a_suspect_gets_its_turn_under_steady_load() -> None:
    d = scheduler(threads=2)
    d.know(facts(width=50))
    held = hold(d, ("r", 0), ("r", 1))
    d.look_for_suspects()
    assert d.would_drain
    d.drain(0)
    assert not d.would_drain
    for place, each in enumerate(held):
        end(d, each)
        batch = d.next_batch(place)
        assert batch is not None
        assert claims(batch) == [], "it claimed more while a suspect waited"
        commit_batch(d, batch)
    batch = d.next_batch(3)
    assert lanes(batch) == {"default/thread?": 1}
    assert batch is not None
    (suspect,) = commit_batch(d, batch, granted(claims(batch)[0], ("r", 2))).begin
    assert d.next_batch(DRAIN_FOR) is None
    end(d, suspect)
    batch = d.next_batch(4)
    assert "default/thread" in lanes(batch), "it did not go on afterwards"


def test_it_drains_only_for_others_than_a_suspect_it_holds() -> None:
    d = scheduler(threads=2)
    d.know(facts(width=50))
    assert not d.would_drain, "it holds nothing"
    batch = next_suspect_claim(d)
    (suspect,) = commit_batch(d, batch, granted(claims(batch)[0], ("r", 0))).begin
    d.look_for_suspects()
    assert suspect.suspect
    assert not d.would_drain, "what it holds is a suspect"
    end(d, suspect)
    assert not d.would_drain


def test_a_suspect_waits_a_limited_time_for_bodies_that_do_not_end() -> None:
    d = scheduler(threads=2)
    d.know(facts(width=50))
    hold(d, ("r", 0), ("r", 1))
    d.drain(5)
    assert d.next_batch(DRAIN_FOR) is None
    batch = d.next_batch(5 + DRAIN_FOR)
    assert lanes(batch) == {"default/thread?": 1}
    assert batch is not None
    assert commit_batch(d, batch, granted(claims(batch)[0], ("r", 2))).begin[0].suspect


def test_draining_for_a_suspect_that_somebody_else_took_ends() -> None:
    d = scheduler(threads=2)
    d.know(facts(width=50))
    (held,) = hold(d, ("r", 0))
    d.drain(0)
    end(d, held)
    asked: list[str] = []
    while (batch := d.next_batch(1)) is not None and len(asked) < 9:
        asked += lanes(batch)
        commit_batch(d, batch)
    assert asked == ["default/thread?", "default/thread"]


def test_after_a_drain_that_took_too_long_suspects_are_claimed_alone_again() -> None:
    d = scheduler(threads=2)
    d.know(facts(width=50))
    hold(d, ("r", 0), ("r", 1))
    d.drain(0)
    batch = d.next_batch(DRAIN_FOR)
    assert batch is not None
    (suspect,) = commit_batch(d, batch, granted(claims(batch)[0], ("r", 2)), now=DRAIN_FOR).begin
    end(d, suspect, DRAIN_FOR)
    later = 2 * DRAIN_FOR
    while (batch := d.next_batch(later)) is not None:
        assert "default/thread?" not in lanes(batch), "a suspect was claimed beside others"
        commit_batch(d, batch, now=later)
    assert d.would_drain
