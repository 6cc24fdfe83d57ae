"""What the scheduler asks for: free slots and a little ahead, never too much, and nothing that must not wait in memory."""

from __future__ import annotations

from itertools import pairwise

from stepwell.base.ids import RunId
from stepwell.core.model import Claim, Claimed, Refusal, Refused, Settle, StoreLimits
from stepwell.engine.scheduling.batches import CommitBatch
from stepwell.engine.scheduling.scheduler import Scheduler
from stepwell.engine.scheduling.slots import AHEAD_WINDOW, Pace
from tests.conformance.ops import CHUNK, LANE, lane
from tests.engine.schedulers import claims, commit_batch, end, facts, granted, hold, lanes, scheduler


def test_a_run_that_becomes_known_is_asked_for_up_to_the_free_slots() -> None:
    d = scheduler(threads=3)
    d.know(facts(width=9))
    (claim,) = claims(d.next_batch(0))
    assert (claim.lanes, claim.runs, claim.serves) == (((LANE, 3),), ("r",), None)


def test_only_one_batch_is_in_flight() -> None:
    d = scheduler()
    d.know(facts())
    assert d.next_batch(0) is not None
    assert d.next_batch(0) is None


def test_an_answer_that_is_full_is_followed_by_another_claim_and_one_that_is_not_by_none() -> None:
    d = scheduler(threads=2)
    d.know(facts(width=9))
    first, second = hold(d, ("r", 0), ("r", 1))
    assert d.next_batch(0) is None
    assert d.pressure.blocks("thread") == 1
    end(d, first)
    batch = d.next_batch(10 * AHEAD_WINDOW)
    assert lanes(batch) == {"default/thread": 1}
    assert batch is not None
    commit_batch(d, batch)
    assert d.next_batch(10 * AHEAD_WINDOW) is None
    end(d, second)
    assert lanes(d.next_batch(20 * AHEAD_WINDOW)) == {"default/thread": 2}


def test_as_much_is_claimed_ahead_as_ended_lately_and_the_queue_allows() -> None:
    d = scheduler(threads=2, queue_depth=3)
    d.know(facts(width=90))
    for turn in range(5):
        for held in hold(d, ("r", 2 * turn), ("r", 2 * turn + 1)):
            end(d, held, now=turn)
    assert lanes(d.next_batch(5)) == {"default/thread": 2 + 3}


def test_after_a_while_nothing_is_claimed_ahead() -> None:
    d = scheduler(threads=2)
    d.know(facts(width=90))
    for held in hold(d, ("r", 0), ("r", 1)):
        end(d, held, now=1)
    assert lanes(d.next_batch(3 * AHEAD_WINDOW)) == {"default/thread": 2}


def test_the_pace_is_what_ended_in_this_window_and_the_one_before() -> None:
    pace = Pace()
    pace.count(10 * AHEAD_WINDOW, 0, AHEAD_WINDOW)
    pace.count(11 * AHEAD_WINDOW - 1, 0, AHEAD_WINDOW)
    assert pace.recent(11 * AHEAD_WINDOW - 1, AHEAD_WINDOW) == 2
    pace.count(11 * AHEAD_WINDOW, 0, AHEAD_WINDOW)
    assert pace.recent(12 * AHEAD_WINDOW - 1, AHEAD_WINDOW) == 3
    assert pace.recent(12 * AHEAD_WINDOW, AHEAD_WINDOW) == 1
    assert pace.recent(13 * AHEAD_WINDOW, AHEAD_WINDOW) == 0
    pace.count(20 * AHEAD_WINDOW, 0, AHEAD_WINDOW)
    assert pace.recent(22 * AHEAD_WINDOW, AHEAD_WINDOW) == 0
    pace.count(30 * AHEAD_WINDOW, 0, AHEAD_WINDOW)
    assert pace.recent(32 * AHEAD_WINDOW - 1, AHEAD_WINDOW) == 1


