"""Forks: new runs that begin with what another run had done at some point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...base.codec import decode, encode
from ...base.ids import Digest, RunId, new_claim_id
from ...core.graph import Graph
from ...core.graph.order import reachable
from ...core.kernel.audit import Folded, earlier_graphs, fold
from ...core.kernel.plans import Plan
from ...core.model import (
    CONDITION,
    HEALED_LATE,
    AttemptStatus,
    GetRun,
    JournalRow,
    NodeRow,
    NodeStatus,
    Refusal,
    Refused,
    RunRow,
    RunStatus,
    Shared,
    ops,
)
from ...core.model.origin import is_origin
from .procedure import AskLimits, Commit, Procedure, Read, all_nodes, journal, load_graph

UNSTARTED = (NodeStatus.PENDING, NodeStatus.READY)
ORIGIN_DELETED = "origin_deleted"
"""The reason of a fork that could not begin."""


def fork_arguments(origin: RunRow, seq: int, before: int | None) -> bytes:
    """Where a fork begins: with what was done at `seq`, without the node `before` and what is below it.

    `created_at` tells the origin from a run that gets its id after it was deleted.
    """
    return encode({"origin": origin.id, "created_at": origin.created_at, "seq": seq, "before": before})


def share_all(gate: ops.Gate, run: RunRow) -> Procedure[Plan | None]:
    """Share what the origin had done, and plan the other nodes; None when somebody else holds the gate.

    If the origin was deleted meanwhile, the fork is cancelled.
    """
    arguments = decode(gate.arguments)
    origin, before = RunId(arguments["origin"]), arguments["before"]
    (theirs,) = yield Read([GetRun(origin)])
    if theirs is None or theirs.purpose == "delete" or not is_origin(theirs, run):
        return (yield from _give_up(run.id))
    graph = yield from load_graph(run.id, run.digest)
    folded, entries = yield from _at(origin, graph, arguments["seq"])
    left = set() if before is None else {before, *reachable([before], graph.children)}
    shared = [
        place
        for place, status in sorted(folded.attempts.items())
        if status is AttemptStatus.COMPLETED and place[0] not in left
    ]
    ((chunk, *_),) = yield AskLimits()
    for start in range(0, len(shared), chunk):
        op = ops.Share(run.id, gate.token, origin, new_claim_id(), tuple(shared[start : start + chunk]))
        (receipt,) = yield Commit([op])
        if isinstance(receipt, Refused) and receipt.reason is not Refusal.UNKNOWN:
            return None
        if not isinstance(receipt, Shared) or receipt.rows < len(op.rows):  # deleted just now, or about to be
            return (yield from _give_up(run.id))
    (theirs,) = yield Read([GetRun(origin)])
    if theirs is not None and not is_origin(theirs, run):  # perhaps another run was shared
        return (yield from _give_up(run.id))
    reasons = _reasons((yield from all_nodes(origin)), entries)
    nodes = yield from all_nodes(run.id)
    return Plan([*_others(nodes, graph, folded, left, reasons)], ops.Finish(RunStatus.PENDING, open_gate=True))


def preview_fork(origin: RunRow, seq: int, before: int | None) -> Procedure[tuple[Graph, list[int]]]:
    """Which nodes a fork from there would run, in the graph that it would have."""
    graph = yield from load_graph(origin.id, origin.digest)
    folded, _ = yield from _at(origin.id, graph, seq)
    left = set() if before is None else {before, *reachable([before], graph.children)}
    runs = [
        index
        for index, status in enumerate(folded.nodes)
        if index not in graph.removed and (index in left or status not in _KEPT)
    ]
    return graph, runs


_KEPT = (NodeStatus.COMPLETED, NodeStatus.SKIPPED)
"""What a fork takes over from its origin."""


def _reasons(nodes: list[NodeRow], entries: Sequence[JournalRow]) -> dict[int, str]:
    """Why nodes of the origin were skipped. What a heal skipped has another entry than what was skipped when it was claimed."""
    present = {row.index: row.reason for row in nodes if row.status is NodeStatus.SKIPPED}
    reasons: dict[int, str] = {}
    for entry in entries:
        if entry.index is not None and entry.status == NodeStatus.SKIPPED:
            claimed = present.get(entry.index) or CONDITION
            reasons[entry.index] = HEALED_LATE if entry.kind == "rewrote" else claimed
    return reasons


def _others(
    nodes: list[NodeRow], graph: Graph, folded: Folded, left: set[int], reasons: Mapping[int, str]
) -> list[ops.NodeChange]:
    """Nodes that will not run in the fork either: removed and skipped ones."""
    found = []
    for row in nodes:
        if row.status not in UNSTARTED:
            continue
        if row.index in graph.removed:
            found.append(ops.NodeChange.of(row, NodeStatus.CANCELLED, "removed"))
        elif folded.nodes[row.index] is NodeStatus.SKIPPED and row.index not in left:
            found.append(ops.NodeChange.of(row, NodeStatus.SKIPPED, reasons.get(row.index, CONDITION)))
    return found


def _give_up(run_id: RunId) -> Procedure[Plan]:
    idle = [row for row in (yield from all_nodes(run_id)) if row.status in UNSTARTED]
    changes = [ops.NodeChange.of(row, NodeStatus.CANCELLED, ORIGIN_DELETED) for row in idle]
    return Plan(changes, ops.Finish(RunStatus.CANCELLED, open_gate=False, reason=ORIGIN_DELETED))


def _at(origin: RunId, graph: Graph, seq: int) -> Procedure[tuple[Folded, list[JournalRow]]]:
    """The origin as it was at `seq`, and its history until then; `graph` is its present graph."""
    entries = yield from journal(origin, 2**60)
    digests = [Digest(digest) for digest in earlier_graphs(entries)]
    graphs: dict[str, Graph] = {}
    for digest in dict.fromkeys(digests):
        graphs[digest] = yield from load_graph(origin, digest)
    moved = len(earlier_graphs(entries[:seq]))
    then = graph if not digests else graphs[digests[max(0, moved - 1)]]
    folded = fold(then, entries[:seq], graphs)
    unknown = [NodeStatus.PENDING] * (len(graph.order) - len(folded.nodes))
    return folded._replace(nodes=[*folded.nodes, *unknown]), entries[:seq]
