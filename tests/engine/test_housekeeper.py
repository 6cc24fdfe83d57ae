"""The housekeeper hears of what others do, finishes what they left, and never turns into a busy loop."""

from __future__ import annotations

import time
from typing import Any

import pytest

from stepwell import Builder, Engine, StoreError
from stepwell.base.clock import SECOND
from stepwell.base.ids import GateToken
from stepwell.core.model import Gate, Sweep
from stepwell.engine.worker import timetable
from stepwell.engine.worker.duties import KNOWN_AT_ONCE, Follower
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.test_several_engines import Small
from tests.engine.waiting import eventually


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
    assert server.parts.work.runner is not None
    starter = open_sqlite(runner=None)
    for number in range(2):
        run = starter.start(Small(number=number))
        eventually(lambda: run.status == "COMPLETED", "it was not heard of", seconds=10)  # noqa: B023
        eventually(lambda: server.parts.work.runner.idle)  # type: ignore[union-attr]


@pytest.mark.parametrize("error", [StoreError("away"), ZeroDivisionError("a defect")])
def test_housekeeping_that_fails_is_tried_again_now_and_then(
    engine: Engine, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    pending(engine)
    commit, swept = engine.store.commit, list[float]()

    def fail(batch: Any) -> Any:
        if any(isinstance(op, Sweep) for op in batch):
            swept.append(time.monotonic())
            raise error
        return commit(batch)

    engine.store.commit = fail  # type: ignore[method-assign]
    engine.parts.work.runner.sweep_in(0)  # type: ignore[union-attr]
    eventually(lambda: len(swept) >= 3)
    assert swept[2] - swept[0] > 0.1, "a busy loop"
    engine.store.commit = commit  # type: ignore[method-assign]
    w = Builder("other")
    w.node("same", job=jobs.same, args={"item": 1})
    assert engine.run(w, wait=10).output("same") == 1
    assert str(error) in caplog.text


@pytest.mark.parametrize("count", [1, 2, 49, 50, 51, 99, 100, 101, 250])
def test_a_look_takes_its_turn_with_every_known_run(count: int) -> None:
    """Those that ended elsewhere are forgotten in the end, whichever they are."""
    follower = Follower.__new__(Follower)
    follower._turn = 0
    known: Any = tuple(range(count))
    needed = -(-count // KNOWN_AT_ONCE)
    for _ in range(3):
        turns = [follower._in_turn(known) for _ in range(needed)]
        assert max(map(len, turns)) <= KNOWN_AT_ONCE
        assert sorted(run for turn in turns for run in turn) == list(range(count))
