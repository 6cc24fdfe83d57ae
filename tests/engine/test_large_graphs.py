"""A graph of 100,000 nodes is built, frozen, loaded and stored in seconds, and stored once for all its runs.

Each thing here takes a second or three; the limits are for slow machines.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw
import pytest

from stepwell import Builder
from stepwell.core.graph import Graph, from_frozen, to_frozen
from stepwell.core.store import reader
from stepwell.core.store.memory import MemoryStore
from stepwell.engine.code.graphs import commit_graph
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.sizes import in_seconds, sized

pytestmark = pytest.mark.full_size

SIZE = sized(100_000)

Made = TypeVar("Made")


def in_time(what: str, work: Callable[[], Made]) -> Made:
    with in_seconds(20, what):
        return work()


def fan() -> Builder:
    w = Builder("fan")
    w.node("first", job=jobs.nothing)
    w.fan_out(range(SIZE - 2), job=jobs.same, timeout=30)
    w.node("last", job=jobs.nothing)
    return w


def test_a_large_graph_is_built_frozen_and_loaded_in_seconds() -> None:
    graph = in_time("building it", lambda: fan().graph())
    document = in_time("its document", lambda: graph.document)
    assert in_time("loading it", lambda: Graph.load(document)).digest == graph.digest
    text = in_time("freezing it", lambda: json.dumps(to_frozen(graph, 0)))
    loaded = in_time("loading the frozen form", lambda: from_frozen(text))
    assert len(loaded) == SIZE
    assert loaded.digest == graph.digest


def test_the_document_of_a_graph_that_is_stored_in_chunks_is_not_kept() -> None:
    def names(of: Graph) -> list[str]:
        return [spec.name for spec in of]

    store, graph = MemoryStore(), fan().graph()
    assert store.limits.nodes < SIZE
    store.commit([commit_graph(store, graph, "fan")])
    assert "document" not in vars(graph)
    stored = reader.get_graph(store, graph.digest)
    assert stored is not None
    assert names(Graph.load(stored)) == names(graph)
    assert graph.document == stored


def test_a_large_graph_is_stored_once_for_all_its_runs(open_sqlite: OpenEngine, tmp_path: Path) -> None:
    def rows() -> dict[str, int]:
        database = apsw.Connection(f"{tmp_path}/stepwell.db")
        tables = ("graph", "document", "layout", "edge", "node")
        found = {table: database.execute(f"SELECT count(*) FROM {table}").get for table in tables}
        database.close()
        return found

    engine, w = open_sqlite(runner=None), fan()
    in_time("starting a run", lambda: engine.start(w))
    once = {"graph": 1, "document": 1, "layout": SIZE, "edge": 2 * (SIZE - 2)}
    assert rows() == {**once, "node": SIZE}
    in_time("starting another", lambda: engine.start(w))
    assert rows() == {**once, "node": 2 * SIZE}
    in_time("starting one elsewhere, built anew", lambda: open_sqlite(runner=None).start(fan()))
    assert rows() == {**once, "node": 3 * SIZE}
