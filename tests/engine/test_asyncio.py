"""`async with Engine(...)`: one engine for coroutines; it never blocks their loop, and async bodies run on it."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from stepwell import (
    Builder,
    Context,
    Engine,
    InputError,
    Retry,
    RunFailed,
    RunStillActive,
    Trigger,
    Workflow,
    step,
    task,
)
from stepwell.engine.aio.engine import AsyncEngine
from stepwell.engine.aio.run import AsyncRun
from stepwell.errors import EngineClosed, RunNotFound
from stepwell.stores.sqlite import SqliteStore
from tests.engine.test_store_in_trouble import write_lock
from tests.engine.waiting import eventually

SECONDS = 30


class Order(Workflow):
    order_id: int = 7

    @step
    def validate(self) -> int:
        return self.order_id

    @step
    async def ship(self, validate: int) -> str:
        await asyncio.sleep(0)
        return f"shipped {validate}"


class Broken(Workflow):
    @step
    async def fails(self) -> None:
        raise ValueError("no")


class App:
    """What an application has on its loop, and bodies use."""

    lock: asyncio.Lock
    loop: asyncio.AbstractEventLoop
    gate: asyncio.Event
    begun: list[str]


class Waits(Workflow):
    @step
    async def until_the_gate_opens(self, ctx: Context) -> int:
        App.begun.append(ctx.run.id)
        await App.gate.wait()
        return ctx.attempt


class OnThisLoop(Workflow):
    @step
    async def uses_a_lock_of_the_application(self) -> bool:
        async with App.lock:
            return asyncio.get_running_loop() is App.loop

    @step
    def in_a_thread(self) -> bool:
        return threading.current_thread() is not threading.main_thread()


@pytest.fixture
def opened(url: str) -> Callable[..., Engine]:
    return lambda **options: Engine(url, **{"close_seconds": 2.0, **options})


Open = Callable[..., Engine]


def run_main(main: Awaitable[Any]) -> Any:
    async def limited() -> Any:
        App.loop, App.lock, App.gate, App.begun = asyncio.get_running_loop(), asyncio.Lock(), asyncio.Event(), []
        async with asyncio.timeout(SECONDS):
            return await main

    return asyncio.run(limited())


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():
            await asyncio.sleep(0.005)


def test_a_run_is_awaited(opened: Open) -> None:
    async def main() -> None:
        async with opened() as engine:
            assert isinstance(engine, AsyncEngine)
            run = await engine.run(Order(order_id=3), run_id="o-3", tags={"customer": "7"})
            assert isinstance(run, AsyncRun)
            assert (run.id, await run.status, await run.output("ship")) == ("o-3", "COMPLETED", "shipped 3")
            assert await run.outputs == {"validate": 3, "ship": "shipped 3"}
            again = await engine.get("o-3")
            assert await (await again).workflow == "Order"
            assert [each.id for each in await engine.runs(tag={"customer": "7"})] == ["o-3"]
            assert [each.id async for each in (await engine.runs(limit=1)).all()] == ["o-3"]
            assert (await run.node("ship")).status == "COMPLETED"
            assert "o-3" in repr(run)
            assert engine.metrics.executed == 2

    run_main(main())


def test_a_run_that_fails_raises_and_can_be_steered(opened: Open) -> None:
    async def main() -> None:
        async with opened() as engine:
            with pytest.raises(RunFailed, match="ValueError: no"):
                await engine.run(Broken())
            run = await engine.run(Broken(), check=False)
            assert await run.status == "FAILED"
            with pytest.raises(RunFailed):
                await run.check()
            again = await run.retry()
            assert isinstance(again, AsyncRun)
            await again
            assert len((await run.node("fails")).attempts) == 2
            with pytest.raises(RunNotFound):
                await engine.get("nowhere")
            with pytest.raises(InputError):
                await engine.run(Order(), wait=-1)
            forked = await (await engine.run(Order())).fork("ship")
            assert (await (await forked).diff(await engine.get(forked.id))) is not None

    run_main(main())


def test_listeners_that_are_coroutines_run_on_the_loop(opened: Open, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Any] = []

    async def told(event: Any) -> None:
        async with App.lock:  # of this loop
            heard.append((event.name, str(event.attempt_status)))

    async def fails(event: Any) -> None:
        raise ValueError("told")

    async def main() -> None:
        async with opened() as engine:
            engine.on("node", told)
            engine.on("run", fails)
            await engine.run(Order())
            await until(lambda: len(heard) == 2)
            with pytest.raises(InputError, match="async with Engine"):
                engine.sync.on("node", told)  # type: ignore[arg-type]

    run_main(main())
    assert heard == [("validate", "COMPLETED"), ("ship", "COMPLETED")]
    assert "ValueError: told" in caplog.text


def test_an_await_that_was_forgotten_is_named(opened: Open) -> None:
    async def main() -> None:
        async with opened() as engine:
            run = await engine.run(Order())

            def forget() -> None:
                run.status  # noqa: B018
                gc.collect()

            with pytest.warns(RuntimeWarning, match=r"coroutine 'AsyncRun\.status' was never awaited"):
                forget()

    run_main(main())


@pytest.mark.parametrize("name", ["status", "result", "progress", "workflow"])
def test_what_was_not_awaited_is_neither_equal_nor_true(opened: Open, name: str) -> None:
    async def main() -> None:
        async with opened() as engine:
            run = await engine.run(Order(order_id=7))
            for compare in (
                lambda: getattr(run, name) == "COMPLETED",
                lambda: getattr(run, name) != "FAILED",
                lambda: getattr(run, name) in ("COMPLETED", "FAILED"),
                lambda: getattr(run, name) in {"COMPLETED", "FAILED"},
                lambda: {"COMPLETED": "done"}.get(getattr(run, name)),
                lambda: bool(getattr(run, name)),
            ):
                with pytest.raises(TypeError, match=f"AsyncRun.{name} must be awaited .*: `await run.{name}`"):
                    compare()
            assert await getattr(run, name) == getattr(run.sync, name)
            assert await asyncio.create_task(getattr(run, name)) == getattr(run.sync, name)
            assert await asyncio.gather(run.status, run.status) == ["COMPLETED", "COMPLETED"]
            assert await asyncio.wait_for(run.status, SECONDS) == "COMPLETED"
            assert [await each for each in asyncio.as_completed([run.status, run.status])] == ["COMPLETED"] * 2

    run_main(main())


def test_what_a_method_reads_is_not_compared_before_it_is_awaited(opened: Open) -> None:
    async def main() -> None:
        async with opened() as engine:
            run = await engine.run(Order(order_id=7))
            reads: dict[str, Callable[[], Awaitable[Any]]] = {
                "run.output": lambda: run.output("ship"),
                "run.why": run.why,
                "run.audit": run.audit,
                "run.forks": run.forks,
                "engine.count_runs": engine.count_runs,
                "engine.compare": lambda: engine.compare(run, run),
                "triggers.all": engine.triggers.all,
            }
            for name, read in reads.items():
                for compare in (
                    lambda read=read: read() == "shipped 7",
                    lambda read=read: read() in {"shipped 7", "shipped 8"},
                    lambda read=read: bool(read()),
                ):
                    with pytest.raises(TypeError, match=rf"must be awaited .*: `await {name}\(\.\.\.\)`"):
                        compare()
                await read()
            output, counts, _ = await asyncio.gather(run.output("ship"), engine.count_runs(), run.wait())
            assert (output, counts["total"]) == ("shipped 7", 1)
            assert await asyncio.create_task(run.output(Order.ship)) == "shipped 7"

    run_main(main())


def test_runs_are_compared_shown_and_started_by_triggers(opened: Open, capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with opened(workflows=[Order]) as engine:
            runs = await engine.start_many([Order(order_id=1), Order(order_id=2)])
            assert [await (await engine.wait(run.id, SECONDS)).status for run in runs] == ["COMPLETED"] * 2
            assert not (await engine.compare(runs[0], runs[1].id)).same_outputs
            await runs[0].show()
            stored = await engine.triggers.add(
                Trigger("daily", Order, every=86_400, input={"order_id": 3}), paused=True
            )
            assert (stored.name, [each.name for each in await engine.triggers.all()]) == ("daily", ["daily"])
            assert not (await engine.triggers.resume("daily")).paused
            fired = await engine.get(await engine.triggers.fire("daily", key="now"))
            assert await (await fired).output("ship") == "shipped 3"
            await engine.triggers.remove("daily")

    run_main(main())
    assert "validate" in capsys.readouterr().out


def test_async_bodies_run_on_the_loop_of_the_application(opened: Open) -> None:
    async def main() -> None:
        async with opened() as engine:
            async with App.lock:
                run = await engine.start(OnThisLoop())
                await asyncio.sleep(0.02)  # the body waits for the lock as any other task
            await run
            assert await run.outputs == {"uses_a_lock_of_the_application": True, "in_a_thread": True}

    run_main(main())


def test_served_runs_never_begin_elsewhere(url: str, opened: Open) -> None:
    """An engine that is given workflows begins to work by itself: not before it knows the loop."""

    async def main() -> None:
        async with opened(workflows=[OnThisLoop]) as engine:
            runs = await engine.start_many([OnThisLoop() for _ in range(5)])
            for run in runs:
                assert (await (await run).outputs)["uses_a_lock_of_the_application"]

    run_main(main())


def test_with_keeps_a_loop_of_its_own(opened: Open) -> None:
    App.loop, App.lock = asyncio.new_event_loop(), asyncio.Lock()
    try:
        with opened() as engine:
            assert not engine.run(OnThisLoop()).output("uses_a_lock_of_the_application")
    finally:
        App.loop.close()


def test_cancelling_what_waits_does_not_cancel_the_run(opened: Open) -> None:
    async def main() -> None:
        async with opened() as engine:
            waiting = asyncio.create_task(engine.run(Waits(), run_id="w"))
            await until(lambda: App.begun)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            run = await engine.get("w")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(run.wait(), 0.01)
            with pytest.raises(RunStillActive, match="still RUNNING"):
                await run.wait(timeout=0.01)
            App.gate.set()
            await run
            assert await run.outputs == {"until_the_gate_opens": 1}

    run_main(main())


def test_a_run_is_cancelled_and_its_body_told(opened: Open) -> None:
    async def main() -> None:
        async with opened() as engine:
            run = await engine.start(Waits())
            await until(lambda: App.begun)
            await run.cancel()
            await run
            assert await run.status == "CANCELLED"
            assert not [task for task in asyncio.all_tasks() if (task.get_name() or "").startswith("stepwell-")]

    run_main(main())


def test_leaving_gives_back_what_does_not_end_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    url = f"sqlite:///{tmp_path}/x.db"

    async def main() -> None:
        async with Engine(url, close_seconds=0.05) as engine:
            await engine.start(Waits(), run_id="w")
            await until(lambda: App.begun)
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("stepwell-")]
        with pytest.raises(EngineClosed):
            await engine.get("w")

    run_main(main())
    assert "1 run unfinished that it started: w (" in caplog.text
    with Engine(url, runner=None) as engine:
        (node,) = engine.get("w").nodes()
        assert (node.status, [attempt.status for attempt in node.attempts]) == ("READY", ["LOST"])


def test_a_loop_that_closes_gives_its_bodies_back(tmp_path: Path) -> None:
    """Nobody leaves the engine: `asyncio.run` cancels what is left and closes the loop."""
    engine = Engine(f"sqlite:///{tmp_path}/x.db", close_seconds=1)

    async def main() -> None:
        served = await engine.__aenter__()
        await served.start(Waits(), run_id="w")
        await served.start(Waits(), run_id="v")
        await until(lambda: len(App.begun) == 2)

    with engine:
        run_main(main())
        for name in "wv":
            run = engine.get(name)
            eventually(lambda: run.node("until_the_gate_opens").status == "READY", "it was not given back")  # noqa: B023
            assert [each.status for each in run.node("until_the_gate_opens").attempts] == ["LOST"]
        later = engine.start(Order(), run_id="later")  # what needs no loop goes on here; the rest waits for others
        eventually(lambda: later.node("validate").status == "COMPLETED", "the thread body did not run")
        assert later.node("ship").status == "READY"
    with Engine(f"sqlite:///{tmp_path}/x.db", close_seconds=1) as other:
        assert other.adopt("later").wait(SECONDS).output("ship") == "shipped 7"


def test_a_loop_that_is_just_closed_is_noticed_and_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine(f"sqlite:///{tmp_path}/x.db", close_seconds=1)

    async def main() -> None:
        App.gate, App.begun = asyncio.Event(), []
        served = await engine.__aenter__()
        await served.start(Waits(), run_id="w")
        await until(lambda: App.begun)

    with engine:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        (left,) = asyncio.all_tasks(loop)
        left._log_destroy_pending = False  # type: ignore[attr-defined]  # that it never ends is the point
        loop.close()
        run = engine.get("w")
        eventually(lambda: run.node("until_the_gate_opens").status == "READY", "it was not given back")
        assert engine.parts.work.runner is not None
        engine.parts.work.runner.loop_bodies.look()
        assert caplog.text.count("was closed before the engine") == 1
        left.get_coro().close()  # type: ignore[union-attr]


def test_a_body_that_cancels_itself_has_failed_and_others_go_on(opened: Open) -> None:
    class Quits(Workflow, on_failure="finish"):
        @task(depends_on=None)
        async def quits(self) -> None:
            current = asyncio.current_task()
            assert current is not None
            current.cancel()
            await asyncio.sleep(0)

        @task(depends_on=None, retry=Retry(2, base_delay=0.001))
        async def times_out(self, ctx: Context) -> str:
            if ctx.attempt == 1:
                async with asyncio.timeout(0.001):
                    await asyncio.sleep(SECONDS)
            return "done"

    async def main() -> None:
        async with opened() as engine:
            run = await engine.run(Quits(), check=False)
            assert await run.outputs == {"times_out": "done"}
            assert (await run.node("quits")).status == "FAILED"
            assert await (await engine.run(Order())).output("ship") == "shipped 7"

    run_main(main())


def test_waiting_in_a_way_that_would_hold_up_its_own_bodies_is_refused(opened: Open) -> None:
    class Asks(Workflow):
        @step
        async def asks(self, ctx: Context) -> None:
            engines[0].sync.get(ctx.run_id).wait()

    engines: list[AsyncEngine] = []

    async def main() -> None:
        async with opened() as engine:
            engines.append(engine)
            with pytest.raises(InputError, match=r"await engine\.run"):
                engine.sync.run(Order())
            with pytest.raises(RunFailed, match="hold up the event loop"):
                await engine.run(Asks())
            run = await asyncio.to_thread(engine.sync.run, Order())  # in a thread it may wait
            assert run.output("ship") == "shipped 7"

    run_main(main())


def test_time_limits_hold_on_the_loop_of_the_application(opened: Open) -> None:
    class Slow(Workflow):
        @step(timeout=0.05, retry=Retry(2, base_delay=0.001, retry_on=TimeoutError))
        async def one(self, ctx: Context) -> int:
            if ctx.attempt == 1:
                await App.gate.wait()
            return ctx.attempt

    async def main() -> None:
        async with opened() as engine:
            run = await engine.run(Slow(), check=False)
            first = (await run.node("one")).attempts[0]
            assert first.status == "TIMED_OUT"

    run_main(main())


def test_calls_have_the_context_of_their_caller(opened: Open) -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user")

    async def main() -> None:
        async with opened() as engine:
            user.set("ada")
            assert await engine._pool.call(user.get) == "ada"

    run_main(main())


def test_nothing_of_the_engine_waits_for_the_store_on_the_loop(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many runs are awaited, and however an engine is used: the store is asked in threads, from opening on."""
    asked: list[str] = []

    def noted(name: str) -> Callable[..., Any]:
        method = getattr(SqliteStore, name)

        def call(self: SqliteStore, *args: Any) -> Any:
            if threading.current_thread() is threading.main_thread():
                asked.append(f"{name} {args}")
            return method(self, *args)

        return call

    async def main() -> None:
        engine = await asyncio.to_thread(Engine, sqlite_url)
        for name in ("commit", "read"):
            monkeypatch.setattr(SqliteStore, name, noted(name))
        async with engine as served:
            await served.work([Order], wait=0)
            runs = await asyncio.gather(*(served.run(Order(order_id=number)) for number in range(60)))
            assert [await run.output("ship") for run in runs] == [f"shipped {number}" for number in range(60)]
            await (await runs[0].fork("ship"))
            await (await (await served.run(Broken(), check=False)).retry())
            await served.wait(runs[1].id)
            await asyncio.gather(
                runs[2].replay(), runs[3].why(), runs[4].delete(), served.runs(), served.triggers.all()
            )
            assert repr([served, runs[5]]).count("Async") == 2
            assert served.metrics.executed > 120
        async with Engine(sqlite_url, runner=None) as looking:
            asked.clear()  # opening reads what is there
            assert len(await looking.runs()) > 60
        engine = Engine(sqlite_url, workflows=[Order])
        asked.clear()
        async with engine as served:  # it begins to work by itself
            await until(lambda: served.sync.parts.work.started_runner)
            await served.run(Order())

    run_main(main())
    assert asked == []


