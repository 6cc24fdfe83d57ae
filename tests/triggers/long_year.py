"""`make prove WHAT=year`: a simulated year of nearly 900,000 fires, with restarts and several processes; every time fires once.

DAYS=20 is a shorter one.
"""

from __future__ import annotations

import os
import sys
import time
from itertools import takewhile

from stepwell.base.clock import SECOND
from stepwell.triggers import Trigger
from stepwell.triggers import firing as firing_room
from stepwell.triggers.schedule import Cron, Every
from stepwell.triggers.times import time_text
from tests.triggers.processes import START, World, settled


def main() -> int:
    days, seed = int(os.environ.get("DAYS", "365")), int(os.environ.get("SEED", "1"))
    firing_room.LOOK_AGAIN = 10**15  # nobody adds any here
    world, began = World(), time.monotonic()
    world.triggers.add(Trigger("minutes", "report", cron="* * * * *", timezone="Europe/Berlin", catch_up="all"))
    world.triggers.add(Trigger("often", "report", every=90, catch_up="all"))
    world.live(days * 86_400, seed=seed, kill=0.01, away=0.0005)
    settled(world)
    end = world.clock.now()
    for name, schedule in (("minutes", Cron("* * * * *")), ("often", Every(90 * SECOND, START * SECOND))):
        expected = [time_text(each) for each in takewhile(lambda each: each <= end, schedule.after(START * SECOND))]
        assert world.runs.times(name) == expected, name
        print(f"{name}: {len(expected):,} times, each fired once")
    again = sum(count - 1 for count in world.runs.asked.values())
    print(f"{again:,} were asked for again after a kill; {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
