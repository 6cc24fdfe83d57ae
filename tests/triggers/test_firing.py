"""Every time fires once: however many processes look after a trigger, and wherever one of them is killed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import pytest

from stepwell.clock import SECOND
from stepwell.errors import InputError
from stepwell.model import RunStatus
from stepwell.testing import ops
from stepwell.triggers import Trigger
from stepwell.triggers import firing as firing_room
from stepwell.triggers.rendering import Start, time_text
from stepwell.triggers.schedule import Cron
from tests.triggers.processes import START, Killed, World

MINUTE = 60


def texts(*minutes: float) -> list[str]:
    return [time_text(int((START + minute * MINUTE) * SECOND)) for minute in minutes]


def settled(world: World) -> None:
    """A process that is not killed does whatever is left to do."""
    last = world.process()
    for _ in range(50):
        if last.fire_due() > 0:
            return
    raise AssertionError("it never comes to rest")


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


def test_a_year_that_was_missed_costs_little_to_leave_out() -> None:
    world = World()
    world.add("skip", cron="* * * * *", catch_up="skip")
    world.add("last", every=1, catch_up="last", grace_seconds=0)
    world.clock.advance(365 * 86_400 + 0.5)
    settled(world)
    assert world.runs.times("skip") == texts(365 * 1440)
    assert world.runs.times("last") == texts(365 * 1440)


def run_of(world: World, run_id: str, status: RunStatus | None = None) -> None:
    """A real run of the store, which is active until it is completed."""
    graph = ops.graph(a="")
    ops.start(world.store, graph, run_id)
    if status is not None:
        end(world, run_id)


def end(world: World, run_id: str) -> None:
    ops.enlist(world.store, seconds=1e6)
    world.store.commit([ops.completed(grant) for grant in ops.claim(world.store, runs=(run_id,))])


class Real:
    """Starts real runs of one node."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __call__(self, start: Start) -> bool:
        is_new = self._world.runs.start(start)
        if is_new:
            run_of(self._world, start.run_id)
        return is_new


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


def test_overlap_queue_starts_them_one_after_the_other() -> None:
    world = World()
    world.add(cron="*/10 * * * *", overlap="queue")
    process = firing_room.Firing(world.store, Real(world))
    for _ in range(3):
        world.clock.advance(10 * MINUTE)
        process.fire_due()
    assert world.runs.times("t") == texts(10)
    assert world.triggers.get("t").as_json()["waiting"] == 2
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
    with pytest.raises(InputError, match="range of the past"):
        world.triggers.backfill("t", start, start + 10**12)
    with pytest.raises(InputError, match="range of the past"):
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
    assert world.triggers.get("t").as_json()["error"] == f"{texts(10)[0]}: no document 'report' is stored here"
    broken = False
    world.clock.advance(40)
    process.fire_due()
    assert world.runs.times("t") == texts(10)
    assert world.triggers.get("t").as_json()["error"] is None


def test_what_this_process_has_no_code_for_is_left_to_others() -> None:
    world = World()
    world.add(cron="*/10 * * * *")

    def elsewhere(asked: Start) -> bool:
        raise firing_room.NotHere("its code is not here")

    world.clock.advance(10 * MINUTE)
    firing_room.Firing(world.store, elsewhere).fire_due()
    settled(world)
    assert world.runs.times("t") == texts(10)


def steps(**options: Any) -> int:
    """How many calls a process makes that is not killed."""
    world, process = at_the_moment(**options)
    calls = 0
    for _ in range(3):
        process.fire_due()
        calls = process.calls()
    assert len(world.runs.started) >= 2
    return int(calls)


def at_the_moment(kill_at: int | None = None, *, after: bool = False, **options: Any) -> tuple[World, Any]:
    world = World()
    world.add("first", **options)
    world.add("second", cron="*/10 * * * *")
    world.clock.advance(20 * MINUTE)
    return world, world.process(kill_at, after=after)


