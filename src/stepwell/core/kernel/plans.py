"""Plans for everything with wide consequences, computed from the rows of a run while its gate is closed.

A plan is a function of the graph, the rows and the purpose of the gate. So whoever finds a gate that was left held computes
the rest of the plan again, however much of it was done before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from ..graph import Graph
from ..model import (
    CONDITION,
    FAILED_NODES,
    NODE_FAILED,
    PARENT_SKIPPED,
    PARENTS_SKIPPED,
    Finish,
    NodeChange,
    NodeRow,
    NodeStatus,
    RunRow,
    RunStatus,
)

UNSTARTED = frozenset({NodeStatus.PENDING, NodeStatus.READY, NodeStatus.WAITING})
RETRIED = frozenset({NodeStatus.FAILED, NodeStatus.UPSTREAM_FAILED, NodeStatus.CANCELLED, NodeStatus.INTERRUPTED})


class Plan(NamedTuple):
    changes: list[NodeChange]
    finish: Finish
    holds_while: tuple[NodeChange, ...] = ()
    """Nodes that must not have changed when the plan is finished; otherwise it is computed again."""


def failed(run: RunRow, nodes: Sequence[NodeRow], children: Sequence[Sequence[int]]) -> Plan:
    """The consequences of nodes that failed for good: nodes below them cannot run, and no other starts."""
    blamed = _below((row.index for row in nodes if row.status in FAILED_NODES), children)
    reason = run.reason or "run_failed"
    changes = []
    for row in nodes:
        if row.status is NodeStatus.PENDING and row.index in blamed:
            because = f"upstream: {nodes[blamed[row.index]].id}"
            changes.append(NodeChange.of(row, NodeStatus.UPSTREAM_FAILED, because))
        elif row.status in UNSTARTED:
            changes.append(NodeChange.of(row, NodeStatus.CANCELLED, reason))
    return Plan(changes, Finish(RunStatus.FAILED, open_gate=False, reason=run.reason))


def cancel(nodes: Sequence[NodeRow], *, grace: int) -> Plan:
    """Nothing new starts; running bodies are asked to stop, and fenced after the grace. Parked nodes wait until the runs that
    perform them, which are cancelled, have ended."""
    changes = [
        NodeChange.of(row, NodeStatus.CANCELLED, "run_cancelled")
        for row in nodes
        if row.status in UNSTARTED and not row.parked
    ]
    return Plan(changes, Finish(RunStatus.CANCELLING, open_gate=False, grace=grace))


def retry(nodes: Sequence[NodeRow], removed: AbstractSet[int] = frozenset(), input: bytes | None = None) -> Plan:
    """Run what did not complete, with another input if one is given. What completed is kept, even after the failure.

    A running body may stop or fail before the gate opens; then its node must run again, too.
    """
    changes = [_again(row) for row in nodes if row.status in RETRIED and row.index not in removed]
    return Plan(changes, Finish(RunStatus.RUNNING, open_gate=True, input=input), _while_running(nodes))


class NotNow(NamedTuple):
    """Why something cannot be done with a run now, and what can be done instead."""

    message: str


_STANDING = frozenset({NodeStatus.COMPLETED, NodeStatus.WAITING, NodeStatus.READY, NodeStatus.SKIPPED})
"""Nodes that would not wait by themselves for a node above them that is attempted again."""


def reattempt(
    index: int, nodes: Sequence[NodeRow], graph: Graph, *, cascade: bool = False, begun: bool = False
) -> Plan | NotNow:
    """Run an ended node again, with what failed or was cancelled below it, and what was not started because of it.

    With `cascade` also what completed below it. Nodes below it that were skipped for coming too late now run. What failed
    elsewhere stays failed, with everything below it, and the run goes on. A node that a child run performed gets another one.

    The changes begin with the last node, so that completed and ready nodes always have completed parents, however much of the
    plan is applied. While the gate is held nothing below the node begins, so all that is completed there was so before, and the
    rest of a half applied plan is found again.
    """
    asked = nodes[index]
    ended = asked.status in (*RETRIED - {NodeStatus.UPSTREAM_FAILED}, NodeStatus.COMPLETED) or _has_condition(asked)
    # Part of this plan may have been applied before rows changed, or before somebody died.
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
    changes = [_again(row, anew=row.index == index or row.index in below) for row in again]
    return Plan(changes, finish, _while_running(nodes))


def _stood_on(asked: NodeRow, below: Sequence[NodeRow], *, cascade: bool) -> str | None:
    """Why a node cannot be attempted again: something below it is running, perhaps in a child run, or has completed."""
    running = [row.id for row in below if row.status is NodeStatus.RUNNING or (row.wakes and not row.status.terminal)]
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


def _has_condition(row: NodeRow) -> bool:
    """Whether the node was skipped by its own condition, which is evaluated again when the node is attempted again."""
    return row.status is NodeStatus.SKIPPED and row.reason == CONDITION


def _cannot_reattempt(row: NodeRow, *, gone: bool) -> str:
    if gone:
        return f"node {row.id!r} is no longer in the graph of the run"
    if row.status is NodeStatus.UPSTREAM_FAILED:
        return f"node {row.id!r} has never run ({row.reason}); attempt that one again, or retry the run"
    if row.status is NodeStatus.SKIPPED and row.reason in (PARENTS_SKIPPED, PARENT_SKIPPED):
        return f"node {row.id!r} was skipped with its parents; attempt the node again whose condition did not hold"
    if row.status is NodeStatus.SKIPPED:
        return f"node {row.id!r} was skipped ({row.reason}) and has nothing to attempt again"
    return f"node {row.id!r} is {row.status}: only a node that has ended can be attempted again"


def pause(nodes: Sequence[NodeRow], reason: str = "paused") -> Plan:
    """Nothing new starts; running bodies may end, and are recorded. One that hands its node over to a child run meanwhile is
    noticed, because the plan then is computed again: the child is paused, too."""
    return Plan([], Finish(RunStatus.PAUSED, open_gate=False, reason=reason), _while_running(nodes))


def resume(run: RunRow, nodes: Sequence[NodeRow], input: bytes | None = None) -> Plan:
    """Go on, with another input if one is given; after a failure that paused the run, without the node that failed."""
    finish = Finish(RunStatus.RUNNING, open_gate=True, tolerate=run.reason == NODE_FAILED, input=input)
    return Plan([], finish, _while_running(nodes))


def unchanged(run: RunRow) -> Finish:
    """The gate opens or shuts again, and the run stays as it was."""
    return Finish(run.status, open_gate=run.status.moving, reason=run.reason)


def _again(row: NodeRow, *, anew: bool = False) -> NodeChange:
    return NodeChange.of(row, NodeStatus.PENDING, fresh=True, anew=anew)


def _while_running(nodes: Sequence[NodeRow]) -> tuple[NodeChange, ...]:
    return tuple(NodeChange.of(row, row.status) for row in nodes if row.status is NodeStatus.RUNNING)


def _below(causes: Iterable[int], children: Sequence[Sequence[int]]) -> dict[int, int]:
    """Every node below one of the causes, with the first cause it is below."""
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
    """The first few of these nodes, and how many more there are."""
    shown = ", ".join(map(repr, nodes[:3]))
    return shown if len(nodes) <= 3 else f"{shown} and {len(nodes) - 3:,} more"
