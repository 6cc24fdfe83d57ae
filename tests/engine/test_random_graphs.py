"""Whatever the graph, the number of workers and the timing: a legal order, nothing lost, the same outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell import Engine, Run
from tests.conformance.audit import audit
from tests.engine.graphs import random_graph, worlds

WORKERS = (1, 4, 16)


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, Engine]]:
    folder = tmp_path_factory.mktemp("random")
    opened = {
        workers: Engine(f"sqlite:///{folder}/{workers}.db", max_concurrent_nodes=workers, queue_depth=workers)
        for workers in WORKERS
    }
    try:
        yield opened
    finally:
        for engine in opened.values():
            engine.close()


@pytest.fixture(autouse=True)
def nothing_is_left_behind(engines: Any) -> None:
    """These engines outlive the tests of this file."""


def by_id(run: Run) -> dict[str, Any]:
    outputs = run.outputs
    return {node: outputs[node] for node in run.graph.order}


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_every_graph_runs_in_a_legal_order_to_the_same_outputs(engines: dict[int, Engine], seed: int) -> None:
    for workers, engine in engines.items():
        world = f"{seed}-{workers}"
        drawn = random_graph(seed, world)
        run = engine.run(drawn.builder, wait=30)
        assert by_id(run) == drawn.expected
        entries = worlds.pop(world).entries
        assert entries == {(run.id, node): 1 for node in drawn.expected}


def test_the_stores_agree_with_themselves_afterwards(engines: dict[int, Engine]) -> None:
    for engine in engines.values():
        audit(engine.store)


def test_many_random_graphs_at_once(engines: dict[int, Engine]) -> None:
    for workers, engine in engines.items():
        drawn = [random_graph(seed, f"many-{workers}", delays=False) for seed in range(60)]
        runs = [engine.start(each.builder) for each in drawn]
        for run, each in zip(runs, drawn, strict=True):
            assert by_id(run.wait(60)) == each.expected
        assert set(worlds.pop(f"many-{workers}").entries.values()) == {1}
        audit(engine.store)
