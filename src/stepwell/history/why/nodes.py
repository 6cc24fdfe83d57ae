"""Why a node has its status."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, assert_never

from ...answers.causes import CauseKind
from ...base.clock import SECOND
from ...base.ids import NodeId
from ...core.graph import Graph, Outline
from ...core.kernel.healing import REMOVED
from ...core.model import (
    CONDITION,
    FAILED_NODES,
    HEALED_LATE,
    PARENT_SKIPPED,
    PARENTS_SKIPPED,
    RUN_VERBS,
    SATISFIED_NODES,
    AttemptStatus,
    NodeRow,
    NodeStatus,
    RunRow,
    was_skipped,
)
from .attempts import attempt_cause, last_ended, postponements, reasons_to_run
from .children import ended_child, waits_for_run
from .records import BEGINNINGS, Facts, KnownNode, WhyCause
from .run_state import gate_causes, request_causes, unserved_queue, unserved_run

FEW_PARENTS = 16
"""Parents that are looked at one by one; with more, the counter of the node says how many are open."""
TIMED_PARENTS = 1_000
"""Parents among which the last to complete is looked for."""
NAMED = 3
"""How many of several nodes are named."""
_PATH_UP_TO = 4
"""Nodes of a path that are listed one by one; the middle of a longer one is left out."""
_UPSTREAM = "upstream: "


class RowsToRead(NamedTuple):
    """The rows that explain a node, besides its own."""

    nodes: tuple[NodeId, ...] = ()
    """Other nodes."""
    ended: tuple[NodeId, ...] = ()
    """Nodes whose completion is looked up."""
    blockers: bool = False
    """Ancestors that block it."""
    broken: bool = False
    """Nodes that failed for good, anywhere in the run."""
    skipped: bool = False
    """Nodes above it whose conditions did not hold, with which it was skipped."""


def rows_to_read(run: RunRow, graph: Graph, row: NodeRow) -> RowsToRead:
    spec = graph.nodes.get(row.id)
    parents = () if spec is None else spec.depends_on
    match row.status:
        case NodeStatus.PENDING:
            return RowsToRead(nodes=parents if len(parents) <= FEW_PARENTS else (), blockers=True)
        case NodeStatus.READY | NodeStatus.RUNNING | NodeStatus.COMPLETED:
            return RowsToRead(ended=parents if len(parents) <= TIMED_PARENTS else ())
        case NodeStatus.UPSTREAM_FAILED:
            return RowsToRead(nodes=tuple(node for node in (_failed_ancestor(row),) if node in graph.nodes))
        case NodeStatus.CANCELLED:
            return RowsToRead(broken=_cancelled_by(run, row, graph) == "run_failed")
        case NodeStatus.SKIPPED:
            return RowsToRead(skipped=row.reason in (PARENTS_SKIPPED, PARENT_SKIPPED))
        case NodeStatus.WAITING | NodeStatus.FAILED | NodeStatus.INTERRUPTED:
            return RowsToRead()
        case _:
            assert_never(row.status)


def why_node(facts: Facts, node: str) -> WhyCause:
    """Why this node, which is among the facts, has its status; `because` leads to the root."""
    read_node = facts.nodes[node]
    return _WHY[read_node.row.status](facts, read_node)


def _pending(facts: Facts, node: KnownNode) -> WhyCause:
    row, parents = node.row, facts.parents(node.row.id)
    read = [facts.nodes[parent].row for parent in parents if parent in facts.nodes]
    below = above(facts.graph, row.id) if facts.blockers else {}
    paths = [_path_up(below, row.id, blocker) for blocker in facts.blockers if blocker in below]
    if len(read) == len(parents):
        names = [facts.name(parent.id) for parent in read if parent.status not in SATISFIED_NODES]
        waiting = len(names)
    else:
        names = list(dict.fromkeys(facts.name(path[0]) for path in paths))
        waiting = row.waiting
    detail = {
        "waiting": waiting,
        "parents": len(parents),
        "names": names[:NAMED],
        "doomed": not facts.run.status.paused
        and any(facts.nodes[path[-1]].row.status in FAILED_NODES for path in paths),
    }
    because = gate_causes(facts) + _tree(facts, [_shortened(path) for path in paths])
    return _cause(facts, node, CauseKind.WAITS_FOR_PARENTS, detail, because)


def above(graph: Graph | Outline, node: str) -> dict[NodeId, NodeId]:
    """Every ancestor of a node, with the next node on a shortest path down to it."""
    below: dict[NodeId, NodeId] = {}
    queue = deque([NodeId(node)])
    while queue:
        at = queue.popleft()
        spec = graph.nodes.get(at)
        for parent in () if spec is None else spec.depends_on:
            if parent not in below:
                below[parent] = at
                queue.append(parent)
    return below


def _path_up(below: Mapping[NodeId, NodeId], node: str, ancestor: NodeId) -> list[NodeId]:
    """The nodes from below `node` up to `ancestor`, which is the last."""
    path = [ancestor]
    while (nearer := below[path[-1]]) != node:
        path.append(nearer)
    return path[::-1]


class _Stop(NamedTuple):
    """A node on a path, and how many were left out before it."""

    node: NodeId
    skipped: int = 0


def _shortened(path: Sequence[NodeId]) -> list[_Stop]:
    if len(path) <= _PATH_UP_TO:
        return [_Stop(node) for node in path]
    return [_Stop(path[0]), _Stop(path[1]), _Stop(path[-1], len(path) - 3)]


def _tree(facts: Facts, paths: Sequence[Sequence[_Stop]]) -> tuple[WhyCause, ...]:
    """Paths that begin alike are joined up to where they part."""
    branches: dict[_Stop, list[Sequence[_Stop]]] = {}
    for path in paths:
        branches.setdefault(path[0], []).append(path[1:])
    causes = []
    for stop, rests in branches.items():
        on = [rest for rest in rests if rest]
        if not on:
            causes.append(why_node(facts, stop.node).without(*BEGINNINGS))
            continue
        names = list(dict.fromkeys(facts.name(rest[0].node) for rest in on))
        own = facts.nodes.get(stop.node)
        detail = {
            "waiting": None if own is None else own.row.waiting,
            "parents": len(facts.parents(stop.node)),
            "names": names,
            "skipped": max(rest[0].skipped for rest in on),
        }
        causes.append(
            WhyCause(
                CauseKind.WAITS_FOR_PARENTS, stop.node, facts.name(stop.node), detail=detail, because=_tree(facts, on)
            )
        )
    return tuple(causes)


def _ready(facts: Facts, node: KnownNode) -> WhyCause:
    row = node.row
    unserved = unserved_run(facts) or unserved_queue(facts, row.lane.queue)
    if because := gate_causes(facts):
        pass
    elif unserved is not None:
        because = (unserved,)
    elif row.lane.suspect:
        because = (WhyCause(CauseKind.ALONE, detail={"losses": row.losses}),)
    else:
        because = (WhyCause(CauseKind.BUSY, detail={"workers": len(facts.workers)}),)
    before = reasons_to_run(facts, node, row.attempt + 1)
    again = tuple(cause for cause in before if cause.kind not in BEGINNINGS)
    return _cause(facts, node, CauseKind.READY, {}, because + again, at=_ready_since(facts, node, before))


def _ready_since(facts: Facts, node: KnownNode, before: tuple[WhyCause, ...]) -> int | None:
    """The latest time of what it had to wait for, as far as it is known."""
    if not before:
        return None
    times = [cause.at for cause in before] + [entry.at for entry in facts.history if entry.index == node.row.index]
    return max((time for time in times if time is not None), default=None)


def _running(facts: Facts, node: KnownNode) -> WhyCause:
    row, spec = node.row, facts.spec(node.row.id)
    attempt = next(
        (candidate for candidate in reversed(node.attempts) if candidate.status is AttemptStatus.RUNNING), None
    )
    if attempt is None:  # it ended between two reads
        return _cause(facts, node, CauseKind.RUNNING, {}, ())
    worker = next((candidate for candidate in facts.workers if candidate.id == attempt.worker), None)
    detail = {
        "worker": attempt.worker,
        "host": None if worker is None else worker.host,
        "pid": None if worker is None else worker.pid,
        "timeout": None if spec is None else spec.timeout,
        "stopping": facts.run.stopping,
        "gone": worker is None,
    }
    if worker is None:
        promise = {"on_lost": "rerun" if spec is None else spec.on_lost}
        lost_worker = WhyCause(CauseKind.WORKER_GONE, row.id, facts.name(row.id), attempt.number, detail=promise)
        unserved = unserved_run(facts)
        because: tuple[WhyCause, ...] = (lost_worker,) if unserved is None else (lost_worker, unserved)
    else:
        because = reasons_to_run(facts, node, attempt.number)
    return _cause(facts, node, CauseKind.RUNNING, detail, because, at=attempt.started_at, attempt=attempt.number)


def _waiting(facts: Facts, node: KnownNode) -> WhyCause:
    if node.row.parked:
        return waits_for_run(facts, node)
    row, last, most = node.row, last_ended(node), _most_attempts(facts, node)
    overdue = row.due_at is not None and row.due_at <= facts.now
    retried = last is not None and last.status in (AttemptStatus.FAILED, AttemptStatus.TIMED_OUT)
    detail = {
        "reason": row.reason,
        "tries": (row.attempt if most is None else row.failures) + 1 if retried else None,
        "of": most if retried else None,
        "overdue": overdue,
    }
    because: tuple[WhyCause, ...] = () if last is None else (attempt_cause(facts, node, last),)
    because += gate_causes(facts)
    unserved = unserved_run(facts) if overdue and not gate_causes(facts) else None
    because += () if unserved is None else (unserved,)
    return _cause(
        facts,
        node,
        CauseKind.WAITS_UNTIL,
        detail,
        because,
        at=row.due_at,
        attempt=row.attempt + 1 if retried else None,
    )


def _completed(facts: Facts, node: KnownNode) -> WhyCause:
    attempt = next(
        (candidate for candidate in reversed(node.attempts) if candidate.status is AttemptStatus.COMPLETED), None
    )
    if attempt is None:
        return _cause(facts, node, CauseKind.COMPLETED, {}, ())
    took = None if attempt.ended_at is None else (attempt.ended_at - attempt.started_at) / SECOND
    because = reasons_to_run(facts, node, attempt.number)
    detail = {"seconds": took} | ({} if node.child is None else {"run": node.child})
    return _cause(facts, node, CauseKind.COMPLETED, detail, because, at=attempt.ended_at, attempt=attempt.number)


def _failed(facts: Facts, node: KnownNode) -> WhyCause:
    row, last = node.row, last_ended(node)
    most, spec = _most_attempts(facts, node), facts.spec(node.row.id)
    postponed = None if last is None else postponements(last)
    of_child = () if last is None else ended_child(facts, node, last)
    if row.reason is not None:
        verdict = row.reason
    elif postponed is not None:
        verdict = "postponed"
    elif of_child:
        verdict = "child_run"
    elif most is None:
        verdict = "not_retried"
    elif row.failures >= most:
        verdict = "used_up"
    else:
        verdict = "not_retryable"
    retry_on = spec.retry.names() if spec is not None and spec.retry is not None else None
    detail = {
        "verdict": verdict,
        "tries": row.failures,
        "postponed": postponed,
        "of": most,
        "losses": row.losses,
        "retry_on": list(retry_on or ()),
    }
    because = () if last is None else (attempt_cause(facts, node, last, of_child),)
    return _cause(
        facts, node, CauseKind.FAILED, detail, because, at=None if last is None else last.ended_at, attempt=row.attempt
    )


def _upstream_failed(facts: Facts, node: KnownNode) -> WhyCause:
    root = _failed_ancestor(node.row)
    because = (why_node(facts, root),) if root in facts.nodes else ()
    direct = root in facts.parents(node.row.id)
    detail = {"root": facts.name(root) if root else None, "direct": direct}
    return _cause(facts, node, CauseKind.UPSTREAM_FAILED, detail, because)


def _skipped(facts: Facts, node: KnownNode) -> WhyCause:
    reason, spec = node.row.reason, facts.graph.nodes.get(node.row.id)
    because: tuple[WhyCause, ...] = ()
    if reason == HEALED_LATE:
        because = request_causes(facts, "heal")
    elif reason in (PARENTS_SKIPPED, PARENT_SKIPPED):
        because = tuple(why_node(facts, cause) for cause in facts.blockers[:NAMED])
    return _cause(facts, node, CauseKind.SKIPPED, {"reason": reason, "when": spec and spec.when}, because)


def skipped_by(graph: Graph | Outline, node: NodeId, skipped: Mapping[NodeId, NodeRow]) -> list[NodeRow]:
    """The conditions that did not hold, with which a node was skipped: found by going up through skipped nodes."""
    causes: list[NodeRow] = []
    seen, queue = {node}, deque([node])
    while queue and len(causes) < NAMED:
        spec = graph.nodes.get(queue.popleft())
        for parent in () if spec is None else spec.depends_on:
            row = skipped.get(parent)
            if row is None or parent in seen or not was_skipped(row.status, row.reason):
                continue
            seen.add(parent)
            if row.reason == CONDITION:
                causes.append(row)
            else:
                queue.append(parent)
    return causes


def _cancelled(facts: Facts, node_read: KnownNode) -> WhyCause:
    reason, last = _cancelled_by(facts.run, node_read.row, facts.graph), last_ended(node_read)
    because: tuple[WhyCause, ...] = ()
    if reason == "run_failed":
        because = tuple(why_node(facts, node) for node in facts.blockers[:NAMED])
    elif reason == "run_cancelled":
        because = request_causes(facts, "cancel")
    elif reason == "deadline":
        because = (WhyCause(CauseKind.DEADLINE, at=facts.run.deadline_at),)
    elif reason == REMOVED:
        because = request_causes(facts, "heal")
    elif reason == "worker_lost" and last is not None:
        because = (attempt_cause(facts, node_read, last),)
    stopped = last is not None and last.status is AttemptStatus.CANCELLED and node_read.row.reason is None
    detail = {"reason": reason, "stopped": stopped}
    at = last.ended_at if stopped and last is not None else None
    return _cause(facts, node_read, CauseKind.CANCELLED, detail, because, at=at, attempt=node_read.row.attempt or None)


def _interrupted(facts: Facts, node: KnownNode) -> WhyCause:
    last = last_ended(node)
    because = () if last is None else (attempt_cause(facts, node, last),)
    return _cause(facts, node, CauseKind.INTERRUPTED, {"reason": node.row.reason}, because)


_WHY: Mapping[NodeStatus, Callable[[Facts, KnownNode], WhyCause]] = {
    NodeStatus.PENDING: _pending,
    NodeStatus.READY: _ready,
    NodeStatus.RUNNING: _running,
    NodeStatus.WAITING: _waiting,
    NodeStatus.COMPLETED: _completed,
    NodeStatus.FAILED: _failed,
    NodeStatus.UPSTREAM_FAILED: _upstream_failed,
    NodeStatus.SKIPPED: _skipped,
    NodeStatus.CANCELLED: _cancelled,
    NodeStatus.INTERRUPTED: _interrupted,
}


def _cancelled_by(run: RunRow, row: NodeRow, graph: Graph | Outline) -> str:
    """A body that stopped on request has no reason of its own: the reason is that of the run.

    A node that is gone from the graph is cancelled for that, and one that is back no longer is.
    """
    if row.index in graph.removed:
        return REMOVED
    if row.reason is not None and row.reason != REMOVED:
        return row.reason
    if run.status in RUN_VERBS["cancel"].done:
        return "run_cancelled"
    return run.reason or "run_failed"


def _failed_ancestor(row: NodeRow) -> NodeId:
    return NodeId((row.reason or "").removeprefix(_UPSTREAM))


def _most_attempts(facts: Facts, node: KnownNode) -> int | None:
    """How often a node may fail; None without a retry."""
    spec = facts.spec(node.row.id)
    return spec.retry.max_attempts if spec is not None and spec.retry is not None else None


def _cause(
    facts: Facts,
    node: KnownNode,
    kind: CauseKind,
    detail: Mapping[str, object],
    because: tuple[WhyCause, ...],
    *,
    at: int | None = None,
    attempt: int | None = None,
) -> WhyCause:
    row = node.row
    return WhyCause(kind, row.id, facts.name(row.id), attempt, at, detail, because)
