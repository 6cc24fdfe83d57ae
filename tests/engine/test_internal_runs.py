"""Runs that Stepwell starts for itself: who takes them, and who does not see them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stepwell import Builder, Engine, Run, Workflow, step
from stepwell.core.graph import Graph
from stepwell.core.kernel.healing import arrange
from stepwell.core.model import INTERNAL_WORKFLOW, CountRuns, ListRuns, RunStatus
from stepwell.core.store import reader
from stepwell.engine.internal_runs import internal_definition, queue_with_code
from stepwell.engine.starting import create_op
from stepwell.errors import DefinitionError
from tests.engine.waiting import eventually


class Sums(Workflow):
    number: int = 1

    @step(side_effects="pure", queue="sums")
    def add(self) -> int:
        return self.number + 1


class Other(Workflow):
    @step(side_effects="pure")
    def only(self) -> int:
        return 1


def shout() -> str:
    return "HELLO"


def start_replay(engine: Engine, of: Run) -> Run:
    """Start a replay as a server does: with an engine that has no runner, and no code."""
    definition = internal_definition(of.row, "replay", of.graph.in_order[0].queue)
    server = Engine(engine.store, runner=None)  # to close it would close the store
    return engine.get(server.parts.starting.start(definition, create_op(definition)))


def test_only_a_worker_with_the_code_takes_a_replay_and_the_others_say_what_they_lack(sqlite_url: str) -> None:
    class Hidden(Workflow):
        @step(side_effects="pure")
        def only(self) -> int:
            return 1

    with Engine(sqlite_url, workflows=[Hidden]) as engine:
        run = engine.run(Hidden())
    with Engine(sqlite_url, runner=None) as engine:
        replay = start_replay(engine, engine.get(run.id))
        with Engine(sqlite_url, workflows=[Other]):
            eventually(lambda: "<locals>.Hidden" in str(replay.why()), show=lambda: str(replay.why()))
            assert replay.status == "PENDING"
        with Engine(sqlite_url, workflows=[Hidden]):
            assert replay.wait(30).check().result["replay"]["executed"] == ["only"]


def test_a_replay_waits_in_a_queue_from_which_a_worker_with_the_code_takes_nodes(sqlite_url: str) -> None:
    with Engine(sqlite_url, workflows=[Sums]) as engine:
        run = engine.run(Sums())
    with Engine(sqlite_url, runner=None) as engine:
        run = engine.get(run.id)

        def queue() -> str | None:
            return queue_with_code(engine.store, run.row, run.graph)

        assert queue() is None
        with Engine(sqlite_url, workflows=[Sums], queues=["default"]), Engine(sqlite_url, workflows=[Other]) as other:
            eventually(lambda: len(reader.list_workers(engine.store)) == 2)
            assert queue() is None
            other.close()
        with Engine(sqlite_url, workflows=[Sums], queues=["sums"]):
            eventually(lambda: queue() == "sums")
            assert start_replay(engine, run).wait(30).check().result["mismatch"] is None


def test_a_workflow_that_was_built_at_run_time_is_replayed_where_its_jobs_are(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = Builder("shouting", side_effects="pure")
    builder.node("shout", job=f"{__name__}:shout")
    with Engine(sqlite_url, workflows=[Other]) as engine:
        run = engine.run(builder)
        assert queue_with_code(engine.store, run.row, run.graph) == "default"
        assert start_replay(engine, run).wait(30).check().result["replay"]["executed"] == [*run.graph.order]
    monkeypatch.delattr(f"{__name__}.shout")
    with Engine(sqlite_url, workflows=[Other]) as engine:
        replay = start_replay(engine, engine.get(run.id))
        eventually(lambda: "shout" in str(replay.why()), show=lambda: str(replay.why()))
        assert replay.status == "PENDING"


def test_a_graph_that_stepwell_did_not_make_has_no_bodies(sqlite_url: str) -> None:
    with Engine(sqlite_url, workflows=[Sums]) as engine:
        run = engine.run(Sums())
        (spec,) = internal_definition(run.row, "replay", "default").graph
        graphs = (
            arrange(Graph([spec]), Graph([spec]), pinned=True, trusted=False),
            Graph([spec, spec._replace(id="again", name="again")]),
            Graph([spec._replace(name="other")]),
            Graph([spec._replace(job=f"{__name__}:shout")]),
        )
        code = engine.parts.code
        assert code.absent(INTERNAL_WORKFLOW, None, Graph([spec])) is None
        for graph in graphs:
            with pytest.raises(DefinitionError, match="only one that Stepwell started"):
                code.bodies(INTERNAL_WORKFLOW, None, graph)


def test_a_replay_of_a_run_that_was_deleted_fails_and_says_so(sqlite_url: str) -> None:
    with Engine(sqlite_url, workflows=[Sums]) as engine:
        run = engine.run(Sums())
        definition = internal_definition(run.row, "replay", "default")
        run.delete()
        with Engine(sqlite_url, runner=None) as server:
            replay = engine.get(server.parts.starting.start(definition, create_op(definition))).wait(30)
        assert (replay.status, replay.node("replay").error.type) == ("FAILED", "RunNotFound")


def test_a_replay_that_is_cancelled_ends_before_the_next_node(engine: Engine) -> None:
    ran = []
    inside, goes_on = threading.Event(), threading.Event()

    class Held(Workflow):
        @step(side_effects="pure")
        def first(self) -> None:
            ran.append("first")
            if len(ran) > 2:
                inside.set()
                goes_on.wait(30)

        @step(side_effects="pure")
        def second(self) -> None:
            ran.append("second")

    run = engine.run(Held())
    engine.work([Held], wait=0)
    replay = start_replay(engine, run)
    assert inside.wait(30)
    replay.cancel(grace_seconds=30)
    goes_on.set()
    assert replay.wait(30).status == "CANCELLED"
    assert ran == ["first", "second", "first"]


def test_pages_and_counts_leave_out_internal_runs_unless_they_are_asked_for(engine: Engine) -> None:
    runs = [engine.run(Sums(number=number), tags={"n": str(number)}) for number in range(3)]
    engine.work([Sums], wait=0)
    replays = [start_replay(engine, runs[0]).wait(30).id for _ in range(5)]
    runs += [engine.run(Sums(number=9))]
    shown = [run.id for run in reversed(runs)]
    store = engine.store

    def pages(query: ListRuns) -> list[list[str]]:
        found = []
        while True:
            page = reader.list_runs(store, query)
            found.append([row.id for row in page.runs])
            if page.cursor is None:
                return found
            query = query._replace(before=page.cursor)

    assert pages(ListRuns(limit=2)) == [shown[:2], shown[2:]]
    assert pages(ListRuns(limit=2, statuses=(RunStatus.COMPLETED,)))[0] == shown[:2]
    assert pages(ListRuns(limit=9, workflow=INTERNAL_WORKFLOW)) == [replays[::-1]]

    def counts(query: ListRuns, by: Any) -> dict[str, int]:
        (found,) = reader.count_runs(store, CountRuns(query, by))
        return dict(found.counts)

    assert counts(ListRuns(), "workflow") == {"Sums": 4}
    assert counts(ListRuns(), "status") == {"COMPLETED": 4}
    assert counts(ListRuns(tags=(("n", "1"),)), "status") == {"COMPLETED": 1}
    assert counts(ListRuns(workflow=INTERNAL_WORKFLOW), "status") == {"COMPLETED": 5}
    assert sum(counts(ListRuns(), "hour").values()) == 4
