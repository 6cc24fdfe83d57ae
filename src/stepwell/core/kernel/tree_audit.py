"""The auditor of trees: what must hold between a run, the runs that perform its nodes, and the run of which it performs one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..model import ENDED, NodeRow, RunRow

LONGEST_HAND_ON = 60_000_000
"""Microseconds within which somebody should have told a node that the run that performs it has ended."""
_BEING_MOVED = ("delete", "restore")
"""Purposes of gates behind which a tree is there in part."""


class Tree(NamedTuple):
    """A run with those directly above and below it."""

    run: RunRow
    nodes: Sequence[NodeRow]
    children: Sequence[RunRow]
    """Its child runs, the newest first, read while the run did not move."""
    has_parent: bool
    """Whether the run of which it performs a node is there."""
    now: int


def audit_tree(tree: Tree) -> list[str]:
    """What is wrong between a run and its child runs; an empty list means that every invariant holds."""
    if tree.run.purpose in _BEING_MOVED:
        return []
    return [*_parent(tree), *_parked(tree), *_handed_on(tree)]


def _parent(tree: Tree) -> Iterable[str]:
    run = tree.run
    if run.parent is not None and not tree.has_parent:
        yield f"the run is a child run, and its parent run {run.parent} is gone"


def _parked(tree: Tree) -> Iterable[str]:
    """Something will wake every node that is parked."""
    newest: dict[int | None, RunRow] = {}
    for child in tree.children:
        newest.setdefault(child.parent_node, child)
    for node in tree.nodes:
        if not node.parked:
            continue
        latest = newest.get(node.index)
        if latest is None:
            yield f"{node.id}: it is parked and no run performs it"
        elif latest.status.terminal and latest.purpose is None:
            yield f"{node.id}: it is parked, and run {latest.id}, which performs it, has ended and wakes it no more"


def _handed_on(tree: Tree) -> Iterable[str]:
    """The end of a child run is handed on soon."""
    for run in (tree.run, *tree.children):
        if run.purpose == ENDED and run.ended_at is not None and tree.now - run.ended_at > LONGEST_HAND_ON:
            seconds = (tree.now - run.ended_at) // 1_000_000
            yield f"run {run.id} ended {seconds} s ago, and the node that it performs has not been woken"
