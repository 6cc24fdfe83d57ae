"""A run built at run time is what it was when it was started, whatever the code that built it says now."""

from __future__ import annotations

import json

import pytest

from stepwell import Builder, RunConflict
from tests.engine import jobs
from tests.engine.conftest import OpenEngine


def as_it_was() -> Builder:
    w = Builder("orders")
    w.fan_out([1, 2], job=jobs.double)
    w.node("total", job=jobs.total)
    return w


def as_it_is() -> Builder:
    w = Builder("orders")
    w.fan_out([5, 6, 7], job=jobs.double)
    w.node("sum of all", job=jobs.total)
    return w


def test_who_starts_it_again_with_other_code_is_told_and_it_stays_what_it_was(open_sqlite: OpenEngine) -> None:
    open_sqlite(runner=None).start(as_it_was(), run_id="r-1")
    engine = open_sqlite()
    with pytest.raises(RunConflict, match=r"with another graph \(2 new: double_2, sum of all; 1 gone: total\)"):
        engine.run(as_it_is(), run_id="r-1")
    run = engine.run(as_it_was(), run_id="r-1")
    assert [node.name for node in run.nodes()] == ["double_0", "double_1", "total"]
    assert run.output("total") == 6
    assert run.graph == as_it_was().graph()


def test_who_retries_it_after_the_code_changed_retries_what_was_frozen(open_sqlite: OpenEngine) -> None:
    w = as_it_was()
    w.node("broken", job=jobs.fail)
    run = open_sqlite().run(w, check=False)
    engine = open_sqlite()
    engine.run(as_it_is())
    again = engine.get(run.id).retry().wait(10)
    assert again.graph == w.graph()
    assert [(node.name, len(node.attempts)) for node in again.nodes()] == [
        ("double_0", 1),
        ("double_1", 1),
        ("total", 1),
        ("broken", 2),
    ]


def test_an_engine_that_never_saw_the_builder_runs_what_is_stored(open_sqlite: OpenEngine) -> None:
    run = open_sqlite(runner=None).start(as_it_was())
    engine = open_sqlite()
    engine.work(wait=0)
    assert engine.get(run.id).wait(10).output("total") == 6


def test_only_names_of_jobs_are_stored(open_sqlite: OpenEngine) -> None:
    run = open_sqlite(runner=None).start(as_it_was())
    stored = {node["job"] for node in json.loads(json.dumps(run.export_graph()))["nodes"].values()}
    assert stored == {"tests.engine.jobs:double", "tests.engine.jobs:total"}
