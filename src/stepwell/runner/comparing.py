"""Reading two runs to compare them. Of their outputs only hashes are kept, and some of those that differ are read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

from ..clock import SECOND
from ..codec import sha256
from ..graph import Graph
from ..kernel.comparing import Comparison, NodeFacts, Pair, Side, compare, json_changes
from ..model import AttemptRow, AttemptStatus, ListAttempts, RunRow
from ..store import Store, reader

SHOWN_OUTPUTS = 20
"""Nodes whose different outputs are looked into."""
_PAGE = 1_000


class Source(NamedTuple):
    """Where a run is read from."""

    store: Store
    run_id: str
    graph_of: Callable[[RunRow], Graph]


def compare_runs(first: Source, second: Source) -> Comparison:
    """Two runs, of one store or of two."""
    sides = _side(first), _side(second)
    found = compare(*sides)
    shown = 0
    pairs: list[Pair] = []
    for pair in found.pairs:
        if "output" in pair.differs and shown < SHOWN_OUTPUTS:
            shown += 1
            outputs = (_output(store, side, pair) for (store, *_), side in zip((first, second), sides, strict=True))
            pairs.append(pair._replace(output=json_changes(*outputs)))
        else:
            pairs.append(pair)
    return found._replace(pairs=tuple(pairs))


def _side(source: Source) -> Side:
    store, run_id, graph_of = source
    row = reader.require_run(store, run_id)
    outputs, seconds = _attempts(store, row)
    nodes = reader.all_nodes(store, run_id)
    graph = graph_of(reader.require_run(store, run_id))  # after the rows: going over to another graph only adds numbers
    facts = {
        node.id: NodeFacts(node.status, node.attempt, seconds.get(node.index), outputs.get(node.index))
        for node in sorted(nodes, key=lambda node: graph.ranks[node.index])
        if node.index not in graph.removed
    }
    taken = None if row.ended_at is None else (row.ended_at - (row.started_at or row.created_at)) / SECOND
    return Side(row.id, row.workflow, row.status, taken, row.input, graph, facts)


def _attempts(store: Store, row: RunRow) -> tuple[dict[int, str], dict[int, float]]:
    """By node: a hash of its output, and how long its ended attempts took together."""
    outputs: dict[int, str] = {}
    seconds: dict[int, float] = {}
    query = ListAttempts(row.id, limit=_PAGE)
    while True:
        page = cast("tuple[AttemptRow, ...]", store.read([query])[0])
        for attempt in page:
            if attempt.ended_at is not None:
                taken = (attempt.ended_at - attempt.started_at) / SECOND
                seconds[attempt.index] = seconds.get(attempt.index, 0.0) + taken
            if attempt.status is AttemptStatus.COMPLETED:
                outputs[attempt.index] = sha256(attempt.output or b"null")
        if len(page) < _PAGE:
            return outputs, seconds
        query = query._replace(after=(page[-1].index, page[-1].number))


def _output(store: Store, side: Side, pair: Pair) -> bytes | None:
    facts = side.nodes.get(pair.id)
    if facts is None or facts.output is None:
        return None
    index = side.graph.index[pair.id]
    return reader.get_outputs(store, side.run_id, (index,)).get(index) or b"null"
