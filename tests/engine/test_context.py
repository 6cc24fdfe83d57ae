"""What a body is told about its attempt, and what it may say."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from stepwell import Builder, Context, Engine, Retry, Workflow, step, task
from stepwell.base.ids import AttemptId, RunId
from stepwell.core.model.outputs import Completion
from stepwell.define import Bodies
from stepwell.engine.bodies.held import Held, RunFacts
from stepwell.engine.bodies.outputs import StoredOutputs
from tests.engine import jobs


class Diamond(Workflow):
    @step
    def top(self) -> int:
        return 1

    @task(depends_on=top)
    def left(self) -> int:
        return 2

    @task(depends_on=top)
    def right(self) -> int:
        return 3

    @task(depends_on=left)
    def below(self, ctx: Context) -> dict[str, Any]:
        seen: dict[str, Any] = {"all": ctx.outputs.all(), "names": list(ctx.outputs), "count": len(ctx.outputs)}
        seen |= {"parents": ctx.parents, "some": ctx.outputs.some(ctx.parents)}
        try:
            ctx.outputs["right"]
        except KeyError as error:
            seen["refused"] = error.args[0]
        return seen


def test_a_body_sees_the_outputs_of_all_its_ancestors_and_of_nobody_else(engine: Engine) -> None:
    seen = engine.run(Diamond()).output("below")
    assert seen["all"] == {"top": 1, "left": 2}
    assert (seen["parents"], seen["some"]) == (["left"], {"left": 2})
    assert (seen["names"], seen["count"]) == (["top", "left"], 2)
    assert "'right' is not an ancestor of node 'below': add it to depends_on" in seen["refused"]


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_node_that_is_no_ancestor_is_refused_wherever_the_body_runs(sqlite_engine: Engine, isolation: Any) -> None:
    w = Builder("aside")
    w.node("aside", job=jobs.same, args={"item": 1})
    w.node("peek", job=jobs.peek, depends_on=None, isolation=isolation)
    error = sqlite_engine.run(w, check=False).node("peek").error
    assert error is not None
    assert error.type == "KeyError"
    assert "is not an ancestor of node 'peek'" in error.message


def test_a_name_that_several_ancestors_have_stands_for_none_of_them(engine: Engine) -> None:
    w = Builder("twins")
    w.node("aside", job=jobs.same, args={"item": 1}, depends_on=None)
    w.node("aside", job=jobs.same, args={"item": 2}, depends_on=None)
    w.node("peek", job=jobs.peek, depends_on=list(w.graph().nodes))
    error = engine.run(w, check=False).node("peek").error
    assert error is not None
    assert error.type == "KeyError"


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_body_reads_what_its_parents_returned_by_name_as_declared(sqlite_engine: Engine, isolation: Any) -> None:
    w = Builder("named")
    w.node("top", job=jobs.same, args={"item": 0}, depends_on=None)
    for name in "zebra", "ant", "mole":
        w.node(name, job=jobs.same, args={"item": name}, depends_on="top")
    w.node("sum", job=jobs.parents_in_order, depends_on=["mole", "zebra", "ant"], isolation=isolation)
    run = sqlite_engine.run(w)
    assert run.output("sum") == [["mole", "mole"], ["zebra", "zebra"], ["ant", "ant"]]


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_all_outputs_come_in_the_order_of_the_graph_wherever_the_body_runs(
    sqlite_engine: Engine, isolation: Any
) -> None:
    w = Builder("ordered")
    parts = w.fan_out(range(9), job=jobs.same)
    w.node("list", job=jobs.all_in_order, depends_on=parts, isolation=isolation)
    run = sqlite_engine.run(w)
    assert run.output("list") == list(w.graph().order[:9])


def test_parents_with_one_name_are_told_apart_by_id(engine: Engine) -> None:
    w = Builder("twins")
    twins = [w.node("twin", job=jobs.same, args={"item": item}, depends_on=None) for item in (2, 1)]
    w.node("sum", job=jobs.parents_in_order, depends_on=twins)
    assert engine.run(w).output("sum") == [[twins[0], 2], [twins[1], 1]]


def test_asking_for_an_output_costs_the_same_however_many_ancestors_there_are() -> None:
    assert _calls_to_find_outputs(5_000) <= _calls_to_find_outputs(50) + 20


def _calls_to_find_outputs(length: int) -> int:
    """How many functions are called when the last node of a chain asks for outputs, after another node has asked."""
    w = Builder("chain")
    for number in range(length):
        w.node(f"s{number}", job=jobs.same, args={"item": number})
    facts = RunFacts(RunId("r"), "chain", None, w.graph(), b"{}", 0, Bodies())
    index = {spec.name: place for place, spec in enumerate(w.graph().in_order)}
    completed = {place: Completion(1, b"1") for place in index.values()}

    def ask(name: str) -> None:
        held = Held(AttemptId("a"), facts, index[name], 1, 0, ())
        outputs = StoredOutputs(held, lambda _, indexes: {place: completed[place] for place in indexes})
        assert outputs["s0"] == outputs[f"s{length - 3}"] == outputs.some(["s1"])["s1"] == 1
        assert "s2" in outputs
        assert f"s{length - 1}" not in outputs

    ask(f"s{length - 2}")
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        ask(f"s{length - 1}")
    finally:
        sys.setprofile(None)
    return calls


def test_the_attempt_is_numbered_and_the_idempotency_key_stays(engine: Engine) -> None:
    seen: list[tuple[int, str]] = []

    class Flaky(Workflow):
        @step(retry=Retry(3, base_delay=0.001))
        def charge(self, ctx: Context) -> None:
            seen.append((ctx.attempt, ctx.idempotency_key))
            if ctx.attempt < 3:
                raise ConnectionError

    run = engine.run(Flaky())
    assert [number for number, _ in seen] == [1, 2, 3]
    assert {key for _, key in seen} == {f"{run.id}:charge"}


def test_the_idempotency_key_stays_when_a_failed_run_is_retried(engine: Engine) -> None:
    seen: list[tuple[int, str]] = []

    class Flaky(Workflow):
        @step
        def charge(self, ctx: Context) -> None:
            seen.append((ctx.attempt, ctx.idempotency_key))
            if len(seen) == 1:
                raise ConnectionError

    run = engine.run(Flaky(), check=False).retry().wait(10)
    assert run.status == "COMPLETED"
    assert seen == [(1, f"{run.id}:charge"), (2, f"{run.id}:charge")]


def test_different_nodes_and_runs_have_different_idempotency_keys(engine: Engine) -> None:
    keys: list[str] = []

    class Two(Workflow):
        @step
        def one(self, ctx: Context) -> None:
            keys.append(ctx.idempotency_key)

        @step
        def two(self, ctx: Context) -> None:
            keys.append(ctx.idempotency_key)

    engine.run(Two())
    engine.run(Two())
    assert len(set(keys)) == 4


def test_the_outcome_of_a_failed_attempt_is_kept_too(engine: Engine) -> None:
    class Failing(Workflow):
        @step
        def charge(self, ctx: Context) -> None:
            ctx.outcome["asked"] = ["bank"]
            raise ConnectionError

    (attempt,) = engine.run(Failing(), check=False).node("charge").attempts
    assert (attempt.status, attempt.outcome) == ("FAILED", {"asked": ["bank"]})


def test_an_outcome_that_cannot_be_kept_fails_the_attempt_with_a_reason(engine: Engine) -> None:
    class Odd(Workflow):
        @step
        def charge(self, ctx: Context) -> None:
            ctx.outcome["asked"] = object()

    error = engine.run(Odd(), check=False).node("charge").error
    assert error is not None
    assert error.type == "NotJson"
    assert "$.asked" in error.message


def test_what_a_body_does_to_the_input_no_other_attempt_sees(engine: Engine) -> None:
    class Greedy(Workflow):
        basket: list[int]

        @step(retry=Retry(2, base_delay=0.001))
        def eat(self, ctx: Context) -> list[int]:
            eaten = list(self.basket)
            self.basket.clear()
            ctx.input["basket"].clear()
            if ctx.attempt == 1:
                raise ValueError
            return eaten

        @step
        def look(self) -> list[int]:
            return self.basket

    run = engine.run(Greedy(basket=[1, 2]))
    assert (run.output("eat"), run.output("look"), run.input) == ([1, 2], [1, 2], {"basket": [1, 2]})
