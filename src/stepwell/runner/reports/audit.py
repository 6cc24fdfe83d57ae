"""Recompute every invariant of a stored run."""

from __future__ import annotations

from ...errors import StoreCorrupt
from ...graph import Graph
from ...ids import Digest, RunId
from ...kernel.audit import Stored, audit, earlier_graphs
from ...model import GetGraph, ListAttempts, ListJournal, ListNodes
from ...store import Store
from ...store.reader import whole_at_one_moment


def audit_run(store: Store, run_id: str) -> list[str]:
    """What is wrong with a run, read at one moment; an empty list means that every invariant holds."""
    run_key = RunId(run_id)
    asked = (ListNodes(run_key), ListAttempts(run_key), ListJournal(run_key))
    run, nodes, attempts, journal = whole_at_one_moment(store, run_key, *asked)
    digests = {run.digest, *map(Digest, earlier_graphs(journal))}
    documents = dict(zip(digests, store.read([GetGraph(digest) for digest in digests]), strict=True))
    missing = [digest for digest, document in documents.items() if document is None]
    if missing:
        raise StoreCorrupt(f"the graph {missing[0]} of run {run_id} is missing from the store")
    graphs = {digest: Graph.load(document) for digest, document in documents.items()}
    return audit(Stored(run, graphs[run.digest], nodes, attempts, journal, graphs))