def test_an_engine_that_is_left_before_it_began_to_work_never_does(sqlite_url: str) -> None:
    async def main() -> None:
        for _ in range(5):
            async with Engine(sqlite_url, workflows=[Order]):
                pass

    run_main(main())  # no thread is left behind: see conftest.py


def test_sixty_awaited_runs_leave_the_loop_responsive(tmp_path: Path) -> None:
    """60 runs of three nodes with fsync on; what is usual is in docs/asyncio.md. A busy machine is late by itself, so what
    holds for each moment is the processor time that the loop's own thread takes: nothing of the engine's work is done there."""
    late: list[float] = []
    used: list[float] = []

    async def beats() -> None:
        while True:
            due, before = time.perf_counter() + 0.001, time.thread_time()
            await asyncio.sleep(0.001)
            late.append(time.perf_counter() - due)
            used.append(time.thread_time() - before)

    async def main() -> None:
        async with Engine(f"sqlite:///{tmp_path}/x.db", jobs=["tests.engine.jobs"]) as engine:
            beat = asyncio.create_task(beats())
            runs = await asyncio.gather(*(engine.run(w) for _ in range(60)))
            beat.cancel()
            assert [await run.status for run in runs] == ["COMPLETED"] * 60

    w = Builder("wide")
    w.node("a", job="tests.engine.jobs:nothing")
    w.node("b", job="tests.engine.jobs:double_later", args={"item": 1})
    w.node("c", job="tests.engine.jobs:nothing")
    gc.collect()
    gc.disable()  # whose turn it is to collect all that the tests have made is chance
    try:
        run_main(main())
    finally:
        gc.enable()
    assert statistics.median(late) < 0.020
    assert max(used) < 0.050  # usually one thousandth
    assert max(late) < 5


