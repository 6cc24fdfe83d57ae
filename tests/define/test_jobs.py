"""A job is a function that any process can find again."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from stepwell.define import Builder, Workflow, definition_of, step, task
from stepwell.errors import DefinitionError, GraphError
from tests.define import shop
from tests.define.lines import place


def test_only_the_address_of_a_job_is_stored() -> None:
    w = Builder("w")
    w.node("a", job=shop.charge)
    w.node("b", job="elsewhere.jobs:Billing.charge")
    assert [spec.job for spec in w.graph()] == ["tests.define.shop:charge", "elsewhere.jobs:Billing.charge"]


def test_a_builder_remembers_the_functions_it_was_given() -> None:
    w = Builder("w")
    w.node("a", job=shop.charge)
    w.node("b", job="elsewhere.jobs:charge")
    assert dict(w._functions) == {"tests.define.shop:charge": shop.charge}


def test_an_async_job_runs_on_the_loop() -> None:
    w = Builder("w")
    w.node("a", job=shop.fetch)
    w.node("b", job=shop.charge)
    w.node("c", job=shop.fetch, isolation="process")
    assert [spec.body for spec in w.graph()] == ["loop", "thread", "process"]


def local() -> Any:
    def inner() -> None: ...

    return inner


@pytest.mark.parametrize("job", [lambda: None, local()])
def test_a_lambda_or_a_function_inside_a_function_is_refused_with_advice(job: Any) -> None:
    with pytest.raises(
        DefinitionError, match="move it to the top level of its module and pass what it needs"
    ) as caught:
        Builder("w").node("a", job=job)  # lambda
    assert caught.value.where == place(__file__, "lambda")


@functools.lru_cache
def replaced() -> None: ...


@pytest.mark.parametrize("job", [shop.Register().ring, replaced.__wrapped__])
def test_a_function_whose_name_leads_elsewhere_is_refused(job: Any) -> None:
    with pytest.raises(DefinitionError, match="leads to something else"):
        Builder("w").node("a", job=job)


class Called:
    __hash__ = None

    def __call__(self) -> None: ...


@pytest.mark.parametrize("job", [functools.partial(shop.charge, 3), Called(), 7, None])
def test_a_thing_without_a_name_is_refused(job: Any) -> None:
    with pytest.raises(DefinitionError, match="expected a function of a module"):
        Builder("w").node("a", job=job)


@pytest.mark.parametrize(
    "job", ["", "charge", "shop.jobs.charge", "shop:", ":charge", "shop:a b", "shop/jobs.py:charge"]
)
def test_an_address_has_a_form(job: str) -> None:
    with pytest.raises(DefinitionError, match=r"expected package\.module:function"):
        Builder("w").node("a", job=job)


class Child(Workflow):
    @step
    def only(self) -> None: ...


@pytest.mark.parametrize("job", [Child, Child(), Workflow, Builder("built"), f"{__name__}:Child"])
def test_a_workflow_is_refused_as_a_job_where_it_is_written(job: Any) -> None:
    refused = pytest.raises(DefinitionError, match=r"it is a workflow, and a node runs a function")
    with refused as caught:
        Builder("w").node("a", job=job)  # the builder
    assert caught.value.where == place(__file__, "the builder")
    with refused:
        Builder("w").fan_out([1], job=job)
    with refused:

        class Parent(Workflow):
            child = step(job=job)


def test_a_workflow_in_a_module_that_is_not_loaded_is_refused_when_a_run_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "not_loaded_yet.py").write_text(
        "from tests.define.test_jobs import Child as Base\nclass Later(Base): ..."
    )
    monkeypatch.syspath_prepend(tmp_path)
    w = Builder("w")
    w.node("a", job="not_loaded_yet:Later")
    (missing,) = definition_of(w).bodies.missing(w.graph())
    assert "it is a workflow, and a node runs a function" in missing.reason


def test_a_job_that_yields_is_refused() -> None:
    with pytest.raises(DefinitionError, match="return a list instead"):
        Builder("w").node("a", job=shop.numbers)


def test_a_node_of_a_class_may_name_a_job() -> None:
    class Order(Workflow):
        @step
        def validate(self) -> None: ...

        report = step(job=shop.summarise, retry=2)
        mail = task(depends_on=report, job="elsewhere.mail:send")

        @step(depends_on=[report, "mail"])
        def ship(self) -> None: ...

    nodes = Order.workflow_graph().nodes
    assert nodes["report"].job == "tests.define.shop:summarise"
    assert nodes["report"].needs == ("validate",)
    assert nodes["report"].depends_on == ("validate",)
    assert nodes["mail"].job == "elsewhere.mail:send"
    assert nodes["ship"].depends_on == ("report", "mail")
    definition = definition_of(Order())
    body = definition.bodies.find(nodes["report"])
    assert body.invoke({}, "context", {"validate": 3}) == {"validated": 3, "ctx": "context"}


def test_a_method_that_names_a_job_says_what_the_job_takes() -> None:
    class Order(Workflow):
        @step
        def amount(self) -> int:
            return 3

        @step(job="tests.define.shop:charge")
        async def bill(self, amount: int) -> str: ...

    spec = Order.workflow_graph().nodes["bill"]
    assert (spec.job, spec.needs, spec.body) == ("tests.define.shop:charge", ("amount",), "loop")
    assert definition_of(Order()).bodies.find(spec).invoke({}, None, {"amount": 3}) == "3 EUR"


def test_a_subclass_may_put_a_method_in_the_place_of_a_job() -> None:
    class Order(Workflow):
        work = step(job=shop.no_parameters, queue="slow")

    class Child(Order):
        def work(self) -> str:
            return "child"

    spec = Child.workflow_graph().nodes["work"]
    assert (spec.job, spec.queue) == (None, "slow")
    assert definition_of(Child()).bodies.find(spec).invoke({}, None, {}) == "child"
    assert definition_of(Order()).bodies.find(Order.workflow_graph().nodes["work"]).invoke({}, None, {}) == "done"


def test_wrong_jobs_of_a_class_are_all_reported_with_their_lines() -> None:
    with pytest.raises(GraphError) as caught:

        class Order(Workflow):
            first = step(job=lambda: None)  # first job
            second = step(job="nowhere")  # second job
            third = step(job=shop.with_ctx)  # third job

    assert [problem.where for problem in caught.value.problems] == ["first", "second", "third"]
    for mark in ("first job", "second job", "third job"):
        assert place(__file__, mark) in str(caught.value)
    assert "nothing fills its parameter 'item'" in str(caught.value)
