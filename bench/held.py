"""What is stored must cost nobody anything who does not ask for it: paused work beside claims, ended runs beside lists."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from stepwell.base.ids import NodeId, RunId, WorkerId, new_claim_id
from stepwell.core.graph import Graph, NodeSpec
from stepwell.core.kernel.layout import add_graph
from stepwell.core.model import (
    AttemptStatus,
    Claim,
    Claimed,
    Create,
    Enlist,
    Finish,
    Gate,
    Lane,
    ListRuns,
    NodeStatus,
    Rewrite,
    RunStatus,
    Settle,
    Sweep,
)
from stepwell.core.store import Store
from stepwell.engine.procedures.gates import ask, load
from stepwell.engine.procedures.procedure import carry_out
from stepwell.stores import open_store

WORKER = WorkerId("bench")
RUNS = 300
HELD = 100_000
STORED = 100_000


def _wide(size: int) -> Graph:
    return Graph([NodeSpec(NodeId(f"n{number}"), f"n{number}", job="bench:nothing") for number in range(size)])


def _serves() -> tuple[tuple[str, str], ...]:
    return (("small", _wide(20).digest), ("large", _wide(HELD).digest))


def claims_beside_held_runs(folder: Path) -> tuple[float, float]:
    """Seconds of a claim and its settlements among 300 runs of mixed priority, without and with a paused run beside them."""
    without, beside = _store(folder / "without.db"), _store(folder / "beside.db")
    _pause_a_large_run(beside)
    serves = _serves()
    found = [(_one_claim(without, serves), _one_claim(beside, serves)) for _ in range(300)]
    for store in (without, beside):
        store.close()
    return statistics.median(one for one, _ in found), statistics.median(other for _, other in found)


def _store(path: Path) -> Store:
    store = open_store(f"sqlite:///{path}")
    graph = _wide(20)
    store.commit([*add_graph(graph, "small"), Enlist(WORKER, 3_600_000_000, b"{}")])
    creates = [
        Create(RunId(f"r{number}"), "small", None, graph.digest, b"{}", 1, priority=number % 7)
        for number in range(RUNS)
    ]
    store.commit(creates)
    return store


def _pause_a_large_run(store: Store) -> None:
    graph = _wide(HELD)
    for op in add_graph(graph, "large"):
        store.commit([op])
    store.commit([Create(RunId("held"), "large", None, graph.digest, b"{}", 1, priority=9)])
    carry_out(store, load(RunId("held")))
    gate: Gate = ask(RunId("held"), "pause")
    store.commit([gate, Rewrite(gate.run_id, gate.token, (), Finish(RunStatus.PAUSED, False, "paused"))])


def _one_claim(store: Store, serves: tuple[tuple[str, str], ...]) -> float:
    claim = Claim(new_claim_id(), WORKER, ((Lane("default", "thread"), 8),), serves=serves)
    return _timed(lambda: _work(store, claim))


def _work(store: Store, claim: Claim) -> None:
    claimed, _ = store.commit([claim, Sweep()])
    assert isinstance(claimed, Claimed)
    assert len(claimed.grants) == 8
    store.commit(
        [Settle(grant.attempt, AttemptStatus.COMPLETED, NodeStatus.COMPLETED, b"1") for grant in claimed.grants]
    )


def _timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def lists_among_stored_runs(folder: Path) -> dict[str, float]:
    """Seconds of the questions that people ask, with 100,000 runs stored."""
    store = open_store(f"sqlite:///{folder}/stored.db")
    graph = _wide(1)
    store.commit([*add_graph(graph, "small"), Enlist(WORKER, 3_600_000_000, b"{}")])
    for start in range(0, STORED, 2_000):
        store.commit(
            [
                Create(RunId(f"order-{number:06}"), "small", None, graph.digest, b"{}", 1)
                for number in range(start, start + 2_000)
            ]
        )
    questions = {
        "ls": ListRuns(),
        "ls --status failed": ListRuns(statuses=(RunStatus.FAILED,)),
        "ls --status pending": ListRuns(statuses=(RunStatus.PENDING,)),
        "a run by prefix": ListRuns(prefix="order-07777"),
        "gc": ListRuns(statuses=(RunStatus.COMPLETED, RunStatus.FAILED), ended_before=store.now(), limit=5_000),
    }
    found = {
        name: statistics.median(_timed(partial(store.read, [query])) for _ in range(5))
        for name, query in questions.items()
    }
    store.close()
    return found
