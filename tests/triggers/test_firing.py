"""Every time fires once: however many processes look after a trigger, and wherever one of them is killed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.base.clock import SECOND
from stepwell.base.ids import RunId
from stepwell.core.model import PutRecord
from stepwell.core.model.ops import Delete
from stepwell.errors import InputError, StoreCorrupt
from stepwell.triggers import Trigger, deciding
from stepwell.triggers import firing as firing_room
from stepwell.triggers.rendering import Start
from stepwell.triggers.state import RECORD, Backfill, TriggerState
from stepwell.triggers.times import time_text
from tests.triggers.processes import MINUTE, START, Real, World, end, settled, texts


def test_a_time_fires_when_it_has_come_and_not_again() -> None:
    world = World()
    world.add(cron="*/10 * * * *", input={"day": "{{ fire.date }}", "since": "{{ fire.previous }}"}, tags={"team": "a"})
    process = world.process()
    assert process.fire_due() == 5 * SECOND  # it looks now and then whether others were added
    world.clock.advance(10 * MINUTE - 1)
    assert process.fire_due() == 1 * SECOND
    world.clock.advance(1)
    process.fire_due()
    process.fire_due()
    world.process().fire_due()
    (run,) = world.runs.started.values()
    assert run == Start(
        "t:2026-01-01T00:10:00Z",
        "report",
        {"day": "2026-01-01", "since": "2026-01-01T00:00:00Z"},
        0,
        {"team": "a", "trigger": "t", "fire": "2026-01-01T00:10:00Z"},
    )
    assert world.runs.asked[run.run_id] == 1
    stored = world.triggers.get("t")
    assert (stored.state.fired, stored.state.last_run) == (1, run.run_id)
    assert stored.next_fires(2) == [START + 1200, START + 1800]


CATCH_UP = [
    # nobody was there for 35 minutes: 10, 20 and 30 were missed
    ("skip", 60, 35, []),
    ("last", 60, 35, [30]),
    ("all", 60, 35, [10, 20, 30]),
    # within the grace it is late and not missed
    ("skip", 600, 35, [30]),
    ("last", 600, 35, [30]),
    ("skip", 900, 35, [20, 30]),
    ("last", 900, 35, [20, 30]),
    ("skip", 60, 30.5, [30]),
    ("last", 60, 30.5, [30]),
    ("skip", 60, 31, [30]),
    ("skip", 0, 30, [30]),
]


@pytest.mark.parametrize(("policy", "grace", "minutes", "fires"), CATCH_UP)
def test_what_was_missed_is_caught_up_as_asked(policy: Any, grace: int, minutes: float, fires: list[int]) -> None:
    world = World()
    world.add(cron="*/10 * * * *", catch_up=policy, grace_seconds=grace)
    world.clock.advance(minutes * MINUTE)
    settled(world)
    assert world.runs.times("t") == texts(*fires)
    world.clock.advance((40 - minutes) * MINUTE)
    settled(world)
    assert world.runs.times("t") == texts(*fires, 40)


STEPS = st.lists(st.tuples(st.integers(0, 4_000), st.booleans()), min_size=1, max_size=12)


@pytest.mark.parametrize("left", ["queue", "backfills"])
def test_what_waits_is_looked_at_at_once_unless_the_run_before_is_active(left: str) -> None:
    now = START * SECOND
    trigger = Trigger("t", "w", every=600, overlap="queue")
    state = TriggerState(1, "d", now, now, now)
    assert deciding.next_look(trigger, state, now, busy=False) == now + 600 * SECOND
    waiting = {"queue": (now,), "backfills": (Backfill(now - 1, now),)}[left]
    state = state.changed(**{left: waiting})
    assert deciding.next_look(trigger, state, now, busy=False) == now
    assert deciding.next_look(trigger, state, now, busy=True) == now + deciding.BUSY_AGAIN


def test_only_a_clock_that_was_set_back_is_told_as_one() -> None:
    now = START * SECOND
    trigger = Trigger("t", "w", every=600)
    state = TriggerState(1, "d", now, now, now)
    for later in (0, 600, 6_000):
        assert not deciding.decide(trigger, state, now + later * SECOND, busy=False).clock_moved
    assert deciding.decide(trigger, state, now - 2 * deciding.CLOCK_SET_BACK, busy=False).clock_moved


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    STEPS,
    st.sampled_from(["skip", "last", "all"]),
    st.sampled_from(["allow", "skip", "queue"]),
    st.sampled_from([0, 60, 600, 1_500]),
)
def test_each_time_is_started_waits_or_is_counted_as_left_out(
    steps: list[tuple[int, bool]], catch_up: Any, overlap: Any, grace: int
) -> None:
    """Whenever one looks, and whether the run before is active or not."""
    interval, most = 600 * SECOND, 3
    trigger = Trigger("t", "w", every=600, catch_up=catch_up, overlap=overlap, grace_seconds=grace)
    state, now = TriggerState(1, "d", START * SECOND, START * SECOND, START * SECOND), START * SECOND
    started: list[int] = []
    left_out = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deciding, "MAX_QUEUE", most)
        for seconds, busy in steps:
            again = deciding.next_look(trigger, state, now, busy=busy)
            assert again is not None
            now += seconds * SECOND
            decision = deciding.decide(trigger, state, now, busy=busy)
            if now < again:
                assert decision.state is state, "it may sleep until then"
            elif not busy:
                assert decision.state is not state, "and has something to do then"
            if decision.missed is not None:
                first, last = decision.missed
                assert catch_up != "all"
                assert START * SECOND < first <= last < now - grace * SECOND
                left_out += (last - first) // interval + 1
            state = decision.state
            assert len(state.pending) <= (100 if overlap == "allow" else 0 if busy else 1)
            assert len(state.queue) <= (most if overlap == "queue" else 0)
            assert state.mark <= now < state.mark + interval
            started += state.pending
            state = state.changed(pending=())
            due = range(START * SECOND + interval, now + 1, interval)
            assert len(due) == len(started) + len(state.queue) + state.left_out + left_out
            assert [*started, *state.queue] == sorted({*started, *state.queue} & {*due}), "once each, in order"


def test_a_year_that_was_missed_costs_little_to_leave_out() -> None:
    world = World()
    world.add("skip", cron="* * * * *", catch_up="skip")
    world.add("last", every=1, catch_up="last", grace_seconds=0)
    world.clock.advance(365 * 86_400 + 0.5)
    settled(world)
    assert world.runs.times("skip") == texts(365 * 1440)
    assert world.runs.times("last") == texts(365 * 1440)


def test_overlap_skip_leaves_out_what_comes_while_the_run_before_is_active() -> None:
    world = World()
    world.add(cron="*/10 * * * *", overlap="skip")
    process = firing_room.Firing(world.store, Real(world))
    for _ in range(3):
        world.clock.advance(10 * MINUTE)
        process.fire_due()
    assert world.runs.times("t") == texts(10)
    end(world, f"t:{texts(10)[0]}")
    world.clock.advance(10 * MINUTE)
    process.fire_due()
    assert world.runs.times("t") == texts(10, 40)
    assert world.triggers.get("t").state.left_out == 2


def test_a_run_that_was_deleted_is_not_waited_for() -> None:
    world = World()
    world.add(cron="*/10 * * * *", overlap="skip")
    process = firing_room.Firing(world.store, Real(world))
    world.clock.advance(10 * MINUTE)
    process.fire_due()
    first = RunId(f"t:{texts(10)[0]}")
    end(world, first)
    world.store.commit([Delete(first)])
    world.clock.advance(10 * MINUTE)
    process.fire_due()
    assert world.runs.times("t") == texts(10, 20)
    assert world.triggers.get("t").error is None


def test_overlap_queue_starts_them_one_after_the_other() -> None:
    world = World()
    world.add(cron="*/10 * * * *", overlap="queue")
    process = firing_room.Firing(world.store, Real(world))
    for _ in range(3):
        world.clock.advance(10 * MINUTE)
        process.fire_due()
    assert world.runs.times("t") == texts(10)
    assert world.triggers.get("t").to_dict()["waiting"] == 2
    for done, then, again in ((10, [10, 20], 1), (20, [10, 20, 30], 5)):
        end(world, f"t:{texts(done)[0]}")
        world.clock.advance(1)
        assert process.fire_due() == again * SECOND  # soon, while others wait
        assert world.runs.times("t") == texts(*then)
    assert world.triggers.get("t").state.left_out == 0


def test_overlap_allow_does_not_look_at_the_run_before() -> None:
    world = World()
    world.add(cron="*/10 * * * *")
    process = firing_room.Firing(world.store, Real(world))
    for _ in range(3):
        world.clock.advance(10 * MINUTE)
        process.fire_due()
    assert world.runs.times("t") == texts(10, 20, 30)


def test_a_backfill_starts_what_has_no_run_and_repeats_nothing() -> None:
    world = World()
    world.add(cron="*/10 * * * *")
    world.clock.advance(25 * MINUTE)
    settled(world)
    assert world.runs.times("t") == texts(20)
    start, stop = START * SECOND, (START + 20 * MINUTE) * SECOND
    assert [time_text(time) for time in world.triggers.backfill("t", start, stop, dry_run=True)] == texts(0, 10)
    settled(world)
    assert world.runs.times("t") == texts(20)
    for _ in range(2):
        world.triggers.backfill("t", start, stop + 1)
        settled(world)
        assert world.runs.times("t") == texts(0, 10, 20)
    assert world.triggers.get("t").state.backfills == ()
    for edge, fires in ((0, [-20, -10]), (1, [-10])):  # from exactly this time on, and up to it but without it
        world = World()
        world.add(cron="*/10 * * * *")
        begin = start - 1_200 * SECOND + edge
        assert [time_text(time) for time in world.triggers.backfill("t", begin, start)] == texts(*fires)
        settled(world)
        assert world.runs.times("t") == texts(*fires)
    with pytest.raises(InputError, match="start before its end"):
        world.triggers.backfill("t", start, start + 10**12)
    with pytest.raises(InputError, match="start before its end"):
        world.triggers.backfill("t", stop, start)


def test_a_backfill_waits_its_turn_where_runs_must_not_overlap() -> None:
    world = World()
    world.add(cron="*/10 * * * *", overlap="skip")
    world.clock.advance(1 * MINUTE)
    day = 86_400 * SECOND
    world.triggers.backfill("t", START * SECOND - day, START * SECOND - day + 1_800 * SECOND)
    process = firing_room.Firing(world.store, Real(world))
    for count in (1, 2, 3):
        process.fire_due()
        process.fire_due()
        assert len(world.runs.started) == count
        end(world, max(world.runs.started))
        world.clock.advance(1)
    process.fire_due()
    assert world.runs.times("t") == texts(-1440, -1430, -1420)


def test_a_paused_trigger_starts_nothing_and_misses_nothing() -> None:
    world = World()
    world.add(cron="*/10 * * * *", catch_up="all")
    world.triggers.pause("t")
    world.clock.advance(25 * MINUTE)
    settled(world)
    assert world.triggers.get("t").next_fires() == []
    world.triggers.resume("t")
    settled(world)
    assert world.runs.started == {}
    world.clock.advance(10 * MINUTE)
    settled(world)
    assert world.runs.times("t") == texts(30)


def test_a_new_version_keeps_what_was_due_and_fires_no_time_twice() -> None:
    world = World()
    world.add(cron="*/10 * * * *", input={"v": 1})
    world.clock.advance(10 * MINUTE)
    world.add(cron="*/5 * * * *", input={"v": 2})  # before anybody has looked
    settled(world)
    assert world.runs.times("t") == texts(10)
    assert world.triggers.get("t").version == 2
    world.clock.advance(5 * MINUTE)
    settled(world)
    world.add(cron="*/10 * * * *", input={"v": 1})
    assert world.triggers.get("t").version == 1  # the same content is the same version
    settled(world)
    assert world.runs.times("t") == texts(10, 15)
    assert [row.number for row in world.triggers.versions("t")] == [1, 2]


def test_one_that_is_removed_fires_no_more_and_can_be_added_again() -> None:
    world = World()
    world.add(cron="*/10 * * * *")
    world.triggers.remove("t")
    world.clock.advance(30 * MINUTE)
    settled(world)
    assert world.runs.started == {}
    with pytest.raises(InputError, match="no trigger 't'"):
        world.triggers.get("t")
    world.add(cron="*/10 * * * *")
    world.clock.advance(10 * MINUTE)
    settled(world)
    assert world.runs.times("t") == texts(40)


def test_a_clock_that_was_set_back_neither_stops_it_nor_repeats_anything() -> None:
    world = World()
    world.add(cron="*/10 * * * *")
    world.clock.advance(10 * MINUTE)
    settled(world)
    world.clock.advance(40 * 86_400)
    settled(world)
    assert len(world.runs.started) == 2
    world.clock.advance(-40 * 86_400)
    settled(world)
    world.clock.advance(10 * MINUTE)
    settled(world)
    assert world.runs.times("t") == sorted([*texts(10, 20), *texts(40 * 1440 + 10)])
    assert set(world.runs.asked.values()) == {1}


def test_what_cannot_be_started_is_told_kept_and_started_later() -> None:
    world = World()
    world.add(cron="*/10 * * * *")
    broken = True

    def start(asked: Start) -> bool:
        if broken:
            raise InputError("no document 'report' is stored here")
        return world.runs.start(asked)

    process = firing_room.Firing(world.store, start)
    world.clock.advance(10 * MINUTE)
    assert process.fire_due() == 5 * SECOND
    assert world.triggers.get("t").to_dict()["error"] == f"{texts(10)[0]}: no document 'report' is stored here"
    broken = False
    world.clock.advance(40)
    process.fire_due()
    assert world.runs.times("t") == texts(10)
    assert world.triggers.get("t").to_dict()["error"] is None


def test_what_this_process_has_no_code_for_is_left_to_others() -> None:
    world = World()
    world.add(cron="*/10 * * * *")

    def elsewhere(asked: Start) -> bool:
        raise firing_room.NotHere("its code is not here")

    world.clock.advance(10 * MINUTE)
    firing_room.Firing(world.store, elsewhere).fire_due()
    settled(world)
    assert world.runs.times("t") == texts(10)


def test_what_is_not_due_is_not_decided_again() -> None:
    world = World()
    for name in "abc":
        world.add(name, cron="0 0 1 1 *")
    process = world.process()
    decided: list[str] = []
    handle = process._handle
    process._handle = lambda row: decided.append(row.key) or handle(row)  # type: ignore[func-returns-value,method-assign]
    process.fire_due()
    assert decided == ["a", "b", "c"]
    world.clock.advance(MINUTE)
    world.triggers.pause("b")
    process.fire_due()
    process.fire_due()
    assert decided == ["a", "b", "c", "b"], "only what has changed"


def test_a_trigger_whose_version_is_missing_is_told_and_holds_up_no_other(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.add("good", cron="*/10 * * * *")
    lost = TriggerState(7, "d" * 64, 0, 0, 0)
    world.store.commit([PutRecord(RECORD, "bad", lost.encoded(), expected=0)])
    world.clock.advance(10 * MINUTE)
    settled(world)
    assert world.runs.times("good") == texts(10)
    assert "trigger bad cannot be looked after: its version 7 is not stored" in caplog.text
    with pytest.raises(StoreCorrupt, match="version 7 of trigger 'bad' is missing from the store"):
        world.triggers.get("bad")


def test_what_changes_while_a_process_decides_counts() -> None:
    world = World()
    world.add(cron="*/10 * * * *", overlap="skip")
    process = world.process()
    world.clock.advance(10 * MINUTE)
    put = process._put

    def paused_first(*asked: Any) -> Any:
        process._put = put  # type: ignore[method-assign]
        world.triggers.pause("t")
        return put(*asked)

    process._put = paused_first  # type: ignore[method-assign]
    assert process.fire_due() == 0, "it reads the trigger again at once"
    process.fire_due()
    assert world.runs.started == {}
    assert world.triggers.get("t").paused


def test_what_is_declared_is_changed_where_it_is_declared() -> None:
    world = World()
    world.triggers.declare("document report", [Trigger("t", "report", every=60)])
    with pytest.raises(InputError, match="is declared in document report: change it there"):
        world.add(every=120)
    world.triggers.declare("document report", [Trigger("t", "report", every=120)])
    assert world.triggers.get("t").version == 2


def test_a_new_schedule_leaves_out_what_the_old_one_would_while_its_run_is_active() -> None:
    for is_done, fires in ((True, [10, 20]), (False, [10])):
        world = World()
        world.add(cron="*/10 * * * *", overlap="skip")
        world.clock.advance(10 * MINUTE)
        firing_room.Firing(world.store, Real(world)).fire_due()
        if is_done:
            end(world, f"t:{texts(10)[0]}")
        world.clock.advance(10 * MINUTE)
        world.add(cron="5 * * * *", overlap="skip")  # what was due at 20 is decided by the old one
        settled(world)
        assert world.runs.times("t") == texts(*fires)


@pytest.mark.parametrize("was_paused", [False, True])
@pytest.mark.parametrize("paused", [None, False, True])
def test_a_new_version_is_paused_as_asked_and_otherwise_as_the_one_before(
    was_paused: bool, paused: bool | None
) -> None:
    world = World()
    world.triggers.add(Trigger("t", "report", every=60), paused=was_paused)
    added = world.triggers.add(Trigger("t", "report", every=120), paused=paused)
    assert added.paused is world.triggers.get("t").paused is (was_paused if paused is None else paused)


def test_a_key_has_at_most_80_characters() -> None:
    world = World()
    world.add(every=60)
    assert world.triggers.fire("t", key="k" * 80) == world.triggers.fire("t", key="k" * 80) == f"t:{'k' * 80}"
    with pytest.raises(InputError, match="at most 80 characters"):
        world.triggers.fire("t", key="k" * 81)
