"""A body is told to stop in time, whatever else of the engine's own work takes long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from stepwell import Builder, Context, Engine, Workflow, step
from stepwell.core.model import Op, Rewrite, SwitchGraph
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually, in_time


class Sitting(Workflow):
    """Runs until it is stopped."""

    @step
    def sit(self, ctx: Context) -> None:
        while True:
            ctx.check()
            time.sleep(0.002)


class Slow:
    """A store of which the commits with such an op wait to be released: as the writes of a large run take long."""

    def __init__(self, engine: Engine, is_slow: Callable[[Op], bool]) -> None:
        self.reached, self.release = threading.Event(), threading.Event()
        commit = engine.store.commit

        def slow(batch: Any) -> Any:
            if any(map(is_slow, batch)):
                self.reached.set()
                self.release.wait(600)
            return commit(batch)

        engine.store.commit = slow  # type: ignore[method-assign]


def failing() -> Builder:
    w = Builder("fails")
    w.node("fail", job=jobs.fail)
    w.node("after", job=jobs.nothing)
    return w


def seconds_to_stop(engine: Engine, elsewhere: Engine) -> float:
    """From the cancel in another process to the end of the body here."""
    run = engine.start(Sitting())
    eventually(lambda: run.node("sit").status == "RUNNING")
    began = time.monotonic()
    elsewhere.get(run.id).cancel(grace_seconds=600)
    eventually(lambda: run.node("sit").status == "CANCELLED")
    return time.monotonic() - began


def test_while_a_run_is_failed(open_sqlite: OpenEngine) -> None:
    engine, elsewhere = open_sqlite(), open_sqlite(runner=None)
    store = Slow(engine, lambda op: isinstance(op, Rewrite) and op.run_id == "large")
    run = engine.start(failing(), run_id="large")
    assert store.reached.wait(20)
    try:
        in_time(0.5, lambda: seconds_to_stop(engine, elsewhere))
    finally:
        store.release.set()
    assert run.wait(20).status == "FAILED"


def test_while_a_run_is_healed(open_sqlite: OpenEngine) -> None:
    def version(*steps: str) -> type[Workflow]:
        return type(Workflow)("Grows", (Workflow,), {name: step(named(name)) for name in steps})

    def named(name: str) -> Callable[[Workflow], None]:
        def body(self: Workflow) -> None: ...

        body.__name__ = body.__qualname__ = name
        return body

    elsewhere = open_sqlite(runner=None)
    run = elsewhere.start(version("one")())
    engine = open_sqlite()
    store = Slow(engine, lambda op: isinstance(op, SwitchGraph))
    serving = threading.Thread(target=engine.work, args=([version("one", "two")],), kwargs={"wait": 0})
    serving.start()
    assert store.reached.wait(20)
    try:
        in_time(0.5, lambda: seconds_to_stop(engine, elsewhere))
    finally:
        store.release.set()
    serving.join(20)
    eventually(lambda: run.status == "COMPLETED")


def test_a_gate_that_can_never_be_finished_keeps_no_other_from_being_finished(engine: Engine) -> None:
    commit = engine.store.commit

    def broken(batch: Any) -> Any:
        if any(isinstance(op, Rewrite) and op.run_id == "broken" for op in batch):
            raise TypeError("a defect in the store")
        return commit(batch)

    engine.store.commit = broken  # type: ignore[method-assign]
    run = engine.start(failing(), run_id="broken")
    eventually(lambda: run.node("fail").status == "FAILED")
    assert engine.run(failing(), check=False, wait=10).status == "FAILED"
    assert run.status == "RUNNING"
    engine.store.commit = commit  # type: ignore[method-assign]
