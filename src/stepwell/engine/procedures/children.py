"""Procedures between a run and the runs that perform its nodes."""

from __future__ import annotations

from typing import NamedTuple

from ...base.codec import decode, encode
from ...base.ids import Digest, RunId
from ...core.kernel.children import ToldChild, handed_to, told_children
from ...core.kernel.plans import NotNow, Plan
from ...core.model import (
    ENDED,
    AttemptRow,
    GetOutputs,
    GetRun,
    ListAttempts,
    ListRuns,
    RunNews,
    RunRow,
    RunStatus,
    Wake,
    receipts,
)
from ...core.model.outputs import output_of
from .procedure import Commit, Procedure, Read, load_graph


def child_rows(run_id: RunId, statuses: tuple[RunStatus, ...] = ()) -> Procedure[list[RunRow]]:
    """The child runs of a run, the newest first."""
    rows: list[RunRow] = []
    query = ListRuns(parent=run_id, statuses=statuses, limit=1_000)
    while True:
        (page,) = yield Read([query])
        rows += page.runs
        if page.cursor is None:
            return rows
        query = query._replace(before=page.cursor)


def tell(purpose: str, run: RunRow, digest: Digest, plan: Plan) -> Procedure[list[ToldChild] | NotNow]:
    """What a plan means for the child runs of a run. `digest`: of the graph that the run has with it."""
    children = yield from child_rows(run.id)
    removed: frozenset[int] = frozenset()
    if children and purpose in ("heal", "import"):
        removed = frozenset((yield from load_graph(run.id, digest)).removed)
    return told_children(purpose, run, plan, children, removed)


def hand_on(run_id: RunId) -> Procedure[RunNews | None]:
    """A child run has ended: wake the node that it performs. The state of its parent, if it has one."""
    (run,) = yield Read([GetRun(run_id)])
    if run is None or run.purpose != ENDED or run.parent is None or run.parent_node is None:
        return None
    (receipt,) = yield Commit([Wake(run.parent, run.parent_node, run_id)])
    return receipt.run if isinstance(receipt, receipts.Woken) else None


class ChildEnd(NamedTuple):
    """What has become of the run that performs a node."""

    run_id: RunId | None
    row: RunRow | None
    """None: it is gone."""
    output: bytes | None = None
    """Its result, once it has completed."""


def look(run_id: RunId, index: int) -> Procedure[ChildEnd]:
    """Look at the run that performs a node: the one to which the latest attempt handed it over that did so."""
    query = ListAttempts(run_id, index)
    attempts: list[AttemptRow] = []
    while True:
        (page,) = yield Read([query])
        attempts += page
        if page.cursor is None:
            break
        query = query._replace(after=page.cursor)
    child = handed_to(attempts)
    if child is None:
        return ChildEnd(None, None)
    (row,) = yield Read([GetRun(child)])
    output = (yield from result_of(row)) if row is not None and row.status.completed else None
    return ChildEnd(child, row, output)


def result_of(run: RunRow) -> Procedure[bytes]:
    """The result of a run: what its last node returned; of several last nodes by name. What was skipped has returned null."""
    graph = yield from load_graph(run.id, run.digest)
    last = tuple(i for i, below in enumerate(graph.children) if not below and i not in graph.removed)
    found: dict[int, bytes] = {}
    query = GetOutputs(run.id, last)
    while True:
        (page,) = yield Read([query])
        found |= {index: output_of(completion.output) for index, completion in page}
        if page.cursor is None:
            break
        query = query._replace(after=page.cursor)
    if len(last) == 1:
        return found.get(last[0], encode(None))
    names = {graph.in_order[index].name: found.get(index) for index in last}
    return encode({name: None if output is None else decode(output) for name, output in names.items()})