def wanted_in_turn(took: int, works: int) -> list[int]:
    """How many nodes each of four commits asks for, which take so long, between which all bodies work so long."""
    d = scheduler(threads=2, queue_depth=10_000)
    d.know(facts(width=500))
    now, wanted = 0, []
    for _ in range(4):
        batch = d.next_batch(now)
        assert batch is not None
        (claim,) = claims(batch)
        ((_, limit),) = claim.lanes
        now += took
        begun = commit_batch(
            d, batch, granted(claim, *(("r", sum(wanted) + each) for each in range(limit))), now=now
        ).begin
        wanted.append(limit)
        now += works
        for held in begun:
            end(d, held, now)
    return wanted


def test_a_worker_claims_more_with_every_commit_also_where_commits_take_long() -> None:
    """As with others who have the same run: what ended before the answer came must not be forgotten by then."""
    first, *later = wanted_in_turn(took=20 * AHEAD_WINDOW, works=11 * AHEAD_WINDOW)
    assert first == 2
    assert all(many >= 1.5 * few for few, many in pairwise([first, *later])), later


def test_a_worker_that_waits_for_the_store_more_than_it_works_claims_several_times_as_much() -> None:
    assert wanted_in_turn(took=1_000, works=1_000) == [2, 4, 8, 16]
    assert wanted_in_turn(took=3_000, works=1_000) == [2, 2 + 3 * 2, 2 + 3 * 10, 2 + 3 * 42]
    assert wanted_in_turn(took=9_000, works=1_000) == [2, 2 + 4 * 2, 2 + 4 * 12, 2 + 4 * 62]


def test_a_worker_that_still_works_claims_no_more_than_it_did() -> None:
    d = scheduler(threads=3, queue_depth=100)
    d.know(facts(width=90))
    first, second, _ = hold(d, ("r", 0), ("r", 1), ("r", 2))
    for held in (first, second):
        end(d, held)
    batch = d.next_batch(0)
    assert batch is not None
    commit_batch(d, batch, now=9_000)
    d.mark_ready({RunId("r")})
    assert lanes(d.next_batch(9_000)) == {"default/thread": 2 + 2}


def test_what_was_claimed_ahead_counts_against_the_slots() -> None:
    d = scheduler(threads=2, queue_depth=10)
    d.know(facts(width=90))
    for held in hold(d, ("r", 0), ("r", 1)):
        end(d, held)
    batch = d.next_batch(0)
    assert lanes(batch) == {"default/thread": 4}
    assert batch is not None
    commit_batch(d, batch, granted(claims(batch)[0], *(("r", index) for index in range(2, 6))))
    assert len(d.held) == d.count("thread") == 4
    assert d.next_batch(0) is None


def test_careful_lanes_are_never_claimed_ahead() -> None:
    d = scheduler(threads=2)
    d.know(facts(width=9, on_lost="interrupt"))
    first, second = hold(d, ("r", 0), ("r", 1))
    end(d, first)
    batch = d.next_batch(0)
    assert lanes(batch) == {"default/thread!": 1}
    assert batch is not None
    commit_batch(d, batch, granted(claims(batch)[0], ("r", 2)))
    assert d.next_batch(0) is None, "no slot is free, though one body ended a moment ago"
    end(d, second)
    assert lanes(d.next_batch(0)) == {"default/thread!": 1}


def test_a_careful_node_that_found_no_slot_is_asked_for_as_soon_as_one_is_free() -> None:
    """Also when it is of another run than the bodies that end, and others could be claimed ahead."""
    d = scheduler(threads=1)
    d.know(facts("usual", width=9))
    (held,) = hold(d, ("usual", 0))
    d.know(facts("careful", on_lost="interrupt"))
    assert d.next_batch(0) is None
    end(d, held)
    assert list(lanes(d.next_batch(0)).items()) == [("default/thread!", 1), ("default/thread", 2)]


