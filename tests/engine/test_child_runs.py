"""Nodes that runs perform: handing over, results, failures, and what people ask of a run reaching its children."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest

from stepwell import Builder, Document, Engine, Run, RunFailed, Saved, Workflow, step, task
from stepwell.base.ids import NodeId, RunId
from stepwell.core.kernel.children import MAX_DEPTH, child_id
from stepwell.core.model import ENDED, PARENT_PAUSED, Delete, GateState, ListRuns, RunRow, RunStatus
from stepwell.core.store import reader
from stepwell.engine.worker.children import Children
from stepwell.errors import RunConflict
from tests.conformance.ops import enlist, work
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually

CALLS: Counter[str] = Counter()
HOLD: dict[str, threading.Event] = {}
BEGUN: dict[str, threading.Event] = {}
BROKEN: set[str] = set()


@pytest.fixture(autouse=True)
def fresh() -> None:
    CALLS.clear()
    BROKEN.clear()
    for name in ("load", "handed"):
        HOLD[name], BEGUN[name] = threading.Event(), threading.Event()


def held(name: str, ctx: Any) -> None:
    """Wait until the test lets it go on, or the engine asks it to stop."""
    BEGUN[name].set()
    while not HOLD[name].wait(0.01):
        ctx.check()


class Import(Workflow):
    file: str
    waits: bool = False

    @step
    def read(self) -> int:
        CALLS["read"] += 1
        return len(self.file)

    @step
    def load(self, read: int, ctx: Any) -> dict[str, Any]:
        CALLS["load"] += 1
        if self.waits:
            held("load", ctx)
        if "load" in BROKEN:
            raise ValueError("the table is locked")
        return {"rows": read * 10}


class Nightly(Workflow):
    waits: bool = False

    @step
    def find(self) -> str:
        return "abc.csv"

    @step
    def imported(self, find: str) -> Import:
        CALLS["imported"] += 1
        return Import(file=find, waits=self.waits)

    @step
    def report(self, imported: dict[str, int]) -> int:
        return imported["rows"] + 1


def children(engine: Engine, run: Run | str) -> list[RunRow]:
    run_id = run if isinstance(run, str) else run.id
    return [*reversed(reader.list_runs(engine.store, ListRuns(parent=run_id)).runs)]  # type: ignore[arg-type]


def statuses(run: Run) -> dict[str, str]:
    return {node.name: str(node.status) for node in run.nodes()}


def test_a_node_gets_the_result_of_the_run_that_performs_it(engine: Engine) -> None:
    run = engine.run(Nightly(), run_id="night-1", priority=3, tags={"team": "data"})
    assert run.outputs == {"find": "abc.csv", "imported": {"rows": 70}, "report": 71}
    assert CALLS == {"imported": 1, "read": 1, "load": 1}
    (child,) = children(engine, run)
    assert child.id.startswith("night-1.")
    assert (child.workflow, child.status, child.gate) == ("Import", RunStatus.COMPLETED, GateState.SHUT)
    assert (child.priority, child.tags, child.depth) == (3, (("team", "data"),), 1)
    attempts = reader.list_attempts(engine.store, run.id, 1)
    assert [str(attempt.status) for attempt in attempts] == ["PARKED", "COMPLETED"]


def test_a_graph_that_was_collected_meanwhile_is_stored_again_and_the_body_not_called_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, stored = Children._store_graph, list[str]()

    def store_graph(self: Children, facts: Any) -> None:
        stored.append(facts.workflow)
        if len(stored) > 1:
            original(self, facts)

    monkeypatch.setattr(Children, "_store_graph", store_graph)
    assert engine.run(Nightly(), wait=30).output("report") == 71
    assert stored == ["Import", "Import"]
    assert CALLS["imported"] == 1


def test_a_child_that_can_never_be_created_fails_its_node(engine: Engine) -> None:
    taken = child_id(RunId("night-1"), 0, NodeId("imported"), 1)
    engine.run(hold_on("x"), run_id=taken)
    run = engine.start(Nightly(), run_id="night-1").wait(30)
    error = run.node("imported").error
    assert error is not None
    assert error.type == "NotStored"
    assert taken in error.message


def test_the_id_of_the_root_may_be_as_long_as_any(engine: Engine) -> None:
    run = engine.run(Nightly(), run_id="r" * 200)
    (child,) = children(engine, run)
    assert engine.get(child.id).status == "COMPLETED"


def test_its_seed_comes_from_its_parent(engine: Engine) -> None:
    seeds = {
        children(engine, engine.run(Nightly(), seed=seed, run_id=name))[0].seed for seed, name in ((5, "a"), (5, "b"))
    }
    assert len(seeds) == 1, "the id of a run makes no difference"
    assert children(engine, engine.run(Nightly(), seed=6))[0].seed not in seeds


def hold_on(path: str) -> Builder:
    w = Builder("parts")
    w.node("one", job=one_row, args={"path": path}, depends_on=None)
    w.node("two", job=one_row, args={"path": path}, depends_on=None)
    return w


def one_row(path: str) -> str:
    return f"row of {path}"


def test_of_several_last_nodes_the_result_is_by_name(engine: Engine) -> None:
    w = Builder("outer")
    w.node("parts", job=hold_on, args={"path": "x.csv"})
    run = engine.run(w)
    assert run.output("parts") == {"one": "row of x.csv", "two": "row of x.csv"}


class Asynchronous(Workflow):
    @step
    async def imported(self) -> Import:
        return Import(file="xy")

    @step
    async def report(self, imported: dict[str, int]) -> int:
        return imported["rows"]


def test_async_bodies_hand_over_too(engine: Engine) -> None:
    assert engine.run(Asynchronous()).output("report") == 20


DOUBLED = {
    "name": "doubled",
    "input": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    "nodes": [{"id": "out", "handler": "compute", "config": {"expression": "input.n * 2"}}],
}


def test_stored_documents_are_run_by_name(engine: Engine) -> None:
    engine.save(Document(DOUBLED))
    w = Builder("outer")
    w.node("doubled", job=by_name)
    assert engine.run(w).output("doubled") == {"result": 14}


def test_a_document_runs_others(engine: Engine) -> None:
    engine.save(Document(DOUBLED))
    nodes = [
        {"id": "sub", "handler": "workflow", "config": {"name": "doubled@1", "input": {"n": "{{ input.n }}"}}},
        {"id": "all", "handler": "compute", "config": {"expression": "sub.result + 1"}, "dependencies": ["sub"]},
    ]
    run = engine.run(Document({"name": "outer", "input": DOUBLED["input"], "nodes": nodes}), input={"n": 4})
    assert run.output("all") == {"result": 9}


def test_a_document_that_is_not_stored_fails_the_node(engine: Engine) -> None:
    w = Builder("outer")
    w.node("doubled", job=by_name)
    run = engine.start(w).wait(30)
    error = run.node("doubled").error
    assert error is not None
    assert (error.type, "doubled" in error.message) == ("InputError", True)


def by_name() -> Saved:
    return Saved("doubled", {"n": 7})


def test_a_child_that_fails_fails_its_node_and_is_retried_with_it(engine: Engine) -> None:
    BROKEN.add("load")
    with pytest.raises(RunFailed):
        engine.run(Nightly(), run_id="night-1")
    run = engine.get("night-1")
    assert statuses(run) == {"find": "COMPLETED", "imported": "FAILED", "report": "UPSTREAM_FAILED"}
    (child,) = children(engine, run)
    error = run.node("imported").error
    assert error is not None
    assert error.type == "ChildFailed"
    assert child.id in error.message
    assert "ValueError" in error.message
    BROKEN.clear()
    assert run.retry().wait(30).output("report") == 71
    assert CALLS == {"imported": 1, "read": 1, "load": 2}, "only what failed is repeated"
    assert len(children(engine, run)) == 1


def test_a_node_that_is_attempted_again_is_performed_anew(engine: Engine) -> None:
    run = engine.run(Nightly())
    run.reattempt("imported", cascade=True).wait(30)
    assert run.output("report") == 71
    assert CALLS == {"imported": 2, "read": 2, "load": 2}
    assert [child.status for child in children(engine, run)] == [RunStatus.COMPLETED] * 2


def test_a_cancel_reaches_the_bodies_of_children(engine: Engine) -> None:
    run = engine.start(Nightly(waits=True))
    assert BEGUN["load"].wait(20)
    run.cancel(grace_seconds=20)
    assert run.wait(20).status == "CANCELLED"
    (child,) = children(engine, run)
    assert (child.status, child.gate) == (RunStatus.CANCELLED, GateState.SHUT)
    assert statuses(run) == {"find": "COMPLETED", "imported": "CANCELLED", "report": "CANCELLED"}
    HOLD["load"].set()
    assert run.retry().wait(30).output("report") == 71
    assert CALLS["imported"] == 1


class Both(Workflow):
    @task(depends_on=None)
    def imported(self) -> Import:
        return Import(file="xyz", waits=True)

    @task(depends_on=None)
    def breaks(self) -> None:
        assert BEGUN["load"].wait(20)
        if "breaks" in BROKEN:
            raise KeyError("gone")


def test_a_failure_beside_a_child_cancels_it(engine: Engine) -> None:
    BROKEN.add("breaks")
    run = engine.start(Both())
    assert run.wait(30).status == "FAILED"
    eventually(lambda: children(engine, run)[0].status is RunStatus.CANCELLED, "the child goes on")
    assert statuses(run)["imported"] == "CANCELLED"
    BROKEN.clear()
    HOLD["load"].set()
    assert run.retry().wait(30).output("imported") == {"rows": 30}


def test_pause_and_resume_reach_children(engine: Engine) -> None:
    run = engine.start(Nightly(waits=True))
    assert BEGUN["load"].wait(20)
    run.pause()
    (child,) = children(engine, run)
    assert (child.status, child.reason) == (RunStatus.PAUSED, PARENT_PAUSED)
    with pytest.raises(RunConflict, match="which is PAUSED: resume that one"):
        engine.get(child.id).resume()
    HOLD["load"].set()
    run.resume()
    assert run.wait(30).output("report") == 71


def test_a_child_that_is_cancelled_by_hand_fails_its_node(engine: Engine) -> None:
    run = engine.start(Nightly(waits=True))
    assert BEGUN["load"].wait(20)
    engine.get(children(engine, run)[0].id).cancel()
    assert run.wait(30).status == "FAILED"
    error = run.node("imported").error
    assert error is not None
    assert error.type == "ChildCancelled"
    child = engine.get(children(engine, run)[0].id)
    for ask in (child.retry, lambda: child.reattempt("load"), child.delete):
        with pytest.raises(RunConflict, match=run.id):
            ask()


def test_a_tree_is_deleted_whole(engine: Engine) -> None:
    run = engine.run(Nightly())
    other = engine.run(Nightly())
    run.delete()
    assert {row.id for row in reader.all_runs(engine.store)} == {other.id, children(engine, other)[0].id}


def test_a_half_deleted_tree_is_deleted_by_whoever_finds_it(engine: Engine) -> None:
    run = engine.run(Nightly())
    engine.store.commit([Delete(run.id, 1)])
    eventually(lambda: not [*reader.all_runs(engine.store)], "the rest of the tree stays")


def test_the_end_of_a_child_is_handed_on_by_whoever_sees_it(open_sqlite: OpenEngine) -> None:
    """The process in which it ended died before it could wake the parent; another one sweeps."""
    first = open_sqlite()
    run = first.start(Nightly(waits=True))
    assert BEGUN["load"].wait(20)
    (child,) = children(first, run)
    first.close(0)  # its body is lost
    alone = open_sqlite(runner=None)
    worker = enlist(alone.store)
    HOLD["load"].set()
    eventually(lambda: work(alone.store, worker, runs=(child.id,)), "nothing of the child is READY")
    assert reader.require_run(alone.store, child.id).purpose == ENDED
    second = open_sqlite()
    taken = second.adopt(run.id).wait(30)
    assert statuses(taken)["imported"] == "COMPLETED"
    assert taken.output("imported") is None, "what the stand-in has settled"
    assert reader.require_run(second.store, child.id).purpose is None


class Endless(Workflow):
    depth: int = 0

    @step
    def again(self) -> Any:
        return Endless(depth=self.depth + 1)


def test_a_workflow_that_starts_itself_without_end_is_stopped(engine: Engine) -> None:
    run = engine.start(Endless(), run_id="endless")
    assert run.wait(60).status == "FAILED"
    rows = [*reader.all_runs(engine.store)]
    assert max(row.depth for row in rows) == MAX_DEPTH
    deepest = engine.get(next(row.id for row in rows if row.depth == MAX_DEPTH))
    error = deepest.node("again").error
    assert error is not None
    assert "Endless > Endless" in error.message


def test_a_child_run_is_worked_on_by_who_adopts_its_parent(open_sqlite: OpenEngine) -> None:
    first = open_sqlite(close_seconds=0.1)
    run = first.start(Nightly(waits=True))
    assert BEGUN["load"].wait(20)
    first.close(0.1)
    HOLD["load"].set()
    second = open_sqlite()
    assert second.adopt(run.id).wait(30).output("report") == 71


def test_a_fork_of_a_child_run_is_nobodys_child(engine: Engine) -> None:
    run = engine.run(Nightly())
    fork = engine.get(children(engine, run)[0].id).fork(at="load")
    assert fork.wait(30).output("load") == {"rows": 70}
    row = reader.require_run(engine.store, fork.id)
    assert (row.parent, row.parent_node, row.depth, row.purpose) == (None, None, 0, None)


def test_a_fork_shares_the_result_of_a_child_run(engine: Engine) -> None:
    run = engine.run(Nightly())
    fork = run.fork(at="report")
    assert fork.wait(30).output("report") == 71
    assert CALLS["load"] == 1


def test_a_replay_takes_the_result_from_the_record(engine: Engine) -> None:
    run = engine.run(Pure())
    replayed = run.replay()
    assert replayed.executed == ("find", "report")
    assert replayed.stubbed["imported"].startswith("performed by run ")


class Pure(Workflow, side_effects="pure"):
    @step
    def find(self) -> str:
        return "abc.csv"

    @step
    def imported(self, find: str) -> Import:
        return Import(file=find)

    @step
    def report(self, imported: dict[str, int]) -> int:
        return imported["rows"] + 1


class Isolated(Workflow):
    @step(isolation="process")
    def imported(self) -> Any:
        return Import(file="x")


def test_a_body_in_a_process_of_its_own_says_that_it_cannot(engine: Engine) -> None:
    run = engine.start(Isolated())
    assert run.wait(60).status == "FAILED"
    error = run.node("imported").error
    assert error is not None
    assert "leave out isolation='process'" in error.message


def test_a_large_child_is_loaded_and_runs(engine: Engine) -> None:
    w = Builder("outer")
    w.node("parts", job=many_parts)
    run = engine.run(w, wait=120)
    assert len(run.output("parts")) == 2_500


def many_parts() -> Builder:
    w = Builder("many")
    w.fan_out([*range(2_500)], job=one_row, args=lambda item: {"path": f"{item}"})
    return w
