"""What is too large for a store is refused where it arises: its attempt fails and says what it was, and nobody else suffers."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell import Builder, Context, Engine, Workflow, step
from stepwell.core.model import StoreLimits
from stepwell.engine import starting
from stepwell.engine.bodies import attempt
from stepwell.errors import InputError
from stepwell.history.effects import record, recorder
from tests.engine import jobs
from tests.engine.schedulers import Scheduler, end, facts, hold
from tests.engine.schedulers import scheduler as a_desk

LIMIT = 100_000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "MAX_OUTCOME", LIMIT)
    monkeypatch.setattr(recorder, "MAX_RECORDED", LIMIT)
    monkeypatch.setattr(record, "MAX_RAISED", LIMIT)
    monkeypatch.setattr(starting, "MAX_INPUT", LIMIT)


def failure(engine: Engine, workflow: Workflow) -> str:
    run = engine.run(workflow, check=False, wait=20)
    (made,) = run.node("work").attempts
    assert made.status == "FAILED"
    assert engine.run(one(), wait=10).status == "COMPLETED"
    return str(made.error)


def one() -> Builder:
    w = Builder("one")
    w.node("fine", job=jobs.same, args={"item": 1})
    return w


def test_an_outcome(engine: Engine) -> None:
    class Large(Workflow):
        @step
        def work(self, ctx: Context) -> None:
            ctx.outcome["page"] = "x" * LIMIT

    assert f"the ctx.outcome of node 'work' has {LIMIT + 11} bytes; at most {LIMIT} can be stored" in failure(
        engine, Large()
    )


def test_an_outcome_of_a_body_that_failed_is_left_out(engine: Engine) -> None:
    class Large(Workflow):
        @step
        def work(self, ctx: Context) -> None:
            ctx.outcome["page"] = "x" * LIMIT
            raise ValueError("broken")

    assert "ValueError: broken" in failure(engine, Large())


@pytest.mark.parametrize("durable", [False, True])
def test_what_an_effect_returns(engine: Engine, durable: bool) -> None:
    class Large(Workflow):
        durable: bool

        @step
        def work(self, ctx: Context) -> None:
            ctx.effect("fetch", lambda: "x" * LIMIT, durable=self.durable)

    told = failure(engine, Large(durable=durable))
    assert "effect 'fetch', which was done, of node 'work' cannot be recorded" in told
    assert f"at most {LIMIT} can be stored of one attempt" in told


def test_what_an_async_effect_returns(engine: Engine) -> None:
    async def fetch() -> str:
        return "x" * LIMIT

    class Large(Workflow):
        @step
        async def work(self, ctx: Context) -> None:
            await ctx.effect("fetch", fetch, durable=True)

    assert "effect 'fetch', which was done, of node 'work' cannot be recorded" in failure(engine, Large())


def test_what_an_effect_asks_is_refused_before_it_is_done(engine: Engine) -> None:
    done: list[str] = []

    class Large(Workflow):
        @step
        def work(self, ctx: Context) -> None:
            ctx.effect("send", done.append, "x" * LIMIT)

    assert "say with request=... what identifies this request" in failure(engine, Large())
    assert done == []


def test_many_effects_of_one_attempt(engine: Engine) -> None:
    """Each is small enough, and all together are stored in one piece. What finds no room at all is not done."""
    done: list[int] = []

    def fetch(number: int) -> str:
        done.append(number)
        return "x" * (LIMIT // 10)

    class Many(Workflow):
        @step
        def work(self, ctx: Context) -> None:
            for number in range(100):
                ctx.effect("fetch", fetch, number)

    assert "effect 'fetch', which was done, of node 'work' cannot be recorded" in failure(engine, Many())
    assert len(done) == 10


def test_many_readings_of_the_clock_and_many_checkpoints(engine: Engine) -> None:
    class Clock(Workflow):
        @step
        def work(self, ctx: Context) -> None:
            while True:
                ctx.now()

    class Labels(Workflow):
        @step
        def work(self, ctx: Context) -> None:
            while True:
                ctx.checkpoint("again")

    assert "ctx.now() of node 'work' cannot be recorded" in failure(engine, Clock())
    assert "checkpoint 'again' of node 'work' cannot be recorded" in failure(engine, Labels())


def test_what_an_effect_raises_is_recorded_as_far_as_it_fits(engine: Engine) -> None:
    def fail() -> None:
        raise ValueError("x" * LIMIT)

    class Raises(Workflow):
        @step
        def work(self, ctx: Context) -> None:
            ctx.effect("fail", fail)

    run = engine.run(Raises(), check=False, wait=20)
    (effect,) = run.effects()
    assert effect.error is not None
    assert effect.error.message == "x" * 8_192 + " ... (what it says and holds is too large to be recorded)"


def test_the_input_of_a_run(engine: Engine) -> None:
    class Large(Workflow):
        text: str

        @step
        def work(self) -> None: ...

    with pytest.raises(InputError, match=f"the input has {LIMIT + 11} bytes; at most {LIMIT} can be stored"):
        engine.start(Large(text="x" * LIMIT))


class Strange:
    """A number of some library that is no number after all."""

    def __float__(self) -> float:
        raise RuntimeError("not now")


@pytest.mark.parametrize("wrong", [10**5_000, -(10**400), "7", Strange()], ids=["huge", "low", "text", "strange"])
def test_progress_that_is_no_number_fails_its_body_and_nobody_else(engine: Engine, wrong: Any) -> None:
    class Says(Workflow):
        @step
        def work(self, ctx: Context) -> None:
            ctx.progress(wrong)

    assert "Error" in failure(engine, Says())


def test_the_message_of_progress_is_kept_short_and_made_by_the_body(engine: Engine) -> None:
    class Message:
        def __str__(self) -> str:
            raise RuntimeError("not now")

    class Says(Workflow):
        @step
        def work(self, ctx: Context) -> None:
            ctx.progress(1, 2, "x" * 1_000_000)
            ctx.progress(1, 2, Message())  # type: ignore[arg-type]

    assert "RuntimeError: not now" in failure(engine, Says())


def test_a_batch_takes_no_more_than_a_store_can_write_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    d: Scheduler = a_desk(threads=4)
    monkeypatch.setattr(d._outbox, "_takes", StoreLimits(batch_bytes=10))
    d.know(facts(width=4))
    for held in hold(d, *(("r", index) for index in range(4))):
        end(d, held)
    batch = d.next_batch(0)
    assert batch is not None
    assert len(batch.settling) == 3, "each has the four bytes of null"
