"""What is said of nodes that were skipped: outputs, metrics, `why` of a run that had nothing to do, and `stepwell try`."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell import Engine, Workflow, step, task
from stepwell.define.document import Document
from stepwell.engine.trying import rendered, tried
from stepwell.errors import InputError
from stepwell.handlers import Handlers


class Alarm(Workflow):
    degrees: int

    @step
    def measure(self) -> int:
        return self.degrees

    @task(depends_on=measure, when=lambda measure: measure > 90)
    def call(self) -> str:
        return "called"

    @task(depends_on=call)
    def log(self) -> str:
        return "logged"

    @task(depends_on=measure, when=lambda measure: measure > 60)
    def email(self) -> str:
        return "sent"


def test_a_run_all_of_whose_last_nodes_were_skipped_says_that_there_was_nothing_to_do() -> None:
    with Engine("memory://") as engine:
        run = engine.run(Alarm(degrees=20))
        answer = run.why()
    (cause,) = answer.causes
    assert (answer.status, cause.kind) == ("COMPLETED", "nothing_to_do")
    assert [each.name for each in cause.because] == ["email", "log"]
    assert answer.text().split("\n")[1:] == [
        "  there was nothing to do: every last node was skipped",
        "    email was skipped: its condition did not hold",
        "    log was skipped: all of its parents were skipped",
    ]


def test_a_run_one_of_whose_last_nodes_ran_had_something_to_do() -> None:
    with Engine("memory://") as engine:
        assert engine.run(Alarm(degrees=70)).why().causes == ()


def test_the_output_of_a_skipped_node_is_refused_with_the_reason() -> None:
    with Engine("memory://") as engine:
        run = engine.run(Alarm(degrees=20))
        with pytest.raises(KeyError, match=r"node 'email' of run .* was skipped \(condition\)"):
            run.output("email")
        with pytest.raises(KeyError, match=r"node 'log' of run .* was skipped \(parents_skipped\)"):
            run.output("log")


def test_a_skipped_node_was_not_given_back() -> None:
    with Engine("memory://") as engine:
        metrics = engine.run(Alarm(degrees=20)).metrics
    assert (metrics.attempts, metrics.executed, metrics.released) == (4, 1, 0)


CHECK = {"id": "check", "handler": "compute", "config": {"expression": "input.total > 9"}}
PRICE = {"id": "price", "handler": "compute", "config": {"expression": "input.total * 2"}, "dependencies": ["check"]}


def order(config: dict[str, Any], handler: str = "transform", *after: str) -> Document:
    ship = {"id": "ship", "handler": handler, "config": config, "dependencies": [*after], "when": "{{ check.result }}"}
    properties = {"total": {"type": "integer", "default": 1}}
    return Document({"name": "order", "input": {"properties": properties}, "nodes": [CHECK, PRICE, ship]})


@pytest.mark.parametrize("after", [("price",), ("check", "price")])
def test_a_node_tried_by_itself_needs_no_output_that_only_its_condition_reads(after: tuple[str, ...]) -> None:
    made = order({"template": "for {{ price.result }}"}, "transform", *after)
    outputs = {"price": {"result": 7}}
    assert rendered(made, "ship", outputs, {}) == {"template": "for 7"}
    assert tried(made, "ship", outputs, {}, Handlers()) == {"result": "for 7"}
    with pytest.raises(InputError, match="expected what price returned"):
        rendered(made, "ship", {}, {})
    with pytest.raises(InputError, match="expected what price returned"):
        tried(made, "ship", {}, {}, Handlers())


def test_a_node_tried_by_itself_gets_the_outputs_that_are_given() -> None:
    made = order({}, "aggregate", "check", "price")
    merged = tried(made, "ship", {"check": {"result": True}, "price": {"result": 7}}, {}, Handlers())
    assert merged["result"] == {"check": True, "price": 7}
    assert tried(made, "ship", {"price": {"result": 7}}, {}, Handlers())["result"] == {"price": 7}
