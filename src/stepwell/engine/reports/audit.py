"""Recompute every invariant of a stored run."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.ids import Digest, RunId
from ...core.kernel.audit import Stored, audit, earlier_graphs
from ...core.kernel.tree_audit import Tree, audit_tree
from ...core.model import ListAttempts, ListJournal, ListNodes, NodeRow, RunRow
from ...core.store import Store
from ...core.store.reader import get_run, whole_at_one_moment
from ..code.graphs import load_graph
from ..procedures.children import child_rows
from ..procedures.procedure import carry_out

TRIES = 4
"""How often to read again when the run moved meanwhile; then the last reading is used."""


def audit_run(store: Store, run_id: str) -> list[str]:
    """What is wrong with a run, or between it and the runs above and below it; empty if every invariant holds."""
    for _ in range(TRIES):
        stored = _read(store, RunId(run_id))
        tree = _read_tree(store, stored.run, stored.nodes)
        again = get_run(store, run_id)
        if again is None or again.seq == stored.run.seq:
            break
    return audit(stored) + audit_tree(tree)


def audit_alone(store: Store, run_id: str) -> list[str]:
    """The same of what a store promises: nothing about other runs, which procedures see to."""
    return audit(_read(store, RunId(run_id)))


def _read(store: Store, run_id: RunId) -> Stored:
    """All of a run, read at one moment."""
    asked = (ListNodes(run_id), ListAttempts(run_id), ListJournal(run_id))
    run, nodes, attempts, journal = whole_at_one_moment(store, run_id, *asked)
    digests = {run.digest, *map(Digest, earlier_graphs(journal))}
    graphs = {digest: load_graph(store, digest, run_id) for digest in digests}
    return Stored(run, graphs[run.digest], nodes, attempts, journal, graphs)


def _read_tree(store: Store, run: RunRow, nodes: Sequence[NodeRow]) -> Tree:
    children = carry_out(store, child_rows(run.id))
    has_parent = run.parent is not None and get_run(store, run.parent) is not None
    return Tree(run, nodes, children, has_parent, store.now())
