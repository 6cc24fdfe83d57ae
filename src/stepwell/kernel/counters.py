"""What the counters of a run must be, recomputed from its rows: the auditor's view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..model import ACTIVE_NODES, FAILED_NODES, SATISFIED_NODES, NodeRow, NodeStatus


class Counts(NamedTuple):
    open: int
    active: int
    failed: int


def counts(nodes: Sequence[NodeRow]) -> Counts:
    return Counts(
        sum(not node.status.terminal for node in nodes),
        sum(node.status in ACTIVE_NODES for node in nodes),
        sum(node.status in FAILED_NODES for node in nodes),
    )


def parent_counters(nodes: Sequence[NodeRow], parents: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """(parents not yet satisfied, parents not skipped) of every node."""
    return [
        (
            sum(nodes[parent].status not in SATISFIED_NODES for parent in own),
            sum(nodes[parent].status is not NodeStatus.SKIPPED for parent in own),
        )
        for own in parents
    ]
