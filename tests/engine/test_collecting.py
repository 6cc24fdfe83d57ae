"""Graphs are collected when no run needs them any more, and never before."""

from __future__ import annotations

import threading
from pathlib import Path

from stepwell import Builder, Engine, Workflow, step
from stepwell.core.model import Deleted, DeleteGraph
from stepwell.core.store import Store, reader
from stepwell.engine.procedures.collect_graphs import collect_graphs, unneeded_graphs
from tests.engine import jobs
from tests.engine.conftest import OpenEngine


def builder(size: int) -> Builder:
    made = Builder("mutations")
    made.fan_out(range(size), job=jobs.same, args=lambda item: {"item": item})
    return made


class Ages(Workflow):
    @step
    def first(self) -> None: ...


def tables(path: Path) -> dict[str, int]:
    import apsw

    db = apsw.Connection(str(path))
    names = ("graph", "document", "layout", "edge", "need", "former_graph", "ready", "run", "node", "journal")
    found = {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}  # type: ignore[index]
    db.close()
    return found


def test_what_deleted_runs_leave_behind_is_collected(open_sqlite: OpenEngine, tmp_path: Path) -> None:
    engine = open_sqlite()
    for size in (1, 3, 5):
        engine.run(builder(size), run_id=f"r{size}")
    assert collect_graphs(engine.store, grace=0) == 0
    engine.get("r3").delete()
    assert collect_graphs(engine.store, grace=0) == 1
    engine.get("r1").delete()
    engine.get("r5").delete()
    assert collect_graphs(engine.store) == 0, "it may just be about to get its run"
    assert collect_graphs(engine.store, grace=-1) == 2
    assert set(tables(tmp_path / "stepwell.db").values()) == {0}
    assert engine.run(builder(3)).status == "COMPLETED"


def test_a_graph_that_was_collected_is_stored_again_when_it_is_needed(open_engine: OpenEngine) -> None:
    engine = open_engine(runner=None)
    engine.start(builder(3), run_id="a")
    digest = engine.get("a").row.digest
    with Engine(engine.store) as worker:
        worker.adopt("a").wait(20)
        worker.get("a").delete()
        assert list(unneeded_graphs(worker.store, grace=-1)) == [digest]
        assert collect_graphs(worker.store, grace=-1) == 1
        assert worker.run(builder(3), run_id="b").status == "COMPLETED"


def test_versions_of_a_class_stay_while_there_are_runs_of_it(engine: Engine) -> None:
    engine.run(Ages(), run_id="r")
    engine.get("r").delete()
    assert list(unneeded_graphs(engine.store, grace=-1)) == [], "a live worker runs this version"
    engine.close()


def test_an_old_version_of_a_class_tells_its_age(open_sqlite: OpenEngine) -> None:
    looking = open_sqlite(runner=None)
    run = looking.start(Ages(), run_id="r")
    other = type("Ages", (Workflow,), {"first": step(lambda self: None), "second": step(lambda self: None)})
    from stepwell.core.kernel.layout import add_graph

    looking.store.commit([*add_graph(other.workflow_graph(), "Ages")])  # type: ignore[attr-defined]
    assert list(unneeded_graphs(looking.store, grace=-1)) == []
    run.cancel()
    run.delete()
    assert len(list(unneeded_graphs(looking.store, grace=-1))) == 2


def test_a_run_that_is_created_while_its_graph_is_collected_gets_it(open_sqlite: OpenEngine) -> None:
    engine = open_sqlite(runner=None)
    size = 4_500  # several chunks
    engine.start(builder(size), run_id="first")
    digest = engine.get("first").row.digest
    engine.get("first").cancel()
    engine.get("first").delete()
    stop = threading.Event()

    def collect(store: Store) -> None:
        while not stop.is_set():
            store.commit([DeleteGraph(digest, 1_000)])

    collector = threading.Thread(target=collect, args=(engine.store,))
    collector.start()
    try:
        run = engine.start(builder(size), run_id="second")
    finally:
        stop.set()
        collector.join()
    assert reader.get_graph(engine.store, digest) is not None
    assert run.row.nodes == size
    (receipt,) = engine.store.commit([DeleteGraph(digest)])
    assert not isinstance(receipt, Deleted)
