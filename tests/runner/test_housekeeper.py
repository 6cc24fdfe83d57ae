"""The housekeeper hears of what others do, finishes what they left, and never turns into a busy loop."""

from __future__ import annotations

import time
from typing import Any

import pytest

from stepwell import Builder, Engine
from stepwell.clock import SECOND
from stepwell.ids import GateToken
from stepwell.model import Gate, Sweep
from stepwell.runner.worker import timetable
from tests.runner import jobs
from tests.runner.conftest import OpenEngine
from tests.runner.test_several_engines import Small
from tests.runner.waiting import eventually


def count_sweeps(engine: Engine) -> list[int]:
    sweeps: list[int] = []
    commit = engine.store.commit

    def counted(batch: Any) -> Any:
        sweeps.extend(1 for op in batch if isinstance(op, Sweep))
        return commit(batch)

    engine.store.commit = counted  # type: ignore[method-assign]
    return sweeps


def pending(engine: Engine) -> Any:
    w = Builder("waits")
    w.node("later", job=jobs.later, args={"seconds": 60})
    run = engine.start(w)
    eventually(lambda: run.node("later").status == "WAITING")
    return run


def test_a_gate_that_was_left_held_is_finished(engine: Engine) -> None:
    run = pending(engine)
    engine.store.commit([Gate(run.id, GateToken("dead"), "cancel", b'{"grace":0}', 1_000, True)])
    assert run.wait(30).status == "CANCELLED"


def test_a_gate_that_cannot_be_finished_is_tried_now_and_then_and_harms_nobody(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    """As when a newer version, which this one does not understand, left it."""
    run = pending(engine)
    sweeps = count_sweeps(engine)
    engine.store.commit([Gate(run.id, GateToken("newer"), "a purpose of tomorrow", b"", 0, False)])
    before = time.monotonic()
    time.sleep(0.5)
    assert len(sweeps) < 40 * (time.monotonic() - before)
    w = Builder("other")
    w.node("same", job=jobs.same, args={"item": 1})
    assert engine.run(w, wait=10).output("same") == 1
    eventually(lambda: "a purpose of tomorrow" in caplog.text)


def test_an_idle_engine_hardly_touches_the_store(engine: Engine) -> None:
    pending(engine)
    sweeps = count_sweeps(engine)
    before = time.monotonic()
    time.sleep(0.6)
    assert len(sweeps) <= 1 + (time.monotonic() - before) / 0.5


def test_what_others_start_is_heard_of_without_looking_for_it(
    open_sqlite: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timetable, "WATCH_LATEST", 3_600 * SECOND)
    server = open_sqlite(workflows=[Small])
    assert server._runner is not None
    starter = open_sqlite(runner=None)
    for number in range(2):
        run = starter.start(Small(number=number))
        eventually(lambda: run.status == "COMPLETED", "it was not heard of", seconds=10)  # noqa: B023
        eventually(lambda: server._runner.idle)  # type: ignore[union-attr]
