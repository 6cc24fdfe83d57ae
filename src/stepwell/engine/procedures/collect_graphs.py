"""Deletes graphs that nobody needs. Those that a run has or had, or whose age still matters, stay."""

from __future__ import annotations

from collections.abc import Iterator

from ...base.ids import Digest
from ...core.graph import Graph
from ...core.model import Deleted, DeleteGraph, ListRuns
from ...core.store import Store, reader
from ...core.store.living import served

GRACE = 600_000_000
"""Microseconds. A graph that was stored lately may be about to get its run."""


def collect_graphs(store: Store, *, grace: int = GRACE) -> int:
    """Delete the graphs that no run has or had, chunk by chunk; how many were deleted."""
    return sum(_delete(store, digest) for digest in unneeded_graphs(store, grace=grace))


def unneeded_graphs(store: Store, *, grace: int = GRACE) -> Iterator[Digest]:
    announced = {digest for _, digest in served(store)}
    for digest, workflow in reader.unused_graphs(store, store.now() - grace):
        if digest not in announced and not _tells_an_age(store, digest, workflow):
            yield digest


def _tells_an_age(store: Store, digest: Digest, workflow: str) -> bool:
    """The version that was stored first is the older one: while there are runs of a class, all of them are kept."""
    document = reader.get_graph(store, digest)
    if document is None:  # it is not whole: somebody has begun to delete it
        return False
    graph = Graph.load(document)
    is_version = graph.follows == digest and any(spec.job is None for spec in graph)
    return is_version and bool(reader.list_runs(store, ListRuns(1, workflow=workflow)).runs)


def _delete(store: Store, digest: Digest) -> bool:
    while True:
        (receipt,) = store.commit([DeleteGraph(digest)])
        if not isinstance(receipt, Deleted):
            return False  # somebody has just created a run of it
        if receipt.finished:
            return True