def test_careful_nodes_that_are_left_over_are_remembered() -> None:
    """Two slots, three careful nodes of two runs, and room to claim ahead: what is left is not forgotten."""
    d = scheduler(threads=2, queue_depth=10)
    d.know(facts("a", width=9))
    for held in hold(d, ("a", 0), ("a", 1)):
        end(d, held)
    batch = d.next_batch(0)
    assert batch is not None
    commit_batch(d, batch)
    for run in ("b", "c"):
        d.know(facts(run, width=2, on_lost="interrupt"))
    first, second = hold(d, ("b", 0), ("b", 1))
    assert d.next_batch(0) is None
    end(d, first)
    (claim,) = claims(d.next_batch(0))
    assert "c" in (claim.runs or ())
    assert not second.over


def test_each_kind_of_body_has_its_own_claim_and_limit() -> None:
    d = scheduler(threads=2, loop=5, processes=1)
    for kind in ("thread", "loop", "process"):
        d.know(facts(kind, body=kind))
    found = claims(d.next_batch(0))
    assert [claim.lanes for claim in found] == [
        ((lane("default/thread"), 2),),
        ((lane("default/loop"), 5),),
        ((lane("default/process"), 1),),
    ]
    assert [claim.runs for claim in found] == [("thread",), ("loop",), ("process",)]


def test_processes_are_never_claimed_ahead() -> None:
    d = scheduler(processes=1)
    d.know(facts(width=9, body="process"))
    (held,) = hold(d, ("r", 0))
    end(d, held)
    assert lanes(d.next_batch(0)) == {"default/process": 1}


def test_a_kind_without_room_does_not_hide_the_runs_behind_it() -> None:
    """More runs wait for a process than one claim can name; the run behind them needs a thread."""
    d = scheduler(processes=1)
    for number in range(StoreLimits().runs + 50):
        d.know(facts(f"p{number}", body="process"))
    hold(d, ("p0", 0))
    d.know(facts("t"))
    (claim,) = claims(d.next_batch(0))
    assert (claim.runs, claim.lanes) == (("t",), ((LANE, 8),))


def test_more_runs_than_one_claim_names_are_asked_for_one_after_another() -> None:
    d = scheduler()
    runs = [f"r{number}" for number in range(2 * StoreLimits().runs + 7)]
    for run in runs:
        d.know(facts(run))
    asked: list[RunId] = []
    while (batch := d.next_batch(0)) is not None and claims(batch)[0].runs is not None:
        if claims(batch)[0].lanes[0][0].suspect:
            break
        (claim,) = claims(batch)
        assert len(claim.runs or ()) <= StoreLimits().runs
        asked += claim.runs or ()
        commit_batch(d, batch)
    assert asked == runs


def test_a_claim_never_asks_for_more_than_one_may_take() -> None:
    """Or an answer of the most it may take would look as if there were nothing more."""
    d = scheduler(loop=3 * CHUNK)
    d.know(facts(width=2, body="loop"))
    assert lanes(d.next_batch(0)) == {"default/loop": CHUNK}


def test_nothing_is_claimed_while_closing_stalled_or_without_a_lease() -> None:
    for switch, value in (("closing", True), ("stalled", True), ("leased", False)):
        d = scheduler()
        d.know(facts())
        setattr(d, switch, value)
        assert d.next_batch(0) is None
        setattr(d, switch, not value)
        assert claims(d.next_batch(0))


def test_the_claims_of_a_settlement_are_in_its_batch() -> None:
    d = scheduler(threads=1)
    d.know(facts(width=3))
    (held,) = hold(d, ("r", 0))
    end(d, held)
    batch = d.next_batch(0)
    assert batch is not None
    assert [type(op).__name__ for op in batch.ops] == ["Settle", "Claim"]


def test_a_run_that_ended_is_not_asked_for_again() -> None:
    d = scheduler()
    d.know(facts())
    d.forget(RunId("r"))
    assert d.next_batch(0) is None
    d.mark_ready([RunId("r")])
    assert d.next_batch(0) is None


