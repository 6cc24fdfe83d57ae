"""`run.metrics` and `engine.metrics`: what was done, in numbers that can be checked."""

from __future__ import annotations

import json
import threading
from typing import Any, ClassVar

import pytest

from stepwell import Builder, Context, Engine, Retry, Run, RunNotFound, Workflow, step, task
from stepwell.base.clock import SECOND
from stepwell.base.ids import AttemptId, RunId, WorkerId
from stepwell.core.kernel.audit import folding
from stepwell.core.model import AttemptStatus, Enlisted, NodeStatus, Refusal, Refused, Settle, Settled
from stepwell.core.store import reader
from stepwell.engine.bodies.held import Held
from stepwell.engine.scheduling.metrics import Counters, EngineMetrics
from stepwell.engine.worker.group_commit import now
from stepwell.engine.worker.lease import LeaseState
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.schedulers import commit_batch, end, facts, hold, news, scheduler
from tests.engine.steered import Play
from tests.engine.waiting import eventually


class Flaky(Workflow):
    @step(retry=Retry(3, base_delay=0.001))
    def charge(self, ctx: Context) -> None:
        if ctx.attempt < 3:
            raise ConnectionError

    @step
    def ship(self) -> None: ...


def test_a_run_with_retries_is_counted_exactly(engine: Engine) -> None:
    run = engine.run(Flaky())
    found = run.metrics
    assert (found.run_id, found.status, found.steps) == (run.id, "COMPLETED", run.row.seq)
    assert (found.nodes, found.executed, found.attempts, found.retries) == (2, 2, 4, 2)
    assert (found.active, found.queued, found.most_active) == (0, 0, 1)
    assert (found.lost, found.released, found.heals) == (0, 0, 0)
    assert found.step_latency.samples == found.queue_latency.samples == 4
    attempts = [attempt for node in run.nodes() for attempt in node.attempts]
    assert found.step_latency.total == pytest.approx(sum(attempt.seconds or 0 for attempt in attempts), abs=1e-5)
    assert 0 < found.step_latency.p50 <= found.step_latency.p95 <= found.step_latency.most <= found.wall_seconds
    assert found.wall_seconds == pytest.approx(((run.row.ended_at or 0) - (run.row.started_at or 0)) / 1e6)
    json.dumps(found.to_dict())


def test_an_engine_counts_what_it_did(engine: Engine) -> None:
    engine.run(Flaky())
    eventually(lambda: engine.parts.work.runner is not None and engine.parts.work.runner.idle)
    found = engine.metrics
    assert (found.executed, found.failures, found.retries, found.claimed, found.fenced) == (4, 2, 2, 4, 0)
    assert (found.active.total, found.queued.total, found.most_queued.total) == (0, 0, 0)
    assert found.commits >= 5
    assert found.commits_failed == 0
    assert found.ops_per_commit * found.commits >= 4 + found.claims
    assert found.commit_seconds > 0
    assert (found.blocks.total, found.blocked_seconds.total, found.leases_lost) == (0, 0, 0)
    assert set(json.loads(json.dumps(found.to_dict()))) == set(EngineMetrics._fields)


def test_an_engine_knows_how_long_its_steps_took(engine: Engine) -> None:
    runs = [engine.run(Flaky()) for _ in range(3)]
    eventually(lambda: engine.parts.work.runner is not None and engine.parts.work.runner.idle)
    found = engine.metrics
    journals = [reader.list_journal(engine.store, run.id) for run in runs]
    own = [entry for journal in journals for entry in journal if entry.kind in ("claimed", "completed", "failed")]
    assert found.steps == len(own) == found.claimed + found.executed
    stored = sum(run.metrics.step_latency.total for run in runs) / found.executed
    assert found.step_seconds == pytest.approx(stored, abs=0.05)
    assert 0 < found.step_seconds < sum(run.metrics.wall_seconds for run in runs)


