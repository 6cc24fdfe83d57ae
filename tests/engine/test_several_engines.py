"""Engines that share one file share the work: everything is done once, and each makes progress."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

import pytest

from stepwell import Builder, Engine, Workflow, step
from stepwell.base.ids import RunId
from stepwell.engine.bodies.held import RunFacts
from stepwell.engine.worker.runner import LocalRunner
from stepwell.errors import RunFailed, RunNotFound
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually


class Small(Workflow):
    number: int

    @step
    def first(self) -> int:
        time.sleep(0.002)
        return self.number

    @step
    async def second(self, first: int) -> int:
        return first * 2


def completed_once(engine: Engine, runs: list[str]) -> Counter[str]:
    """Every node completed once; how many attempts each worker completed."""
    workers: Counter[str] = Counter()
    for run in runs:
        for node in engine.get(run).nodes():
            done = [attempt for attempt in node.attempts if attempt.status == "COMPLETED"]
            assert len(done) == 1, f"{run} {node}"
            workers[done[0].worker] += 1
    return workers


MEETING = threading.Barrier(2)
MET = threading.Event()


class Meeting(Workflow):
    """Until two bodies have been at work at one time, none of them ends."""

    number: int

    @step
    def meet(self) -> int:
        if not MET.is_set():
            MEETING.wait(20)
            MET.set()
        return self.number


def test_two_engines_in_one_process_serve_one_file_together(open_sqlite: OpenEngine) -> None:
    runs = [run.id for run in open_sqlite(runner=None).start_many(Meeting(number=number) for number in range(60))]
    first = open_sqlite(workflows=[Meeting], max_concurrent_nodes=1)
    second = open_sqlite(workflows=[Meeting], max_concurrent_nodes=1)
    for run in runs:
        first.get(run).wait(30)
    assert len(completed_once(second, runs)) == 2


def test_each_works_on_its_own_runs_without_disturbing_the_other(open_sqlite: OpenEngine) -> None:
    first, second = open_sqlite(), open_sqlite()
    done: dict[str, list[str]] = {}

    def work(name: str, engine: Engine) -> None:
        runs = [engine.start(Small(number=number)) for number in range(30)]
        done[name] = [run.wait(20).id for run in runs]

    threads = [threading.Thread(target=work, args=each) for each in (("first", first), ("second", second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(completed_once(first, done["first"])) == 1
    assert len(completed_once(first, done["second"])) == 1


def test_an_engine_takes_up_what_a_closed_one_left(open_sqlite: OpenEngine) -> None:
    server = open_sqlite(workflows=[Small])
    left = open_sqlite(runner=None).start(Small(number=3))
    assert left.wait(10).output("second") == 6
    assert server.get(left.id).status == "COMPLETED"


def test_an_engine_serves_everything_it_has_the_code_of_and_leaves_the_rest(open_sqlite: OpenEngine) -> None:
    starter = open_sqlite(runner=None)
    unknown = Builder("unknown")
    unknown.node("gone", job="no.such.module:job")
    theirs = starter.start(unknown)
    w = Builder("known")
    w.node("double", job=jobs.double, args={"item": 4})
    ours, classy = starter.start(w), starter.start(Small(number=1))
    server = open_sqlite()
    server.work(wait=0)
    assert ours.wait(10).output("double") == 8
    assert classy.wait(10).output("second") == 2
    assert theirs.status == "PENDING"
    assert starter.start(w).wait(10).output("double") == 8


def test_an_engine_that_only_works_for_some_workflows_leaves_others_alone(open_sqlite: OpenEngine) -> None:
    class Other(Workflow):
        @step
        def work(self) -> None: ...

    open_sqlite(workflows=[Other])
    starter = open_sqlite(runner=None)
    left, done = starter.start(Small(number=1)), starter.start(Other())
    assert done.wait(10).status == "COMPLETED"
    assert left.status == "PENDING"


def test_one_workflow_defined_in_two_places_is_served_with_the_code_that_is_here(open_sqlite: OpenEngine) -> None:
    """The same name and graph, but the class of one run cannot be imported by anybody else."""

    class Local(Workflow, name="Shared"):
        @step
        def work(self) -> str:
            return "here"

    local = open_sqlite(runner=None).start(Local())
    shared = open_sqlite(runner=None).start(Shared())
    server = open_sqlite()
    server.work(wait=0)
    assert shared.wait(10).output("work") == "there"
    w = Builder("after")
    w.node("double", job=jobs.double, args={"item": 4})
    assert server.run(w, wait=10).output("double") == 8
    assert local.wait(10).output("work") == "there"


def test_a_run_that_was_granted_and_cannot_be_served_keeps_nobody_from_working(
    open_sqlite: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when it is deleted, or its code goes away, between the claim and the first look at it."""
    starter = open_sqlite(runner=None)
    odd, usual = starter.start(Small(number=1)), starter.start(Small(number=2))
    find = LocalRunner.find_facts
    gone = [odd.id]

    def find_some(runner: LocalRunner, run_id: RunId, row: Any) -> RunFacts:
        if run_id in gone:
            raise RunNotFound(run_id)
        return find(runner, run_id, row)

    monkeypatch.setattr(LocalRunner, "find_facts", find_some)
    open_sqlite(workflows=[Small], lease_seconds=1)
    assert usual.wait(10).status == "COMPLETED"
    eventually(lambda: [attempt.status for attempt in odd.node("first").attempts][:1] == ["RELEASED"])
    gone.clear()
    assert odd.wait(10).status == "COMPLETED"


class Shared(Workflow):
    @step
    def work(self) -> str:
        return "there"


def test_an_engine_forgets_its_runs_that_others_finished(open_sqlite: OpenEngine) -> None:
    first, second = open_sqlite(workflows=[Small]), open_sqlite(workflows=[Small])
    runs = first.start_many(Small(number=number) for number in range(60))
    for run in runs:
        run.wait(20)
    for engine in (first, second):
        runner = engine.parts.work.runner
        assert runner is not None
        eventually(lambda runner=runner: not runner.scheduler.facts, "runs that ended are still remembered", seconds=60)


def test_a_failure_in_one_engine_stops_the_bodies_of_another(open_sqlite: OpenEngine) -> None:
    w = Builder("pair")
    w.node("nap", job=jobs.nap_on_the_loop, args={"seconds": 30}, depends_on=None)
    w.node("fail", job=jobs.fail, depends_on=None, queue="other")
    first = open_sqlite()
    run = first.start(w)
    with pytest.raises(RunFailed):
        open_sqlite().adopt(run.id).wait(10).check()
    eventually(lambda: run.node("nap").status == "CANCELLED")
