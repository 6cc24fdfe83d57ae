"""Closing loses nothing: bodies end or are given back, and the next engine goes on."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from stepwell import Builder, Context, Engine, Workflow, step
from stepwell.core.model import Sweep
from stepwell.errors import EngineClosed
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually


def test_running_bodies_end_and_what_has_not_begun_is_given_back_uncounted(open_sqlite: OpenEngine) -> None:
    began, release = threading.Event(), threading.Event()

    class Wide(Workflow):
        number: int

        @step
        def work(self, ctx: Context) -> int:
            began.set()
            release.wait(10)
            return ctx.attempt

    first = open_sqlite(max_concurrent_nodes=2, close_seconds=5)
    runs = first.start_many(Wide(number=number) for number in range(10))
    began.wait(30)
    threading.Timer(0.1, release.set).start()
    first.close()
    second = open_sqlite(workflows=[Wide])
    statuses = [second.get(run.id).status for run in runs]
    assert statuses.count("COMPLETED") >= 2
    for run in runs:
        again = second.get(run.id).wait(10)
        node = again.node("work")
        assert [attempt.status for attempt in node.attempts if attempt.status not in ("RELEASED", "COMPLETED")] == []
        assert [attempt.status for attempt in node.attempts].count("COMPLETED") == 1


def test_a_body_that_hangs_is_lost_and_run_again_by_the_next_engine(open_sqlite: OpenEngine) -> None:
    entries: list[int] = []
    began, release = threading.Event(), threading.Event()

    class Hanging(Workflow):
        @step
        def work(self, ctx: Context) -> str:
            entries.append(ctx.attempt)
            began.set()
            if ctx.attempt == 1:
                release.wait(60)
            return f"attempt {ctx.attempt}"

    first = open_sqlite()
    run = first.start(Hanging())
    began.wait(30)
    before = time.monotonic()
    first.close(0.2)
    assert time.monotonic() - before < 15
    second = open_sqlite(workflows=[Hanging])
    again = second.get(run.id).wait(10)
    release.set()
    assert [attempt.status for attempt in again.node("work").attempts] == ["LOST", "COMPLETED"]
    assert (again.output("work"), entries) == ("attempt 2", [1, 2])


def test_a_failure_while_closing_is_carried_to_its_end(open_sqlite: OpenEngine) -> None:
    """Nobody has to open the store again for the run to be FAILED."""
    began = threading.Event()

    class Failing(Workflow):
        @step
        def work(self, ctx: Context) -> None:
            began.set()
            eventually(closing.is_set)
            raise ValueError

        @step
        def after(self) -> None: ...

    closing = threading.Event()
    engine = open_sqlite(close_seconds=5)
    run = engine.start(Failing())
    began.wait(30)
    threading.Timer(0.05, closing.set).start()
    engine.close()
    looking = open_sqlite(runner=None).get(run.id)
    assert (looking.status, looking.node("after").status) == ("FAILED", "UPSTREAM_FAILED")


def test_nothing_begins_after_close_has_returned(open_sqlite: OpenEngine) -> None:
    closed = threading.Event()
    late: list[int] = []

    class Tiny(Workflow):
        number: int

        @step
        def work(self) -> None:
            if closed.is_set():
                late.append(self.number)

    for _ in range(15):
        closed.clear()
        engine = open_sqlite(max_concurrent_nodes=8)
        engine.start_many(Tiny(number=number) for number in range(60))
        engine.close(0)
        closed.set()
        time.sleep(0.01)  # whatever would begin now, begins within this time
    assert late == []


def test_closing_twice_and_closing_an_engine_that_did_nothing_is_harmless(open_engine: OpenEngine) -> None:
    engine = open_engine()
    engine.close()
    engine.close()


def test_a_with_block_left_by_an_interrupt_does_not_wait_long(sqlite_url: str) -> None:
    release = threading.Event()

    class Hanging(Workflow):
        @step
        def work(self) -> None:
            release.wait(60)

    def interrupted() -> None:
        with Engine(sqlite_url) as engine:
            run = engine.start(Hanging())
            eventually(lambda: run.status == "RUNNING")
            raise KeyboardInterrupt

    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - before < 15
    release.set()


def test_a_with_block_left_by_an_error_lets_bodies_end_as_any_other(sqlite_url: str) -> None:
    engines: list[Engine] = []

    class Slow(Workflow):
        @step
        def work(self) -> None:
            eventually(lambda: engines[0].parts.work.closed)
            time.sleep(0.7)

    def failed() -> None:
        with Engine(sqlite_url, close_seconds=60) as engine:
            engines.append(engine)
            run = engine.start(Slow(), run_id="slow")
            eventually(lambda: run.status == "RUNNING")
            raise ValueError("of the program")

    with pytest.raises(ValueError, match="of the program"):
        failed()
    with Engine(sqlite_url, runner=None) as engine:
        assert engine.get("slow").status == "COMPLETED"


def test_a_run_is_finished_over_many_engines_that_are_closed_at_any_moment(open_sqlite: OpenEngine) -> None:
    """A chain and a fan, with an engine that lives for a few milliseconds at a time."""
    w = Builder("interrupted")
    w.node("first", job=jobs.same, args={"item": 0})
    w.fan_out(range(40), job=jobs.double)
    w.node("total", job=jobs.total)
    run = open_sqlite(runner=None).start(w)
    for turn in range(500):
        engine = open_sqlite(max_concurrent_nodes=2)
        engine.adopt(run.id)
        time.sleep(turn % 7 * (1 + turn // 40) / 1_000)  # longer and longer: a slow machine gets there too
        status = run.status
        engine.close(0)
        if status.terminal:
            break
    assert run.status == "COMPLETED"
    assert run.output("total") == sum(2 * item for item in range(40))
    for node in run.nodes():
        assert [attempt.status for attempt in node.attempts].count("COMPLETED") == 1


def test_closing_says_nothing_alarming(open_sqlite: OpenEngine, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "stepwell")
    for turn in range(10):
        engine = open_sqlite()
        w = Builder("quiet")
        w.fan_out(range(50), job=jobs.nap_on_the_loop, args=lambda _: {"seconds": 0.002}, depends_on=None)
        engine.start(w)
        time.sleep(turn / 500)
        engine.close(0)
    assert caplog.messages == []


def test_an_interrupt_in_the_middle_of_a_commit_leaves_the_engine_usable(open_sqlite: OpenEngine) -> None:
    """Ctrl-C hits the thread that starts runs while it commits for everybody."""
    engine = open_sqlite()
    engine.run(tiny())
    commit = engine.store.commit
    interrupted: list[int] = []

    def interrupt(batch: object) -> object:
        receipts = commit(batch)  # type: ignore[arg-type]
        if threading.current_thread() is threading.main_thread() and not interrupted:
            interrupted.append(1)
            raise KeyboardInterrupt
        return receipts

    engine.store.commit = interrupt  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        engine.run(tiny(), run_id="interrupted")
    assert engine.run(tiny(), wait=10).status == "COMPLETED"
    assert engine.run(tiny(), run_id="interrupted", wait=10).status == "COMPLETED"


def tiny() -> Builder:
    w = Builder("tiny")
    w.node("same", job=jobs.same, args={"item": 1})
    return w


def test_what_is_asked_for_after_the_end_is_refused_at_once(open_sqlite: OpenEngine) -> None:
    """Nobody commits any more, so whoever asks would wait."""
    engine = open_sqlite()
    w = Builder("one")
    w.node("same", job=jobs.same, args={"item": 1})
    engine.run(w)
    runner = engine.parts.work.runner
    assert runner is not None
    engine.close()
    with pytest.raises(EngineClosed, match="the engine is closed"):
        runner._commits.submit([Sweep()])
