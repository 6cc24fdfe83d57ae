"""Whoever looks at a run while it switches to another graph sees nodes of either, and no error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stepwell import Builder, Engine, Run
from stepwell.core.store import reader
from tests.engine import jobs


@pytest.mark.parametrize(
    ("read", "look", "seen"),
    [
        ("get_outputs", lambda run: list(run.outputs.values()), [None, None]),
        ("list_lines", lambda run: run.logs(), []),
    ],
)
def test_a_run_may_get_nodes_between_two_reads(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, read: str, look: Callable[[Run], Any], seen: list[Any]
) -> None:
    w = Builder("growing", on_failure="finish")
    w.node("first", job=jobs.nothing)
    w.node("broken", job=jobs.fail, depends_on=None)
    run = engine.run(w, check=False)
    reading = getattr(reader, read)

    def changed_first(*given: Any, **options: Any) -> Any:
        monkeypatch.setattr(reader, read, reading)
        form = run.export_graph()
        by_name = {node["name"]: id for id, node in form["nodes"].items()}
        del form["nodes"][by_name["broken"]]
        form["nodes"]["second"] = {
            "name": "second",
            "job": "tests.engine.jobs:nothing",
            "depends_on": [by_name["first"]],
        }
        run.import_graph(form).retry().wait(20).check()
        return reading(*given, **options)

    monkeypatch.setattr(reader, read, changed_first)
    assert look(run) == seen
    assert look(run) == seen
