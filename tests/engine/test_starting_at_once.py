"""Threads that start the first runs of a workflow at once: all of them are worked on."""

from __future__ import annotations

import threading

from stepwell import Engine, Workflow, step
from stepwell.core.model import AddGraph
from tests.engine.conftest import OpenEngine


class Nothing(Workflow):
    @step
    def nothing(self) -> None: ...


def test_a_run_that_is_started_before_its_graph_is_stored_by_another_thread(engine: Engine) -> None:
    """The other thread has said that it stores the graph, and its commit comes later."""
    engine.parts.starting.known_graphs[engine.parts.code.definition_of(Nothing()).graph.digest] = True
    assert engine.start(Nothing()).wait(5).status == "COMPLETED"


def test_first_runs_that_several_threads_start_at_once(open_engine: OpenEngine) -> None:
    engine, runs = open_engine(), []
    submit, first = engine.parts.work.runner.submit, threading.Event()  # type: ignore[union-attr]

    def late(ops, facts=()):  # type: ignore[no-untyped-def]
        """Who brings the graph comes second."""
        if any(isinstance(op, AddGraph) for op in ops) and not first.is_set():
            second.start()
            first.wait(5)
        receipts = submit(ops, facts)
        first.set()
        return receipts

    engine.parts.work.runner.submit = late  # type: ignore[union-attr, method-assign]
    second = threading.Thread(target=lambda: runs.append(engine.start(Nothing())))
    runs.append(engine.start(Nothing()))
    second.join(30)
    for run in runs:
        assert run.wait(5).status == "COMPLETED"
