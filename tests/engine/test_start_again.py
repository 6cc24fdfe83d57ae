"""Starting twice starts once: by run id, or by idempotency key."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stepwell import Builder, Engine, RunConflict, Workflow, step
from stepwell.errors import RunPaused
from tests.engine import jobs
from tests.engine.conftest import OpenEngine


class Order(Workflow):
    order_id: int

    @step
    def charge(self) -> int:
        return self.order_id


class Refund(Workflow):
    order_id: int

    @step
    def pay_back(self) -> int:
        return -self.order_id


def test_the_same_run_id_and_input_attach_to_the_run_that_is_there(engine: Engine) -> None:
    first = engine.run(Order(order_id=7), run_id="r-1")
    again = engine.run(Order(order_id=7), run_id="r-1")
    assert again.id == first.id
    assert len(again.node("charge").attempts) == 1


def test_who_only_starts_runs_leaves_one_that_is_there_as_it_is(open_sqlite: OpenEngine) -> None:
    starter = open_sqlite(runner=None)
    first = starter.start(Order(order_id=7), run_id="r-1")
    assert starter.start(Order(order_id=7), run_id="r-1").id == first.id
    assert first.status == "PENDING"


def test_the_same_run_id_with_another_input_is_a_conflict(engine: Engine) -> None:
    engine.run(Order(order_id=7), run_id="r-1")
    with pytest.raises(RunConflict, match=r"r-1 exists already, with another workflow or input"):
        engine.start(Order(order_id=8), run_id="r-1")
    with pytest.raises(RunConflict, match="r-1"):
        engine.start(Refund(order_id=7), run_id="r-1")
    assert engine.get("r-1").output("charge") == 7


def built(*items: int, **options: Any) -> Builder:
    w = Builder("order", **options)
    w.fan_out(items, job=jobs.double, args=lambda item: {"item": item})
    return w


@pytest.mark.parametrize("runner", ["local", None])
def test_a_changed_builder_is_another_run(open_sqlite: OpenEngine, runner: Any) -> None:
    open_sqlite().run(built(1, 2), run_id="r-1")
    engine = open_sqlite(runner=runner)
    assert engine.start(built(1, 2), run_id="r-1").id == "r-1"
    with pytest.raises(RunConflict, match=r"r-1 exists already, with another graph \(1 new: double_2\)"):
        engine.start(built(1, 2, 3), run_id="r-1")
    w = Builder("order")
    w.fan_out((1, 2), job=jobs.double, args=lambda item: {"item": item}, timeout=5)
    with pytest.raises(RunConflict, match="the same nodes, otherwise connected or with other options"):
        engine.start(w, run_id="r-1")
    assert engine.get("r-1").row.nodes == 2


def test_the_same_key_with_a_changed_builder_is_a_conflict(engine: Engine) -> None:
    first = engine.run(built(1), idempotency_key="web-7")
    assert engine.start(built(1), idempotency_key="web-7").id == first.id
    with pytest.raises(RunConflict, match=f"{first.id} exists already, with another graph"):
        engine.start(built(2), idempotency_key="web-7")


def test_a_run_whose_graph_was_edited_is_still_the_run_of_its_builder(open_engine: OpenEngine) -> None:
    engine = open_engine(jobs=["tests.engine.jobs"])  # the edited graph has arguments of its own
    w = Builder("repaired", on_failure="pause")
    w.node("fail", job=jobs.fail)
    run = engine.start(w, run_id="r-1")
    with pytest.raises(RunPaused):
        run.wait(30).check()
    form = run.export_graph()
    next(iter(form["nodes"].values()))["args"] = {"message": "other"}
    run.import_graph(form)
    assert engine.start(w, run_id="r-1").id == "r-1"
    edited = Builder("repaired", on_failure="pause")
    edited.node("fail", job=jobs.fail, args={"message": "other"})
    with pytest.raises(RunConflict, match="with another graph"):
        engine.start(edited, run_id="r-1")


def test_a_class_and_a_builder_of_one_name_are_not_the_same(engine: Engine) -> None:
    class Both(Workflow):
        @step
        def work(self) -> None: ...

    w = Builder("Both")
    w.node("work", job=jobs.nothing)
    engine.run(Both(), run_id="class")
    engine.run(w, run_id="builder")
    with pytest.raises(RunConflict):
        engine.start(w, run_id="class")
    with pytest.raises(RunConflict):
        engine.start(Both(), run_id="builder")


def test_the_same_idempotency_key_gives_the_same_run(engine: Engine) -> None:
    first = engine.run(Order(order_id=7), idempotency_key="web-7")
    again = engine.run(Order(order_id=7), idempotency_key="web-7")
    other = engine.run(Order(order_id=7), idempotency_key="web-8")
    assert again.id == first.id != other.id
    with pytest.raises(RunConflict, match=first.id):
        engine.start(Order(order_id=8), idempotency_key="web-7")


def test_attaching_goes_on_with_a_run_that_another_engine_left(open_sqlite: OpenEngine) -> None:
    open_sqlite(runner=None).start(Order(order_id=7), run_id="r-1")
    assert open_sqlite().run(Order(order_id=7), run_id="r-1").output("charge") == 7


def test_many_threads_that_start_one_run_start_it_once(engine: Engine) -> None:
    ready = threading.Barrier(8)
    started: list[str] = []

    def start(number: int) -> None:
        w = Builder("once")
        w.node("same", job=jobs.same, args={"item": 1})
        ready.wait()
        started.append(engine.start(w, idempotency_key="one", run_id=f"r-{number}").id)

    threads = [threading.Thread(target=start, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(started)) == 1
    assert engine.get(started[0]).wait(10).status == "COMPLETED"
    assert len(engine.runs()) == 1


def test_many_threads_that_start_runs_of_one_new_graph_all_succeed(engine: Engine) -> None:
    ready = threading.Barrier(8)
    runs = []

    def start() -> None:
        w = Builder("new")
        w.node("same", job=jobs.same, args={"item": 1})
        ready.wait()
        runs.append(engine.start(w))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [run.wait(10).output("same") for run in runs] == [1] * 8
