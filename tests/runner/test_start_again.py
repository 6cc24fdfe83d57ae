"""Starting twice starts once: by run id, or by idempotency key."""

from __future__ import annotations

import threading

import pytest

from stepwell import Builder, Engine, RunConflict, Workflow, step
from tests.runner import jobs
from tests.runner.conftest import OpenEngine


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


def test_the_same_run_id_with_another_input_is_a_conflict(engine: Engine) -> None:
    engine.run(Order(order_id=7), run_id="r-1")
    with pytest.raises(RunConflict, match=r"r-1 exists already, with another workflow or input"):
        engine.start(Order(order_id=8), run_id="r-1")
    with pytest.raises(RunConflict, match="r-1"):
        engine.start(Refund(order_id=7), run_id="r-1")
    assert engine.get("r-1").output("charge") == 7


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
