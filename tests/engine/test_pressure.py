"""Back-pressure as the scheduler feels it: one block however wide the fan, told when it begins and when it ends."""

from __future__ import annotations

import pytest

from stepwell.base.clock import SECOND
from stepwell.base.ids import RunId
from stepwell.core.model import Claimed, Receipt, Settled
from stepwell.engine.scheduling.pressure import (
    MAX_RUNS_COUNTED,
    TELL_EVERY,
    BackpressureEvent,
    Pressure,
    RunPressure,
)
from tests.engine.schedulers import claims, commit_batch, end, facts, granted, hold, news, scheduler
from tests.sizes import sized

FULL = 2


def enumerated(*waiting: int) -> list[tuple[RunId, int]]:
    return [(RunId(f"r{place}"), count) for place, count in enumerate(waiting)]


def feel(pressure: Pressure, now: int, *waiting: int) -> list[str]:
    """What is told when so much waits of each run and there is no room."""
    pressure.update("thread", FULL, FULL, lambda: enumerated(*waiting), now)
    told = [event.state for event in pressure.news]
    pressure.news.clear()
    return told


def test_it_is_told_once_when_it_begins_and_once_when_it_ends() -> None:
    pressure = Pressure()
    assert feel(pressure, 0, 5) == ["began"]
    assert [feel(pressure, now, 5) for now in range(1, 50)] == [[]] * 49
    assert feel(pressure, 3 * SECOND) == ["ended"]
    assert feel(pressure, 4 * SECOND) == []
    assert (pressure.blocks("thread"), pressure.spent("thread", 9 * SECOND)) == (1, 3 * SECOND)
    assert (pressure.blocks("loop"), pressure.spent("loop", 9 * SECOND)) == (0, 0)


def test_short_bursts_are_counted_and_rarely_told() -> None:
    pressure = Pressure()
    told = []
    for now in range(0, TELL_EVERY, 1_000):
        told += feel(pressure, now, 1) + feel(pressure, now + 500)
    assert told == ["began", "ended"]
    assert (pressure.blocks("thread"), pressure.spent("thread", TELL_EVERY)) == (1_000, 500_000)


def test_a_burst_that_turns_out_to_last_is_told_late() -> None:
    pressure = Pressure()
    feel(pressure, 0, 1)
    feel(pressure, 1)
    assert feel(pressure, 2, 1) == []
    pressure.update("thread", FULL, FULL, lambda: enumerated(7, 0, 3), TELL_EVERY)
    assert list(pressure.news) == [
        BackpressureEvent(
            "thread", "began", FULL, FULL, 10, (TELL_EVERY - 2) / SECOND, 2, {RunId("r0"): 7, RunId("r2"): 3}
        )
    ]


def test_too_many_runs_are_not_counted() -> None:
    pressure = Pressure()
    pressure.update("thread", FULL, FULL, lambda: enumerated(*[1] * (MAX_RUNS_COUNTED + 1)), 0)
    assert pressure.news[0].waiting is None
    assert len(pressure.news[0].runs) == MAX_RUNS_COUNTED


def test_what_is_still_felt_counts_until_now() -> None:
    pressure = Pressure()
    feel(pressure, 0, 1)
    assert pressure.spent("thread", 7) == 7


def test_a_fan_wider_than_the_slots_presses_until_nothing_more_is_ready() -> None:
    d = scheduler(threads=2, queue_depth=0)
    d.know(facts(width=4))
    held = hold(d, ("r", 0), ("r", 1))
    assert list(d.pressure.news) == [BackpressureEvent("thread", "began", 2, 2, 2, 0.0, 1, {RunId("r"): 2})]
    for index in (2, 3):
        end(d, held[index - 2], now=SECOND)
        batch = d.next_batch(SECOND)
        assert batch is not None
        (claim,) = claims(batch)
        held += commit_batch(d, batch, granted(claim, ("r", index)), now=SECOND).begin
    for each in held[2:]:
        end(d, each, now=2 * SECOND)
    batch = d.next_batch(2 * SECOND)
    assert batch is not None
    commit_batch(d, batch, Claimed(()), now=2 * SECOND)
    assert [event.state for event in d.pressure.news] == ["began", "ended"]
    assert d.pressure.blocks("thread") == 1