def test_what_becomes_ready_while_a_claim_is_on_its_way_is_asked_for_again() -> None:
    """The store answered before that, so its answer says nothing about it."""
    d = scheduler()
    d.know(facts())
    batch = d.next_batch(0)
    assert batch is not None
    d.mark_ready((RunId("r"),))
    commit_batch(d, batch)
    again = d.next_batch(0)
    assert lanes(again) == {"default/thread": 8}
    assert again is not None
    commit_batch(d, again)
    assert "default/thread" not in lanes(d.next_batch(0))


def nothing_more(d: Scheduler) -> None:
    """Whatever else it asks for is not there."""
    while (batch := d.next_batch(0)) is not None:
        commit_batch(d, batch, Claimed(()))


def test_runs_that_others_held_are_asked_for_again_when_it_looks_again_and_not_before() -> None:
    d = scheduler(threads=3)
    d.know(facts(width=9))
    batch = d.next_batch(0)
    assert batch is not None
    result = commit_batch(d, batch, Claimed((), contended=True))
    assert result.contended
    nothing_more(d)
    assert (d.next_batch(0), d.quiet) == (None, False)  # no busy loop, and whoever works it off does not go away
    d.look_again()
    batch = d.next_batch(0)
    assert [claim.runs for claim in claims(batch)] == [("r",)]
    assert batch is not None
    assert not commit_batch(d, batch, Claimed(())).contended
    d.look_again()
    assert (d.next_batch(0), d.quiet) == (None, True)


def test_workflows_that_are_served_are_looked_through_again_after_others_held_their_runs() -> None:
    d = scheduler(threads=3)
    d.serves = {("w", "digest"): facts().graph.lanes}
    d.look_around()
    batch = d.next_batch(0)
    assert batch is not None
    (claim,) = claims(batch)
    assert claim.serves == (("w", "digest"),)
    assert commit_batch(d, batch, Claimed((), contended=True)).contended
    nothing_more(d)
    d.look_again()
    assert [claim.serves for claim in claims(d.next_batch(0))] == [(("w", "digest"),)]


def _after_one_of(width: int, threads: int = 8) -> tuple[Scheduler, CommitBatch]:
    """A scheduler that settles the only node it held of a run, with the claim that follows."""
    d = scheduler(threads=threads)
    d.know(facts(width=width))
    (held,) = hold(d, ("r", 0))
    search = d.next_batch(0)  # for suspects
    if search is not None:
        commit_batch(d, search)
    end(d, held)
    batch = d.next_batch(10 * AHEAD_WINDOW)
    assert batch is not None
    assert [type(op) for op in batch.ops] == [Settle, Claim]
    return d, batch


def test_after_the_claim_that_follows_one_node_got_all_it_asked_for_it_asks_again() -> None:
    d, batch = _after_one_of(9, threads=2)
    (claim,) = claims(batch)
    commit_batch(d, batch, granted(claim, ("r", 1), ("r", 2)))
    assert d.claims.are_due(busy=True), "there may be more"


def test_after_the_claim_that_follows_one_node_got_less_it_does_not_ask_again() -> None:
    d, batch = _after_one_of(2)
    (claim,) = claims(batch)
    commit_batch(d, batch, granted(claim, ("r", 1)))
    assert d.quiet
    assert d.next_batch(20 * AHEAD_WINDOW) is None


def test_a_refused_claim_that_follows_one_node_is_repeated_once_there_is_a_lease() -> None:
    d, batch = _after_one_of(2)
    assert commit_batch(d, batch, Refused(Refusal.LEASE_EXPIRED)).lease_lost
    assert d.next_batch(20 * AHEAD_WINDOW) is None
    d.leased = True
    assert lanes(d.next_batch(20 * AHEAD_WINDOW)) == {"default/thread": 8}


def test_the_claim_that_follows_one_node_leaves_no_other_run_behind() -> None:
    d = scheduler()
    d.know(facts("a", width=2))
    (held,) = hold(d, ("a", 0))
    search = d.next_batch(0)
    if search is not None:
        commit_batch(d, search)
    end(d, held)
    d.know(facts("b"))
    (claim,) = claims(d.next_batch(0))
    assert set(claim.runs) == {"a", "b"}
