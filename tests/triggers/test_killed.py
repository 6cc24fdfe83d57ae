"""A process that is killed, or stands still, at any of its calls loses and doubles nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.triggers.processes import MINUTE, Killed, World, settled, texts


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
