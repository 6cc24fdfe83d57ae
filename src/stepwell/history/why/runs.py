"""Why a run is unfinished, or how it ended; and which of its nodes explain it best."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from ...answers.causes import CauseKind
from ...base.ids import NodeId
from ...core.model import FAILED_NODES, AttemptStatus, NodeStatus, RunStatus
from .attempts import error_of, last_ended
from .nodes import why_node
from .records import BEGINNINGS, Facts, KnownNode, WhyCause
from .run_state import gate_causes, pause_cause, request_causes, unserved_run

MOST = 3
"""How many nodes are listed at most."""
OF_A_KIND = 2
GROUPS = (
    (NodeStatus.FAILED, NodeStatus.INTERRUPTED),
    (NodeStatus.WAITING,),
    (NodeStatus.RUNNING,),
    (NodeStatus.READY,),
)
"""Statuses of nodes that block others, the most informative first."""
_REQUESTS = ("retry", "reattempt", "heal", "resume")


def most_telling(candidates: Iterable[KnownNode]) -> tuple[NodeId, ...]:
    """A few of these nodes: what failed first, each error once; what is due next; what runs longest; one that is ready."""
    chosen: list[NodeId] = []
    errors: set[tuple[object, object]] = set()
    of_kind = dict.fromkeys(range(len(GROUPS)), 0)
    for node in sorted(candidates, key=_order):
        group = _group(node)
        most = MOST if group == 0 else 1 if group == len(GROUPS) - 1 else OF_A_KIND
        if len(chosen) == MOST or of_kind[group] == most:
            continue
        if node.row.status in FAILED_NODES:
            error = _error(node)
            if error in errors:
                continue
            errors.add(error)
        of_kind[group] += 1
        chosen.append(node.row.id)
    return tuple(chosen)


def _group(node: KnownNode) -> int:
    return next(place for place, statuses in enumerate(GROUPS) if node.row.status in statuses)


def _order(node: KnownNode) -> tuple[int, int, int]:
    row, latest = node.row, node.attempts[-1] if node.attempts else None
    time = 0
    if row.status in FAILED_NODES:
        time = (latest.ended_at if latest is not None else None) or 0
    elif row.status is NodeStatus.WAITING:
        time = row.due_at or 0
    elif latest is not None and latest.status is AttemptStatus.RUNNING:
        time = latest.started_at
    return _group(node), time, row.index


def _error(node: KnownNode) -> tuple[object, object]:
    last = last_ended(node)
    if last is None:
        return node.row.id, None
    error = error_of(last)
    return error.get("type"), error.get("message")


def why_run(facts: Facts) -> tuple[WhyCause, ...]:
    """The most useful causes first; of nodes only those among `blockers`."""
    run = facts.run
    nodes = tuple(why_node(facts, node).without(*BEGINNINGS) for node in facts.blockers)
    match run.status:
        case RunStatus.COMPLETED:
            return _nothing_to_do(facts) + _requests(facts)
        case RunStatus.FAILED:
            return _failed(facts, nodes) + _requests(facts)
        case RunStatus.CANCELLED:
            return request_causes(facts, "cancel")
        case RunStatus.CANCELLING:
            return request_causes(facts, "cancel") + nodes
        case RunStatus.PAUSED:
            return (pause_cause(facts), *nodes)
        case RunStatus.PENDING | RunStatus.RUNNING:
            return _unfinished(facts, nodes)
        case _:
            assert_never(run.status)


def _nothing_to_do(facts: Facts) -> tuple[WhyCause, ...]:
    if not facts.skipped_last:
        return ()
    because = tuple(why_node(facts, node) for node in facts.skipped_last)
    return (WhyCause(CauseKind.NOTHING_TO_DO, because=because),)


def _failed(facts: Facts, nodes: tuple[WhyCause, ...]) -> tuple[WhyCause, ...]:
    run = facts.run
    if run.reason == "deadline":
        return (WhyCause(CauseKind.DEADLINE, at=run.deadline_at), *nodes)
    if run.reason is not None or not nodes:
        return (WhyCause(CauseKind.REASON, detail={"reason": run.reason}), *nodes)
    return nodes


def _unfinished(facts: Facts, nodes: tuple[WhyCause, ...]) -> tuple[WhyCause, ...]:
    """That no worker serves the run is reported once, first, and for all nodes."""
    unserved = unserved_run(facts)
    of_the_run = gate_causes(facts) or (() if unserved is None else (unserved,))
    kinds = [cause.kind for cause in of_the_run]
    return of_the_run + tuple(cause.without(*kinds) for cause in nodes)


def _requests(facts: Facts) -> tuple[WhyCause, ...]:
    """The requests before the run ended, the latest first."""
    entries = [entry for entry in facts.gates if entry.kind == "gate" and entry.status in _REQUESTS]
    return tuple(
        WhyCause(CauseKind.ASKED, at=entry.at, detail={"purpose": entry.status}) for entry in entries[: -MOST - 1 : -1]
    )