def test_an_application_of_fastapi_uses_it_in_its_lifespan(tmp_path: Path) -> None:
    import httpx
    import uvicorn
    from fastapi import FastAPI, HTTPException

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> Any:
        App.loop, App.lock = asyncio.get_running_loop(), asyncio.Lock()
        async with Engine(f"sqlite:///{tmp_path}/x.db", workflows=[Order, OnThisLoop]) as engine:
            app.state.engine = engine
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/orders/{order_id}")
    async def order(order_id: int) -> dict[str, str]:
        run = await app.state.engine.run(Order(order_id=order_id), run_id=f"order-{order_id}", wait=SECONDS)
        return {"run": run.id, "ship": await run.output("ship")}

    @app.get("/runs/{run_id}")
    async def show(run_id: str) -> dict[str, Any]:
        try:
            run = await app.state.engine.get(run_id)
        except RunNotFound as error:
            raise HTTPException(404, str(error)) from None
        return {"status": await run.status, "why": str(await run.why())}

    @app.post("/loops")
    async def loops() -> bool:
        run = await app.state.engine.run(OnThisLoop(), wait=SECONDS)
        return bool(await run.output("uses_a_lock_of_the_application"))

    async def main() -> None:
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
        serving = asyncio.create_task(server.serve())
        await until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=SECONDS, trust_env=False) as client:
            orders = await asyncio.gather(*(client.post(f"/orders/{number}") for number in range(9)))
            assert [order.json()["ship"] for order in orders] == [f"shipped {number}" for number in range(9)]
            assert (await client.get("/runs/order-7")).json()["status"] == "COMPLETED"
            assert (await client.get("/runs/nobody")).status_code == 404
            assert (await client.post("/loops")).json() is True
        server.should_exit = True
        await serving

    run_main(main())


