"""What must hold of the rows of any store, whatever was asked of it, checked by reading them."""

from __future__ import annotations

from collections import Counter

from ..graph import Graph
from ..kernel.counters import counts, parent_counters
from ..model import AttemptStatus, GateState, NodeRow, NodeStatus, RunRow
from ..store import Store, reader


def audit(store: Store) -> None:
    """Every run of the store agrees with itself."""
    for run in list(reader.all_runs(store)):
        if run.purpose not in ("load", "delete"):
            audit_run(store, run)


def audit_run(store: Store, run: RunRow) -> None:
    nodes = reader.all_nodes(store, run.id)
    assert len(nodes) == run.nodes, f"{run.id} has {len(nodes)} of {run.nodes} nodes"
    assert counts(nodes) == (run.open, run.active, run.failed), f"{run.id}: the counts of the run are not its rows'"
    assert reader.count_nodes(store, run.id) == Counter(node.status for node in nodes)
    _audit_counters(store, run, nodes)
    _audit_attempts(store, run, nodes)
    journal = reader.list_journal(store, run.id)
    assert [entry.seq for entry in journal] == list(range(1, run.seq + 1)), f"{run.id}: the journal has a gap"
    ended = run.ended_at is not None
    assert ended == run.status.terminal, f"{run.id} is {run.status} and ended at {run.ended_at}"


def _audit_counters(store: Store, run: RunRow, nodes: list[NodeRow]) -> None:
    """Counters may lag only while the gate is closed: opening it derives them anew."""
    document = reader.get_graph(store, run.digest)
    assert document is not None, f"the graph of {run.id} is gone"
    derived = parent_counters(nodes, Graph.load(document).parents)
    for node, (waiting, live) in zip(nodes, derived, strict=True):
        assert node.waiting >= 0, f"{run.id} {node}"
        if run.gate is GateState.OPEN:
            assert (node.waiting, node.live) == (waiting, live), f"{run.id} {node}: counters say otherwise"
            assert node.status is not NodeStatus.READY or waiting == 0, f"{run.id} {node}: ready before its parents"
            assert node.status is not NodeStatus.PENDING or waiting > 0, f"{run.id} {node}: forgotten"


def _audit_attempts(store: Store, run: RunRow, nodes: list[NodeRow]) -> None:
    attempts = reader.list_attempts(store, run.id)
    running = Counter(attempt.index for attempt in attempts if attempt.status is AttemptStatus.RUNNING)
    done = Counter(attempt.index for attempt in attempts if attempt.status is AttemptStatus.COMPLETED)
    workers = {worker.id for worker in reader.list_workers(store)}
    numbers: dict[int, list[int]] = {node.index: [] for node in nodes}
    for attempt in attempts:
        numbers[attempt.index].append(attempt.number)
        assert (attempt.ended_at is None) == (attempt.status is AttemptStatus.RUNNING), f"{run.id} {attempt}"
        assert attempt.ended_at is not None or attempt.worker in workers, f"{run.id} {attempt} stands under no lease"
    for node in nodes:
        assert numbers[node.index] == list(range(1, node.attempt + 1)), f"{run.id} {node}: {numbers[node.index]}"
        assert running[node.index] == (node.status is NodeStatus.RUNNING), f"{run.id} {node}: {running[node.index]}"
        assert done[node.index] <= 1, f"{run.id} {node} completed twice"
        assert not done[node.index] or node.status is NodeStatus.COMPLETED, f"{run.id} {node} completed before"
        assert (node.due_at is not None) == (node.status is NodeStatus.WAITING), f"{run.id} {node}"
