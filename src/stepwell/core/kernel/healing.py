"""What becomes of a run when the definition of its graph has changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from ...base.ids import Digest, NodeId
from ..graph import Arranged, Graph, NodeSpec
from ..graph.order import reachable
from ..model import (
    HEALED_LATE,
    PARENT_SKIPPED,
    PARENTS_SKIPPED,
    SATISFIED_NODES,
    NodeChange,
    NodeRow,
    NodeStatus,
    RunRow,
)
from .plans import UNSTARTED, Plan, named, resume, unchanged

REMOVED = "removed"
POSSIBLE_RENAME = "is it a rename? "
"""How the reason begins of a run that is PAUSED because a heal might do work twice."""
UNFIT = "its input does not fit its class: "
"""How the reason begins of a run that is PAUSED because its input does not fit its class."""
UNFIT_DATA = "what is stored does not fit the code: "
"""How the reason begins of a run that is PAUSED because stored data does not fit the annotation of a body."""


def way_on(run: RunRow) -> Literal["retry", "resume"]:
    """The verb with which a paused run goes on with all of its nodes: `resume` would leave out a failed one that paused it."""
    return "retry" if run.on_failure == "pause" and run.failed > run.tolerated else "resume"


def arrange(current: Graph, new: Graph, *, pinned: bool = False, trusted: bool = True) -> Arranged:
    """`new`, numbered so that every node that `current` has or had keeps its number.

    A node is the same if it has the same id, names it as a former one (`was=`), or once had this name. `trusted`: see
    `Graph.trusted`.
    """
    numbering = list(current.order)
    numbers = _same_nodes(current, new)
    names = dict(current.former_names)
    for spec in new:
        number = numbers.get(spec.id)
        if number is None:
            numbering.append(spec.id)
        elif numbering[number] != spec.id:
            old = numbering[number]
            names[spec.id] = (*names.pop(old, ()), old)
            numbering[number] = spec.id
    used = set(numbers.values())
    removed = {number: spec for number, spec in enumerate(current.in_order) if number not in used}
    source = new.source or current.source
    return Arranged(
        list(new), numbering, removed, names, pinned=pinned, state=new.state, trusted=trusted, source=source
    )


def _same_nodes(current: Graph, new: Graph) -> dict[NodeId, int]:
    """The numbers of those nodes of `new` which `current` knows."""
    present = {node: number for node, number in current.index.items() if number not in current.removed}
    numbers = {spec.id: present[spec.id] for spec in new if spec.id in present}
    used = set(numbers.values())
    former = {name: current.index[node] for node, names in current.former_names.items() for name in names}

    def find(spec: NodeSpec, *known: int | None) -> None:
        number = next((number for number in known if number is not None and number not in used), None)
        if number is not None and spec.id not in numbers:
            numbers[spec.id] = number
            used.add(number)

    for spec in new:
        find(spec, *(current.index.get(name) for name in spec.was))
    for spec in new:  # `was=` goes before remembered names
        find(spec, former.get(spec.id), current.index.get(spec.id))
    return numbers


def possible_rename(current: Graph, new: Graph, nodes: Sequence[NodeRow]) -> str | None:
    """Why a heal might do work twice: a node that was attempted is gone, and an unknown one is there."""
    dropped = new.removed - current.removed
    lost = [row.id for row in nodes if row.attempt and row.index in dropped and not _never_ran(row)]
    gained = new.order[len(current.order) :]
    if not lost or not gained:
        return None
    return (
        f"{POSSIBLE_RENAME}gone after an attempt: {named(lost)}; new: {named(gained)}. If one is the other under a new name, "
        f'say so in the class, @step(was="{lost[0]}"); if not, accept it: run.retry(accept=True) or run.resume(accept=True), '
        "--accept on the command line"
    )


def _never_ran(row: NodeRow) -> bool:
    """Whether its only attempt was the one in which it was skipped with its parents."""
    with_parents = row.status is NodeStatus.SKIPPED and row.reason in (PARENTS_SKIPPED, PARENT_SKIPPED)
    return with_parents and row.attempt == 1


def heal(run: RunRow, nodes: Sequence[NodeRow], before: Graph, graph: Graph) -> Plan:
    """What becomes of the nodes of a run that has switched from one graph to another.

    New nodes join, except those that come too late because something below them runs or has completed. Unfinished nodes that
    are gone are dropped; a running one may end. Nodes that come back from an earlier version count as new, but keep what they
    have done. In an ended run, a retry runs the new ones.
    """
    returning = before.removed - graph.removed
    late = _late(nodes, graph, {*range(len(before.order), len(graph.order)), *returning})
    after = [_becomes(run, row, graph, late, returning) for row in nodes]
    changes = []
    for row, (status, reason), own in zip(nodes, after, graph.parents, strict=True):
        if status is NodeStatus.WAITING and not all(after[parent][0] in SATISFIED_NODES for parent in own):
            status = NodeStatus.PENDING
        if status is not row.status:
            changes.append(NodeChange.of(row, status, reason, fresh=row.index in returning))
    # A run that was paused for a possible rename goes on.
    if run.status.paused and (run.reason or "").startswith(POSSIBLE_RENAME):
        goes_on = resume(run, nodes)
        return goes_on._replace(changes=changes)
    return Plan(changes, unchanged(run))


def _becomes(
    run: RunRow, row: NodeRow, graph: Graph, late: Collection[int], returning: Collection[int]
) -> tuple[NodeStatus, str | None]:
    if row.index in graph.removed:
        stays = row.status in (NodeStatus.COMPLETED, NodeStatus.SKIPPED, NodeStatus.RUNNING)
        return (row.status if stays else NodeStatus.CANCELLED), REMOVED
    if row.index in late:
        return NodeStatus.SKIPPED, HEALED_LATE
    if run.status.terminal:
        return NodeStatus.CANCELLED if row.status in UNSTARTED else row.status, run.reason or "run_failed"
    dropped = row.index in returning and row.status is NodeStatus.CANCELLED
    return (NodeStatus.PENDING if dropped else row.status), None


def _late(nodes: Sequence[NodeRow], graph: Graph, joining: Collection[int]) -> set[int]:
    """New nodes above something that runs or has completed, and those whose parents all come too late."""
    started = {row.index for row in nodes if row.status in (NodeStatus.RUNNING, NodeStatus.COMPLETED) or row.parked}
    above = reachable(started, graph.parents)
    idle = UNSTARTED | {NodeStatus.CANCELLED}
    new = {index for index in joining if nodes[index].status in idle}
    late = above & new
    skipped = late | {row.index for row in nodes if row.status is NodeStatus.SKIPPED and row.reason == HEALED_LATE}
    for index in sorted(new - late, key=lambda index: graph.ranks[index]):
        own = graph.parents[index]
        if own and all(parent in skipped for parent in own):
            late.add(index)
            skipped.add(index)
    return late


Verdict = Literal["serve", "heal", "roll back", "yield"]


def judge(follows: Digest | None, mine: Digest, ages: Mapping[str, int], others: Collection[str]) -> Verdict:
    """What a worker whose code gives the graph `mine` does with a run that follows another one.

    `ages` says when graphs were first stored, `others` what live workers serve. Older code yields to live newer code, so that
    runs do not switch back and forth during a rolling deploy; after a rollback it heals back.
    """
    if follows is None or follows == mine:
        return "serve"
    own = ages.get(mine, max(ages.values(), default=0) + 1)
    if any(ages.get(other, 0) > own for other in others):
        return "yield"
    return "heal" if own > ages.get(follows, 0) else "roll back"
