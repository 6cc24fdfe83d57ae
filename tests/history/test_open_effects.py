"""Effects that a body does not wait for, or gives up waiting for: the record says so, and the run can be replayed."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any

import pytest

from stepwell import Context, Engine, InputError, Retry, RunFailed, StoreError, Workflow, step
from stepwell.engine.bodies.recording import Ledger
from stepwell.engine.reports.replay import replay_cassette
from stepwell.errors import ReplayMismatch, Stopped
from stepwell.history.replay.loading import read_cassette
from tests.engine.conftest import OpenEngine
from tests.history import bodies
from tests.history.test_effects import ISOLATIONS, run_one

GO = threading.Event()


def slow() -> str:
    GO.wait(30)
    return "too late"


class Leaving(Workflow):
    """Takes the first answer and does not wait for the other one."""

    @step(side_effects="recordable")
    def threads(self, ctx: Context) -> Any:
        pool = ThreadPoolExecutor(2)
        asked = [pool.submit(ctx.effect, "slow", slow), pool.submit(ctx.effect, "quick", abs, -1)]
        done, _ = wait(asked, return_when=FIRST_COMPLETED)
        pool.shutdown(wait=False)
        return sorted(each.result() for each in done)

    @step(side_effects="recordable")
    async def tasks(self, ctx: Context) -> Any:
        asked = [asyncio.ensure_future(ctx.effect("slow", asyncio.sleep, 3600)), ctx.effect("quick", quick, 2)]
        asked[1] = asyncio.ensure_future(asked[1])
        done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        return sorted(each.result() for each in done)


async def quick(number: int) -> int:
    await asyncio.sleep(0.02)
    return number


def test_what_a_body_left_open_is_recorded_as_that_and_can_be_replayed(engine: Engine, tmp_path: Any) -> None:
    GO.clear()
    try:
        run = engine.run(Leaving())
        assert (run.output("threads"), run.output("tasks")) == ([1], [2])
        recorded = [(each.name, each.open, each.response, each.error) for each in run.effects()]
        assert sorted(recorded) == [
            ("quick", False, 1, None),
            ("quick", False, 2, None),
            ("slow", True, None, None),
            ("slow", True, None, None),
        ]
        assert run.replay().executed == ("threads", "tasks")
        cassette = read_cassette(run.export(tmp_path / "leaving.json").read_bytes())
        assert replay_cassette(cassette, jobs=["tests"]).executed == ("threads", "tasks")
    finally:
        GO.set()


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_the_same_wherever_the_body_runs(engine: Engine, isolation: Any) -> None:
    run = run_one(engine, bodies.leave_open, isolation)
    assert run.output("body") == "left"
    (effect,) = run.effects()
    assert (effect.name, effect.open, effect.awaited) == ("slow", True, False)


def test_an_attempt_that_failed_or_timed_out_says_what_it_was_waiting_for(engine: Engine) -> None:
    release = threading.Event()

    class Hanging(Workflow):
        @step(timeout=0.2)
        def hang(self, ctx: Context) -> None:
            ctx.effect("hangs", release.wait, 60)

    try:
        with pytest.raises(RunFailed) as caught:
            engine.run(Hanging())
        (effect,) = engine.get(caught.value.run_id).effects()
        assert (effect.name, effect.open) == ("hangs", True)
    finally:
        release.set()


CALLS: list[str] = []


class Cancelled(Workflow):
    """Its durable effect is cancelled at various moments: `when` says which turn of the loop."""

    turns: int

    @step(side_effects="recordable", retry=Retry(2, base_delay=0.001))
    async def pay(self, ctx: Context) -> Any:
        asked = asyncio.ensure_future(ctx.effect("pay", self.charge, request=1, durable=True))
        for _ in range(self.turns):
            await asyncio.sleep(0)
        asked.cancel()
        try:
            first = await asked
        except asyncio.CancelledError:
            first = "cancelled"
        if ctx.attempt == 1:
            raise ConnectionError("once more")
        return [first, await ctx.effect("pay", self.charge, request=1, durable=True)]

    async def charge(self) -> str:
        CALLS.append("charge")
        return "paid"


@pytest.mark.parametrize("turns", range(8))
def test_a_durable_effect_that_is_cancelled_is_replayed_as_it_was_seen(engine: Engine, turns: int) -> None:
    for _ in range(5):
        CALLS.clear()
        run = engine.run(Cancelled(turns=turns))
        first, second = run.output("pay")
        assert second == "paid"
        assert first in ("cancelled", "paid")
        # Whatever was answered at all was stored, and is not asked for once more than it is used.
        assert len(CALLS) <= 2
        assert run.replay().executed == ("pay",)


def test_a_durable_effect_that_was_answered_is_stored_although_its_body_is_cancelled_then(engine: Engine) -> None:
    calls: list[int] = []

    class Pay(Workflow):
        @step(side_effects="recordable", retry=Retry(2, base_delay=0.001))
        async def pay(self, ctx: Context) -> Any:
            async def charge() -> int:
                calls.append(1)
                asyncio.get_running_loop().call_soon(task.cancel)
                return 7

            task = asyncio.ensure_future(ctx.effect("charge", charge, durable=True))
            try:
                return await task
            except asyncio.CancelledError:
                raise ConnectionError("cancelled while it was being stored") from None

    run = engine.run(Pay())
    assert (run.output("pay"), calls) == (7, [1])
    assert [(each.attempt, each.durable, each.from_attempt) for each in run.effects()] == [
        (1, True, None),
        (1, False, None),
        (2, False, 1),
    ]
    run.replay()


def test_the_name_under_which_the_time_is_recorded_is_refused(engine: Engine) -> None:
    class Named(Workflow):
        @step
        def ask(self, ctx: Context) -> None:
            with pytest.raises(InputError, match=r"may not be called 'stepwell\.now'"):
                ctx.effect("stepwell.now", abs, -1)

    engine.run(Named())


def test_what_a_thread_left_behind_does_is_no_record_of_the_next_body(open_engine: OpenEngine) -> None:
    engine = open_engine(max_processes=1)
    run_one(engine, bodies.leave_a_thread_that_pays, "process", side_effects="recordable")
    run = run_one(engine, bodies.pay_at_last, "process", side_effects="recordable", retry=Retry(2, base_delay=0.001))
    assert run.output("body") == "its own"
    assert [(each.attempt, each.response) for each in run.effects()] == [(2, "its own")]
    run.replay()


@pytest.mark.parametrize("asked", [False, True], ids=["asked-nothing-before", "asked-before"])
def test_a_body_that_has_ended_asks_nothing_more(engine: Engine, asked: bool) -> None:
    over, told = threading.Event(), threading.Event()

    class Late(Workflow):
        @step
        def leave(self, ctx: Context) -> None:
            if asked:
                ctx.effect("in time", abs, -1)

            def ask() -> None:
                over.wait(30)
                for late in (
                    lambda: ctx.effect("late", CALLS.append, "late"),
                    ctx.now,
                    lambda: ctx.checkpoint("late"),
                ):
                    with pytest.raises(Stopped, match="has ended"):
                        late()
                told.set()

            threading.Thread(target=ask, daemon=True).start()

    CALLS.clear()
    run = engine.run(Late())
    over.set()
    assert told.wait(30)
    assert (CALLS, [each.name for each in run.effects()]) == ([], ["in time"] * asked)
    assert list(run.checkpoints()) == []


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_what_is_awaited_without_being_async_is_left_open_as_that(engine: Engine, isolation: Any) -> None:
    run = run_one(engine, bodies.leave_a_lambda_open, isolation, side_effects="recordable")
    (effect,) = run.effects()
    assert effect.awaited
    assert effect.open is (isolation == "thread")  # the loop of a process ends with its body, and cancels what is left
    before = time.monotonic()
    run.replay()
    assert time.monotonic() - before < 10


CHANGED = threading.Event()


class Breaking(Workflow):
    @step(side_effects="recordable")
    async def leave(self, ctx: Context) -> int:
        asyncio.ensure_future(asyncio.to_thread(ctx.effect, "slow", GO.wait, 30))  # noqa: RUF006
        await asyncio.sleep(0.05)
        if CHANGED.is_set():
            raise ValueError("new bug")
        return 1


def test_a_replay_that_differs_does_not_wait_for_what_was_never_answered(engine: Engine) -> None:
    GO.clear()
    CHANGED.clear()
    try:
        run = engine.run(Breaking())
    finally:
        GO.set()
    CHANGED.set()
    before = time.monotonic()
    with pytest.raises(ReplayMismatch, match="new bug"):
        run.replay()
    assert time.monotonic() - before < 10


def test_an_effect_that_fails_before_it_is_done_is_recorded_as_failed(engine: Engine, monkeypatch: Any) -> None:
    """A store that cannot be read for a moment is asked again; any other trouble is what the body saw."""
    read, troubles = Ledger._earlier, [ValueError("odd"), StoreError("away")]

    def earlier(self: Ledger, held: Any) -> Any:
        if troubles:
            raise troubles.pop()
        return read(self, held)

    monkeypatch.setattr(Ledger, "_earlier", earlier)

    class Pay(Workflow):
        @step(side_effects="recordable", retry=Retry(2, base_delay=0.001))
        def pay(self, ctx: Context) -> str:
            if ctx.attempt == 1:
                raise ConnectionError("once more")
            try:
                ctx.effect("pay", abs, -1, durable=True)
            except ValueError as error:
                return str(error)
            return "paid"

    run = engine.run(Pay())
    assert run.output("pay") == "odd"
    assert [(each.open, str(each.error)) for each in run.effects()] == [(False, "ValueError: odd")]
    run.replay()
