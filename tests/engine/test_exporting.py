"""The graph of a run can be taken out as JSON, whoever asks and whatever became of the code."""

from __future__ import annotations

import json

import pytest

from stepwell import Builder, Engine, Retry, RunNotFound
from stepwell.base.clock import SECOND, utc_text
from stepwell.core.graph import from_frozen
from tests.define.shop import ShopWorkflow
from tests.engine import jobs
from tests.engine.conftest import OpenEngine


def built() -> Builder:
    w = Builder("orders")
    parts = w.fan_out([1, 2], job=jobs.same, args=lambda item: {"item": (item,)})
    w.node("join", job=jobs.nothing, depends_on=parts, retry=Retry(2, base_delay=3), timeout=30)
    return w


def test_an_exported_graph_is_the_graph_of_the_run(engine: Engine) -> None:
    w = built()
    run = engine.run(w)
    form = run.export_graph()
    assert from_frozen(json.dumps(form)).digest == run.row.digest == w.graph().digest
    assert form["signature"] == w.graph().signature
    assert form["frozen_at"] == utc_text(run.row.created_at / SECOND)
    assert [node["name"] for node in form["nodes"].values()] == ["same_0", "same_1", "join"]


def test_it_is_plain_json_and_the_same_for_everybody(open_sqlite: OpenEngine) -> None:
    """Who built the graph has tuples in it, and args in another order, than who reads it from the store."""
    run = open_sqlite().run(built())
    form = run.export_graph()
    assert json.loads(json.dumps(form)) == form
    elsewhere = open_sqlite(runner=None).get(run.id).export_graph()
    assert json.dumps(elsewhere) == json.dumps(form)


def test_editing_what_was_exported_changes_nothing_in_the_run(engine: Engine) -> None:
    run = engine.run(built())
    form = run.export_graph()
    for node in form["nodes"].values():
        node["args"].clear()
        node["depends_on"].clear()
    assert run.export_graph() != form
    assert run.graph.digest == run.row.digest


def test_a_run_of_a_class_can_be_exported_too(engine: Engine) -> None:
    run = engine.run(ShopWorkflow(order_id=7), check=False)
    form = run.export_graph()
    assert "job" not in form["nodes"]["validate"]
    assert from_frozen(form) == ShopWorkflow.workflow_graph()


def test_a_run_that_is_deleted_has_no_graph_any_more(engine: Engine) -> None:
    run = engine.run(built())
    run.delete()
    with pytest.raises(RunNotFound):
        run.export_graph()
