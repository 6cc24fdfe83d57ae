"""RunFailed names the run, the node, the attempt and the error, and says how to go on."""

from __future__ import annotations

import pytest

from stepwell import Builder, Engine, Retry, RunCancelled, RunFailed, Workflow, step
from stepwell.base.commands import either
from tests.engine import jobs
from tests.engine.conftest import OpenEngine


class Order(Workflow):
    @step
    def validate(self) -> None: ...

    @step(retry=Retry(2, base_delay=0.001))
    def charge(self) -> None:
        raise ConnectionError("the bank is closed")


def test_the_message_names_node_attempt_error_and_the_way_on(engine: Engine) -> None:
    with pytest.raises(RunFailed) as caught:
        engine.run(Order(), run_id="order-7")
    again = either("run.retry()", "retry order-7", engine.store.url)
    assert str(caught.value) == (
        "run order-7 failed at node 'charge', attempt 2: ConnectionError: the bank is closed\n"
        f"  completed nodes are kept; {again} runs only what did not complete"
    )
    error = caught.value
    assert (error.run_id, error.node, error.attempt) == ("order-7", "charge", 2)
    assert (error.error_type, error.error_message) == ("ConnectionError", "the bank is closed")


def test_several_failures_are_counted_and_the_first_is_told(open_engine: OpenEngine) -> None:
    w = Builder("bad", on_failure="finish")
    w.node("first", job=jobs.fail, args={"message": "one"}, depends_on=None)
    w.node("second", job=jobs.fail, args={"message": "two"}, depends_on=None)
    run = open_engine(max_concurrent_nodes=1).run(w, check=False)
    with pytest.raises(RunFailed, match=r"\(and 1 more failed\)") as caught:
        run.check()
    ended = {node.name: node.attempts[0].ended_at or 0 for node in run.nodes()}
    assert ended[caught.value.node] == min(ended.values())


def test_check_false_returns_the_failed_run(engine: Engine) -> None:
    run = engine.run(Order(), check=False)
    assert run.status == "FAILED"
    node = run.node("charge")
    assert node.error is not None
    assert str(node.error) == "ConnectionError: the bank is closed"
    assert [attempt.status for attempt in node.attempts] == ["FAILED", "FAILED"]


def test_the_traceback_begins_in_the_body(engine: Engine) -> None:
    error = engine.run(Order(), check=False).node("charge").error
    assert error is not None
    assert error.traceback is not None
    assert 'raise ConnectionError("the bank is closed")' in error.traceback
    assert "stepwell/runner" not in error.traceback


def test_a_cancelled_run_explains_itself(open_engine: OpenEngine) -> None:
    run = open_engine(runner=None).start(Order(), run_id="order-7").cancel()
    with pytest.raises(RunCancelled, match=r"run order-7 was cancelled; `run\.retry\(\)`"):
        run.check()


def test_a_run_whose_time_was_up_says_so(engine: Engine) -> None:
    w = Builder("slow", deadline=0.1)
    w.node("nap", job=jobs.nap, args={"seconds": 0.5})
    with pytest.raises(RunFailed, match="it did not end within its deadline"):
        engine.run(w)
