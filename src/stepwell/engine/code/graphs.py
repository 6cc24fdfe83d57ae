"""Graphs by digest, read from the store when they are first needed. The latest are kept."""

from __future__ import annotations

from ...base.ids import Digest, RunId
from ...core.graph import Graph, Outline
from ...core.kernel.layout import add_graph
from ...core.model import AddGraph, RunRow
from ...core.store import Store, reader
from ...errors import StoreCorrupt
from ..recent import Recent


def load_graph(store: Store, digest: Digest, run_id: RunId | None = None) -> Graph:
    """Read a graph; `run_id` is the run that has it, for the error when it is gone."""
    return Graph.load(_document(store, digest, run_id), digest)


def load_outline(store: Store, digest: Digest, run_id: RunId) -> Outline:
    """The same for what is only shown to people."""
    return Outline(_document(store, digest, run_id).decode())


def commit_graph(store: Store, graph: Graph, workflow: str) -> AddGraph:
    """Store a graph but for its last chunk, which is returned: most graphs have one chunk, committed with what needs it."""
    chunks = add_graph(graph, workflow, chunk=store.limits.nodes)
    last = next(chunks)
    for chunk in chunks:
        store.commit([last])
        last = chunk
        graph.drop_document()  # it went with the first
    return last


def _document(store: Store, digest: Digest, run_id: RunId | None) -> bytes:
    document = reader.get_graph(store, digest)
    if document is None:
        of_run = f" of run {run_id}" if run_id else ""
        raise StoreCorrupt(f"the graph {digest}{of_run} is missing from the store")
    return document


class Graphs:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: Recent[str, Graph] = Recent(128)

    def add(self, graph: Graph) -> None:
        """Keep a graph that is stored."""
        self._kept[graph.digest] = graph

    def recall(self, graph: Graph) -> None:
        """Reuse the order of an equal graph that is kept."""
        known = self._kept.get(graph.digest)
        if known is not None and known is not graph:
            graph.take_over(known)

    def known(self, digest: Digest) -> Graph | None:
        """The graph if it is kept. Reads nothing."""
        return self._kept.get(digest)

    def get(self, digest: Digest, run_id: RunId | None = None) -> Graph:
        found = self._kept.get(digest)
        if found is None:
            found = self._kept[digest] = load_graph(self._store, digest, run_id)
        return found

    def of(self, row: RunRow) -> Graph:
        return self.get(row.digest, row.id)
