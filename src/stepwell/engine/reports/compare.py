"""Reads two runs to compare them. Only hashes of outputs and deltas are kept; some that differ are read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...base.clock import SECOND
from ...base.codec import sha256
from ...core.graph import Graph
from ...core.model import AttemptStatus, RunRow
from ...core.model.outputs import delta_of, output_of
from ...core.store import Store, reader
from ...history.comparing import Comparison, NodeFacts, Pair, Side, compare
from ...history.differences import json_changes

SHOWN_OUTPUTS = 20
"""How many nodes to show with what differs in their outputs and deltas."""
_PAGE = 1_000


class RunSource(NamedTuple):
    """Where a run is read from."""

    store: Store
    run_id: str
    graph_of: Callable[[RunRow], Graph]


def compare_runs(first: RunSource, second: RunSource) -> Comparison:
    """Two runs, of one store or of two."""
    sides = _side(first), _side(second)
    found = compare(*sides)
    shown = 0
    pairs: list[Pair] = []
    for pair in found.pairs:
        if not {"output", "delta"}.isdisjoint(pair.differs) and shown < SHOWN_OUTPUTS:
            shown += 1
            given = [_given(store, side, pair) for (store, *_), side in zip((first, second), sides, strict=True)]
            outputs, deltas = zip(*given, strict=True)
            pairs.append(pair._replace(output=json_changes(*outputs), delta=json_changes(*deltas)))
        else:
            pairs.append(pair)
    return found._replace(pairs=tuple(pairs))


def _side(source: RunSource) -> Side:
    store, run_id, graph_of = source
    row = reader.require_run(store, run_id)
    hashes, seconds = _attempts(store, row)
    nodes = reader.all_nodes(store, run_id)
    graph = graph_of(reader.require_run(store, run_id))  # after the rows: switching to another graph only adds numbers
    facts = {
        node.id: NodeFacts(node.status, node.attempt, seconds.get(node.index), *hashes.get(node.index, (None, None)))
        for node in sorted(nodes, key=lambda node: graph.ranks[node.index])
        if node.index not in graph.removed
    }
    taken = None if row.ended_at is None else (row.ended_at - (row.started_at or row.created_at)) / SECOND
    return Side(row.id, row.workflow, row.status, taken, row.input, graph, facts)


def _attempts(store: Store, row: RunRow) -> tuple[dict[int, tuple[str, str | None]], dict[int, float]]:
    """By node: hashes of its output and its delta, and the total time of its ended attempts."""
    hashes: dict[int, tuple[str, str | None]] = {}
    seconds: dict[int, float] = {}
    for attempt in reader.each_attempt(store, row.id, limit=_PAGE):
        if attempt.ended_at is not None:
            taken = (attempt.ended_at - attempt.started_at) / SECOND
            seconds[attempt.index] = seconds.get(attempt.index, 0.0) + taken
        if attempt.status is AttemptStatus.COMPLETED:
            output, delta = _parts(attempt.output)
            hashes[attempt.index] = sha256(output), None if delta is None else sha256(delta)
    return hashes, seconds


def _parts(stored: bytes | None) -> tuple[bytes, bytes | None]:
    """The output of a completed node, and its delta if it has one."""
    return (b"null", None) if not stored else (output_of(stored), delta_of(stored))


def _given(store: Store, side: Side, pair: Pair) -> tuple[bytes | None, bytes | None]:
    """Read the output and the delta of a node again."""
    facts = side.nodes.get(pair.id)
    if facts is None or facts.output is None:
        return None, None
    index = side.graph.index[pair.id]
    return _parts(reader.get_stored_outputs(store, side.run_id, (index,)).get(index))
