"""An attempt in virtual time: its body is called at once, and ends when it has slept enough."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from ...clock import microseconds
from ...model import Settle
from ...replay.effects.recorder import Recorder
from ...runner.bodies.attempt import Attempt, Course, leave_body
from ...runner.bodies.held import Held
from ...runner.bodies.host import EngineHost, Services
from .clock import VirtualClock, VirtualLoop


class VirtualRecorder(Recorder):
    """Answers `ctx.now()` with the virtual time."""

    clock: VirtualClock

    def now(self) -> int:
        at = self.clock.now()
        self._sink.read_clock(at)
        return at


class VirtualHost(EngineHost):
    __slots__ = ("clock",)
    clock: VirtualClock

    def outside(self) -> Recorder:
        recorder = VirtualRecorder(self.told.node_name, self.told.attempt, self.sink())
        recorder.clock = self.clock
        return recorder


class VirtualAttempt(Attempt):
    def __init__(self, held: Held, services: Services, clock: VirtualClock) -> None:
        host = VirtualHost(held, services)
        host.clock = clock
        Course.__init__(self, host, guarded=False)
        self.held = held
        self._frozen_at = lambda run_id: None

    def run(self, clock: VirtualClock) -> Settle:
        """The body from its beginning to its end; the clock then stands at its end."""
        seconds = self.held.spec.timeout
        clock.limit, clock.expired = None if seconds is None else clock.now() + microseconds(seconds), False
        try:
            ended = self.perform()
            if isinstance(ended, Coroutine):
                ended = self._awaited(ended, clock)
        finally:
            leave_body()
        return self.timed_out() if clock.expired else ended  # whatever it did with the end of its time

    def _awaited(self, coroutine: Coroutine[Any, Any, Any], clock: VirtualClock) -> Settle:
        self.enter()
        with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
            return runner.run(self._limited(coroutine))

    async def _limited(self, coroutine: Coroutine[Any, Any, Any]) -> Settle:
        try:
            async with asyncio.timeout(self.held.spec.timeout) as limit:
                return self.returned(await coroutine)
        except TimeoutError as error:
            return self.timed_out() if limit.expired() else self.raised(error)
        except BaseException as error:
            return self.raised(error)
