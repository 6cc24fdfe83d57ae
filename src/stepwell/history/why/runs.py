"""Why a run is not done yet, or ended as it did; and which of its nodes explain it best."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from ...base.ids import NodeId
from ...core.model import FAILED_NODES, AttemptStatus, NodeStatus, RunStatus
from .attempts import error_of, last_ended
from .nodes import why_node
from .records import BEGINNINGS, Cause, CauseKind, Facts, Known
from .standing import asked, held, nobody_works, paused

MOST = 3
"""How many nodes are listed at most."""
OF_A_KIND = 2
GROUPS = (
    (NodeStatus.FAILED, NodeStatus.INTERRUPTED),
    (NodeStatus.WAITING,),
    (NodeStatus.RUNNING,),
    (NodeStatus.READY,),
)
"""What holds others up, the most telling first."""
_REQUESTS = ("retry", "reattempt", "heal", "resume")


def most_telling(candidates: Iterable[Known]) -> tuple[NodeId, ...]:
    """A few of these nodes: what failed first, each error once; what is due next; what runs longest; one that is ready."""
    chosen: list[NodeId] = []
    told: set[tuple[object, object]] = set()
    of_kind = dict.fromkeys(range(len(GROUPS)), 0)
    for known in sorted(candidates, key=_order):
        group = _group(known)
        most = MOST if group == 0 else 1 if group == len(GROUPS) - 1 else OF_A_KIND
        if len(chosen) == MOST or of_kind[group] == most:
            continue
        if known.row.status in FAILED_NODES:
            error = _error(known)
            if error in told:
                continue
            told.add(error)
        of_kind[group] += 1
        chosen.append(known.row.id)
    return tuple(chosen)


def _group(known: Known) -> int:
    return next(place for place, statuses in enumerate(GROUPS) if known.row.status in statuses)


def _order(known: Known) -> tuple[int, int, int]:
    row, latest = known.row, known.attempts[-1] if known.attempts else None
    time = 0
    if row.status in FAILED_NODES:
        time = (latest.ended_at if latest is not None else None) or 0
    elif row.status is NodeStatus.WAITING:
        time = row.due_at or 0
    elif latest is not None and latest.status is AttemptStatus.RUNNING:
        time = latest.started_at
    return _group(known), time, row.index


def _error(known: Known) -> tuple[object, object]:
    last = last_ended(known)
    if last is None:
        return known.row.id, None
    said = error_of(last)
    return said.get("type"), said.get("message")


def why_run(facts: Facts) -> tuple[Cause, ...]:
    """The most useful causes first; of nodes only those among `blockers`."""
    run = facts.run
    nodes = tuple(why_node(facts, node).without(*BEGINNINGS) for node in facts.blockers)
    match run.status:
        case RunStatus.COMPLETED:
            return _requests(facts)
        case RunStatus.FAILED:
            return _failed(facts, nodes) + _requests(facts)
        case RunStatus.CANCELLED:
            return asked(facts, "cancel")
        case RunStatus.CANCELLING:
            return asked(facts, "cancel") + nodes
        case RunStatus.PAUSED:
            return (paused(facts), *nodes)
        case RunStatus.PENDING | RunStatus.RUNNING:
            return _unfinished(facts, nodes)
        case _:
            assert_never(run.status)


def _failed(facts: Facts, nodes: tuple[Cause, ...]) -> tuple[Cause, ...]:
    run = facts.run
    if run.reason == "deadline":
        return (Cause(CauseKind.DEADLINE, at=run.deadline_at), *nodes)
    if run.reason is not None or not nodes:
        return (Cause(CauseKind.REASON, detail={"reason": run.reason}), *nodes)
    return nodes


def _unfinished(facts: Facts, nodes: tuple[Cause, ...]) -> tuple[Cause, ...]:
    """That nobody works is said once, for all nodes, and first."""
    nobody = nobody_works(facts)
    whole = held(facts) or (() if nobody is None else (nobody,))
    return whole + tuple(cause.without(*(each.kind for each in whole)) for cause in nodes)


def _requests(facts: Facts) -> tuple[Cause, ...]:
    """What somebody asked of the run before it ended as it did, the latest first."""
    entries = [entry for entry in facts.gates if entry.kind == "gate" and entry.status in _REQUESTS]
    return tuple(
        Cause(CauseKind.ASKED, at=entry.at, detail={"purpose": entry.status}) for entry in entries[: -MOST - 1 : -1]
    )
