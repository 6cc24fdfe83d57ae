"""Recompute every invariant of a stored run."""

from __future__ import annotations

from ...base.ids import Digest, RunId
from ...core.kernel.audit import Stored, audit, earlier_graphs
from ...core.model import ListAttempts, ListJournal, ListNodes
from ...core.store import Store
from ...core.store.reader import whole_at_one_moment
from ..code.graphs import load_graph


def audit_run(store: Store, run_id: str) -> list[str]:
    """What is wrong with a run, read at one moment; an empty list means that every invariant holds."""
    run_key = RunId(run_id)
    asked = (ListNodes(run_key), ListAttempts(run_key), ListJournal(run_key))
    run, nodes, attempts, journal = whole_at_one_moment(store, run_key, *asked)
    digests = {run.digest, *map(Digest, earlier_graphs(journal))}
    graphs = {digest: load_graph(store, digest, run_key) for digest in digests}
    return audit(Stored(run, graphs[run.digest], nodes, attempts, journal, graphs))
