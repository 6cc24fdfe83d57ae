"""What holds between a run and the runs that perform its nodes, after every commit."""

from __future__ import annotations

from collections.abc import Iterable

from stepwell.core.model import ENDED, PARENT_PAUSED, GateState, RunStatus
from stepwell.core.store.memory.state import RunState


def tree_problems(records: Iterable[RunState]) -> list[str]:
    runs = {record.id: record for record in records}
    children: dict[str, list[RunState]] = {}
    problems = []
    for record in runs.values():
        if record.created.parent is None:
            continue
        if record.created.parent not in runs:
            problems.append(f"{record.id} is an orphan")
        children.setdefault(record.created.parent, []).append(record)
    for parent, below in children.items():
        if parent in runs:
            problems += _of(runs[parent], sorted(below, key=lambda each: each.admission))
    for record in runs.values():
        for node in record.nodes:
            if node.row().parked and not any(
                each.created.parent_node == node.index for each in children.get(record.id, ())
            ):
                problems.append(f"{record.id}: {node.id} is parked and no run performs it")
    return problems


def _of(run: RunState, children: list[RunState]) -> Iterable[str]:
    newest = {child.created.parent_node: child for child in children}
    for node in run.nodes:
        child = newest.get(node.index)
        if node.row().parked and child is not None and child.status.terminal and child.purpose != ENDED:
            yield f"{run.id}: {node.id} is parked and nobody will wake it: {child.id} is {child.status}"
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
