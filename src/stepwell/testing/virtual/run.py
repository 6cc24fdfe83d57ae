"""`speedrun`: a workflow from beginning to end, in memory and in virtual time.

It is driven by the scheduler of the engine, without threads: bodies are called one after the other, in the order in which they
are claimed, and what they end with is committed in the order of virtual time. So a speedrun is the same every time.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Coroutine, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from ...base.clock import SECOND, Duration, microseconds
from ...base.ids import RunId, new_claim_id, new_worker_id
from ...core.model import Enlist, GetRun, HeldGate, RunNews, Settle
from ...core.store import Store, reader
from ...core.store.memory import MemoryStore
from ...engine import Engine, Run
from ...engine.bodies.attempt import Attempt, leave_body
from ...engine.bodies.capture import refresh_capture, start_capture, stop_capture
from ...engine.bodies.held import Held
from ...engine.bodies.host import EngineHost, Services
from ...engine.bodies.kinds import Limits
from ...engine.bodies.recording import Ledger
from ...engine.procedures.gates import finish
from ...engine.procedures.procedure import carry_out
from ...engine.scheduling.scheduler import Scheduler
from ...engine.waiting import waits_for_a_decision
from ...engine.worker.duties import Sweeper
from ...history.effects.recorder import Recorder
from .clock import VirtualClock, VirtualLoop, sleeping_in

if TYPE_CHECKING:
    from ...engine.starting import Startable
    from ...handlers import Handler, Handlers


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
        recorder = VirtualRecorder(self.info.node_name, self.info.attempt, self.sink())
        recorder.clock = self.clock
        return recorder


class VirtualAttempt(Attempt):
    """Its body is called at once, and ends when it has slept enough."""

    host: VirtualHost
    host_type = VirtualHost

    def __init__(self, held: Held, services: Services, clock: VirtualClock) -> None:
        super().__init__(held, services)
        self.host.clock = clock

    def run(self, clock: VirtualClock) -> Settle:
        """The body from its beginning to its end; the clock then stands at its end."""
        seconds = self.held.spec.timeout
        clock.limit, clock.expired = None if seconds is None else clock.now() + microseconds(seconds), False
        try:
            ended = self.perform()
            if isinstance(ended, Coroutine):
                self.enter()
                with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
                    ended = runner.run(self._limited(ended))
        finally:
            leave_body()
        return self.timed_out() if clock.expired else ended  # whatever it did with the end of its time

    async def _limited(self, coroutine: Coroutine[Any, Any, Any]) -> Settle:
        try:
            async with asyncio.timeout(self.held.spec.timeout) as limit:
                return self.returned(await coroutine)
        except TimeoutError as error:
            return self.timed_out() if limit.expired() else self.raised(error)
        except BaseException as error:
            return self.raised(error)


LEASE = 10 * 365 * 86_400 * SECOND
"""Nobody is lost here, however far the time jumps."""


def speedrun(
    workflow: Startable,
    *,
    check: bool = True,
    input: Mapping[str, Any] | None = None,
    run_id: str | None = None,
    deadline: Duration | None = None,
    seed: int | None = None,
    start: datetime | None = None,
    handlers: Handlers | Iterable[Handler | str] = (),
) -> Run:
    """Run a workflow in memory, with all its waiting in no time: delays of retries, `RetryLater`, time limits, `time.sleep`
    and `asyncio.sleep` in bodies. Gives the run, which can be looked at and replayed; raises RunFailed as `engine.run` does.

        def test_a_card_is_tried_again_for_an_hour():
            run = speedrun(Order(order_id=7))
            assert len(run.node("charge").attempts) == 5
            assert run.metrics.wall_seconds > 3600

    A body takes no time but what it sleeps; `ctx.now()` is the virtual time, which begins at `start`, by default now.
    Bodies with `isolation="process"` are called in this process.
    """
    begin = datetime.now(UTC) if start is None else start
    clock = VirtualClock(int(begin.timestamp() * SECOND))
    store = MemoryStore(clock)
    engine = Engine(store, runner=None, handlers=handlers)
    run = engine.start(workflow, input=input, run_id=run_id, deadline=deadline, seed=seed)
    Driver(engine, clock).work_on(run.id)
    return run.check() if check else run


class Driver:
    """One worker without threads."""

    def __init__(self, engine: Engine, clock: VirtualClock) -> None:
        self._engine, self._clock = engine, clock
        self._store: Store = engine.store
        self._scheduler = Scheduler(new_worker_id(), Limits(queue_depth=0), new_claim_id, None, self._store.limits)
        self._sweeper = Sweeper()
        read_outputs = partial(reader.get_completions, self._store)
        self._services = Services(read_outputs, self._scheduler.lines, Ledger(self._store, self._store.commit))
        self._ends: list[tuple[int, int, Held, Settle]] = []
        """What was begun, by when it ends."""
        self._count = 0

    def work_on(self, run_id: RunId) -> None:
        """Until it has ended, or waits for a person."""
        self._store.commit([Enlist(self._scheduler.worker, LEASE, b"{}")])
        self._scheduler.know(self._engine.parts.code.facts(reader.require_run(self._store, run_id)))
        start_capture()
        try:
            with sleeping_in(self._clock):
                while not self._is_over(run_id) and self._step():
                    pass
        finally:
            stop_capture()

    def _is_over(self, run_id: RunId) -> bool:
        (row,) = self._store.read([GetRun(run_id)])
        return row is None or row.status.terminal or waits_for_a_decision(row)

    def _step(self) -> bool:
        """The next thing that happens; False when nothing can happen any more."""
        if self._commit():
            return True
        swept = carry_out(self._store, self._sweeper.sweep())
        self._heard(swept.receipt.runs)
        if swept.receipt.woken or swept.receipt.runs or self._sweeper.pending:
            self._finish(())
            self._scheduler.mark_ready([*self._scheduler.facts])
            return True
        due = None if swept.next_due_in is None else self._clock.now() + swept.next_due_in
        if self._ends and (due is None or self._ends[0][0] <= due):
            at, _, held, settlement = heapq.heappop(self._ends)
            self._clock.set(max(at, self._clock.now()))
            self._scheduler.finished(held, settlement, self._clock.now())
            return True
        if due is not None:
            self._clock.set(due)
        return due is not None

    def _commit(self) -> bool:
        self._scheduler.lines.mark_due()
        batch = self._scheduler.next_batch(self._clock.now())
        if batch is None:
            return False
        answer = self._store.commit(batch.ops)
        refresh_capture()
        result = self._scheduler.committed(batch, answer, self._clock.now())
        for held in result.begin:
            self._run(held)
        self._heard(result.news.values())
        return True

    def _run(self, held: Held) -> None:
        began, self._count = self._clock.now(), self._count + 1
        held.begun = True
        settlement = VirtualAttempt(held, self._services, self._clock).run(self._clock)
        heapq.heappush(self._ends, (self._clock.now(), self._count, held, settlement))
        self._clock.limit = None
        self._clock.set(began)

    def _heard(self, news: Iterable[RunNews]) -> None:
        self._finish(self._scheduler.apply_news(news))

    def _finish(self, gates: Iterable[HeldGate]) -> None:
        """What a closed gate is held for: a failure, for instance."""
        for gate in gates:
            news = carry_out(self._store, finish(gate))
            if news is not None:
                self._heard([news])
            self._scheduler.mark_ready([gate.run_id])
        while self._sweeper.pending:
            carry_out(self._store, self._sweeper.finish_next_gate())
