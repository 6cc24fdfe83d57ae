"""What procedures look up, page by page."""

from __future__ import annotations

from ...errors import StoreCorrupt
from ...graph import Graph
from ...ids import Digest, RunId
from ...model import JournalRow, ListJournal, ListNodes, NodeRow, RunNews, RunRow
from .procedure import LoadGraph, Procedure, Read


def news_of(row: RunRow) -> RunNews:
    """How a run stands, as receipts tell it."""
    return RunNews(row.id, row.status, row.gate, row.purpose, row.open, row.active, row.failed, row.seq)


def all_nodes(run_id: RunId) -> Procedure[list[NodeRow]]:
    nodes: list[NodeRow] = []
    query = ListNodes(run_id)
    while True:
        (page,) = yield Read([query])
        nodes += page
        if page.cursor is None:
            return nodes
        query = query._replace(after=page.cursor)


def journal(run_id: RunId, seq: int) -> Procedure[list[JournalRow]]:
    """The history of a run up to `seq`."""
    entries: list[JournalRow] = []
    while len(entries) < seq:
        (page,) = yield Read([ListJournal(run_id, after=len(entries))])
        if not page:
            break
        entries += page
    return entries[:seq]


def load_graph(run_id: RunId, digest: Digest) -> Procedure[Graph]:
    (graph,) = yield LoadGraph(digest)
    if graph is None:
        raise StoreCorrupt(f"the graph {digest} of run {run_id} is missing")
    return graph  # type: ignore[no-any-return]
