"""A speedrun is a run in memory whose waiting takes no time; everything else is as ever."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, date, datetime, timedelta

import pytest

import stepwell
from stepwell import Builder, Context, Engine, Retry, RetryLater, RunFailed, RunPaused, Workflow, step, task
from stepwell.testing import speedrun

DAY = 86_400


class Patient(Workflow):
    @step(retry=Retry(6, base_delay=3600, max_delay=DAY))
    def charge(self, ctx: Context) -> int:
        if ctx.attempt < 6:
            raise ConnectionError(f"attempt {ctx.attempt}")
        return ctx.attempt

    @step
    async def ask(self, ctx: Context) -> str:
        if ctx.attempt < 3:
            raise RetryLater(timedelta(days=30))
        return ctx.now().isoformat()


def test_a_month_of_waiting_is_over_at_once() -> None:
    began = time.monotonic()
    run = speedrun(Patient(), start=datetime(2026, 1, 1, tzinfo=UTC))
    assert run.output("charge") == 6
    assert "2026-03-02" < run.output("ask") < "2026-03-09"
    assert run.metrics.wall_seconds > 60 * DAY
    assert time.monotonic() - began < 30


def test_stored_data_that_does_not_fit_fails_the_run() -> None:
    class Misfit(Workflow):
        @step
        def read(self):
            return "soon"

        @step
        def plan(self, read: date) -> None: ...

    with pytest.raises(RunFailed, match="DataMisfit: its parameter 'read' asks for date"):
        speedrun(Misfit())


def test_it_is_the_same_every_time_and_the_same_as_the_engine() -> None:
    class Quick(Workflow):
        @step(retry=Retry(3, base_delay=0.001), side_effects="recordable")
        def draw(self, ctx: Context) -> float:
            if ctx.attempt < 2:
                raise ConnectionError
            return ctx.random.random()

        @step(side_effects="pure")
        def double(self, draw: float) -> float:
            return 2 * draw

    runs = [speedrun(Quick(), run_id="r", seed=7) for _ in range(2)]
    with Engine("memory://") as engine:
        runs.append(engine.run(Quick(), run_id="r", seed=7))
        assert [run.outputs for run in runs] == [runs[0].outputs] * 3
    assert runs[0].replay().executed == ("draw", "double")
    assert runs[0].audit() == []


class Late(Workflow):
    swallows: bool = False

    @step(timeout=30, retry=Retry(2, retry_on=TimeoutError))
    def in_a_thread(self, ctx: Context) -> int:
        try:
            time.sleep(31 if ctx.attempt == 1 else 29)
        except BaseException:
            if not self.swallows:
                raise
        return ctx.attempt

    @step(timeout=30, retry=Retry(2, retry_on=TimeoutError))
    async def on_the_loop(self, ctx: Context) -> int:
        await asyncio.sleep(31 if ctx.attempt == 1 else 29)
        return ctx.attempt

    @step(isolation="process", timeout=30)
    def in_a_process(self) -> int:
        time.sleep(29)
        return threading.get_ident()


@pytest.mark.parametrize("swallows", [False, True])
def test_time_limits_are_kept_in_virtual_time(swallows: bool) -> None:
    run = speedrun(Late(swallows=swallows))
    for node in ("in_a_thread", "on_the_loop"):
        assert [attempt.status for attempt in run.node(node).attempts] == ["TIMED_OUT", "COMPLETED"]
        assert run.node(node).attempts[0].seconds == pytest.approx(30, abs=0.01)
        assert run.node(node).attempts[1].seconds == pytest.approx(29, abs=0.01)
    assert run.output("in_a_process") == threading.get_ident()


def sleep(item: int) -> int:
    time.sleep(100)
    return item


async def sleep_later(item: int) -> int:
    await asyncio.gather(asyncio.sleep(100), asyncio.sleep(50))
    return item


@pytest.mark.parametrize(("job", "seconds"), [(sleep, 300), (sleep_later, 100)])
def test_bodies_overlap_as_far_as_there_are_slots(job: object, seconds: int) -> None:
    w = Builder("wide")
    w.fan_out(range(20), job=job)  # type: ignore[arg-type]
    run = speedrun(w)
    assert run.metrics.wall_seconds == pytest.approx(seconds, abs=1)


def test_a_run_has_its_own_limit() -> None:
    class Slow(Workflow, deadline=3600):
        @step
        def first(self) -> None:
            time.sleep(1800)

        @step
        async def second(self) -> None:
            await asyncio.sleep(7200)

    with pytest.raises(RunFailed, match="did not end within its deadline"):
        speedrun(Slow())
    assert speedrun(Slow(), deadline=timedelta(hours=3)).status == "COMPLETED"


def test_failures_are_those_of_the_engine() -> None:
    class Breaks(Workflow):
        @step(retry=2)
        def one(self) -> None:
            raise ValueError("no")

        @step
        def two(self) -> None: ...

    with pytest.raises(RunFailed, match="ValueError: no"):
        speedrun(Breaks())
    run = speedrun(Breaks(), check=False)
    assert [(node.name, node.status) for node in run.nodes()] == [("one", "FAILED"), ("two", "UPSTREAM_FAILED")]
    assert run.audit() == []

    class Stops(Breaks, on_failure="pause"): ...

    with pytest.raises(RunPaused):
        speedrun(Stops())

    class GoesOn(Workflow, on_failure="finish"):
        @task(depends_on=None)
        def one(self) -> None:
            raise ValueError("no")

        @task(depends_on=None, retry=Retry(3))
        def two(self, ctx: Context) -> int:
            if ctx.attempt < 3:
                raise ValueError("not yet")
            return ctx.attempt

    run = speedrun(GoesOn(), check=False)
    assert (run.status, run.outputs) == ("FAILED", {"two": 3})


def test_what_bodies_say_and_record_is_kept() -> None:
    class Talks(Workflow):
        @step(side_effects="recordable")
        def talk(self, ctx: Context) -> str:
            print("hello")
            ctx.outcome["seen"] = 3
            ctx.checkpoint("talked")
            return str(ctx.effect("upper", str.upper, "yes", durable=True))

    run = speedrun(Talks())
    assert [record.message for record in run.logs()] == ["hello"]
    assert [effect.name for effect in run.effects()] == ["upper"]
    assert run.checkpoint("talked").label == "talked"
    assert run.replay().executed == ("talk",)


def test_work_in_threads_takes_real_time_and_others_sleep_really() -> None:
    class Threads(Workflow):
        @step(timeout=60)
        async def asks(self) -> str:
            real = asyncio.to_thread(time.sleep, 0.05)
            return (await asyncio.gather(asyncio.wait_for(real, 30), asyncio.sleep(0.01, "slept")))[1]

    began = time.monotonic()
    assert speedrun(Threads()).output("asks") == "slept"
    assert time.monotonic() - began >= 0.05
    assert time.sleep.__module__ == "time"


def test_the_time_that_a_body_reads_is_recorded() -> None:
    class Reads(Workflow):
        @step(side_effects="recordable")
        def begin(self, ctx: Context) -> str:
            return ctx.now().isoformat()

        @step(side_effects="recordable")
        def end(self, begin: str, ctx: Context) -> str:
            assert ctx.now().isoformat() >= begin
            time.sleep(0.25)
            return ctx.now().isoformat()

    run = speedrun(Reads(), start=datetime(2026, 1, 1, tzinfo=UTC))
    assert run.outputs == {"begin": "2026-01-01T00:00:00+00:00", "end": "2026-01-01T00:00:00.250000+00:00"}
    assert run.replay().executed == ("begin", "end")


def test_nothing_else_is_made_up() -> None:
    with pytest.raises(AttributeError, match=r"'stepwell.testing' has no attribute 'speedruns'"):
        stepwell.testing.speedruns  # noqa: B018
