"""What everything with wide consequences does to a run, computed from its rows while the gate is closed.

A plan is a function of the graph, the rows and the purpose the gate is held for. So whoever finds a gate that somebody
left held computes the rest of it anew, and it does not matter how much of it was done before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from ..graph import Graph
from ..model import FAILED_NODES, NODE_FAILED, Finish, NodeChange, NodeRow, NodeStatus, RunRow, RunStatus

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


def retry(nodes: Sequence[NodeRow], removed: AbstractSet[int] = frozenset()) -> Plan:
    """Run what did not complete; what completed, also after the failure, is kept.

    A body that still runs may stop or fail before the gate opens, and its node must then be among those that run again.
    """
    changes = [_again(row) for row in nodes if row.status in RETRIED and row.index not in removed]
    return Plan(changes, Finish(RunStatus.RUNNING, open_gate=True), _while_running(nodes))


class NotNow(NamedTuple):
    """Why something cannot be done with a run as it stands, and what can be done instead."""

    message: str


_STANDING = frozenset({NodeStatus.COMPLETED, NodeStatus.WAITING, NodeStatus.READY, NodeStatus.SKIPPED})
"""Below a node that is attempted again: what would not wait for it by itself."""


def reattempt(
    index: int, nodes: Sequence[NodeRow], graph: Graph, *, cascade: bool = False, begun: bool = False
) -> Plan | NotNow:
    """Run one node again that has ended, with what failed or was cancelled below it, and what was not started because of it.

    With `cascade` also what completed below it. What was skipped below it came too late for what is done again now, and runs.
    What failed elsewhere stays failed, with all that is below it; the run goes on in spite of them.

    The changes begin with the last node: what completed or is ready then always stands on completed parents, however much of
    the plan is applied. While the gate is held nothing below the node begins, so all that is completed there was so before,
    and the rest of a plan that was left half applied is found again.
    """
    asked = nodes[index]
    ended = asked.status in (*RETRIED - {NodeStatus.UPSTREAM_FAILED}, NodeStatus.COMPLETED)
    # A part of this very plan may have been applied before rows changed, or before somebody died.
    asked_before = begun and asked.status is NodeStatus.PENDING and asked.attempt > 0
    if index in graph.removed or not (ended or asked_before):
        return NotNow(_cannot_reattempt(asked, gone=index in graph.removed))
    below = _below([index], graph.children)
    refusal = _stood_on(asked, [nodes[each] for each in sorted(below)], cascade=cascade)
    if refusal is not None:
        return NotNow(refusal)
    others = {
        row.index for row in nodes if row.status in FAILED_NODES and row.index != index and row.index not in below
    }
    kept = others | set(_below(others, graph.children)) | graph.removed
    again = [
        row
        for row in nodes
        if row.index == index
        or (row.index in below and row.status in _STANDING)
        or (row.status in RETRIED and row.index not in kept)
    ]
    again.sort(key=lambda row: graph.ranks[row.index], reverse=True)
    finish = Finish(RunStatus.RUNNING, open_gate=True, tolerate=bool(others))
    return Plan([_again(row) for row in again], finish, _while_running(nodes))


def _stood_on(asked: NodeRow, below: Sequence[NodeRow], *, cascade: bool) -> str | None:
    """Why a node cannot be attempted again: something below it is running, or completed on what it did."""
    running = [row.id for row in below if row.status is NodeStatus.RUNNING]
    completed = [row.id for row in below if row.status is NodeStatus.COMPLETED]
    cannot = f"node {asked.id!r} cannot be attempted again"
    if running:
        return f"{cannot} while what is below it is running ({named(running)}); wait for its end, or cancel the run"
    if completed and not cascade:
        return (
            f"{cannot} alone: what is below it has completed on what it did ({named(completed)}); cascade=True "
            f"(--cascade) runs that again too, fork does it in a new run"
        )
    return None


def _cannot_reattempt(row: NodeRow, *, gone: bool) -> str:
    if gone:
        return f"node {row.id!r} is no longer in the graph of the run"
    if row.status is NodeStatus.UPSTREAM_FAILED:
        return f"node {row.id!r} has never run ({row.reason}); attempt that one again, or retry the run"
    if row.status is NodeStatus.SKIPPED:
        return f"node {row.id!r} was skipped ({row.reason}) and has nothing to attempt again"
    return f"node {row.id!r} is {row.status}: only a node that has ended can be attempted again"


def pause(reason: str = "paused") -> Plan:
    """Nothing new starts; what runs may end, and what it did is recorded."""
    return Plan([], Finish(RunStatus.PAUSED, open_gate=False, reason=reason))


def resume(run: RunRow, input: bytes | None = None) -> Plan:
    """Go on, with another input if one is given. After a failure that paused the run: with what does not need the node that
    failed."""
    return Plan([], Finish(RunStatus.RUNNING, open_gate=True, tolerate=run.reason == NODE_FAILED, input=input))


def unchanged(run: RunRow) -> Finish:
    """The gate opens or shuts again, and the run is what it was."""
    return Finish(run.status, open_gate=run.status in (RunStatus.PENDING, RunStatus.RUNNING), reason=run.reason)


def _again(row: NodeRow) -> NodeChange:
    return NodeChange(row.index, row.status, row.attempt, NodeStatus.PENDING, None, fresh=True)


def _while_running(nodes: Sequence[NodeRow]) -> tuple[NodeChange, ...]:
    return tuple(
        NodeChange(row.index, row.status, row.attempt, row.status) for row in nodes if row.status is NodeStatus.RUNNING
    )


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


def named(nodes: Sequence[str]) -> str:
    """The first of these nodes, and how many more there are."""
    shown = ", ".join(map(repr, nodes[:3]))
    return shown if len(nodes) <= 3 else f"{shown} and {len(nodes) - 3:,} more"
