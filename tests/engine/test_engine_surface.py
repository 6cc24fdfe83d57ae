"""The surface people learn first."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from stepwell import Builder, Context, Engine, RunNotFound, Workflow, step, task
from stepwell.core.model import GetRun
from stepwell.errors import EngineClosed, InputError
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually


class Order(Workflow):
    order_id: int
    express: bool = False

    @step
    def validate(self) -> dict[str, int]:
        return {"order": self.order_id}

    @step
    async def charge(self, validate: dict[str, int], ctx: Context) -> int:
        ctx.outcome["provider"] = "bank"
        return validate["order"] * 100

    @task(depends_on=charge)
    def report(self, validate: dict[str, int], charge: int) -> str:
        return f"{validate['order']}: {charge}"


def fan(width: int) -> Builder:
    w = Builder("fan")
    w.fan_out(range(width), job=jobs.double)
    w.node("total", job=jobs.total)
    return w


def test_run_starts_a_workflow_and_waits_for_its_end(engine: Engine) -> None:
    run = engine.run(Order(order_id=7))
    assert run.status == "COMPLETED"
    assert run.outputs == {"validate": {"order": 7}, "charge": 700, "report": "7: 700"}
    assert run.output("charge") == 700
    assert run.input == {"order_id": 7, "express": False}
    assert run.workflow == "Order"


def test_a_builder_runs_like_a_class(engine: Engine) -> None:
    run = engine.run(fan(20))
    assert run.output("total") == 380
    assert sum(run.outputs.values()) == 760


def test_start_returns_before_the_end(engine: Engine) -> None:
    w = Builder("slow")
    w.node("nap", job=jobs.nap, args={"seconds": 0.2})
    run = engine.start(w)
    assert not run.status.terminal
    assert run.wait().status == "COMPLETED"


def test_many_runs_start_at_once_and_all_end(engine: Engine) -> None:
    runs = engine.start_many(Order(order_id=number) for number in range(40))
    assert [run.wait().output("charge") for run in runs] == [number * 100 for number in range(40)]
    assert len({run.id for run in runs}) == 40


def test_nodes_are_listed_in_order_with_every_attempt(engine: Engine) -> None:
    run = engine.run(Order(order_id=7))
    nodes = run.nodes()
    assert [node.id for node in nodes] == ["validate", "charge", "report"]
    assert [node.name for node in run] == ["validate", "charge", "report"]
    for node in nodes:
        (attempt,) = node.attempts
        assert (node.status, attempt.status, attempt.number, node.error) == ("COMPLETED", "COMPLETED", 1, None)
        assert attempt.ended_at is not None
        assert attempt.started_at <= attempt.ended_at
    assert run.node("charge").attempts[0].outcome == {"provider": "bank"}


def test_a_node_is_found_by_name_or_id_and_a_missing_one_is_told(engine: Engine) -> None:
    w = Builder("named")
    first = w.node("first", job=jobs.same, args={"item": 1})
    run = engine.run(w)
    assert run.output(first) == run.output("first") == 1
    with pytest.raises(KeyError, match="no node 'second'"):
        run.output("second")


def test_the_output_of_a_node_that_has_not_completed_is_an_error(open_engine: OpenEngine) -> None:
    engine = open_engine(runner=None)
    run = engine.start(Order(order_id=1))
    assert run.outputs == {}
    with pytest.raises(KeyError, match=r"'charge' of run .* has not completed"):
        run.output("charge")


def test_a_run_is_found_by_its_id(engine: Engine) -> None:
    run = engine.run(Order(order_id=7), run_id="order-7")
    assert run.id == "order-7"
    assert engine.get("order-7").output("report") == "7: 700"
    with pytest.raises(RunNotFound, match="no run 'order-8'"):
        engine.get("order-8")


def test_runs_are_listed_newest_first(engine: Engine) -> None:
    first, second = engine.run(Order(order_id=1)), engine.run(fan(1))
    assert [run.id for run in engine.runs()] == [second.id, first.id]
    assert [run.id for run in engine.runs(workflow="Order")] == [first.id]
    assert engine.runs(status="FAILED") == []


def test_a_run_can_be_awaited_without_blocking_the_loop(engine: Engine) -> None:
    async def main() -> tuple[str, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.01)

        ticking = asyncio.create_task(tick())
        w = Builder("slow")
        w.node("nap", job=jobs.nap, args={"seconds": 0.2})
        run = await engine.start(w)
        ticking.cancel()
        return run.status, ticks

    status, ticks = asyncio.run(main())
    assert status == "COMPLETED"
    assert ticks > 5


def test_an_engine_without_a_runner_only_starts_and_looks(open_engine: OpenEngine) -> None:
    engine = open_engine(runner=None)
    run = engine.start(Order(order_id=7), run_id="order-7")
    assert (run.status, engine.get("order-7").status) == ("PENDING", "PENDING")
    assert [node.status for node in run.nodes()] == ["READY", "PENDING", "PENDING"]
    with pytest.raises(InputError, match="only starts and looks"):
        engine.adopt("order-7")
    with pytest.raises(InputError, match="only starts and looks"):
        engine.work(wait=0)


def test_working_ends_with_the_engine_and_works_on_what_others_started(open_sqlite: OpenEngine) -> None:
    run = open_sqlite(runner=None).start(Order(order_id=7))
    worker = open_sqlite()
    working = threading.Thread(target=worker.work)
    working.start()
    assert run.wait(10).status == "COMPLETED"
    assert working.is_alive()
    worker.close()
    working.join(5)
    assert not working.is_alive()


def test_working_returns_after_a_while_and_the_work_goes_on(open_sqlite: OpenEngine) -> None:
    worker, looking = open_sqlite(), open_sqlite(runner=None)
    before = time.monotonic()
    worker.work([Order], wait=0.05)
    assert 0.05 <= time.monotonic() - before < 5
    assert looking.start(Order(order_id=7)).wait(10).status == "COMPLETED"


def test_an_engine_waits_as_its_runs_do(engine: Engine) -> None:
    run = engine.start(Order(order_id=7))
    assert engine.wait(run).id == engine.wait(run.id, timeout=10).id == run.id


def test_what_one_engine_starts_another_adopts(open_sqlite: OpenEngine) -> None:
    started = open_sqlite(runner=None).start(Order(order_id=7))
    run = open_sqlite().adopt(started.id)
    assert run.wait(10).output("report") == "7: 700"
    assert started.wait(10).status == "COMPLETED"


def test_adopting_a_run_that_has_ended_is_harmless(engine: Engine) -> None:
    run = engine.run(Order(order_id=7))
    assert engine.adopt(run.id).status == "COMPLETED"


def test_an_engine_opened_without_a_url_keeps_its_runs_below_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Engine() as engine:
        run = engine.run(Order(order_id=7))
    assert (tmp_path / ".stepwell" / "stepwell.db").exists()
    with Engine(runner=None) as engine:
        assert engine.get(run.id).output("charge") == 700


@pytest.mark.parametrize("option", ["max_concurrent_nodes", "max_async_nodes", "max_processes", "lease_seconds"])
def test_an_engine_refuses_limits_that_leave_nothing(option: str) -> None:
    with pytest.raises(InputError, match=f"{option}=0"):
        Engine("memory://", **{option: 0})


def test_the_limits_of_an_engine_are_those_that_the_page_says() -> None:
    page = (Path(__file__).parents[2] / "docs/running.md").read_text()
    with Engine("memory://") as engine:
        assert engine.parts.work.runner is not None
        limits = engine.parts.work.runner.scheduler.limits
    assert f"`max_concurrent_nodes={limits.threads}` `def` bodies at once" in page
    assert f"`max_async_nodes={limits.loop}` on the loop" in page
    assert f"`max_processes={limits.processes}` for" in page
    assert f"`queue_depth={limits.queue_depth}` bounds" in page


def test_a_closed_engine_takes_no_more_work(engine: Engine) -> None:
    engine.run(Order(order_id=7))
    engine.close()
    with pytest.raises(EngineClosed):
        engine.start(Order(order_id=8))
    engine.close()


def test_those_who_wait_are_told_when_the_engine_is_closed(open_engine: OpenEngine) -> None:
    engine = open_engine(close_seconds=0.1)
    release: list[int] = []

    class Slow(Workflow):
        @step
        def hold(self) -> None:
            eventually(lambda: release, seconds=10)

    run = engine.start(Slow())
    eventually(lambda: run.node("hold").status == "RUNNING")

    async def main() -> None:
        waiting = asyncio.create_task(asyncio.to_thread(run.wait))
        await asyncio.sleep(0.05)
        await asyncio.to_thread(engine.close)
        await waiting

    with pytest.raises(EngineClosed, match="while this run was still going on"):
        asyncio.run(main())
    release.append(1)


@pytest.mark.parametrize(("option", "value"), [("deadline", 0), ("deadline", -1), ("seed", -1), ("seed", 2**64)])
def test_start_refuses_options_that_make_no_sense(engine: Engine, option: str, value: int) -> None:
    with pytest.raises(InputError, match=f"{option}={value}"):
        engine.start(Order(order_id=7), **{option: value})


@pytest.mark.parametrize("run_id", ["", "a/b", "-", "a b", "x" * 201, "ü"])
def test_a_run_id_that_no_file_system_likes_is_refused(engine: Engine, run_id: str) -> None:
    with pytest.raises(InputError, match="run id"):
        engine.start(Order(order_id=7), run_id=run_id)


def test_the_progress_of_a_run_is_known_without_reading_its_nodes(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = Builder("progress")
    w.fan_out(range(3), job=jobs.same)
    w.node("fails", job=jobs.fail)
    w.node("never", job=jobs.nothing)
    run = engine.run(w, check=False)
    asked: list[Any] = []
    read = engine.store.read
    monkeypatch.setattr(engine.store, "read", lambda queries: asked.extend(queries) or read(queries))
    assert run.progress._asdict() == {"nodes": 5, "ended": 5, "active": 0, "failed": 1}
    assert run.progress.fraction == 1.0
    assert {type(query) for query in asked} == {GetRun}
    assert Engine("memory://", runner=None).start(w).progress == (5, 0, 3, 0)