@pytest.mark.full_size
def test_a_fan_of_50_000_is_one_block_and_memory_holds_two_of_it() -> None:
    width = sized(50_000)
    d = scheduler(threads=1, queue_depth=1)
    d.know(facts(width=width))
    given, waiting, now = 0, [], 0
    while given < width or waiting:
        now += 1_000
        if waiting:
            end(d, waiting.pop(0), now)
        batch = d.next_batch(now)
        assert batch is not None, "it stands still"
        places = [(claim, min(claim.lanes[0][1], width - given)) for claim in claims(batch)]
        answers = [granted(claim, *(("r", given + n) for n in range(room))) for claim, room in places]
        given += sum(room for _, room in places)
        receipts: list[Receipt] = [
            Settled(False, news()._replace(active=width - given + len(waiting))) for _ in batch.settling
        ]
        waiting += d.committed(batch, [*receipts, *answers], now).begin
        assert len(d.held) == len(waiting) <= 2
    assert [event.state for event in d.pressure.news] == ["began", "ended"]
    assert (d.waiting._slots.most_held["thread"], d.counters.claimed) == (2, width)


def test_a_fan_as_wide_as_the_slots_presses_nobody() -> None:
    d = scheduler(threads=2)
    d.know(facts(width=2))
    hold(d, ("r", 0), ("r", 1))
    assert d.next_batch(0) is None
    assert not d.pressure.news


def test_a_run_that_comes_when_all_slots_are_taken_presses() -> None:
    d = scheduler(threads=2)
    d.know(facts(width=2))
    hold(d, ("r", 0), ("r", 1))
    d.know(facts("other", width=3))
    assert d.next_batch(0) is None
    assert [(event.state, event.waiting) for event in d.pressure.news] == [("began", 3)]
    d.forget(facts("other").run_id)
    assert d.next_batch(SECOND) is None
    assert [event.state for event in d.pressure.news] == ["began", "ended"]


def test_a_desk_that_closes_is_pressed_no_more() -> None:
    d = scheduler(threads=1)
    d.know(facts(width=9))
    hold(d, ("r", 0))
    d.close(SECOND)
    assert [(event.state, event.seconds) for event in d.pressure.news] == [("began", 0.0), ("ended", 1.0)]
    assert d.next_batch(2 * SECOND) is None
    assert len(d.pressure.news) == 2


def test_each_run_is_told_what_it_has_cost_it() -> None:
    pressure, first, second = Pressure(), RunId("r0"), RunId("r1")
    assert pressure.of_runs([("thread", first)]) == {}
    feel(pressure, 0, 5)
    pressure.entered("thread", second)
    feel(pressure, 2 * SECOND, 5)
    both = [("thread", first), ("thread", second)]
    assert pressure.of_runs(both) == {first: RunPressure(1, 2.0), second: RunPressure(1, 2.0)}
    pressure.left("thread", second)
    feel(pressure, 5 * SECOND)
    pressure.left("thread", first)
    feel(pressure, 9 * SECOND)
    assert pressure.of_runs([]) == {second: RunPressure(1, 2.0), first: RunPressure(1, 5.0)}
    pressure.entered("thread", second)  # while nothing presses: it cost it nothing
    pressure.left("thread", second)
    assert pressure.of_runs([])[second] == RunPressure(1, 2.0)


def test_the_cost_is_kept_for_the_runs_that_waited_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepwell.engine.scheduling.pressure.MAX_RUNS_KEPT", 3)
    pressure, runs = Pressure(), [RunId(f"r{number}") for number in range(5)]
    feel(pressure, 0, 5)
    feel(pressure, SECOND, 5)
    for run in (*runs, runs[2], runs[4]):
        pressure.left("thread", run)
    assert list(pressure.of_runs([])) == [runs[3], runs[2], runs[4]]


def test_a_run_that_waits_for_a_slot_is_named() -> None:
    d = scheduler(threads=1, queue_depth=0)
    d.know(facts(width=2))
    hold(d, ("r", 0))
    assert d.waiting.blocked_runs() == {}  # it has just begun
    d.next_batch(3 * SECOND)
    assert d.waiting.blocked_runs() == {RunId("r"): RunPressure(1, 3.0)}