def test_it_works_under_pytest_asyncio(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
    )
    (tmp_path / "test_it.py").write_text(
        """
import asyncio, pytest
from stepwell import Engine, Workflow, step

class Order(Workflow):
    @step
    async def ship(self) -> bool:
        return asyncio.get_running_loop() is LOOPS[-1]

LOOPS = []

@pytest.fixture
async def engine():
    LOOPS.append(asyncio.get_running_loop())
    async with Engine("memory://") as engine:
        yield engine

@pytest.mark.parametrize("again", [1, 2])
async def test_it(engine, again) -> None:
    run = await engine.run(Order(), wait=30)
    assert await run.output("ship")
"""
    )
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "pytest_asyncio.plugin"]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True, timeout=100, check=False)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_a_program_that_is_interrupted_ends_and_leaves_its_run_to_the_next(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        """
import asyncio, os, signal
from stepwell import Engine, Workflow, step

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background ignores it

class Slow(Workflow):
    @step
    async def one(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(600)

async def main() -> None:
    async with Engine("sqlite:///x.db", close_seconds=0.1) as engine:
        await engine.run(Slow(), run_id="slow")

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""
    )
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr
    with Engine(f"sqlite:///{tmp_path}/x.db", runner=None) as engine:
        assert engine.get("slow").node("one").status == "READY"


def test_reads_do_not_wait_for_calls_that_commit_to_a_locked_store(tmp_path: Path) -> None:
    async def use() -> None:
        async with Engine(f"sqlite:///{tmp_path}/s.db", runner=None) as engine:
            run = await engine.start(Order())
            with write_lock(tmp_path / "s.db"):
                starts = [asyncio.ensure_future(engine.start(Order(order_id=number))) for number in range(48)]
                await asyncio.sleep(0)  # all of them are queued
                async with asyncio.timeout(10):  # they wait for half a minute
                    assert await run.status == "PENDING"
                    assert [each.id for each in await engine.runs()] == [run.id]
                assert not any(each.done() for each in starts)
            await asyncio.gather(*starts)

    asyncio.run(use())
