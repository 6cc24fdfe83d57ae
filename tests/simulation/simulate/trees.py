"""What holds between a run and the runs that perform its nodes, after every commit."""

from __future__ import annotations

from collections.abc import Iterable

from stepwell.core.kernel.tree_audit import Tree, audit_tree
from stepwell.core.model import PARENT_PAUSED, GateState, RunStatus
from stepwell.core.store.memory.state import RunState


def tree_problems(records: Iterable[RunState]) -> list[str]:
    """What the auditor of trees finds, and what it cannot know of runs that move."""
    runs = {record.id: record for record in records}
    children: dict[str, list[RunState]] = {}
    for record in sorted(runs.values(), key=lambda each: each.admission):
        children.setdefault(record.created.parent or "", []).append(record)
    problems = []
    for record in runs.values():
        below = children.get(record.id, [])
        nodes, rows = [node.row() for node in record.nodes], [child.row() for child in reversed(below)]
        has_parent = record.created.parent in runs
        problems += [f"{record.id}: {each}" for each in audit_tree(Tree(record.row(), nodes, rows, has_parent, now=0))]
        problems += _of(record, below)
    return problems


def _of(run: RunState, children: list[RunState]) -> Iterable[str]:
    newest = {child.created.parent_node: child for child in children}
    for child in children:
        current = newest[child.created.parent_node]
        going_on = not child.status.terminal and not child.status.stopping
        if going_on and current is not child:
            yield f"{run.id}: {child.id} goes on and another run performs its node"
        if run.status.terminal and run.gate is not GateState.HELD and going_on:
            yield f"{run.id} is {run.status} and its child {child.id} is {child.status}"
        left = child.status.stopping and (
            run.nodes[child.created.parent_node or 0].layout.removed or current is not child
        )
        waited = run.status in (RunStatus.COMPLETED, RunStatus.CANCELLED)
        if waited and run.gate is not GateState.HELD and not child.status.terminal and not left:
            yield f"{run.id} is {run.status} and its child {child.id} is {child.status}"
        shut = run.status is RunStatus.PAUSED and run.gate is GateState.SHUT and run.reason in ("paused", PARENT_PAUSED)
        if shut and not child.status.resting and not child.status.stopping:
            yield f"{run.id} is PAUSED and its child {child.id} is {child.status}"
        if run.gate is GateState.OPEN and child.status.paused and child.reason == PARENT_PAUSED:
            yield f"{run.id} goes on and its child {child.id} stays PAUSED"
