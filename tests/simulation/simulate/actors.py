"""Who acts in a simulated world: workers, driven by the production scheduler, timetable, lease state and procedures.

An actor does one small thing at a time. Whatever it wants of the store becomes a `Call`, which the world applies and
answers in events of their own, so that anything may happen in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from stepwell.base.clock import SECOND, microseconds
from stepwell.base.codec import decode
from stepwell.base.ids import AttemptId, RunId, WorkerId
from stepwell.core.kernel.settling import CANCELLED
from stepwell.core.model import AttemptStatus, Claimed, Gate, Refused, RunNews, Settle
from stepwell.core.model.outputs import Completion
from stepwell.define.code.conditions import SKIP
from stepwell.engine.bodies.attempt import Attempt, settle
from stepwell.engine.bodies.handing import after_look, handed_over
from stepwell.engine.bodies.held import Held
from stepwell.engine.bodies.host import Services
from stepwell.engine.bodies.kinds import Limits
from stepwell.engine.procedures.children import ChildEnd, look
from stepwell.engine.procedures.procedure import Commit, Procedure, Wish
from stepwell.engine.scheduling.batches import CommitBatch
from stepwell.engine.scheduling.scheduler import Scheduler
from stepwell.engine.worker.duties import Follower
from stepwell.engine.worker.lease import LeaseState
from stepwell.engine.worker.timetable import Timetable
from stepwell.errors import Stopped, StoreError
from tests.simulation.simulate.asking import LATER
from tests.simulation.simulate.workload import holds, result_of, speaks

if TYPE_CHECKING:
    from tests.simulation.simulate.world import World

LEASE = 3 * SECOND
"""A tenth of what is usual, for workers and gates: a late reply is later than it, and little happens while it runs out."""


@dataclass(slots=True, eq=False)
class Call:
    """Something an actor wants of the store: issued, then applied, then answered."""

    actor: Actor
    lane: str
    wish: Wish
    proceed: Callable[[list[Any] | Exception], None]
    number: int
    answer: list[Any] | None = None
    ready_at: int = 0


Option: TypeAlias = "tuple[Actor, str, Callable[[], None]]"
"""Something that may happen next: to whom, what, and how."""


class Actor:
    """Has at most one call under way in each of its lanes, as a process has in each of its threads."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.alive = True
        self.paused = False
        self.stirred = True
        """Something happened to it since it last looked for something to commit."""
        self.calls: dict[str, Call] = {}

    def actions(self) -> list[Option]:
        """What it can do next."""
        return []

    def call(self, lane: str, wish: Wish, proceed: Callable[[list[Any] | Exception], None]) -> None:
        if isinstance(wish, Commit):
            wish = Commit([op._replace(lease=LEASE) if isinstance(op, Gate) else op for op in wish.ops])
        self.calls[lane] = Call(self, lane, wish, proceed, self.world.number_of(wish))

    def perform(self, lane: str, procedure: Procedure[Any], done: Callable[[Any], None]) -> None:
        """Drive a procedure, one call at a time."""

        def advance(step: Callable[[], Wish]) -> None:
            try:
                self.call(lane, step(), answered)
            except StopIteration as end:
                done(end.value)
            except StoreError:
                done(None)

        def answered(answer: list[Any] | Exception) -> None:
            if isinstance(answer, Exception):
                error = answer
                advance(lambda: procedure.throw(error))
            else:
                result = answer
                advance(lambda: procedure.send(result))

        advance(lambda: next(procedure))


@dataclass(slots=True, eq=False)
class Body:
    held: Held
    attempt: Attempt
    ends_at: int
    count: int


@dataclass(slots=True)
class _Bodies:
    waiting: list[Held] = field(default_factory=list)
    running: list[Body] = field(default_factory=list)


