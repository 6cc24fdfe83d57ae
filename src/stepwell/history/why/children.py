"""Causes of nodes that are performed by runs."""

from __future__ import annotations

from ...answers.causes import CauseKind
from ...core.model import PARENT_PAUSED, AttemptRow, AttemptStatus
from .attempts import error_of
from .records import Facts, KnownNode, WhyCause
from .run_state import gate_causes

_FAILED_WITH_CHILD = ("ChildFailed", "ChildCancelled")
"""Errors of nodes whose child runs did not complete."""


def waits_for_run(facts: Facts, node: KnownNode) -> WhyCause:
    """A parked node: it waits for the run that performs it, and for what that waits for."""
    node_id, child = node.row.id, facts.children.get(node.row.id)
    row = None if child is None else child.row
    with_parent = row is not None and row.reason == PARENT_PAUSED
    detail = {
        "run": node.child,
        "workflow": row and row.workflow,
        "status": row and row.status,
        "paused": row is not None and row.status.paused and not with_parent,  # for a reason of its own
    }
    because = gate_causes(facts) + (() if child is None or with_parent else child.causes)
    handed = [attempt.ended_at for attempt in node.attempts if attempt.status is AttemptStatus.PARKED]
    at = handed[-1] if handed else None
    return WhyCause(CauseKind.WAITS_FOR_RUN, node_id, facts.name(node_id), at=at, detail=detail, because=because)


def ended_child(facts: Facts, node: KnownNode, last: AttemptRow) -> tuple[WhyCause, ...]:
    """The run with which a node failed."""
    child = facts.children.get(node.row.id)
    if child is None or error_of(last)["type"] not in _FAILED_WITH_CHILD:
        return ()
    row = child.row
    detail = {"run": row.id, "workflow": row.workflow, "status": row.status}
    return (WhyCause(CauseKind.CHILD_RUN, at=row.ended_at, detail=detail, because=child.causes),)