def test_each_step_counts_once_with_its_time_however_its_end_was_committed() -> None:
    own = scheduler()
    own.know(facts(width=3))
    own.mark_ready([RunId("r")])
    first, second, third = hold(own, ("r", 0), ("r", 1), ("r", 2))
    for held in (first, second):
        end(own, held, 4 * SECOND)
    batch = own.next_batch(4 * SECOND)
    assert batch is not None
    commit_batch(own, batch, now=4 * SECOND)
    third.answer = Settled(False, news())
    own.settled_apart(third, Settle(third.attempt, AttemptStatus.COMPLETED, NodeStatus.COMPLETED), 7 * SECOND)
    found = own.metrics(7 * SECOND, renewals=0, leases_lost=0)
    assert (found.executed, found.step_seconds) == (3, 5.0)


def test_what_never_began_or_was_fenced_is_no_step_that_took_time() -> None:
    counters = Counters()
    held = Held(AttemptId("c.0"), facts(), 0, 1, 0, (), claimed_at=5)
    end = Settle(held.attempt, AttemptStatus.FAILED, NodeStatus.FAILED)
    counters.unusual(held, end, 12, recorded=True)
    held.begun = True
    counters.unusual(held, end, 12, recorded=False)
    assert counters.step_time == 0
    counters.unusual(held, end, 12, recorded=True)
    assert counters.step_time == 7


class Wide(Workflow):
    fails: ClassVar[bool] = True

    @step
    def begin(self) -> None: ...

    @task(depends_on=begin)
    def a(self) -> None: ...

    @task(depends_on=begin)
    def b(self) -> None:
        if self.fails:
            raise ConnectionError

    @task(depends_on=begin)
    def c(self) -> None: ...

    @step(depends_on=[a, b, c])
    def end(self) -> None: ...


def longest_queue(run: Run, engine: Engine) -> int:
    """As the audit of the journal tells it, entry by entry."""
    journal = reader.list_journal(engine.store, run.id)
    told = folding([run.graph], journal)
    before = [next(told).nodes.count(NodeStatus.READY) for _ in journal]
    return max(count for count, entry in zip(before, journal, strict=True) if entry.kind == "claimed")


