"""What decides on another attempt, how long one may take, and what a whole workflow says for its nodes."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

from stepwell import Builder, Context, DefinitionError, Engine, InputError, Retry, RetryLater, Workflow, step, task
from stepwell.engine.scheduling.metrics import EngineMetrics
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually


class Refused(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


def is_busy(error: BaseException) -> bool:
    return isinstance(error, Refused) and error.status >= 500


def cannot_say(error: BaseException) -> bool:
    raise ZeroDivisionError("no idea")


def ask(ctx: Context, statuses: list[int]) -> int:
    if ctx.attempt <= len(statuses):
        raise Refused(statuses[ctx.attempt - 1])
    return ctx.attempt


async def ask_later(ctx: Context, statuses: list[int]) -> int:
    return ask(ctx, statuses)


FIVE = Retry(5, base_delay=0.001, retry_on=is_busy)


class Asking(Workflow):
    statuses: list[int]

    @step(retry=Retry(5, base_delay=0.001, retry_on=lambda error: error.status >= 500))
    def by_lambda(self, ctx: Context) -> int:
        return ask(ctx, self.statuses)

    @task(
        depends_on=by_lambda, retry=Retry(5, base_delay=0.001, retry_on=(KeyError, lambda error: error.status == 503))
    )
    async def on_the_loop(self, ctx: Context) -> int:
        return ask(ctx, self.statuses)


class AskingElsewhere(Workflow):
    statuses: list[int]

    @step(isolation="process", retry=Retry(5, base_delay=0.001, retry_on=lambda error: error.status >= 500))
    def charge(self, ctx: Context) -> int:
        return ask(ctx, self.statuses)


def test_a_function_decides_whether_to_try_again(engine: Engine) -> None:
    assert engine.run(Asking(statuses=[503, 503])).outputs == {"by_lambda": 3, "on_the_loop": 3}
    run = engine.run(Asking(statuses=[500, 404]), check=False)
    assert run.node("by_lambda").status == "FAILED"
    assert [attempt.status for attempt in run.node("by_lambda").attempts] == ["FAILED", "FAILED"]
    assert "it is retried only after errors that " in str(run.why("by_lambda"))


@pytest.mark.parametrize("job", [ask, ask_later])
def test_a_job_asks_a_function_by_its_name(engine: Engine, job: object) -> None:
    for name in (is_busy, f"{__name__}:is_busy"):
        w = Builder("asking")
        node = w.node("ask", job=job, args={"statuses": [500, 503]}, retry=Retry(5, base_delay=0.001, retry_on=name))  # type: ignore[arg-type]
        assert engine.run(w).output(node) == 3
    w = Builder("asking")
    w.node("ask", job=job, args={"statuses": [500, 404]}, retry=FIVE)  # type: ignore[arg-type]
    assert engine.run(w, check=False).node("ask").status == "FAILED"


def test_a_body_in_a_process_of_its_own_asks_there(sqlite_engine: Engine) -> None:
    assert sqlite_engine.run(AskingElsewhere(statuses=[500])).output("charge") == 2
    assert sqlite_engine.run(AskingElsewhere(statuses=[404]), check=False).node("charge").status == "FAILED"


def test_another_process_finds_the_function_of_a_class_again(open_sqlite: OpenEngine) -> None:
    started = open_sqlite(runner=None).start(Asking(statuses=[503]))
    with open_sqlite(workflows=[Asking]) as engine:
        assert engine.get(started.id).wait(30).outputs == {"by_lambda": 2, "on_the_loop": 2}


def test_a_frozen_run_asks_the_function_of_its_class(open_sqlite: OpenEngine) -> None:
    engine = open_sqlite(runner=None)
    run = engine.start(Asking(statuses=[503]))
    run.freeze()
    with open_sqlite(workflows=[Asking]) as works:
        assert works.adopt(run.id).wait(30).outputs == {"by_lambda": 2, "on_the_loop": 2}


def test_a_function_that_fails_is_told_and_nothing_is_tried_again(engine: Engine) -> None:
    w = Builder("asking")
    w.node("ask", job=ask, args={"statuses": [500]}, retry=Retry(5, base_delay=0.001, retry_on=cannot_say))
    node = engine.run(w, check=False).node("ask")
    assert len(node.attempts) == 1
    assert node.error is not None
    assert node.error.type == "Refused"
    assert "could not say whether to try again: ZeroDivisionError: no idea" in node.error.message


def test_a_time_out_is_no_exception_that_a_function_is_asked_about(engine: Engine) -> None:
    class Slow(Workflow):
        @step(timeout=0.05, retry=Retry(3, base_delay=0.001, retry_on=lambda error: True))
        async def one(self) -> None:
            await never()

        @task(
            depends_on=None, timeout=0.05, retry=Retry(3, base_delay=0.001, retry_on=(lambda error: True, TimeoutError))
        )
        async def two(self) -> None:
            await never()

    run = engine.run(Slow(), check=False)
    assert len(run.node("one").attempts) == 1


async def never() -> None:
    import asyncio

    await asyncio.Event().wait()


# Time limits


class Waits(Workflow, node_timeout=timedelta(milliseconds=50), on_failure="finish"):
    @task(depends_on=None)
    async def unsaid(self) -> None:
        await never()

    @task(depends_on=None, timeout=60)
    async def longer(self) -> str:
        return "done"

    @task(depends_on=None, timeout=None)
    async def none(self) -> str:
        return "done"


def test_a_class_says_how_long_its_nodes_may_take() -> None:
    assert {spec.id: spec.timeout for spec in Waits.workflow_graph()} == {"unsaid": 0.05, "longer": 60.0, "none": None}

    class Inherits(Waits):
        @step
        def own(self) -> None: ...

    class Differs(Waits, node_timeout=9): ...

    assert Inherits.workflow_graph().nodes["own"].timeout == 0.05
    assert Differs.workflow_graph().nodes["unsaid"].timeout == 9.0
    w = Builder("waits", node_timeout=7)
    node = w.node("a", job=ask, args={"statuses": []})
    assert w.graph().nodes[node].timeout == 7.0


def test_what_takes_longer_than_the_class_allows_is_ended(engine: Engine) -> None:
    run = engine.run(Waits(), check=False)
    assert [attempt.status for attempt in run.node("unsaid").attempts] == ["TIMED_OUT"]
    assert run.outputs == {"longer": "done", "none": "done"}


def test_an_engine_limits_nodes_that_have_no_limit(open_engine: OpenEngine) -> None:
    class Unlimited(Workflow, on_failure="finish"):
        @task(depends_on=None)
        async def hangs(self) -> None:
            await never()

        @task(depends_on=None, timeout=60)
        async def ends(self) -> str:
            return "done"

    run = open_engine(node_timeout=timedelta(seconds=0.05)).run(Unlimited(), check=False)
    assert [attempt.status for attempt in run.node("hangs").attempts] == ["TIMED_OUT"]
    assert "within 0.05 s" in str(run.node("hangs").error)
    assert run.output("ends") == "done"
    assert run.graph.nodes["hangs"].timeout is None  # it is the engine's rule, and not part of the graph


@pytest.mark.parametrize("wrong", [0, -1, "30", timedelta(0), timedelta(seconds=-1)])
def test_a_limit_that_is_none_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match="node_timeout="):
        Engine("memory://", node_timeout=wrong)  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="node_timeout="):

        class Wrong(Workflow, node_timeout=wrong): ...  # type: ignore[misc]


def test_durations_may_be_timedeltas_everywhere(tmp_path: Path) -> None:
    class Quick(Workflow, deadline=timedelta(hours=1)):
        @step(timeout=timedelta(minutes=1), retry=Retry(2, timedelta(milliseconds=1), timedelta(milliseconds=1)))
        def postponed(self, ctx: Context) -> int:
            if ctx.attempt == 1:
                raise RetryLater(timedelta(milliseconds=1))
            return ctx.attempt

    second = timedelta(seconds=30)
    with Engine(f"sqlite:///{tmp_path}/x.db", lease_seconds=second, close_seconds=timedelta(seconds=1)) as engine:
        run = engine.run(Quick(), wait=second, deadline=timedelta(hours=2))
        assert run.wait(second).output("postponed") == 2
        assert run.row.timeout == 7_200_000_000
        assert Quick.workflow_graph().nodes["postponed"].timeout == 60.0
        waiting = engine.start(Waits())
        waiting.cancel(grace_seconds=timedelta(0)).wait(second)
        engine.close(timedelta(seconds=1))


# Idempotency and side effects


def test_a_node_that_requires_a_key_is_refused_without(engine: Engine) -> None:
    with pytest.raises(DefinitionError, match="requires_idempotency=True: say what makes two tries the same"):

        class Careless(Workflow):
            @step(requires_idempotency=True)
            def charge(self) -> None: ...

    class Careful(Workflow):
        order: int

        @step(requires_idempotency=True, idempotency_key=lambda self: f"order-{self.order}")
        def charge(self, ctx: Context) -> str:
            return ctx.idempotency_key

    assert "order-7" in engine.run(Careful(order=7)).output("charge")


def double(item: int) -> int:
    return 2 * item


class Repeatable(Workflow, side_effects="pure"):
    @step
    def a(self) -> int:
        return 1

    @step(side_effects="opaque")
    def b(self) -> int:
        return 2


class Opaque(Workflow):
    @step
    def a(self) -> int:
        return 1


def test_a_workflow_says_what_replays_may_do_with_its_nodes(engine: Engine) -> None:
    report = engine.run(Repeatable()).replay()
    assert (report.executed, dict(report.stubbed)) == (("a",), {"b": "opaque"})
    w = Builder("numbers", side_effects="pure")
    w.fan_out([1, 2], job=double)
    assert len(engine.run(w).replay().executed) == 2


def test_a_replay_in_which_nothing_was_repeatable_says_how_to_change_that(engine: Engine) -> None:
    report = engine.run(Opaque()).replay()
    assert report.executed == ()
    assert 'class Order(Workflow, side_effects="recordable")' in str(report)
    assert "side_effects" not in str(engine.run(Repeatable()).replay())


def test_a_wrong_default_is_refused() -> None:
    with pytest.raises(DefinitionError, match="side_effects='few'"):
        Builder("x", side_effects="few")  # type: ignore[arg-type]


# Metrics, told now and then


def test_metrics_are_told_again_and_again(engine: Engine) -> None:
    told: list[EngineMetrics] = []
    engine.on("metrics", told.append, every=timedelta(milliseconds=5))
    engine.run(Repeatable())
    eventually(lambda: len(told) > 3 and told[-1].executed == 2, "the metrics were not told", show=lambda: told)


def test_a_slow_listener_misses_times_and_delays_nobody(engine: Engine) -> None:
    slow, told = threading.Event(), []

    def hears(metrics: EngineMetrics) -> None:
        told.append(time.monotonic())
        slow.wait(0.05)

    engine.on("metrics", hears, every=0.001)
    assert engine.run(Repeatable()).output("b") == 2
    eventually(lambda: len(told) >= 2, "the metrics were not told")
    assert told[1] - told[0] >= 0.04  # not again for every time that was missed


def test_only_metrics_are_told_now_and_then(engine: Engine) -> None:
    with pytest.raises(InputError, match="only metrics"):
        engine.on("run", print, every=1)
    with pytest.raises(InputError, match="every=0"):
        engine.on("metrics", print, every=0)


def test_a_run_that_had_to_wait_for_slots_is_told_so(open_engine: OpenEngine) -> None:
    engine = open_engine(max_concurrent_nodes=1, queue_depth=0)
    w = Builder("wide")
    w.fan_out(range(6), job=nap)
    told = []
    engine.on("backpressure", told.append)
    run = engine.run(w)
    blocked = engine.metrics.blocked_runs[run.id]
    assert blocked.blocks >= 1
    assert blocked.seconds > 0
    assert engine.metrics.to_dict()["blocked_runs"][run.id]["blocks"] == blocked.blocks
    eventually(lambda: bool(told), "it was not told")
    assert told[0].runs[run.id] >= 1


def nap(item: int) -> None:
    time.sleep(0.01)
