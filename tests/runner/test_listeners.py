"""`engine.on(event, callback)`: what happens in this process, as it happens."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from stepwell import Builder, Context, Engine, Retry, Workflow, step
from stepwell.errors import InputError
from tests.runner import jobs
from tests.runner.waiting import eventually


class Flaky(Workflow):
    @step(retry=Retry(2, base_delay=0.001))
    def charge(self, ctx: Context) -> None:
        if ctx.attempt == 1:
            raise ConnectionError

    @step
    def ship(self) -> None: ...


def test_every_settled_attempt_is_told_and_the_end_of_the_run(engine: Engine) -> None:
    nodes: list[Any] = []
    runs: list[Any] = []
    engine.on("node", nodes.append)
    engine.on("run", runs.append)
    run = engine.run(Flaky())
    eventually(lambda: runs and runs[-1].status == "COMPLETED")
    assert [(each.run_id, each.name, each.attempt, each.attempt_status, each.status) for each in nodes] == [
        (run.id, "charge", 1, "FAILED", "WAITING"),
        (run.id, "charge", 2, "COMPLETED", "COMPLETED"),
        (run.id, "ship", 1, "COMPLETED", "COMPLETED"),
    ]
    assert {each.run_id for each in runs} == {run.id}


def test_a_listener_that_fails_disturbs_nobody(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []

    def broken(event: Any) -> None:
        raise ValueError("I cannot hear you")

    engine.on("node", broken)
    engine.on("node", lambda event: heard.append(event.name))
    with caplog.at_level(logging.ERROR, "stepwell"):
        engine.run(Flaky())
    eventually(lambda: heard == ["charge", "charge", "ship"])
    assert "a listener for 'node' events failed" in caplog.text


def test_an_unknown_event_is_refused(engine: Engine) -> None:
    with pytest.raises(InputError, match="no event 'nodes'; there are: run, node, backpressure"):
        engine.on("nodes", print)  # type: ignore[arg-type]


def test_a_listener_may_start_runs(engine: Engine) -> None:
    w = Builder("next")
    w.node("same", job=jobs.same, args={"item": 1})
    started: list[Any] = []

    def start_next(event: Any) -> None:
        if event.name == "charge" and event.status == "COMPLETED":
            started.append(engine.start(w))

    engine.on("node", start_next)
    engine.run(Flaky())
    eventually(lambda: started)
    assert started[0].wait(30).output("same") == 1


def test_what_was_not_recorded_is_not_told(engine: Engine) -> None:
    began, release, ended = threading.Event(), threading.Event(), threading.Event()
    heard: list[Any] = []

    class Late(Workflow):
        @step
        def late(self) -> None:
            began.set()
            release.wait(10)
            ended.set()

    engine.on("node", heard.append)
    run = engine.start(Late())
    began.wait(30)
    run.cancel(grace_seconds=0).wait(30)
    release.set()
    ended.wait(30)
    assert engine._runner is not None
    eventually(lambda: engine._runner.idle)  # type: ignore[union-attr]
    assert heard == []
