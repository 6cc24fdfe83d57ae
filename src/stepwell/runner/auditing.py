"""Recompute every invariant of a stored run."""

from __future__ import annotations

from ..errors import RunNotFound, StoreCorrupt
from ..graph import Graph
from ..ids import RunId
from ..kernel.audit import Stored, audit
from ..model import GetGraph, GetRun, ListAttempts, ListJournal, ListNodes
from ..store import Store

_ALL = 2**40


def audit_run(store: Store, run_id: str) -> list[str]:
    """What is wrong with a run, read at one moment; an empty list means that every invariant holds."""
    run_key = RunId(run_id)
    run, nodes, attempts, journal = store.read(
        [
            GetRun(run_key),
            ListNodes(run_key, limit=_ALL),
            ListAttempts(run_key, limit=_ALL),
            ListJournal(run_key, limit=_ALL),
        ]
    )
    if run is None:
        raise RunNotFound(run_id)
    (document,) = store.read([GetGraph(run.digest)])
    if document is None:
        raise StoreCorrupt(f"the graph {run.digest} of run {run_id} is missing from the store")
    return audit(Stored(run, Graph.load(document), nodes, attempts, journal))
