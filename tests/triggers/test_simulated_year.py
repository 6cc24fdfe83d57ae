"""A year on a virtual clock: several processes that are killed, replaced and away; every time fires once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import pytest

from stepwell.base.clock import SECOND
from stepwell.triggers import Trigger
from stepwell.triggers import firing as firing_room
from stepwell.triggers.schedule import Cron
from stepwell.triggers.times import time_text
from tests.triggers.processes import START, World, settled

YEAR = 365 * 86_400
SCHEDULES: dict[str, dict[str, Any]] = {
    "berlin": {"cron": "30 2 * * *", "timezone": "Europe/Berlin"},
    "new-york": {"cron": "30 1,2 * * *", "timezone": "America/New_York"},
    "lord-howe": {"cron": "45 1,2 * * *", "timezone": "Australia/Lord_Howe"},
    "hourly": {"cron": "0 * 25-31 3,10 *", "timezone": "Europe/London"},
    "months": {"cron": "0 0 L * *"},
    "poll": {"every": "31h"},
}


def expected_times(world: World, name: str, end: int) -> Iterator[str]:
    trigger = Trigger(name, "report", **SCHEDULES[name])
    schedule = trigger.schedule(0)
    if isinstance(schedule, Cron):
        times = schedule.after(START * SECOND)
    else:
        times = iter(range((START + 31 * 3_600) * SECOND, end + 1, 31 * 3_600 * SECOND))
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
    assert len(world.runs.started) > 2_000
    assert max(world.runs.asked.values()) <= 4  # asked again only after a kill
