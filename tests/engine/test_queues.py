"""`queue=`: an engine takes only nodes of the queues it serves; by default of all."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stepwell import Builder, Engine, Workflow, step, task
from stepwell.errors import InputError
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually


class Render(Workflow):
    """Frames are drawn on another queue than the rest."""

    @step
    def plan(self) -> str:
        return threading.current_thread().name

    @task(depends_on=plan, queue="gpu")
    def draw(self) -> str:
        return threading.current_thread().name

    @task(depends_on=plan, queue="gpu")
    async def draw_later(self) -> str:
        return "loop"

    @step(depends_on=[draw, draw_later])
    def join(self) -> str:
        return "done"


def worker_of(engine: Engine, run: str) -> dict[str, str]:
    return {node.id: node.attempts[-1].worker for node in engine.get(run).nodes()}


def test_by_default_all_queues_are_served(engine: Engine) -> None:
    assert engine.run(Render()).output("join") == "done"


def test_a_node_is_left_to_an_engine_that_serves_its_queue(open_sqlite: OpenEngine) -> None:
    first = open_sqlite(workflows=[Render], queues=["default"])
    run = first.start(Render(), run_id="r")
    eventually(lambda: run.node("plan").status == "COMPLETED", "plan did not run")
    eventually(lambda: run.node("draw").status == "READY", "draw is not ready")
    second = open_sqlite(workflows=[Render], queues=["gpu", "tape"])
    assert second.get("r").wait(20).status == "COMPLETED"
    workers = worker_of(second, "r")
    assert workers["draw"] == workers["draw_later"] != workers["plan"] == workers["join"]


def test_why_says_that_nobody_serves_the_queue(open_engine: OpenEngine) -> None:
    engine = open_engine(queues=["default", "tape"])
    run = engine.start(Render(), run_id="r")
    eventually(lambda: run.node("draw").status == "READY", "draw is not ready")
    answer = run.why("draw")
    assert "no worker serves its queue 'gpu': the 1 worker that is alive takes only 'default', 'tape'" in str(answer)
    assert answer.causes[0].because[0].kind == "queue_not_served"
    assert "gpu" in answer.advice()[0]


def test_a_suspect_of_another_queue_is_left_alone() -> None:
    from tests.engine.schedulers import commit_batch, facts, lanes, scheduler

    d = scheduler()
    d.claims.ready.queues = frozenset({"pears"})
    d.know(facts("a", queue="apples"))
    d.know(facts("p", queue="pears"))
    asked: dict[str, int] = {}
    while (batch := d.next_batch(0)) is not None:
        asked |= lanes(batch)
        commit_batch(d, batch)
    assert asked == {"pears/thread": 8, "pears/thread?": 1}


@pytest.mark.parametrize("queues", ["gpu", [], [""], ["a/b"], [7], 7, b"gpu"])
def test_what_is_no_list_of_queues_is_refused(queues: Any) -> None:
    with pytest.raises(InputError, match=r"queues=.*expected a list of names of queues"):
        Engine("memory://", queues=queues)


def test_why_names_the_queue_of_a_graph_that_was_built_at_run_time(open_engine: OpenEngine) -> None:
    engine = open_engine(queues=["tape"])
    w = Builder("built")
    w.node("render", job=jobs.nothing, queue="gpu")
    run = engine.start(w)
    assert "no worker serves its queue 'gpu'" in str(run.why("render"))
