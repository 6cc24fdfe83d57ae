"""A world in which everything may happen: a store, a clock, workers and a user, one event at a time, all from one seed."""

from __future__ import annotations

import copy
import random
import zlib
from collections import Counter
from functools import partial
from typing import Any

from stepwell.base.clock import SECOND, ManualClock, microseconds
from stepwell.base.codec import decode
from stepwell.base.ids import ClaimId, RunId
from stepwell.core.kernel.audit import Stored, audit
from stepwell.core.kernel.children import child_id, child_seed
from stepwell.core.kernel.layout import add_graph
from stepwell.core.model import (
    CONDITION,
    HEALED_LATE,
    NODE_FAILED,
    PARENT_PAUSED,
    PARENTS_SKIPPED,
    Append,
    AttemptStatus,
    Claim,
    Claimed,
    Create,
    Created,
    Gate,
    GateState,
    GateTaken,
    Grant,
    GraphSwitched,
    NodeStatus,
    Refusal,
    Refused,
    Rewrite,
    Rewritten,
    RunStatus,
    Settle,
    Settled,
    Sweep,
    Swept,
    SwitchGraph,
)
from stepwell.core.store.memory import MemoryStore
from stepwell.core.store.memory.state import RunState
from stepwell.define import Bodies
from stepwell.engine.bodies.held import Held, RunFacts
from stepwell.engine.procedures.procedure import Commit, Procedure, Wish, perform
from stepwell.errors import StoreError
from tests.simulation.simulate.actors import LEASE, Actor, Call, Option, User, Worker, start
from tests.simulation.simulate.asking import ask, load
from tests.simulation.simulate.before import Before, Violation
from tests.simulation.simulate.faults import Fault, Swarm
from tests.simulation.simulate.forks import Forks
from tests.simulation.simulate.healed import check_in_time, check_late
from tests.simulation.simulate.trees import tree_problems
from tests.simulation.simulate.workload import Workload, expected_outputs

HEAL_EVENTS = 10_000
HEAL_TIME = 600 * SECOND
RETRIES = 40
"""More than all failures, losses and results that cannot be stored of one run."""
FENCED_WITHIN = LEASE + 2 * SECOND
"""After the grace of a cancelled run, while nothing goes wrong: the sweeper comes every second, or late by one lease."""


