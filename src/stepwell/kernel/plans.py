"""What everything with wide consequences does to a run, computed from its rows while the gate is closed.

A plan is a function of the graph, the rows and the purpose the gate is held for. So whoever finds a gate that somebody
left held computes the rest of it anew, and it does not matter how much of it was done before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from ..model import FAILED_NODES, Finish, NodeChange, NodeRow, NodeStatus, RunRow, RunStatus

Purpose: TypeAlias = Literal["failed", "cancel", "retry"]

UNSTARTED = frozenset({NodeStatus.PENDING, NodeStatus.READY, NodeStatus.WAITING})
RETRIED = frozenset({NodeStatus.FAILED, NodeStatus.UPSTREAM_FAILED, NodeStatus.CANCELLED, NodeStatus.INTERRUPTED})


class Plan(NamedTuple):
    changes: list[NodeChange]
    finish: Finish
    holds_while: tuple[NodeChange, ...] = ()
    """Nodes that must still be what they were when the plan is finished; otherwise it is computed anew."""


def failed(run: RunRow, nodes: Sequence[NodeRow], children: Sequence[Sequence[int]]) -> Plan:
    """The consequences of nodes that failed for good: what is below them cannot run, the rest does not start."""
    blamed = _below((row.index for row in nodes if row.status in FAILED_NODES), children)
    reason = run.reason or "run_failed"
    changes = []
    for row in nodes:
        if row.status is NodeStatus.PENDING and row.index in blamed:
            because = f"upstream: {nodes[blamed[row.index]].id}"
            changes.append(_change(row, NodeStatus.UPSTREAM_FAILED, because))
        elif row.status in UNSTARTED:
            changes.append(_change(row, NodeStatus.CANCELLED, reason))
    return Plan(changes, Finish(RunStatus.FAILED, open_gate=False, reason=run.reason))


def cancel(nodes: Sequence[NodeRow], *, grace: int) -> Plan:
    """Nothing new starts; what runs is asked to stop, and fenced after the grace."""
    changes = [_change(row, NodeStatus.CANCELLED, "run_cancelled") for row in nodes if row.status in UNSTARTED]
    return Plan(changes, Finish(RunStatus.CANCELLING, open_gate=False, grace=grace))


def retry(nodes: Sequence[NodeRow]) -> Plan:
    """Run what did not complete; what completed, also after the failure, is kept.

    A body that still runs may stop or fail before the gate opens, and its node must then be among those that run again.
    """
    changes = [
        NodeChange(row.index, row.status, row.attempt, NodeStatus.PENDING, None, fresh=True)
        for row in nodes
        if row.status in RETRIED
    ]
    running = tuple(
        NodeChange(row.index, row.status, row.attempt, row.status) for row in nodes if row.status is NodeStatus.RUNNING
    )
    return Plan(changes, Finish(RunStatus.RUNNING, open_gate=True), running)


def _change(row: NodeRow, status: NodeStatus, reason: str) -> NodeChange:
    return NodeChange(row.index, row.status, row.attempt, status, reason)


def _below(causes: Iterable[int], children: Sequence[Sequence[int]]) -> dict[int, int]:
    """Every node below one of the causes, with the cause it was first reached from."""
    blamed: dict[int, int] = {}
    stack = [(cause, cause) for cause in sorted(causes, reverse=True)]
    while stack:
        at, cause = stack.pop()
        for child in children[at]:
            if child not in blamed:
                blamed[child] = cause
                stack.append((child, cause))
    return blamed
