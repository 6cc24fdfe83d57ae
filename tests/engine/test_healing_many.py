"""A deploy meets many unfinished runs: they are healed soon, other work goes on, and workers say which versions they have."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from stepwell import Builder, Context, Engine, Workflow, step
from stepwell.base.codec import decode
from stepwell.core.model import ListRuns, RunRow, RunStatus
from stepwell.core.store import reader
from stepwell.engine.code import versions
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually

MANY = 150


def version(*steps: str) -> type[Workflow]:
    def body(name: str) -> Callable[[Workflow], str]:
        def run(self: Workflow) -> str:
            return name

        run.__name__ = run.__qualname__ = name
        return run

    return type(Workflow)("Many", (Workflow,), {name: step(body(name)) for name in steps})


class Sitting(Workflow):
    """Runs until it is stopped."""

    @step
    def sit(self, ctx: Context) -> None:
        while True:
            ctx.check()
            time.sleep(0.005)


def served(engine: Engine) -> list[tuple[str, str]]:
    infos = [decode(worker.info) for worker in reader.list_workers(engine.store)]
    return sorted((name, digest) for info in infos for name, digest in info["serves"])


def test_many_runs_are_healed_while_other_chores_go_on(open_sqlite: OpenEngine) -> None:
    old, new = version("one", "two"), version("one", "extra", "two")
    looking = open_sqlite(runner=None)
    runs = looking.start_many([old() for _ in range(MANY)])
    sitting = looking.start(Sitting())
    open_sqlite(workflows=[Sitting, new])
    eventually(lambda: any(run.row.heals for run in runs[-3:]), "nothing was healed", seconds=20)
    eventually(lambda: sitting.node("sit").status == "RUNNING", "the other run did not begin", seconds=20)
    began = time.monotonic()
    sitting.cancel(grace_seconds=600)
    eventually(lambda: sitting.status == "CANCELLED", "the cancel was not heard", seconds=20)
    assert time.monotonic() - began < 10
    eventually(
        lambda: len(looking.runs(limit=MANY, workflow="Many", status="COMPLETED")) == MANY,
        seconds=60,
        show=lambda: reader.list_runs(looking.store, ListRuns(3, statuses=(RunStatus.RUNNING, RunStatus.PENDING))),
    )
    for run in runs:
        assert run.row.heals == 1
        assert run.audit() == []


def test_a_run_that_is_finished_is_not_looked_at(open_sqlite: OpenEngine) -> None:
    old, new = version("one"), version("one", "two")
    with open_sqlite(workflows=[old]) as engine:
        done = [engine.run(old()) for _ in range(3)]
    engine = open_sqlite(workflows=[new])
    assert engine.run(new()).row.heals == 0
    assert [engine.get(run.id).row.heals for run in done] == [0, 0, 0]


def test_workers_say_which_versions_they_have(open_sqlite: OpenEngine) -> None:
    given, started, found = version("one"), Sitting, version("one", "two")
    looking = open_sqlite(runner=None)
    engine = open_sqlite(workflows=[given])
    assert served(looking) == [("Many", given.workflow_graph().digest)]
    run = engine.start(started())
    assert served(looking) == [("Many", given.workflow_graph().digest), ("Sitting", Sitting.workflow_graph().digest)]
    run.cancel()
    dynamic = Builder("dynamic")
    dynamic.node("one", job=jobs.same, args={"item": 1})
    engine.start(dynamic).wait(20)
    assert len(served(looking)) == 2, "runs of dynamic workflows have what they have: nobody needs to know"
    engine.close()
    assert served(looking) == []
    other = open_sqlite()
    other.work([found], wait=0)
    assert served(looking) == [("Many", found.workflow_graph().digest)]


def test_one_that_serves_everything_says_what_it_finds(open_sqlite: OpenEngine) -> None:
    looking = open_sqlite(runner=None)
    run = looking.start(Sitting())
    open_sqlite().work(wait=0)
    eventually(lambda: served(looking) == [("Sitting", Sitting.workflow_graph().digest)], show=lambda: served(looking))
    eventually(lambda: run.node("sit").status == "RUNNING")
    run.cancel(grace_seconds=0.1).wait(20)


def test_a_retry_waits_for_a_gate_that_is_held(open_sqlite: OpenEngine) -> None:
    """As it is while somebody heals the run."""
    from stepwell.engine.procedures import gates
    from stepwell.engine.procedures.procedure import carry_out
    from tests.simulation.simulate import controls

    old = version("one")
    engine: Any = open_sqlite(runner=None)
    run = engine.start(old()).pause()
    gate = gates.ask(run.id, "resume")
    engine.store.commit([gate._replace(lease=300_000)])
    began = time.monotonic()
    run.resume()
    assert time.monotonic() - began > 0.2
    assert run.status == "RUNNING"
    assert carry_out(engine.store, controls.cancel(run.id, grace=0)) is not None


def test_a_run_that_is_deleted_while_its_version_is_healed_leaves_the_others_to_be_healed(
    open_sqlite: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = version("one", "two"), version("one", "extra", "two")
    looking = open_sqlite(runner=None)
    runs = looking.start_many([old() for _ in range(4)])
    gone: list[str] = []
    switch_graph = versions.switch_graph

    def after_somebody_deleted_it(row: RunRow, *graphs: Any, **options: Any) -> Any:
        if not gone:
            gone.append(row.id)
            looking.get(row.id).cancel(grace_seconds=0).wait(20).delete()
        return switch_graph(row, *graphs, **options)

    monkeypatch.setattr(versions, "switch_graph", after_somebody_deleted_it)
    open_sqlite(workflows=[new])
    for run in runs:
        if run.id not in gone:
            eventually(lambda run=run: run.status == "COMPLETED", "it was abandoned", seconds=20)
            assert run.row.heals == 1
    assert gone


def test_a_run_that_was_left_and_is_deleted_is_forgotten(
    open_sqlite: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It follows another version for a moment, and is gone when somebody comes back to it."""
    engine = open_sqlite(workflows=[Sitting])
    other, gone = engine.start(Sitting()), engine.start(Sitting())
    up_to_date = engine.parts.work._versions.up_to_date

    def after_somebody_deleted_it(row: RunRow) -> RunRow:
        if row.id == gone.id:
            gone.cancel(grace_seconds=0).wait(20).delete()
            return reader.require_run(engine.store, row.id)
        return up_to_date(row)

    monkeypatch.setattr(engine.parts.work._versions, "up_to_date", after_somebody_deleted_it)
    engine.parts.serving.leave(gone.id)
    engine.parts.serving.leave(other.id)
    engine.parts.serving.discover()
    assert engine.parts.serving.wait() is None
    other.cancel(grace_seconds=0.1)
