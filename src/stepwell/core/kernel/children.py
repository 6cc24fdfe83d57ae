"""Child runs: how they are named and seeded, and what a request to a run means for the runs that perform its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

from ...base.codec import decode
from ...base.ids import NodeId, RunId
from ..model import PARENT_PAUSED, AttemptRow, AttemptStatus, NodeStatus, RunRow, RunStatus
from .plans import NotNow, Plan

MAX_DEPTH = 16
"""How many runs may be above one."""
_ID_DIGITS = 16


def root_id(run_id: RunId, depth: int) -> RunId:
    """The run at the top of the tree of this one."""
    return run_id if depth == 0 else RunId(run_id[: -_ID_DIGITS - 1])


def child_id(parent: RunId, depth: int, node: NodeId, attempt: int) -> RunId:
    """The id of the run to which this attempt of a node hands it over. `depth`: of the parent.

    >>> child_id("order-7", 0, "n_1", 1)
    'order-7.28a2c0be0eb3c4d5'
    """
    digest = sha256(f"{parent}\0{node}\0{attempt}".encode()).hexdigest()
    return RunId(f"{root_id(parent, depth)}.{digest[:_ID_DIGITS]}")


def may_be_child(run_id: str) -> bool:
    """Whether the id looks like that of a child run. People may choose such ids, too.

    >>> may_be_child("order-7.28a2c0be0eb3c4d5"), may_be_child("order-7")
    (True, False)
    """
    _, dot, digits = run_id.rpartition(".")
    return dot == "." and len(digits) == _ID_DIGITS and set(digits) <= set("0123456789abcdef")


def handed_to(attempts: Sequence[AttemptRow]) -> RunId | None:
    """The run to which the attempts of a node, oldest first, have handed it over last."""
    outputs = (each.output for each in reversed(attempts) if each.status is AttemptStatus.PARKED)
    return next((RunId(decode(output)["run"]) for output in outputs if output is not None), None)


def child_seed(seed: int, node: str) -> int:
    """The seed of the run that performs a node: the same in every attempt and every fork."""
    return int.from_bytes(sha256(f"{seed}\0child\0{node}".encode()).digest()[:8], "big")


class ToldChild(NamedTuple):
    """What is requested of a child run because of what happens to its parent."""

    run_id: RunId
    verb: str
    reason: str | None = None


def told_children(
    purpose: str, run: RunRow, plan: Plan, children: Iterable[RunRow], removed: frozenset[int] = frozenset()
) -> list[ToldChild] | NotNow:
    """What a plan for a run means for its child runs, of which the newest come first. `removed`: nodes of the run that the plan
    takes from its graph.

    What is requested is requested again when the plan is computed again, and does nothing the second time.
    """
    newest: dict[int | None, RunRow] = {}
    for child in children:
        newest.setdefault(child.parent_node, child)
    status, goes_on = plan.finish.status, plan.finish.open_gate
    again = {change.index for change in plan.changes if change.status is NodeStatus.PENDING and not change.anew}
    told: list[ToldChild] = []
    for index, child in newest.items():
        if (status is not run.status and (status.stopping or status.terminal)) or index in removed:
            told += [] if child.status.terminal or child.status.stopping else [ToldChild(child.id, "cancel")]
        elif purpose == "pause" and child.status.moving:
            told.append(ToldChild(child.id, "pause", PARENT_PAUSED))
        elif goes_on and child.status.paused and child.reason == PARENT_PAUSED:
            told.append(ToldChild(child.id, "resume"))
        elif goes_on and index in again and child.status.stopping:
            return NotNow(f"its child run {child.id} is still {child.status}; try again when it has ended")
        elif goes_on and index in again and child.status in (RunStatus.FAILED, RunStatus.CANCELLED):
            told.append(ToldChild(child.id, "retry"))
    return told