def test_the_longest_queue_is_the_one_that_the_journal_tells_of(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = engine.run(Wide(), check=False)
    monkeypatch.setattr(Wide, "fails", False)
    healed = engine.run(Wide())
    runs = [
        failed.retry().wait(30),
        healed,
        healed.fork("b").wait(30),
        healed.fork("begin").wait(30),
        engine.run(Flaky()),
    ]
    healed.reattempt("end").wait(30)
    assert [run.metrics.most_queued for run in runs] == [longest_queue(run, engine) for run in runs]
    assert healed.metrics.most_queued == 3


def test_every_process_sees_the_same_numbers_of_a_run(open_sqlite: OpenEngine) -> None:
    run = open_sqlite().run(Flaky())
    assert open_sqlite(runner=None).get(run.id).metrics == run.metrics


def test_an_engine_that_only_looks_has_done_nothing(open_engine: OpenEngine) -> None:
    found = open_engine(runner=None).metrics
    assert (found.executed, found.commits, found.active.total) == (0, 0, 0)
    assert (found.steps, found.step_seconds) == (0, 0.0)


def test_a_run_that_is_going_on_is_measured_as_it_stands(open_engine: OpenEngine) -> None:
    engine = open_engine(max_concurrent_nodes=2, queue_depth=0)
    release = threading.Event()
    began = threading.Semaphore(0)

    class Fan(Workflow):
        @step(depends_on=None)
        def a(self) -> None:
            began.release()
            release.wait(30)

        @step(depends_on=None)
        def b(self) -> None:
            began.release()
            release.wait(30)

        @step(depends_on=None)
        def c(self) -> None:
            began.release()
            release.wait(30)

    run = engine.start(Fan())
    assert began.acquire(timeout=30)
    assert began.acquire(timeout=30)
    found, whole = run.metrics, engine.metrics
    assert (found.status, found.active, found.queued, found.executed, found.attempts) == ("RUNNING", 2, 1, 0, 2)
    assert (whole.active, whole.queued.total) == ((2, 0, 0), 0)
    assert (whole.blocks.thread, whole.claimed, whole.executed) == (1, 2, 0)
    release.set()
    run.wait(60)
    eventually(lambda: engine.metrics.executed == 3)
    assert engine.metrics.blocks.thread == 1
    assert engine.metrics.blocked_seconds.thread > 0


def test_kinds_of_bodies_are_told_apart(engine: Engine) -> None:
    release = threading.Event()
    w = Builder("kinds")
    w.node("loop", job=jobs.nap_on_the_loop, args={"seconds": 30}, depends_on=None)

    class Thread(Workflow):
        @step
        def wait(self) -> None:
            release.wait(30)

    runs = [engine.start(w), engine.start(Thread())]
    eventually(lambda: engine.metrics.active == (1, 1, 0))
    runs[0].cancel(grace_seconds=0)
    release.set()
    for run in runs:
        run.wait(60)
    eventually(lambda: engine.metrics.active.total == 0)


def test_a_late_result_is_counted_as_fenced(engine: Engine) -> None:
    began, release = threading.Event(), threading.Event()

    class Late(Workflow):
        @step
        def late(self) -> None:
            began.set()
            release.wait(30)

    run = engine.start(Late())
    assert began.wait(30)
    run.cancel(grace_seconds=0).wait(30)
    release.set()
    eventually(lambda: engine.metrics.fenced == 1)
    assert engine.metrics.executed == 0
    assert run.metrics.executed == 0


def test_a_deleted_run_has_no_numbers(engine: Engine) -> None:
    run = engine.run(Flaky())
    run.delete()
    with pytest.raises(RunNotFound):
        _ = run.metrics


def test_renewals_are_counted(open_sqlite: OpenEngine) -> None:
    engine = open_sqlite(lease_seconds=0.3)
    engine.run(Flaky())
    eventually(lambda: engine.metrics.renewals >= 2)


def test_a_lease_is_lost_once_however_many_say_so() -> None:
    lease_state = LeaseState(WorkerId("w"), 30)
    lease_state.answered(Enlisted(30), 0)
    lease_state.lost(1)
    lease_state.answered(Refused(Refusal.LEASE_EXPIRED), 2)
    assert lease_state.losses == 1


ROOTS = {"first": None, "g1": None, "g2": None, "g3": None, "last": ("first", "g1", "g2", "g3")}


@pytest.mark.parametrize(
    "later",
    [ROOTS, {**ROOTS, "x1": None, "x2": None, "x3": None}, {**ROOTS, "g1": "first", "g2": "first", "g3": "first"}],
    ids=["the same", "more roots", "other parents"],
)
def test_the_longest_queue_of_a_healed_run_is_that_of_its_frontiers(open_sqlite: OpenEngine, later: Any) -> None:
    play = Play(broken="last")
    before = open_sqlite(max_concurrent_nodes=1, queue_depth=0)
    run = before.run(play.workflow(**ROOTS), run_id="r", check=False)
    assert run.metrics.most_queued == 4
    before.close()
    play.broken.clear()
    after = open_sqlite(workflows=[type(play.workflow(**later))], max_concurrent_nodes=1, queue_depth=0)
    healed = after.get("r").retry().wait(30)
    assert healed.row.heals == (later is not ROOTS)
    frontiers = [healed.checkpoint(seq).frontier for seq in range(1, healed.row.seq + 1)]
    assert healed.metrics.most_queued == max(sum(item.status == "READY" for item in items) for items in frontiers)


def test_averages_are_what_the_counters_say(engine: Engine) -> None:
    """Also of an engine that has done nothing yet."""
    runner = engine.parts.work.runner
    assert runner is not None
    counters = runner.scheduler.counters
    for ops, commits, commit_time, executed, step_time in [(0, 0, 0, 0, 0), (12, 4, 2_000_000, 5, 10_000_000)]:
        with runner._lock:
            counters.ops, counters.commits, counters.commit_time = ops, commits, commit_time
            counters.settled, counters.fenced, counters.unbegun, counters.step_time = executed + 3, 2, 1, step_time
            metrics = runner.scheduler.metrics(now(), renewals=0, leases_lost=0)
        assert metrics.executed == executed
        assert metrics.ops_per_commit == (ops / commits if commits else 0)
        assert metrics.commit_seconds == (commit_time / commits / SECOND if commits else 0)
        assert metrics.step_seconds == (step_time / executed / SECOND if executed else 0)
