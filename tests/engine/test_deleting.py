"""`run.delete()` forgets an ended run, and only an ended one."""

from __future__ import annotations

import threading

import pytest

from stepwell import Builder, Engine, RunConflict, RunNotFound, Workflow, step
from tests.engine import jobs
from tests.engine.waiting import eventually


def test_a_deleted_run_is_gone_and_its_id_is_free(engine: Engine) -> None:
    w = Builder("gone")
    w.node("large", job=jobs.large, args={"size": 100_000})
    run = engine.run(w, run_id="r-1")
    run.delete()
    with pytest.raises(RunNotFound):
        engine.get("r-1")
    with pytest.raises(RunNotFound):
        run.delete()
    assert engine.runs() == []
    assert engine.run(w, run_id="r-1").status == "COMPLETED"


def test_a_run_that_goes_on_cannot_be_deleted(engine: Engine) -> None:
    release = threading.Event()

    class Long(Workflow):
        @step
        def hold(self) -> None:
            release.wait(10)

    run = engine.start(Long())
    eventually(lambda: run.status == "RUNNING")
    with pytest.raises(RunConflict, match="is RUNNING; only an ended run can be deleted: cancel it first"):
        run.delete()
    release.set()
    run.wait(30).delete()


def test_a_body_that_ends_after_its_run_was_deleted_disturbs_nobody(engine: Engine) -> None:
    began, release = threading.Event(), threading.Event()

    class Late(Workflow):
        @step
        def late(self) -> None:
            began.set()
            release.wait(10)

        @step(depends_on=None)
        def breaks(self) -> None:
            began.wait(10)
            raise ValueError

    run = engine.run(Late(), check=False)
    run.delete()
    release.set()
    w = Builder("next")
    w.node("same", job=jobs.same, args={"item": 1})
    assert engine.run(w).output("same") == 1


def test_other_runs_keep_the_payloads_they_share(sqlite_engine: Engine) -> None:
    w = Builder("shared")
    w.node("large", job=jobs.large, args={"size": 100_000})
    first, second = sqlite_engine.run(w), sqlite_engine.run(w)
    first.delete()
    assert len(second.output("large")) == 100_000
