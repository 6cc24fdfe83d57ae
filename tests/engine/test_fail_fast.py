"""`on_failure="fail_fast"`: when a node fails for good nothing new starts, and everybody sees which node broke."""

from __future__ import annotations

import threading

from stepwell import Builder, Context, Engine, Workflow, step, task
from tests.engine import jobs
from tests.engine.waiting import eventually


class Parcel(Workflow):
    """weigh -> pack -> ship, and beside them label -> print: `pack` fails while `label` is at work."""

    @step
    def weigh(self) -> None: ...

    @step
    def pack(self) -> None:
        raise ValueError("no box")

    @step
    def ship(self) -> None: ...

    @task(depends_on=weigh)
    def other(self) -> None: ...


def test_descendants_are_upstream_failed_and_say_of_whom(engine: Engine) -> None:
    run = engine.run(Parcel(), check=False)
    assert (run.status, run.node("pack").status, run.node("weigh").status) == ("FAILED", "FAILED", "COMPLETED")
    ship = run.node("ship")
    assert (ship.status, ship.reason, ship.attempts) == ("UPSTREAM_FAILED", "upstream: pack", ())


def test_unstarted_nodes_on_other_branches_are_cancelled_because_the_run_failed(engine: Engine) -> None:
    began, release = threading.Event(), threading.Event()

    class Branches(Workflow):
        @task(depends_on=None)
        def breaks(self) -> None:
            began.wait(60)
            raise ValueError

        @task(depends_on=None)
        def holds(self) -> int:
            began.set()
            release.wait(10)
            return 7

        @task(depends_on=holds)
        def waits(self) -> None: ...

        @task(depends_on=[breaks, holds])
        def needs_both(self) -> None: ...

    run = engine.start(Branches())
    eventually(lambda: run.status == "FAILED")
    release.set()
    eventually(lambda: run.node("holds").status == "COMPLETED")
    assert (run.node("waits").status, run.node("waits").reason) == ("CANCELLED", "run_failed")
    assert run.node("needs_both").status == "UPSTREAM_FAILED"


def test_a_running_sibling_is_told_to_stop_and_its_node_is_cancelled(engine: Engine) -> None:
    began, stopped = threading.Event(), threading.Event()

    class Pair(Workflow):
        @task(depends_on=None)
        def breaks(self) -> None:
            began.wait(60)
            raise ValueError

        @task(depends_on=None)
        def loops(self, ctx: Context) -> None:
            began.set()
            eventually(lambda: ctx.stopping)
            stopped.set()
            ctx.check()

    run = engine.run(Pair(), check=False)
    assert stopped.wait(30)
    eventually(lambda: run.node("loops").status == "CANCELLED")
    assert run.node("loops").attempts[0].status == "CANCELLED"


def test_a_late_success_is_recorded_moves_nothing_and_is_not_repeated_by_a_retry(engine: Engine) -> None:
    began, release = threading.Event(), threading.Event()
    entries: list[str] = []

    class Late(Workflow):
        @task(depends_on=None)
        def breaks(self, ctx: Context) -> int:
            began.wait(60)
            if ctx.attempt == 1:
                raise ValueError
            return 1

        @task(depends_on=None)
        def late(self) -> int:
            entries.append("late")
            began.set()
            release.wait(10)
            return 2

        @task(depends_on=[breaks, late])
        def join(self, breaks: int, late: int) -> int:
            return breaks + late

        @task(depends_on=late)
        def after_late(self) -> None:
            entries.append("after_late")

    run = engine.start(Late()).wait(10)
    assert run.status == "FAILED"
    release.set()
    eventually(lambda: run.node("late").status == "COMPLETED")
    assert run.output("late") == 2
    assert run.node("after_late").status == "CANCELLED"
    assert run.status == "FAILED"
    assert run.retry().wait(10).output("join") == 3
    assert sorted(entries) == ["after_late", "late"]


def test_nothing_starts_after_a_failure(engine: Engine) -> None:
    w = Builder("wide")
    w.node("breaks", job=jobs.fail, depends_on=None)
    w.fan_out(range(2_000), job=jobs.nap, args=lambda _: {"seconds": 0.005}, depends_on=None)
    run = engine.run(w, check=False)
    assert engine.parts.work.runner is not None
    eventually(lambda: engine.parts.work.runner.idle)  # type: ignore[union-attr]
    statuses = [node.status for node in run.nodes()]
    assert statuses.count("CANCELLED") > 1_000
    assert set(statuses) <= {"FAILED", "COMPLETED", "CANCELLED"}


def test_many_failures_at_once_fail_the_run_once(engine: Engine) -> None:
    w = Builder("all bad")
    w.fan_out(range(30), job=jobs.fail, args=lambda _: {}, depends_on=None)
    w.node("join", job=jobs.nothing)
    run = engine.run(w, check=False)
    assert run.status == "FAILED"
    assert run.node("join").status == "UPSTREAM_FAILED"