class World:
    def __init__(self, workload: Workload, swarm: Swarm, seed: int, *, tell: bool = False) -> None:
        self.rng = random.Random(seed)
        self.workload = workload
        self.swarm = swarm
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        self.seen: Counter[str] = Counter()
        self.trace: list[str] | None = [] if tell else None
        self.trace_hash = 0
        self.events = 0
        self.plan: dict[int, Fault] = {}
        """Faults for single calls by number; the calls of a world are numbered as they are issued."""
        self.hits = 0
        """How many of the planned faults happened: an earlier one may end a process before its next call is received."""
        self.faulty = True
        self._calls = 0
        self._claims = 0
        self._workers = 0
        self._begins: Counter[tuple[RunId, str]] = Counter()
        self._begun_attempts: set[str] = set()
        self._unstorable: set[str] = set()
        """Attempts whose result cannot be stored."""
        self._unclaimable = workload.unclaimable
        self._outputs: dict[tuple[str, int, int], tuple[str, bytes | None]] = {}
        self._tails: list[Any] = []
        self._stopped: list[Call] = []
        self._checked: dict[str, int] = {}
        self._tail_lost = False
        self._healed_at = 0
        self._retries: Counter[RunId] = Counter()
        self._asked: set[RunId] = set()
        self._forks = Forks()
        self.runs = [RunId(f"r{number}") for number in range(1, workload.runs + 1)]
        self._facts: dict[tuple[RunId, str, int], RunFacts] = {}
        self.user = User(self)
        self.user.plans += [partial(self._start, run) for run in self.runs]
        for place, what in enumerate(workload.asks):
            self.user.plans.append(partial(ask, what, self.runs[0], workload, f"{self.runs[0]}f{place}"))
        queues = workload.queues if 0 < len(workload.queues) <= swarm.workers else ()
        served = [frozenset({queues[place % len(queues)]}) if queues else None for place in range(swarm.workers)]
        self.workers = [self._new_worker(each) for each in served]

    def _start(self, run: RunId) -> Procedure[None]:
        graphs = [self.workload.graph, *self.workload.children.values()]
        return start([*(op for graph in graphs for op in add_graph(graph, self.workload.name)), self._create(run)])

    def _create(self, run: RunId) -> Create:
        workload = self.workload
        timeout = None if workload.timeout is None else microseconds(workload.timeout)
        priority = workload.priorities[self.runs.index(run) % len(workload.priorities)]
        return Create(run, workload.name, None, workload.graph.digest, b"{}", 7, workload.on_failure, priority, timeout)

    def child_of(self, held: Held) -> Create:
        """The run to which a body hands its node over."""
        above = self._record(held.facts.run_id)
        run, node = above.id, held.spec.id
        graph = self.workload.children[node]
        made = child_id(run, above.created.depth, node, held.number)
        return above.created._replace(
            run_id=made,
            digest=graph.digest,
            seed=child_seed(above.created.seed, node),
            timeout=None,
            fork=None,
            origin=None,
            parent=run,
            parent_node=held.index,
            depth=above.created.depth + 1,
        )

    def _new_worker(self, queues: frozenset[str] | None = None) -> Worker:
        self._workers += 1
        skew = int(self.rng.uniform(-self.swarm.skew, self.swarm.skew) * SECOND) if self.swarm.skew else 0
        return Worker(self, f"w{self._workers}", threads=self.swarm.threads, skew=skew, queues=queues)

    # What the actors ask of the world

    def serves(self) -> dict[tuple[str, str], frozenset[str]]:
        """Every worker has the code of every version."""
        graphs = self.store._state.graphs.values()
        return {(self.workload.name, graph.digest): load(graph.document).lanes for graph in graphs if graph.complete}

    def facts_of(self, run: RunId) -> RunFacts:
        """What a worker is told that looks a run up now."""
        record = self._record(run)
        key = (run, record.graph.digest, record.heals)
        if key not in self._facts:
            op = record.created
            facts = RunFacts(run, op.workflow, None, load(record.graph.document), op.input, op.seed, Bodies())
            facts.heals = record.heals
            self._facts[key] = facts
        return self._facts[key]

    def new_claim_id(self) -> ClaimId:
        self._claims += 1
        return ClaimId(f"{self._claims:032x}")

    def number_of(self, wish: Wish) -> int:
        """Commits are numbered, so that a fault can be planned for one of them. A crash at a read is one before the next."""
        if not isinstance(wish, Commit):
            return 0
        self._calls += 1
        return self._calls

    @property
    def _leaps(self) -> bool:
        return self.faulty and self.swarm.leap > 0

    @property
    def calls(self) -> int:
        return self._calls

    def saw(self, what: str, really: bool = True) -> None:
        """An interesting state was reached."""
        if really:
            self.seen[what] += 1

    def obeys(self, held: Held) -> bool:
        return self.workload.behaviour(held.spec.id).obeys

    def body_begins(self, held: Held, worker: str) -> int:
        """A body really begins. Returns how many times that of its node has."""
        run, node = held.facts.run_id, held.spec.id
        self._begins[run, node] += 1
        if held.attempt in self._begun_attempts:
            raise Violation(f"attempt {held.attempt} of {node} begins twice")
        self._begun_attempts.add(held.attempt)
        self._check_parents_ran(held)
        self._check_not_handed_over(held)
        behaviour = self.workload.behaviour(node)
        if behaviour.fails < self._begins[run, node] <= behaviour.fails + behaviour.unstorable:
            self._unstorable.add(held.attempt)
        self._forks.body_begins(self.store._state.runs, run, held.index)
        record = self.store._state.runs.get(run)
        if record is not None and record.heals and not self._tail_lost:
            check_in_time(self.store._state, record, held.index)
        if held.spec.on_lost == "interrupt" and not self._tail_lost:
            requests = 1 + sum(
                entry.kind == "rewrote" and entry.index == held.index and entry.status == NodeStatus.PENDING
                for entry in self._record(run).journal
            )
            if self._begins[run, node] > requests:
                raise Violation(f"{node} promised at most one body for each request; {worker} begins one more")
        return self._begins[run, node]

    def _check_not_handed_over(self, held: Held) -> None:
        """Once a run performs a node, its body is not called any more."""
        record = self.store._state.runs.get(held.facts.run_id)
        node = None if record is None or self._tail_lost else record.nodes[held.index]
        if node is not None and node.wakes and (node.status, node.attempt) == (NodeStatus.RUNNING, held.number):
            raise Violation(f"the body of {held.spec.id} begins although a run performs it")

    def _check_parents_ran(self, held: Held) -> None:
        """A body begins only if some of the parents of its node ran, with `join="all"` only if all did."""
        record = self.store._state.runs.get(held.facts.run_id)
        if record is None or self._tail_lost or record.heals:
            return
        parents = [record.nodes[parent] for parent in record.graph.rows[held.index].parents]
        gone = [node.status is NodeStatus.SKIPPED and node.reason != HEALED_LATE for node in parents]
        if gone and (any(gone) if held.spec.join == "all" else all(gone)):
            raise Violation(f"the body of {held.spec.id} begins although its parents were skipped")

    # Events

    def step(self) -> bool:
        """One event. False when nothing can happen but the passing of time."""
        if self._stopped:
            self._wake_stopped()
        options: list[Option] = []
        for actor in (*self.workers, self.user):
            if not actor.alive or actor.paused:
                continue
            options += actor.actions()
        pending = [call for actor in (*self.workers, self.user) for call in actor.calls.values()]
        now = self.clock.now()
        for call in pending:
            if call.answer is None:
                options.append((call.actor, "call", partial(self._serve, call)))
            elif call.ready_at <= now and not call.actor.paused:
                options.append((call.actor, "reply", partial(self._reply, call)))
        if self.faulty:
            options += self._accidents()
        options += self._recoveries()
        if not options or (self._leaps and self.rng.random() < self.swarm.leap):
            self._pass_time(pending)
            return bool(options)
        actor, name, act = options[self.rng.randrange(len(options))]
        self._note(f"{actor.name}: {name}")
        actor.stirred = True
        act()
        return True

    def _accidents(self) -> list[Option]:
        rng, swarm = self.rng, self.swarm
        found: list[Option] = []
        alive = [worker for worker in self.workers if worker.alive]
        if alive and rng.random() < swarm.crash:
            victim = rng.choice(alive)
            found.append((victim, "crashes", partial(self._crash, victim)))
        if alive and rng.random() < swarm.pause:
            sleeper = rng.choice(alive)
            found.append((sleeper, "pauses or wakes", partial(self._pause, sleeper)))
        if alive and rng.random() < swarm.lost_hint:
            deaf = rng.choice(alive)
            found.append((deaf, "misses a hint", partial(self._lose_hints, deaf)))
            found.append((deaf, "hears a hint again", partial(self._repeat_hints, deaf)))
        if rng.random() < swarm.restart:
            found.append((self.user, "sees the store restart", self._restart_store))
        if self._tails and rng.random() < swarm.lost_tail:
            found.append((self.user, "sees the store lose its tail", self._lose_tail))
        return found

    def _recoveries(self) -> list[Option]:
        """Who died comes back, also when everything else has healed: a planned fault may come late."""
        found: list[Option] = []
        dead = next((worker for worker in self.workers if not worker.alive), None)
        if dead is not None:
            found.append((dead, "is replaced", self._replace))
        if self._lost_runs() and not self.user.plans and not self.user.calls:
            found.append((self.user, "comes back", self._restart_lost_runs))
        return found

    def _serve(self, call: Call) -> None:
        """The store receives a call, or does not."""
        planned = self.plan.get(call.number)
        self.hits += planned is not None
        fault = planned or self._random_fault()
        if self.trace is not None and isinstance(call.wish, Commit):
            self.trace.append(f"      commit {call.number}: {', '.join(type(op).__name__ for op in call.wish.ops)}")
        received = fault not in (Fault.CRASH_BEFORE, Fault.ERROR)
        if received and isinstance(call.wish, Commit) and self._cannot_apply(call.wish.ops):
            self.saw("a batch cannot be applied")
            if fault is Fault.CRASH_AFTER:
                self._crash(call.actor)
            else:
                self._answer(call, TypeError("simulated: this cannot be applied"))
            return
        if fault is None:
            call.answer = self._apply(call)
            return
        self.saw(fault)
        self._note(f"  {fault}")
        if fault is Fault.CRASH_BEFORE:
            self._crash(call.actor)
        elif fault is Fault.ERROR:
            self._answer(call, StoreError("simulated: not applied"))
        elif fault is Fault.CRASH_AFTER:
            self._apply(call)
            self._crash(call.actor)
        elif fault is Fault.ERROR_APPLIED:
            self._apply(call)
            self._answer(call, StoreError("simulated: applied, but nobody knows"))
        elif fault is Fault.LATE or fault is Fault.STOPPED:
            call.answer = self._apply(call)
            call.ready_at = self.clock.now() + LEASE + SECOND
            if fault is Fault.STOPPED:
                self._stop(call)
        else:
            before = self._apply(call)
            call.answer = self._apply(call, again=True)
            if isinstance(call.wish, Commit):
                self._compare_repeat(call.wish.ops, before, call.answer)

    def _cannot_apply(self, ops: Any) -> bool:
        """Whether the store has a defect that one of these ops brings out."""
        for op in ops:
            match op:
                case Settle() if op.output is not None and op.attempt in self._unstorable:
                    return True
                case Append() if op.index == 0 and op.attempt in self._unstorable:
                    return True
                case Claim() if self._unclaimable and self.runs[0] in (op.runs or ()):
                    self._unclaimable -= 1
                    return True
                case _:
                    pass
        return False

    def _random_fault(self) -> Fault | None:
        if not self.faulty or not self.swarm.call_faults:
            return None
        for fault, chance in self.swarm.call_faults.items():
            if self.rng.random() < chance:
                return fault
        return None

    def _apply(self, call: Call, *, again: bool = False) -> list[Any]:
        if self.swarm.lost_tail and isinstance(call.wish, Commit) and call.number % 3 == 0:
            self._tails = [*self._tails[-4:], copy.deepcopy(self.store._state)]
        seqs = {run: record.seq for run, record in self.store._state.runs.items()} if again else {}
        before = Before(self.store._state, call.wish.ops) if isinstance(call.wish, Commit) else None
        answer = perform(self.store, call.wish)
        if isinstance(call.wish, Commit):
            assert before is not None
            before.compare(self.store._state, call.wish.ops, answer, self.clock.now())
            self._notice(call.wish.ops, answer, again=again)
            for run, record in list(self.store._state.runs.items()):
                if again and seqs.get(run) != record.seq and not _may_move_again(call.wish.ops):
                    raise Violation(f"the same batch, applied again, moved run {run}")
                if self._checked.get(run) != record.seq:  # nothing changes without an entry in the journal
                    self._check(record)
                    self._checked[run] = record.seq
            if self.workload.children:
                self._check_tree()
        return answer

    def _notice(self, ops: Any, answer: list[Any], *, again: bool) -> None:
        """Interesting states that only the store knows of."""
        for op, receipt in zip(ops, answer, strict=True):
            match op, receipt:
                case Settle(), Settled(repeated, run):
                    self.saw("a settlement is repeated", repeated)
                    late = op.node is NodeStatus.COMPLETED and run.gate is not GateState.OPEN
                    self.saw("a late success is recorded", late and run.status is not RunStatus.COMPLETED)
                case Claim(), Claimed(grants):
                    self._check_queues(op, grants)
                    self.saw("a claim is repeated", again and bool(grants))
                    self.saw("a suspect is claimed alone", bool(grants) and op.lanes[0][0].suspect)
                case Create(), Created(_, False) if op.fork is not None:
                    self.saw("a run is forked")
                    self._forks.made(self.store._state.runs, op)
                case SwitchGraph(), GraphSwitched():
                    self.saw("a run is healed")
                case Rewrite(), Refused(Refusal.CHANGED):
                    self.saw("a rewrite is computed anew")
                case Rewrite(rows=rows, finish=None), Rewritten():
                    self.saw(
                        "completions are superseded in parts", any(row.was is NodeStatus.COMPLETED for row in rows)
                    )
                case Gate(), GateTaken():
                    self.saw(
                        "a gate left held is finished by another", op.resume and op.purpose not in ("failed", "fork")
                    )
                case Sweep(), Swept():
                    reasons = [record.reason for record in self.store._state.runs.values()]
                    self.saw("a deadline passes", "deadline" in reasons and bool(receipt.runs))
                case _:
                    pass

    def _check_queues(self, op: Claim, grants: tuple[Grant, ...]) -> None:
        """A worker takes nodes of the queues it serves, and of no others."""
        queues = next((worker.queues for worker in self.workers if worker.scheduler.worker == op.worker), None)
        if queues is None:
            return
        for grant in grants:
            queue = self._record(grant.run_id).nodes[grant.index].lane.queue
            self.saw("a worker serves some queues only")
            if queue not in queues:
                raise Violation(f"{op.worker} took a node of queue {queue!r} and serves {sorted(queues)}")

    def kill(self, worker: Worker) -> None:
        """A body has ended the process that it ran in."""
        self._note("  a body ends its process")
        self.saw("a body ends its process")
        self._crash(worker)

    def _compare_repeat(self, ops: Any, first: list[Any], second: list[Any]) -> None:
        """Commit twice = once: nothing was granted or recorded a second time."""
        for op, before, after in zip(ops, first, second, strict=True):
            if isinstance(op, Create) and before[1:] and (before.run_id, before.total) != (after.run_id, after.total):
                raise Violation(f"{op} was answered {before}, then {after}")

    def _reply(self, call: Call) -> None:
        assert call.answer is not None
        self._answer(call, call.answer)

    def _answer(self, call: Call, answer: list[Any] | Exception) -> None:
        del call.actor.calls[call.lane]
        call.actor.stirred = True
        call.proceed(answer)

    def _crash(self, actor: Actor) -> None:
        actor.calls.clear()
        if isinstance(actor, Worker):
            actor.alive = False
            actor.paused = False
        self.saw("a process dies")

    def _stop(self, call: Call) -> None:
        """Until its answer is ready; if nobody else is at work, somebody is called in."""
        call.actor.paused = True
        self._stopped.append(call)
        if all(worker.paused or not worker.alive for worker in self.workers):
            self.workers.append(self._new_worker())

    def _wake_stopped(self) -> None:
        now = self.clock.now()
        for call in self._stopped:
            if call.ready_at <= now:
                call.actor.paused = False
        self._stopped = [call for call in self._stopped if call.ready_at > now]

    def _pause(self, worker: Worker) -> None:
        worker.paused = not worker.paused

    def _replace(self) -> None:
        dead = next(worker for worker in self.workers if not worker.alive)
        self.workers[self.workers.index(dead)] = self._new_worker(dead.queues)

    def _lose_hints(self, worker: Worker) -> None:
        ready = worker.scheduler.claims.ready
        ready.by_pool.update({pool: type(queue)() for pool, queue in ready.by_pool.items()})
        ready.pools.clear()
        ready.windows.clear()

    def _repeat_hints(self, worker: Worker) -> None:
        worker.scheduler.mark_ready(tuple(worker.scheduler.facts))
        worker.scheduler.look_around()

    def _restart_store(self) -> None:
        self.saw("the store restarts")
        for actor in (*self.workers, self.user):
            for call in list(actor.calls.values()):
                if not actor.paused:
                    self._answer(call, StoreError("simulated: the store restarts"))

    def _lose_tail(self) -> None:
        """Power is lost and with it the newest commits: the weaker class of durability."""
        self._tail_lost = True
        self._forks.told = False
        self.store._state = self._tails[0]
        self._tails.clear()
        self._outputs.clear()
        self._checked.clear()
        self._restart_lost_runs()

    def _pass_time(self, pending: list[Call]) -> None:
        """Until something is due, or a moment."""
        now = self.clock.now()
        times = [worker.next_at() for worker in self.workers if worker.alive and not worker.paused]
        times += [call.ready_at for call in pending if call.answer is not None]
        times += [at for at, _ in self.user.later]
        later = [at for at in times if at > now]
        if self._leaps and self.rng.random() < 0.3:
            pause = self.rng.choice([0.001, 0.05, 0.5, 2.0, 4.0])
        else:
            pause = max(0.0, (min(later, default=now + SECOND) - now) / SECOND)
        self._note(f"{pause:.3f} s pass")
        self.clock.advance(pause + 1e-6)

    def _note(self, event: str) -> None:
        self.events += 1
        self.trace_hash = zlib.crc32(event.encode(), self.trace_hash)
        if self.trace is not None:
            self.trace.append(f"{self.events:4d}  {(self.clock.now() - 1_700_000_000 * SECOND) / SECOND:8.3f}  {event}")

    # Whole lives

    def live(self) -> None:
        """A phase of faults, then everything heals and must end, then the audit."""
        for _ in range(self.swarm.steps):
            if self._over():
                break
            self._retry_failed()
            self.step()
        self.heal()
        self.judge()

    def heal(self) -> None:
        self.faulty = False
        self._healed_at = self.clock.now()
        self._note("everything heals")
        for worker in self.workers:
            worker.paused = False
        while any(not worker.alive for worker in self.workers):
            self._replace()
        self._restart_lost_runs()
        deadline = self.clock.now() + HEAL_TIME
        for _ in range(HEAL_EVENTS):
            if self._over():
                return
            self._retry_failed()
            self.step()
            self._nothing_outlives_its_grace()
            if self.clock.now() > deadline:
                break
        raise Violation(f"it does not end: {self._standing()}")

    def _nothing_outlives_its_grace(self) -> None:
        for record in self.store._state.runs.values():
            if (
                record.cancel_at is not None
                and max(record.cancel_at, self._healed_at) + FENCED_WITHIN < self.clock.now()
            ):
                raise Violation(f"run {record.id} is cancelled and its attempts are not fenced after their grace")

    def _lost_runs(self) -> list[RunId]:
        """Runs that the store does not have: the call to start one died with its user, or its commit was lost."""
        runs = self.store._state.runs
        return [run for run in self.runs if run not in runs]

    def _restart_lost_runs(self) -> None:
        self.user.plans += [partial(self._start, run) for run in self._lost_runs()]

    def _retry_failed(self) -> None:
        if self.user.plans or self.user.calls:
            return
        for run, record in self.store._state.runs.items():
            if record.created.parent is not None and record.reason in (None, PARENT_PAUSED, "run_failed"):
                continue  # what is requested of its parent reaches it
            if record.created.parent is not None and record.status.terminal:
                continue
            if any(each.created.parent == run and each.status.stopping for each in self.store._state.runs.values()):
                continue
            if record.status is RunStatus.PAUSED and record.purpose is None:
                self.saw("a run is resumed")
                verb = "retry" if record.reason == NODE_FAILED and self._retries[record.id] < RETRIES else "resume"
                self._retries[record.id] += verb == "retry"
                self.user.plans.append(partial(ask, f"early {verb}", record.id, self.workload))
                return
            if record.status in (RunStatus.FAILED, RunStatus.CANCELLED) and record.purpose is None:
                self._retries[record.id] += 1
                if self._retries[record.id] > RETRIES:
                    raise Violation(f"run {run} is still {record.status} after {RETRIES} retries")
                self.saw("a run is retried")
                self.user.plans.append(partial(ask, "early retry", record.id, self.workload))
                return

    def _over(self) -> bool:
        runs = self.store._state.runs
        return (
            not self._lost_runs()
            and not self.user.plans
            and not self.user.calls
            and not self.user.later
            and all(
                record.status.terminal and (record.status.completed or record.created.parent is not None)
                for record in runs.values()
            )
            and all(record.purpose is None for record in runs.values())
            and not any("main" in worker.calls or worker.bodies.running for worker in self.workers if worker.alive)
        )

    def _standing(self) -> str:
        return (
            "; ".join(
                f"{run} {record.status} gate {record.gate} {record.purpose or ''} "
                + " ".join(f"{node.layout.id}={node.status}" for node in record.nodes)
                for run, record in self.store._state.runs.items()
            )
            or "no run was ever started"
        )

    # Invariants

    def judge(self) -> None:
        """At the end: the whole history, quiescence, and the outputs of a world without faults."""
        self._check_children()
        for record in self.store._state.runs.values():
            self._check(record, whole=True)
            fork = record.created.fork
            origin = None if fork is None else self.store._state.runs.get(decode(fork)["origin"])
            self._forks.judge(record, origin)
            late = {node.layout.id for node in record.nodes if node.reason == HEALED_LATE}
            check_late(record)
            self.saw("a node comes too late", bool(late))
            self.saw("a condition does not hold", any(node.reason == CONDITION for node in record.nodes))
            self.saw("a node is skipped with its parents", any(node.reason == PARENTS_SKIPPED for node in record.nodes))
            if record.created.parent is not None and not record.status.completed:
                self.saw("a child run is superseded")
                continue
            expected = expected_outputs(load(record.graph.document), late, _decided(record), self.workload.children)
            outputs = {
                record.nodes[attempt.index].layout.id: decode(attempt.output or b"null")
                for attempt in record.attempts
                if attempt.status is AttemptStatus.COMPLETED and not record.nodes[attempt.index].layout.removed
            }
            if outputs != expected:
                raise Violation(f"the outputs differ from those without faults: {outputs} instead of {expected}")
            left = [attempt for attempt in record.attempts if attempt.status is AttemptStatus.RUNNING]
            if left or record.gate.name == "HELD" or record.cancel_at is not None:
                raise Violation(f"run {record.id} is over and something is left: {left or record.gate}")

    def _check_tree(self) -> None:
        problems = tree_problems(self.store._state.runs.values())
        if problems and not self._tail_lost:
            raise Violation("; ".join(problems))

    def _check_children(self) -> None:
        """A node is handed over once, unless it was attempted again."""
        made = Counter(
            (record.created.parent, record.created.parent_node) for record in self.store._state.runs.values()
        )
        del made[None, None]
        self.saw("a run performs a node", bool(made))
        again = any("reattempt" in what or "cascade" in what for what in self.workload.asks)
        if not again and not self._tail_lost and max(made.values(), default=0) > 1:
            raise Violation(f"several runs performed one node: {made}")

    def _check(self, record: RunState, *, whole: bool = False) -> None:
        stored = Stored(
            record.row(),
            load(record.graph.document),
            [node.row() for node in record.nodes],
            [a.row() for a in sorted(record.attempts, key=lambda attempt: (attempt.index, attempt.number))],
            record.journal,
            {digest: load(graph.document) for digest, graph in self.store._state.graphs.items()}
            if record.heals
            else {},
        )
        problems = audit(stored)
        if problems:
            raise Violation("; ".join(problems))
        self.saw("a node is interrupted", any(node.status is NodeStatus.INTERRUPTED for node in record.nodes))
        gone = {node.index for node in record.nodes if node.layout.removed}
        skips = {
            (entry.index, entry.attempt)
            for entry in record.journal
            if entry.status == NodeStatus.SKIPPED or (entry.status == NodeStatus.CANCELLED and entry.index in gone)
        }
        for attempt in record.attempts:
            name = f"{attempt.claim}.{attempt.ordinal}"
            given_back = attempt.status is AttemptStatus.RELEASED and (attempt.index, attempt.number) not in skips
            if given_back and name in self._begun_attempts and not self._tail_lost:
                raise Violation(f"{name} had begun and was given back as if it had not")
            if attempt.status is AttemptStatus.FAILED and name in self._unstorable:
                self.saw("what cannot be stored is a failure")
                if decode(attempt.error or b"{}").get("type") != "NotStored":
                    raise Violation(f"{name} could not be stored and does not say so: {attempt.error!r}")
            if attempt.status is AttemptStatus.COMPLETED:
                key = (record.id, attempt.index, record.nodes[attempt.index].generation)
                fact = (name, attempt.output)
                if self._outputs.setdefault(key, fact) != fact:
                    raise Violation(f"the completion of node {attempt.index} of {record.id} changed")

    def _record(self, run: RunId) -> RunState:
        return self.store._state.runs[run]


def _decided(record: RunState) -> set[str]:
    """Nodes that were claimed before the run was healed for the last time, and skipped: a heal decides nothing again."""
    healed = max((entry.seq for entry in record.journal if entry.kind == "healed"), default=0)
    claimed = {(e.index, e.attempt) for e in record.journal if e.seq < healed and e.kind == "claimed"}
    return {
        node.layout.id
        for node in record.nodes
        if node.status is NodeStatus.SKIPPED and (node.index, node.attempt) in claimed
    }


def _may_move_again(ops: Any) -> bool:
    """A claim that was granted nothing may be granted something when it is asked again; a sweep finds what is due now."""
    return any(type(op).__name__ in ("Claim", "Sweep") for op in ops)
