"""Processes that fire triggers of one store on a virtual clock, and what they started."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from stepwell.base.clock import SECOND, ManualClock
from stepwell.core.model import Answer, Batch, Query
from stepwell.core.store.memory import MemoryStore
from stepwell.triggers.book import Triggers
from stepwell.triggers.definition import Trigger
from stepwell.triggers.firing import Firing
from stepwell.triggers.rendering import Start
from stepwell.triggers.times import time_text
from tests.conformance import ops

START = 1_767_225_600  # 2026-01-01T00:00:00Z


class Killed(BaseException):
    """The process is gone: nothing of it may catch this."""


class Runs:
    """What a store does with runs: the same id is the same run."""

    def __init__(self) -> None:
        self.started: dict[str, Start] = {}
        self.asked: Counter[str] = Counter()

    def start(self, start: Start) -> bool:
        self.asked[start.run_id] += 1
        if start.run_id in self.started:
            return False
        self.started[start.run_id] = start
        return True

    def times(self, trigger: str) -> list[str]:
        return sorted(run.partition(":")[2] for run in self.started if run.startswith(f"{trigger}:"))


class Faulty:
    """A store, and a way to start runs, that kill the process at one of its calls, before or after it was carried out."""

    def __init__(self, store: MemoryStore, runs: Runs, kill_at: int | None = None, *, after: bool = False) -> None:
        self._store, self._runs = store, runs
        self._kill_at, self._after = kill_at, after
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _call(self, do: Any) -> Any:
        self.calls += 1
        dies = self.calls == self._kill_at
        if dies and not self._after:
            raise Killed
        answer = do()
        if dies:
            raise Killed
        return answer

    def commit(self, batch: Batch) -> Answer:
        return self._call(lambda: self._store.commit(batch))  # type: ignore[no-any-return]

    def read(self, queries: Sequence[Query]) -> list[Any]:
        return self._call(lambda: self._store.read(queries))  # type: ignore[no-any-return]

    def start(self, start: Start) -> bool:
        return self._call(lambda: self._runs.start(start))  # type: ignore[no-any-return]


class World:
    """One store, a clock, and any number of processes."""

    def __init__(self) -> None:
        self.clock = ManualClock(START * SECOND)
        self.store = MemoryStore(clock=self.clock)
        self.runs = Runs()
        self.triggers = Triggers(self.store, self.runs.start)

    def add(self, name: str = "t", **options: Any) -> None:
        self.triggers.add(Trigger(name, "report", **options))

    def process(self, kill_at: int | None = None, *, after: bool = False) -> Firing:
        faulty = Faulty(self.store, self.runs, kill_at, after=after)
        firing = Firing(faulty, faulty.start)  # type: ignore[arg-type]
        firing.calls = lambda: faulty.calls  # type: ignore[attr-defined]
        return firing

    def live(self, until: float, *, processes: int = 3, seed: int = 0, kill: float = 0.05, away: float = 0.0) -> None:
        """Let time pass until so many seconds after the start. Processes look when they said they would, are killed at any
        call, are replaced, and now and then nobody is there for a while."""
        draw = random.Random(seed)
        alive = [(self.process(), 0) for _ in range(processes)]
        end = (START + until) * SECOND
        while self.clock.now() < end:
            place = min(range(processes), key=lambda each: alive[each][1])
            firing, due = alive[place]
            self.clock.advance(max(0, due - self.clock.now()) / SECOND + draw.choice((0, 0.001, 0.4)))
            if draw.random() < kill:
                firing = self.process(draw.randrange(1, 12), after=draw.random() < 0.5)
            try:
                again = firing.fire_due()
                if away == 0.0 and again > 5 * SECOND:
                    raise AssertionError("nobody looks whether triggers were added")
                # The interval in which others are noticed is stretched: nobody adds any here.
                alive[place] = (firing, self.clock.now() + max(again, 1))
            except Killed:
                alive[place] = (self.process(), self.clock.now() + 1)
            if away and draw.random() < away:
                self.clock.advance(draw.uniform(60, 100_000))


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


def run_of(world: World, run_id: str) -> None:
    """A real run of the store, which is active until it is completed."""
    ops.start(world.store, ops.graph(a=""), run_id)


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
