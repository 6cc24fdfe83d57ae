"""A run that takes too long fails as a whole, and says why."""

from __future__ import annotations

import threading
import time

import pytest

from stepwell import Builder, Context, Engine, InputError, Retry, RunFailed, RunStillActive, Workflow, step
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import in_time


class Slow(Workflow, deadline=0.3):
    @step
    def first(self, ctx: Context) -> None:
        while True:
            ctx.check()
            time.sleep(0.005)

    @step
    def second(self) -> None: ...


def test_a_run_ends_soon_after_its_time_is_up(engine: Engine) -> None:
    def seconds() -> float:
        before = time.monotonic()
        run = engine.run(Slow(), check=False)
        taken = time.monotonic() - before
        assert taken >= 0.3
        assert run.status == "FAILED"
        assert run.row.reason == "deadline"
        with pytest.raises(RunFailed, match=r"run \w+ failed: it did not end within its deadline"):
            run.check()
        return taken

    in_time(0.8, seconds)


def test_what_had_not_started_is_cancelled_with_the_reason(engine: Engine) -> None:
    run = engine.run(Slow(), check=False)
    second = run.node("second")
    assert (second.status, second.reason) == ("CANCELLED", "deadline")


def test_the_time_of_one_run_can_be_given_when_it_starts(engine: Engine) -> None:
    w = Builder("nap")
    w.node("nap", job=jobs.nap_on_the_loop, args={"seconds": 60})

    def seconds() -> float:
        before = time.monotonic()
        assert engine.start(w, deadline=0.2).wait().status == "FAILED"
        return time.monotonic() - before

    in_time(0.8, seconds)
    assert engine.run(w, deadline=0.2, check=False).row.reason == "deadline"


def test_a_wrong_time_to_wait_is_refused_before_anything_starts(engine: Engine) -> None:
    for wrong in (-1, "soon", float("nan")):
        with pytest.raises(InputError, match="wait"):
            engine.run(Slow(), wait=wrong)  # type: ignore[arg-type]
    assert list(engine.runs()) == []


def test_who_waits_no_longer_leaves_the_run_alone(engine: Engine) -> None:
    w = Builder("nap")
    w.node("nap", job=jobs.nap_on_the_loop, args={"seconds": 0.5})
    with pytest.raises(RunStillActive, match="it goes on") as caught:
        engine.run(w, wait=0.05)
    assert engine.get(caught.value.run_id).wait(30).status == "COMPLETED"


def test_a_run_that_waits_for_a_retry_ends_too(engine: Engine) -> None:
    class Waiting(Workflow, deadline=0.2):
        @step(retry=Retry(2, base_delay=30))
        def charge(self) -> None:
            raise ConnectionError

    run = engine.run(Waiting(), check=False)
    assert (run.status, run.node("charge").status) == ("FAILED", "CANCELLED")


def test_a_retried_run_has_its_whole_time_again(engine: Engine) -> None:
    again = threading.Event()

    class Second(Workflow, deadline=1.5):
        @step
        def charge(self, ctx: Context) -> int:
            while not again.is_set():
                ctx.check()
                time.sleep(0.005)
            return 1

    run = engine.run(Second(), check=False)
    assert run.status == "FAILED"
    again.set()
    assert run.retry().wait(30).output("charge") == 1


def test_who_adopts_a_run_keeps_its_deadline(open_sqlite: OpenEngine) -> None:
    starts, works = open_sqlite(runner=None), open_sqlite()

    def seconds() -> float:
        run = starts.start(Slow())
        before = time.monotonic()
        assert works.adopt(run.id).wait(30).status == "FAILED"
        return time.monotonic() - before

    in_time(0.8, seconds)