class Worker(Actor):
    """A process that works. It offers what the production housekeeping asks of a runner."""

    def __init__(
        self, world: World, name: str, *, threads: int, skew: int, queues: frozenset[str] | None = None
    ) -> None:
        super().__init__(world, name)
        worker = WorkerId(name)
        self.queues = queues
        self.scheduler = Scheduler(worker, Limits(threads, 2, 1, 4), world.new_claim_id, queues)
        self.scheduler.serves = world.serves()
        self.timetable = Timetable()
        self.lease_state = LeaseState(worker, LEASE)
        self.house = Follower(self, waited=lambda: (), serve=self.look_around)
        self.bodies = _Bodies()
        self._skew = skew
        self._hears_hints = skew % 2 == 0
        """The others are told nothing, and look now and then."""
        self._attempts: dict[Held, Attempt] = {}

    # What the production code asks of a runner

    def now(self) -> int:
        return self.world.clock.now() + self._skew

    def handle_news(self, news: Iterable[RunNews]) -> None:
        for held in self.scheduler.apply_news(news):
            self.house.finish_gate(held)
            self.stop([h.attempt for h in self.scheduler.held.values() if h.facts.run_id == held.run_id])

    def mark_ready(self, runs: Iterable[RunId]) -> None:
        self.scheduler.mark_ready(runs)

    def look_around(self) -> None:
        self.scheduler.serves = self.world.serves()
        self.scheduler.look_around()

    def look_for_suspects(self) -> None:
        self.scheduler.look_for_suspects()

    def drain(self) -> None:
        self.world.saw("a worker drains for a suspect")
        self.scheduler.drain(self.now())

    def stop(self, attempts: Iterable[AttemptId]) -> None:
        for attempt in attempts:
            if attempt in self.scheduler.held:
                self.scheduler.held[attempt].stop = True

    def wake(self) -> None:
        return None

    def wake_gates(self) -> None:
        return None

    # What it can do next

    def actions(self) -> list[Option]:
        found: list[Option] = []
        now = self.now()
        if "lease" not in self.calls and self.lease_state.due_at <= now:
            found.append((self, "renew", self._renew))
        if self.stirred and "main" not in self.calls:
            batch = self.scheduler.next_batch(now)
            self.stirred = batch is not None
            if batch is not None:
                self._commit(batch)
        if self._hears_hints and self.world.store.wait_for_hint(None, (), self.scheduler.worker, 0):
            self.timetable.hinted(now, busy=not self.scheduler.idle)
        if "house" not in self.calls and self.timetable.next_at(now, busy=bool(self.scheduler.held)) <= now:
            found.append((self, "keep house", self._keep_house))
        if "gates" not in self.calls and self.house.pending:
            found.append((self, "finish a gate", self._finish_gate))
        if self.bodies.waiting and len(self.bodies.running) < self.scheduler.limits.threads:
            found.append((self, "begin", self._begin))
        for body in self.bodies.running:
            if body.ends_at <= now or (body.held.stop and self.world.obeys(body.held)):
                found.append((self, "end", partial(self._end, body)))
        return found

    def next_at(self) -> int:
        """When it will have something to do, by its own clock."""
        times = [self.lease_state.due_at, self.timetable.next_at(self.now(), busy=bool(self.scheduler.held))]
        times += [body.ends_at for body in self.bodies.running]
        return min(times) - self._skew

    def _renew(self) -> None:
        def answered(answer: list[Any] | Exception) -> None:
            if isinstance(answer, Exception):
                self.lease_state.failed(self.now())
            else:
                self.stop(self.lease_state.answered(answer[0], self.now()))
                self.scheduler.leased = self.scheduler.leased or not isinstance(answer[0], Refused)

        self.call("lease", Commit([self.lease_state.next_op(self.scheduler.holding())]), answered)

    def _commit(self, batch: CommitBatch) -> None:
        def answered(answer: list[Any] | Exception) -> None:
            if isinstance(answer, StoreError):
                self.scheduler.failed(batch, answer)
                return
            if isinstance(answer, Exception):
                _, rejected = self.scheduler.rejected(batch, answer, self.now())
                self.world.saw("an op that cannot be applied is refused alone", rejected is not None)
                return
            for receipt in answer:
                if isinstance(receipt, Claimed):
                    for grant in receipt.grants:
                        if not self.scheduler.knows(grant) and grant.run_id in self.world.store._state.runs:
                            self.scheduler.know(self.world.facts_of(grant.run_id))
            result = self.scheduler.committed(batch, answer, self.now())
            self.bodies.waiting += result.begin
            self.handle_news(result.news.values())
            for _, op, ok in result.settled:
                self.world.saw("a late worker is fenced", not ok)
                if ok and op.child is not None and op.child.run_id in self.world.store._state.runs:
                    self.scheduler.know(self.world.facts_of(op.child.run_id))
                if ok and op.delay is not None:
                    self.timetable.sweep_by(self.now() + op.delay)
            if result.lease_lost:
                self.world.saw("a lease is lost")
                self.lease_state.lost(self.now())

        self.call("main", Commit(batch.ops), answered)

    def _keep_house(self) -> None:
        due = self.timetable.due(self.now(), busy=bool(self.scheduler.held))
        for held in due.overdue:
            if not held.over:
                self.scheduler.finished(held, self._attempts[held].timed_out(), self.now())
                self.world.saw("a body times out")
        self.scheduler.lines.mark_due()
        self.perform("house", self.house.do(due), lambda _: None)

    def _finish_gate(self) -> None:
        self.perform("gates", self.house.finish_next_gate(), lambda _: None)

    def _begin(self) -> None:
        held = self.bodies.waiting.pop(0)
        if held.unwanted():
            self._finish(held, settle(held, CANCELLED))
            return
        held.begun = True
        if held.wakes:
            self._look(held)
            return
        attempt = self._attempts[held] = Attempt(held, Services(_no_reads, self.scheduler.lines))
        count = self.world.body_begins(held, self.name)
        self._say(attempt, "begins")
        spec, behaviour = held.spec, self.world.workload.behaviour(held.spec.id)
        if spec.timeout is not None:
            self.timetable.time_limit(held, self.now() + microseconds(spec.timeout))
        self.bodies.running.append(Body(held, attempt, self.now() + microseconds(behaviour.seconds), count))
        if count <= behaviour.kills:
            self.world.kill(self)

    def _end(self, body: Body) -> None:
        self.bodies.running.remove(body)
        held, attempt = body.held, body.attempt
        self._say(attempt, "ends")
        order = held.facts.graph.order
        inputs = {str(order[index]): decode(output) for index, output in held.inputs}
        if held.stop and self.world.obeys(held):
            self._finish(held, attempt.raised(Stopped("asked to")))
        elif not holds(held.spec, inputs):
            self._finish(held, attempt.returned(SKIP))
        elif body.count <= self.world.workload.behaviour(held.spec.id).fails:
            self._finish(held, attempt.raised(RuntimeError(f"body {body.count} of {held.spec.id}")))
        elif held.spec.id in self.world.workload.children:
            self._finish(held, handed_over(held, self.world.child_of(held)))
        else:
            self._finish(held, attempt.returned(result_of(held.spec.id, inputs)))

    def _look(self, held: Held) -> None:
        """Look at the run that performs the node, again if the store does not answer."""

        def done(end: ChildEnd | None) -> None:
            if end is None:
                self._look(held)
            else:
                self.world.saw("a child run is waited for again", end.row is not None and not end.row.status.terminal)
                self._finish(held, after_look(held, end))

        self.perform(f"look {held.attempt}", look(held.facts.run_id, held.index), done)

    def _say(self, attempt: Attempt, text: str) -> None:
        if speaks(attempt.held.index) and (said := attempt.output()) is not None:
            said.log(self.now(), "INFO", 20, "body", text)

    def _finish(self, held: Held, settlement: Settle) -> None:
        if held.over:
            return
        if settlement.status is AttemptStatus.CANCELLED:
            self.world.saw("a body stops")
        self.scheduler.finished(held, settlement, self.now())


