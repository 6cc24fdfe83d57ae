"""`run.retry()` runs again only what did not complete."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stepwell import Builder, Context, Engine, RunConflict, Workflow, step
from stepwell.base.ids import GateToken, machine
from stepwell.engine.procedures import gates
from tests.engine import jobs
from tests.engine.conftest import OpenEngine


def failing_at(node: str, entries: list[str], broken: threading.Event) -> Workflow:
    class Chain(Workflow, name="chain"):
        @step
        def a(self, ctx: Context) -> str:
            return work(ctx)

        @step
        def b(self, ctx: Context) -> str:
            return work(ctx)

        @step
        def c(self, ctx: Context) -> str:
            return work(ctx)

    def work(ctx: Context) -> str:
        entries.append(ctx.node_name)
        if ctx.node_name == node and broken.is_set():
            raise ValueError("broken")
        return ctx.node_name

    return Chain()


@pytest.mark.parametrize(("node", "expected"), [("a", "aabc"), ("b", "abbc"), ("c", "abcc")])
def test_only_what_did_not_complete_runs_again(engine: Engine, node: str, expected: str) -> None:
    entries: list[str] = []
    broken = threading.Event()
    broken.set()
    run = engine.run(failing_at(node, entries, broken), check=False)
    broken.clear()
    assert run.retry().wait(10).outputs == {"a": "a", "b": "b", "c": "c"}
    assert "".join(entries) == expected


def test_a_run_may_be_retried_again_and_again(engine: Engine) -> None:
    entries: list[str] = []
    broken = threading.Event()
    broken.set()
    run = engine.run(failing_at("b", entries, broken), check=False)
    for _ in range(5):
        assert run.retry().wait(10).status == "FAILED"
    assert [attempt.number for attempt in run.node("b").attempts] == [1, 2, 3, 4, 5, 6]
    assert "".join(entries) == "abbbbbb"


def test_what_is_not_failed_cannot_be_retried(open_engine: OpenEngine) -> None:
    engine = open_engine()
    run = engine.run(failing_at("", [], threading.Event()))
    with pytest.raises(RunConflict, match="is COMPLETED; only a FAILED, CANCELLED or PAUSED run can be retried"):
        run.retry()


def test_a_run_without_a_runner_is_retried_for_somebody_else(open_sqlite: OpenEngine) -> None:
    w = Builder("bad")
    w.node("fail", job=jobs.fail)
    run = open_sqlite().run(w, check=False)
    assert open_sqlite(runner=None).get(run.id).retry().status == "RUNNING"


def test_a_failed_run_of_another_engine_can_be_retried_here(open_sqlite: OpenEngine) -> None:
    w = Builder("bad")
    w.node("fail", job=jobs.fail)
    run = open_sqlite().run(w, check=False)
    assert open_sqlite().get(run.id).retry().wait(10).status == "FAILED"
    assert len(run.node("fail").attempts) == 2


def test_a_retry_at_the_very_moment_of_the_failure_is_never_undone(engine: Engine) -> None:
    """Whoever still hears of the first end must not take it for the second."""

    class Wide(Workflow):
        number: int

        @step
        def a(self) -> None:
            fail_first(self.number, "a")

        @step(depends_on=None)
        def b(self) -> None:
            fail_first(self.number, "b")

        @step(depends_on=None)
        async def c(self) -> None:
            fail_first(self.number, "c")

        @step(depends_on=[a, b, c])
        def join(self) -> int:
            return self.number

    failed: set[tuple[int, str]] = set()

    def fail_first(number: int, node: str) -> None:
        if (number, node) not in failed:
            failed.add((number, node))
            raise ValueError(node)

    for number in range(60):
        run = engine.start(Wide(number=number))
        outcome: Any = run.wait(10)
        for _ in range(6):
            if outcome.status == "COMPLETED":
                break
            outcome = run.retry().wait(10)
        assert run.output("join") == number


def test_a_run_whose_retry_was_cut_short_goes_on_for_who_starts_it_again(open_sqlite: OpenEngine) -> None:
    """Somebody was killed while they asked: the row still says FAILED, but the run has not ended."""
    first = open_sqlite()
    w = Builder("cut short")
    w.node("fails", job=jobs.fail)
    run = first.run(w, run_id="cut", check=False)
    assert run.status == "FAILED"
    first.close()
    left = open_sqlite(runner=None)
    dead = GateToken(f"killed@{machine()}:{2**30}")
    left.store.commit([gates.ask(run.id, "retry")._replace(token=dead)])
    again = open_sqlite().run(w, run_id="cut", check=False)
    assert (again.status, len(again.node("fails").attempts)) == ("FAILED", 2)
    assert again.audit() == []
