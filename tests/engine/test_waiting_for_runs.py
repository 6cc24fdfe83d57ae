"""Waiting for a run ends when the run does, whoever works on it, and never later than it was told."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, cast

import pytest

from stepwell import Builder, Engine, Run, RunFailed, RunStillActive, Workflow, step
from stepwell.base.ids import RunId
from stepwell.engine import waiting
from stepwell.errors import EngineClosed, RunCancelled, RunPaused
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually, in_time


def napping(seconds: float) -> Builder:
    w = Builder("napping")
    w.node("nap", job=jobs.nap, args={"seconds": seconds})
    return w


def test_waiting_too_short_says_that_the_run_goes_on(engine: Engine) -> None:
    release = threading.Event()

    class Long(Workflow):
        @step
        def hold(self) -> None:
            release.wait(60)

    run = engine.start(Long())
    eventually(lambda: run.status == "RUNNING")
    before = time.monotonic()
    with pytest.raises(RunStillActive, match=rf"run {run.id} is still RUNNING after 0.1 s; it goes on") as caught:
        run.wait(0.1)
    assert isinstance(caught.value, TimeoutError)
    assert time.monotonic() - before < 15
    release.set()
    assert run.wait(30).status == "COMPLETED"


def test_waiting_for_what_nobody_works_on_says_so(open_sqlite: OpenEngine) -> None:
    looks = open_sqlite(runner=None)
    run = looks.start(napping(0.01))
    works = rf"`engine\.adopt\('{run.id}'\)` or `stepwell resume {run.id} --store \S+` does"
    nobody = rf"run {run.id} is still PENDING after 0\.01 s; no worker is alive that works on it: {works}"
    with pytest.raises(RunStillActive, match=nobody):
        run.wait(0.01)
    engine = open_sqlite()
    with pytest.raises(RunStillActive, match=nobody):  # its own worker is alive, but has not been given the run
        engine.get(run.id).wait(0.01)
    assert engine.adopt(run.id).wait(30).status == "COMPLETED"


def test_waiting_for_a_run_that_somebody_paused_says_how_it_goes_on(engine: Engine) -> None:
    run = engine.start(napping(0.5))
    eventually(lambda: run.status == "RUNNING")
    run.pause()
    with pytest.raises(
        RunStillActive, match=rf"run {run.id} is still PAUSED after 0 s; `run\.resume\(\)`.* goes on with it"
    ):
        run.wait(0)
    assert run.resume().wait(30).status == "COMPLETED"


def test_many_threads_may_wait_for_one_run(engine: Engine) -> None:
    run = engine.start(napping(0.1))
    seen: list[str] = []
    threads = [threading.Thread(target=lambda: seen.append(run.wait(30).status)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == ["COMPLETED"] * 5


def test_an_engine_that_has_done_nothing_yet_notices_the_end_of_a_run_elsewhere(open_sqlite: OpenEngine) -> None:
    def seconds() -> float:
        run = open_sqlite().start(napping(0.3))
        before = time.monotonic()
        assert open_sqlite().get(run.id).wait(30).status == "COMPLETED"
        return time.monotonic() - before

    in_time(1.5, seconds)


def test_an_engine_at_work_notices_the_end_of_a_run_elsewhere(open_sqlite: OpenEngine) -> None:
    busy, other = open_sqlite(), open_sqlite()
    long = Builder("long")
    long.node("nap", job=jobs.nap_on_the_loop, args={"seconds": 300})
    at_work = busy.start(long)
    eventually(lambda: at_work.node("nap").status == "RUNNING")

    def seconds() -> float:
        run = other.start(napping(0.2))
        before = time.monotonic()
        busy.get(run.id).wait(30)
        return time.monotonic() - before

    in_time(1.5, seconds)
    assert at_work.cancel(grace_seconds=0).wait(30).status == "CANCELLED"


def test_an_engine_without_a_runner_notices_the_end_of_a_run(open_sqlite: OpenEngine) -> None:
    run = open_sqlite().start(napping(0.2))
    assert open_sqlite(runner=None).get(run.id).wait(10).status == "COMPLETED"


def test_who_gives_up_awaiting_is_not_held_until_the_run_ends(engine: Engine) -> None:
    release = threading.Event()

    class Long(Workflow):
        @step
        def hold(self) -> None:
            release.wait(60)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(engine.start(Long()), 0.1)

    before = time.monotonic()
    asyncio.run(main())  # joins the threads that the loop used
    assert time.monotonic() - before < 15
    release.set()


def test_the_end_of_a_run_is_never_missed(engine: Engine) -> None:
    """Ends while the waiter is still on its way to wait, again and again."""
    for number in range(200):
        w = Builder("tiny")
        w.node("same", job=jobs.same, args={"item": number})
        assert engine.start(w).wait(10).status == "COMPLETED"


def failing(on_failure: str = "fail_fast") -> Builder:
    w = Builder("failing", on_failure=on_failure)  # type: ignore[arg-type]
    w.node("fail", job=jobs.fail)
    return w


@pytest.mark.parametrize(("on_failure", "status"), [("fail_fast", "FAILED"), ("pause", "PAUSED")])
def test_waiting_tells_nothing_of_how_a_run_ended(engine: Engine, on_failure: str, status: str) -> None:
    async def awaited() -> Run:
        return await engine.start(failing(on_failure))

    waited = engine.start(failing(on_failure)).wait(30)
    unchecked = engine.run(failing(on_failure), check=False, wait=30)
    assert {waited.status, unchecked.status, asyncio.run(awaited()).status} == {status}


@pytest.mark.parametrize(("on_failure", "error"), [("fail_fast", RunFailed), ("pause", RunPaused)])
def test_checking_raises_what_running_raises(engine: Engine, on_failure: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"a node failed|ValueError: broken"):
        engine.run(failing(on_failure), wait=30)
    with pytest.raises(error, match=r"a node failed|ValueError: broken"):
        engine.start(failing(on_failure)).wait(30).check()


def test_a_run_that_was_cancelled_or_still_runs_is_judged_by_the_same_rule(engine: Engine) -> None:
    long = Builder("long")
    long.node("nap", job=jobs.nap_on_the_loop, args={"seconds": 300})
    run = engine.start(long)
    assert run.check() is run, "it has not ended, and nothing is wrong with it"
    assert run.pause().check() is run, "somebody paused it, and will resume it"
    with pytest.raises(RunStillActive):
        run.wait(0.05)
    assert run.cancel().wait(30).status == "CANCELLED"
    with pytest.raises(RunCancelled):
        run.check()


def test_those_who_await_runs_leave_the_threads_of_asyncio_to_others(engine: Engine) -> None:
    long = Builder("long")
    long.node("nap", job=jobs.nap_on_the_loop, args={"seconds": 300})
    runs = engine.start_many([long] * 60)

    async def main() -> float:
        awaiting = [asyncio.ensure_future(run) for run in runs]
        await asyncio.sleep(0.1)
        before, threads = time.monotonic(), threading.active_count()
        await asyncio.gather(*(asyncio.to_thread(jobs.nothing) for _ in range(20)))
        taken = time.monotonic() - before
        assert threads < 40, "a thread for each that awaits"
        for run in runs:
            run.cancel()
        ended = await asyncio.gather(*awaiting)
        assert {run.status for run in ended} == {"CANCELLED"}
        return taken

    assert asyncio.run(main()) < 1.0


def test_who_awaits_a_run_is_told_that_the_engine_was_closed(open_engine: OpenEngine) -> None:
    engine = open_engine(close_seconds=0)
    long = Builder("long")
    long.node("nap", job=jobs.nap_on_the_loop, args={"seconds": 300})
    run = engine.start(long)

    async def main() -> None:
        awaiting = asyncio.ensure_future(run)
        await asyncio.sleep(0.05)
        await asyncio.to_thread(engine.close)
        with pytest.raises(EngineClosed):
            await awaiting
        with pytest.raises(EngineClosed):
            await run

    asyncio.run(main())


def test_a_coroutine_may_await_a_run_that_others_work_on(open_sqlite: OpenEngine) -> None:
    run = open_sqlite().start(napping(0.2))

    async def main(engine: Engine) -> str:
        return (await engine.get(run.id)).status

    assert asyncio.run(asyncio.wait_for(main(open_sqlite(runner=None)), 10)) == "COMPLETED"
    assert asyncio.run(asyncio.wait_for(main(open_sqlite()), 10)) == "COMPLETED"


def test_run_looks_at_the_store_at_most_once_when_it_is_told_of_the_end(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    def counted(
        self: waiting.Waiting, run_id: RunId, began: float, look: Any = waiting.Waiting._look
    ) -> waiting.PolledRun:
        looks.append(run_id)
        return cast(waiting.PolledRun, look(self, run_id, began))

    monkeypatch.setattr(waiting, "LOOK_EVERY", 30)  # so that nothing but news ends the first wait
    monkeypatch.setattr(waiting.Waiting, "_look", counted)
    for seconds in (0.0, 0.0, 0.01, 0.1):
        engine.run(napping(seconds))
        assert len(looks) <= 1  # one that ended before anybody waited is looked at; what news tell is not
        looks.clear()