POLICIES: list[dict[str, Any]] = [
    {"cron": "*/10 * * * *", "catch_up": "all"},
    {"cron": "*/10 * * * *", "catch_up": "all", "overlap": "queue"},
    {"every": 300, "catch_up": "last", "overlap": "skip"},
]


@pytest.mark.parametrize("options", POLICIES, ids=lambda each: "-".join(map(str, each.values())))
def test_a_process_killed_at_any_call_loses_and_doubles_nothing(options: dict[str, Any]) -> None:
    """Killed at each of its calls, before and after it was carried out, and then once more at each of the next."""
    clean, process = at_the_moment(**options)
    settled(clean)
    expected = {run: start.input for run, start in clean.runs.started.items()}
    count = steps(**options)
    assert count > 8
    for first in range(1, count + 1):
        for second in range(0, count, 3):
            for after in (False, True):
                world, process = at_the_moment(first, after=after, **options)
                for each in (process, world.process(second or None, after=not after)):
                    try:
                        each.fire_due()
                        each.fire_due()
                    except Killed:
                        pass
                settled(world)
                assert {run: start.input for run, start in world.runs.started.items()} == expected
                stored = world.triggers.get("first").state
                assert stored.pending == ()
                assert stored.fired == len(world.runs.times("first"))


def test_a_process_that_goes_on_after_a_long_pause_doubles_nothing() -> None:
    """One stands still between any two of its calls, while another does everything; then it goes on."""
    for stop in range(1, 9):
        world, process = at_the_moment(cron="*/10 * * * *", catch_up="all")
        resumed = world.process()
        store = process._store
        carried_out = store._call

        def call(
            do: Any, store: Any = store, world: World = world, carried_out: Any = carried_out, stop: int = stop
        ) -> Any:
            if store.calls + 1 == stop:
                settled(world)
                world.clock.advance(10 * MINUTE)
                settled(world)
            return carried_out(do)

        store._call = call
        process.fire_due()
        resumed.fire_due()
        settled(world)
        assert world.runs.times("first") == texts(10, 20, 30)
        assert world.runs.times("second") == texts(20, 30)
        assert world.triggers.get("first").state.fired == 3


YEAR = 365 * 86_400
SCHEDULES: dict[str, dict[str, Any]] = {
    "berlin": {"cron": "30 2 * * *", "timezone": "Europe/Berlin"},
    "new-york": {"cron": "*/30 1-3 * * *", "timezone": "America/New_York"},
    "lord-howe": {"cron": "15,45 1,2 * * *", "timezone": "Australia/Lord_Howe"},
    "hourly": {"cron": "0 * 1-7 * *", "timezone": "Europe/London"},
    "months": {"cron": "0 0 L * *"},
    "poll": {"every": "7h"},
}


def expected_times(world: World, name: str, end: int) -> Iterator[str]:
    trigger = Trigger(name, "report", **SCHEDULES[name])
    if isinstance(trigger.when, Cron):
        times = trigger.when.after(START * SECOND)
    else:
        times = iter(range((START + 7 * 3_600) * SECOND, end + 1, 7 * 3_600 * SECOND))
    return map(time_text, takewhile(lambda time: time <= end, times))


@pytest.mark.parametrize("seed", [1])
def test_a_year_with_restarts_and_several_processes_fires_every_time_once(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firing_room, "LOOK_AGAIN", 10**15)  # nobody adds any here
    world = World()
    for name, options in SCHEDULES.items():
        world.add(name, catch_up="all", **options)
    world.live(YEAR, processes=2, seed=seed, kill=0.05, away=0.01)
    settled(world)
    end = world.clock.now()
    for name in SCHEDULES:
        assert world.runs.times(name) == list(expected_times(world, name, end)), name
    assert len(world.runs.started) > 6_000
    assert max(world.runs.asked.values()) <= 4  # asked again only after a kill
