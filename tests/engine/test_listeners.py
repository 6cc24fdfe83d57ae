"""`engine.on(event, callback)`: what happens in this process, as it happens."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import pytest

from stepwell import Builder, Context, Engine, Retry, Workflow, step, task
from stepwell.core.store import reader
from stepwell.errors import InputError
from tests.engine import jobs
from tests.engine.waiting import eventually


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
    assert engine.parts.work.runner is not None
    eventually(lambda: engine.parts.work.runner.idle)  # type: ignore[union-attr]
    assert heard == []


class Chain(Workflow):
    @step
    def first(self) -> None: ...
    @step
    def second(self) -> None: ...
    @step
    def third(self) -> None: ...


class Fan(Workflow):
    """Many that end side by side, and one that fails among them."""

    @step
    def begin(self) -> None: ...
    @task(depends_on=begin)
    def left(self) -> None: ...
    @task(depends_on=begin)
    def right(self) -> None: ...
    @task(depends_on=begin)
    def broken(self) -> None:
        raise ValueError("broken")


def status_changes(run: Any) -> list[str]:
    """What the journal says of the run itself, with the first claim, which makes it RUNNING."""
    told: list[str] = []
    for row in reader.get_history(run._parts.store, run.id).journal:
        status = "RUNNING" if row.kind == "claimed" and not told else row.status if row.kind == "run" else None
        if status is not None and (not told or told[-1] != status):
            told.append(status)
    return told


def test_a_slow_listener_hears_of_every_run_in_order_and_of_each_change_once(engine: Engine) -> None:
    heard: dict[str, list[Any]] = {}

    def listen(event: Any) -> None:
        heard.setdefault(event.run_id, []).append(event.status)
        time.sleep(0.0005)

    engine.on("run", listen)
    runs = engine.start_many([Fan() for _ in range(60)])
    for run in runs:
        run.wait(30)
    again = [run.retry() for run in runs[:5]]
    for run in again:
        run.wait(30)
    engine.parts.listeners.wait_until_heard()
    assert {run.id: heard[run.id] for run in runs} == {run.id: status_changes(run) for run in runs}
    assert heard[runs[-1].id] == ["RUNNING", "FAILED"]


def test_pausing_and_going_on_is_told_each_time_once(engine: Engine) -> None:
    release, heard = threading.Event(), []

    class Waits(Workflow):
        @step
        def first(self) -> None:
            release.wait(30)

        @step
        def second(self) -> None: ...

    engine.on("run", lambda event: heard.append(event.status))
    run = engine.start(Waits())
    eventually(lambda: run.status == "RUNNING")
    for _ in range(3):
        run.pause().pause()
        run.resume()
    release.set()
    run.wait(30)
    engine.parts.listeners.wait_until_heard()
    assert heard == ["RUNNING", *["PAUSED", "RUNNING"] * 3, "COMPLETED"]


def test_the_end_of_a_run_is_told_after_its_nodes_and_a_child_after_its_parent(engine: Engine) -> None:
    heard: dict[str, list[str]] = {}
    engine.on("node", lambda event: heard.setdefault(event.run_id, []).append(event.name))
    engine.on("run", lambda event: heard.setdefault(event.run_id, []).append(event.status))
    runs = engine.start_many([Chain() for _ in range(50)])
    for run in runs:
        run.wait(30)
    engine.parts.listeners.wait_until_heard()
    assert {tuple(told) for told in heard.values()} == {("RUNNING", "first", "second", "third", "COMPLETED")}


def test_closing_waits_until_listeners_have_heard_everything(sqlite_url: str) -> None:
    heard: list[Any] = []

    def listen(event: Any) -> None:
        time.sleep(0.05)
        heard.append(event)

    with Engine(sqlite_url) as engine:
        engine.on("node", listen)
        engine.run(Chain())
    assert [event.name for event in heard] == ["first", "second", "third"]


def test_a_run_id_that_is_used_again_is_told_anew(engine: Engine) -> None:
    heard: list[str] = []
    engine.on("run", lambda event: heard.append(event.status))
    engine.run(Flaky(), run_id="again").delete()
    engine.run(Chain(), run_id="again")
    engine.parts.listeners.wait_until_heard()
    assert heard == ["RUNNING", "COMPLETED"] * 2


def test_what_another_engine_does_to_a_run_is_told_once_when_it_is_noticed(sqlite_url: str) -> None:
    release, heard = threading.Event(), []

    class Waits(Workflow):
        @step
        def first(self) -> None:
            release.wait(30)

        @step
        def second(self) -> None: ...

    with Engine(sqlite_url) as engine, Engine(sqlite_url, runner=None) as other:
        engine.on("run", lambda event: heard.append(event.status))
        run = engine.start(Waits())
        eventually(lambda: run.status == "RUNNING")
        other.get(run.id).pause()
        eventually(lambda: "PAUSED" in heard)
        other.get(run.id).resume()
        release.set()
        run.wait(30)
        engine.parts.listeners.wait_until_heard()
    assert heard == ["RUNNING", "PAUSED", "RUNNING", "COMPLETED"]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise SystemExit(2)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), Unspeakable()])
@pytest.mark.parametrize("event", ["node", "run", "backpressure"])
def test_whatever_a_listener_raises_is_logged_and_changes_nothing(
    open_engine: Any, caplog: pytest.LogCaptureFixture, event: str, error: BaseException
) -> None:
    heard: list[Any] = []

    def broken(event: Any) -> None:
        raise error

    engine = open_engine(max_concurrent_nodes=1)
    engine.on(event, broken)
    engine.on(event, heard.append)
    w = Builder("wide")
    w.fan_out(range(30), job=jobs.same)
    with caplog.at_level(logging.ERROR, "stepwell"):
        assert engine.run(w, wait=20).status == "COMPLETED"
        engine.parts.listeners.wait_until_heard()
    assert engine.run(Chain(), wait=20).status == "COMPLETED"
    assert heard
    assert f"a listener for {event!r} events failed: {type(error).__name__}" in caplog.text
