"""The auditor: recomputes everything that must hold for a stored run from its rows. It trusts no counter and no status."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ..graph import Arranged, Graph
from ..model import (
    ACTIVE_NODES,
    FAILED_NODES,
    MOVING_RUNS,
    SATISFIED_NODES,
    TERMINAL_NODES,
    AttemptStatus,
    GateState,
    NodeStatus,
    RunStatus,
    was_skipped,
)
from ..model.rows import AttemptRow, JournalRow, NodeRow, RunRow

ENDED_BY = {
    "completed": AttemptStatus.COMPLETED,
    "failed": AttemptStatus.FAILED,
    "timed_out": AttemptStatus.TIMED_OUT,
    "lost": AttemptStatus.LOST,
    "released": AttemptStatus.RELEASED,
    "cancelled": AttemptStatus.CANCELLED,
    "parked": AttemptStatus.PARKED,
}
"""Kinds of journal entries that end an attempt."""


class Stored(NamedTuple):
    """A run as it is stored, read at one moment."""

    run: RunRow
    graph: Graph
    nodes: Sequence[NodeRow]
    attempts: Sequence[AttemptRow]
    """In the order of (index, number)."""
    journal: Sequence[JournalRow]
    earlier: Mapping[str, Graph] = MappingProxyType({})
    """The graphs it had before, by digest."""


def earlier_graphs(journal: Iterable[JournalRow]) -> list[str]:
    """The digests of the graphs of a run, the present one last; empty if it was never healed."""
    moves = [(entry.status or "").split() for entry in journal if entry.kind == "healed"]
    return [*(old for old, _ in moves), moves[-1][1]] if moves else []


def audit(stored: Stored) -> list[str]:
    """What is wrong with a run; an empty list means that every invariant holds."""
    if len(stored.nodes) != stored.run.nodes:
        loading = stored.run.purpose in ("load", "delete", "heal", "import", "freeze")
        return [] if loading else ["the run is neither loaded nor being loaded"]
    return [*_attempts(stored), *_counters(stored), *_run(stored), *_history(stored)]


def _attempts(stored: Stored) -> Iterable[str]:
    """At most one completion and one running attempt; nodes and attempts agree."""
    of_node: list[list[AttemptRow]] = [[] for _ in stored.nodes]
    for attempt in stored.attempts:
        of_node[attempt.index].append(attempt)
    specs = stored.graph.in_order
    for node, attempts in zip(stored.nodes, of_node, strict=True):
        statuses = [attempt.status for attempt in attempts]
        completed, running = statuses.count(AttemptStatus.COMPLETED), statuses.count(AttemptStatus.RUNNING)
        if completed > 1 or running > 1:
            yield f"{node.id}: {completed} completed and {running} running attempts"
        if [attempt.number for attempt in attempts] != list(range(1, node.attempt + 1)):
            yield f"{node.id}: attempts are not numbered 1 to {node.attempt}"
        if (node.status is NodeStatus.COMPLETED) != (completed == 1):
            yield f"{node.id}: it is {node.status} and has {completed} completed attempts"
        if (node.status is NodeStatus.RUNNING) != (running == 1):
            yield f"{node.id}: it is {node.status} and has {running} running attempts"
        if (node.status is NodeStatus.WAITING and not node.parked) != (node.due_at is not None):
            yield f"{node.id}: it is {node.status} and due at {node.due_at}"
        if node.parked and statuses[-1] is not AttemptStatus.PARKED:
            yield f"{node.id}: it is parked and its last attempt is {statuses[-1]}"
        if node.wakes and AttemptStatus.PARKED not in statuses:
            yield f"{node.id}: a run performs it and none of its attempts has handed it over"
        retry = specs[node.index].retry
        most = retry.max_attempts if retry else 1
        if node.failures > most and stored.run.heals == 0:  # an earlier version may have allowed more
            yield f"{node.id}: {node.failures} failures since it was asked for, more than its maximum"
        for attempt in attempts:
            if (attempt.ended_at is None) != (attempt.status is AttemptStatus.RUNNING):
                yield f"{node.id}: attempt {attempt.number} is {attempt.status} and ended at {attempt.ended_at}"


class RunCounts(NamedTuple):
    open: int
    active: int
    failed: int


def counts(nodes: Sequence[NodeRow]) -> RunCounts:
    return RunCounts(
        sum(not node.status.terminal for node in nodes),
        sum(node.status in ACTIVE_NODES for node in nodes),
        sum(node.status in FAILED_NODES for node in nodes),
    )


def parent_counters(nodes: Sequence[NodeRow], parents: Sequence[int]) -> tuple[int, int]:
    """(parents not yet satisfied, parents that were skipped) of a node."""
    rows = [nodes[parent] for parent in parents]
    unsatisfied = sum(row.status not in SATISFIED_NODES for row in rows)
    return unsatisfied, sum(was_skipped(row.status, row.reason) for row in rows)


def _counters(stored: Stored) -> Iterable[str]:
    run = stored.run
    counted = counts(stored.nodes)
    released_since = (
        run.releasing and counted.active > run.active
    )  # nodes were released between reading the run and them
    if (run.open, run.active, run.failed) != tuple(counted._replace(active=run.active) if released_since else counted):
        yield f"the run counts {run.open, run.active, run.failed}, its nodes say {tuple(counted)}"
    healed = _healed(stored)
    # In a healed run nodes may have begun with other parents; a fork shares what has completed before it skips nodes.
    begun = () if healed or run.purpose == "fork" else (NodeStatus.RUNNING, NodeStatus.COMPLETED)
    early = (NodeStatus.READY, *begun)
    for node, own in zip(stored.nodes, stored.graph.parents, strict=True):
        satisfied = all(stored.nodes[parent].status in SATISFIED_NODES for parent in own)
        if node.status in early and not satisfied and (run.gate is GateState.OPEN or not healed):
            yield f"{node.id}: it is {node.status} before all its parents are"
        if run.gate is GateState.OPEN and node.status is NodeStatus.PENDING and satisfied and not run.releasing:
            yield f"{node.id}: all its parents are satisfied and it is still PENDING"
    if run.gate is GateState.OPEN:  # opening the gate derives the counters again
        for node, own in zip(stored.nodes, stored.graph.parents, strict=True):
            expected = parent_counters(stored.nodes, own)
            if (node.waiting, node.skipped) != expected and not _to_be_told(stored, node, expected):
                yield f"{node.id}: its counters are {node.waiting, node.skipped}, its parents say {expected}"


def _to_be_told(stored: Stored, node: NodeRow, expected: tuple[int, int]) -> bool:
    """Whether some of its parents are satisfied, and the store has yet to change its counters."""
    if not stored.run.releasing or node.skipped > expected[1]:
        return False
    done = sum(stored.nodes[parent].status in SATISFIED_NODES for parent in stored.graph.parents[node.index])
    return expected[0] < node.waiting <= expected[0] + done


def _healed(stored: Stored) -> bool:
    # A fork may begin with what a healed run has done.
    return stored.run.heals > 0 or isinstance(stored.graph, Arranged)


def _run(stored: Stored) -> Iterable[str]:
    run, statuses = stored.run, {node.status for node in stored.nodes if node.index not in stored.graph.removed}
    going_on = run.purpose == "reattempt"  # its row still says that it has ended
    if run.status.completed and not statuses <= SATISFIED_NODES and not going_on:
        yield f"the run is COMPLETED with nodes {sorted(map(str, statuses - SATISFIED_NODES))}"
    if run.status.terminal and run.gate is GateState.OPEN:
        yield f"the run is {run.status} and its gate is open"
    if run.status.terminal != (run.ended_at is not None):
        yield f"the run is {run.status} and ended at {run.ended_at}"
    if run.gate is GateState.OPEN:
        if not {node.status for node in stored.nodes} & ACTIVE_NODES and not run.releasing:
            yield "the gate is open and nothing can move"
        if run.on_failure in ("fail_fast", "pause") and run.failed > run.tolerated:
            yield "a node failed for good and the gate is open"
    if (
        run.status is RunStatus.FAILED
        and run.gate is GateState.SHUT
        and not statuses <= TERMINAL_NODES | {NodeStatus.RUNNING}
    ):
        yield f"the run is FAILED with nodes {sorted(map(str, statuses - TERMINAL_NODES))}"


def _history(stored: Stored) -> Iterable[str]:
    """The journal has no gap and agrees with the rows."""
    journal = stored.journal
    if [entry.seq for entry in journal] != list(range(1, stored.run.seq + 1)):
        yield f"the journal has {len(journal)} entries and the run counts {stored.run.seq}"
        return
    folded = fold(stored.graph, journal, stored.earlier)
    yield from folded.problems
    for node in stored.nodes:
        to_be_told = stored.run.releasing and node.status is NodeStatus.PENDING
        expected = folded.nodes[node.index]
        if expected is not node.status and not (to_be_told and expected is NodeStatus.READY):
            yield f"{node.id}: the journal says {expected}, its row {node.status}"
    expected_attempts = dict(folded.attempts)
    for attempt in stored.attempts:
        status = expected_attempts.pop((attempt.index, attempt.number), None)
        if status is not attempt.status:
            yield f"attempt {attempt.number} of node {attempt.index}: the journal says {status}, its row {attempt.status}"
    if expected_attempts:
        yield f"the journal tells of attempts without rows: {sorted(expected_attempts)}"
    if not _healed(stored):  # a node may have begun with other parents
        yield from _outdated(stored)


def _outdated(stored: Stored) -> Iterable[str]:
    """No parent of a completed node has completed again since that node began."""
    begun: dict[int, int] = {}
    completed: dict[int, int] = {}
    for entry in stored.journal:
        if entry.index is not None and entry.kind in ("claimed", "shared"):
            begun[entry.index] = entry.seq
        if entry.index is not None and entry.kind in ("completed", "shared"):
            completed[entry.index] = entry.seq
    for node, own in zip(stored.nodes, stored.graph.parents, strict=True):
        if node.status is not NodeStatus.COMPLETED:
            continue
        for parent in own:
            if stored.nodes[parent].status is NodeStatus.COMPLETED and completed[parent] > begun[node.index]:
                yield f"{node.id}: it completed on an attempt of {stored.nodes[parent].id} that was superseded"


class Folded(NamedTuple):
    nodes: list[NodeStatus]
    attempts: dict[tuple[int, int], AttemptStatus]
    problems: list[str]
    ready: set[int]
    """The nodes that are READY."""


def fold(graph: Graph, journal: Sequence[JournalRow], earlier: Mapping[str, Graph] = MappingProxyType({})) -> Folded:
    """What a journal says about nodes and attempts."""
    digests = earlier_graphs(journal)
    graphs = [*(earlier[digest] for digest in digests[:-1]), graph]
    return deque(folding(graphs, journal), maxlen=1)[0]


def folding(graphs: Sequence[Graph], journal: Iterable[JournalRow]) -> Iterator[Folded]:
    """What a journal says before its first entry and after each; always the same record, which changes.

    `graphs` are the graphs of the run, in order. A node becomes READY when its last parent completes while the gate is open, or
    when a gate opens; a node that is to run again is PENDING if a heal has given it a parent that is not done. These have no
    entries of their own, because they follow from others.
    """
    graphs = list(graphs)
    parents, children = graphs[0].parents, graphs[0].children
    nodes = [NodeStatus.PENDING if own else NodeStatus.READY for own in parents]
    attempts: dict[tuple[int, int], AttemptStatus] = {}
    problems: list[str] = []
    folded = Folded(nodes, attempts, problems, {index for index, own in enumerate(parents) if not own})
    waiting = [len(own) for own in parents]  # how many parents are not satisfied
    gate_open = True
    yield folded

    def become(index: int, status: NodeStatus) -> None:
        change = (nodes[index] in SATISFIED_NODES) - (status in SATISFIED_NODES)
        nodes[index] = status
        (folded.ready.add if status is NodeStatus.READY else folded.ready.discard)(index)
        for child in children[index] if change else ():
            waiting[child] += change

    def run_again(index: int, written: str | None) -> None:
        """READY, unless a heal has given the node a parent while it ran or waited."""
        status = NodeStatus(written or "")
        held_back = status is NodeStatus.READY and gate_open and waiting[index]
        become(index, NodeStatus.PENDING if held_back else status)

    def follow(entry: JournalRow, index: int, number: int) -> None:
        if entry.kind == "claimed":
            if waiting[index]:
                problems.append(f"node {index} was claimed at {entry.seq} before all its parents were satisfied")
            if index in graphs[0].removed:
                problems.append(f"node {index} was claimed at {entry.seq} although it is no longer in the graph")
            if nodes[index] is not NodeStatus.READY:
                problems.append(f"node {index} was claimed at {entry.seq} when it was {nodes[index]}")
            become(index, NodeStatus.RUNNING)
            attempts[index, number] = AttemptStatus.RUNNING
        elif entry.kind in ENDED_BY:
            if attempts.get((index, number)) is not AttemptStatus.RUNNING:
                problems.append(f"attempt {number} of node {index} ended at {entry.seq} and was not running")
            attempts[index, number] = ENDED_BY[entry.kind]
            run_again(index, entry.status)
            if nodes[index].satisfies and gate_open:
                for child in children[index]:
                    if nodes[child] is NodeStatus.PENDING and not waiting[child]:
                        become(child, NodeStatus.READY)
        elif entry.kind in ("woken", "rewrote"):
            if nodes[index] is NodeStatus.COMPLETED:  # its completion stays in history but no longer counts
                for earlier in range(1, number + 1):
                    if attempts.get((index, earlier)) is AttemptStatus.COMPLETED:
                        attempts[index, earlier] = AttemptStatus.SUPERSEDED
            run_again(index, entry.status)
        elif entry.kind == "shared":
            become(index, NodeStatus.COMPLETED)
            attempts[index, 1] = AttemptStatus.COMPLETED

    for entry in journal:
        if entry.kind == "healed":
            graphs.pop(0)
            parents, children = graphs[0].parents, graphs[0].children
            nodes += [NodeStatus.PENDING] * (len(parents) - len(nodes))
            waiting = [sum(nodes[parent] not in SATISFIED_NODES for parent in own) for own in parents]
        elif entry.kind == "gate":
            gate_open = False
        elif entry.kind == "run":
            gate_open = entry.status in MOVING_RUNS
            if gate_open:
                for index, status in enumerate(nodes):
                    if status in (NodeStatus.PENDING, NodeStatus.READY):
                        become(index, NodeStatus.PENDING if waiting[index] else NodeStatus.READY)
        elif entry.index is not None:
            follow(entry, entry.index, entry.attempt or 1)
        yield folded