def _no_reads(run_id: RunId, indexes: tuple[int, ...]) -> dict[int, Completion]:
    raise AssertionError("simulated bodies are given what they need")


class User(Actor):
    """Starts the runs, asks for things, two at once, and in the end for whatever did not complete to be retried."""

    def __init__(self, world: World) -> None:
        super().__init__(world, "user")
        self.plans: list[Callable[[], Procedure[Any]]] = []
        self.later: list[tuple[int, Callable[[], Procedure[Any]]]] = []
        """What is asked when the moment is better."""
        self._patience = 0

    def actions(self) -> list[Option]:
        now = self.world.clock.now()
        while self.later and self.later[0][0] <= now:
            self.plans.append(self.later.pop(0)[1])
        free = next((lane for lane in ("main", "second") if lane not in self.calls), None)
        return [(self, "ask", partial(self._ask, free))] if self.plans and free else []

    def _ask(self, lane: str) -> None:
        plan = self.plans.pop(0)

        def done(answer: Any) -> None:
            if answer == LATER:
                self._patience = min(2 * self._patience + SECOND // 100, SECOND)
                self.later.append((self.world.clock.now() + self._patience, plan))

        self.perform(lane, plan(), done)


def start(ops: list[Any]) -> Procedure[None]:
    """Start a run, and again if the store did not answer: the same ops, so it is the same run."""
    while True:
        try:
            yield Commit(ops)
            return
        except StoreError:
            continue
