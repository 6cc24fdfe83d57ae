"""What needs a closed gate: hold it, read the rows, let the kernel compute, write, open or shut. All of it as procedures."""

from __future__ import annotations

from ..codec import decode, encode
from ..errors import RunConflict, RunNotFound, StoreCorrupt
from ..graph import Graph
from ..ids import RunId, new_gate_token
from ..kernel import plans
from ..kernel.plans import Plan
from ..model import (
    CHUNK,
    AddNodes,
    Created,
    Delete,
    Deleted,
    Gate,
    GateTaken,
    GetGraph,
    GetRun,
    HeldGate,
    ListNodes,
    NodeRow,
    Receipt,
    Refusal,
    Refused,
    Rewrite,
    Rewritten,
    RunNews,
    RunRow,
    RunStatus,
)
from .procedure import Commit, Procedure, Read

GATE_LEASE = 30_000_000
"""Microseconds after which somebody else may finish what a gate is held for."""

RETRYABLE = (RunStatus.FAILED, RunStatus.CANCELLED)
CANCELLABLE = (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.PAUSED)


def cancel(run_id: RunId, *, grace: int) -> Procedure[RunNews | None]:
    """Cancel a run; None when it had already ended, or was being cancelled."""
    arguments = encode({"grace": grace})
    return _enact(Gate(run_id, new_gate_token(), "cancel", arguments, GATE_LEASE, True, CANCELLABLE))


def retry(run_id: RunId) -> Procedure[RunNews | None]:
    """Run again what did not complete; None when the run had not failed or been cancelled."""
    return _enact(Gate(run_id, new_gate_token(), "retry", b"", GATE_LEASE, False, RETRYABLE))


def finish(held: HeldGate) -> Procedure[RunNews | None]:
    """Finish what somebody left; None when somebody else does it, or it is done."""
    if held.purpose == "load":
        yield from load(held.run_id)
        return None
    if held.purpose == "delete":
        yield from delete(held.run_id)
        return None
    stop = held.purpose in ("failed", "cancel")
    try:
        gate = Gate(held.run_id, new_gate_token(), held.purpose, held.arguments, GATE_LEASE, stop, resume=True)
        return (yield from _enact(gate))
    except RunConflict:
        return None


def load(run_id: RunId, start: int = CHUNK) -> Procedure[None]:
    """Add the nodes of a run that are not there yet, chunk by chunk."""
    while True:
        (receipt,) = yield Commit([AddNodes(run_id, start)])
        if not isinstance(receipt, Created) or receipt.loaded >= receipt.total:
            return
        start = receipt.loaded


def delete(run_id: RunId) -> Procedure[None]:
    while True:
        (receipt,) = yield Commit([Delete(run_id)])
        if isinstance(receipt, Refused):
            raise RunConflict(
                f"run {run_id} is {receipt.detail}; only an ended run can be deleted: cancel it first", run_id=run_id
            )
        if isinstance(receipt, Deleted) and receipt.finished:
            return


def _enact(gate: Gate) -> Procedure[RunNews | None]:
    """Hold the gate and apply the plan for its purpose; when rows change meanwhile, compute it anew."""
    (receipt,) = yield Commit([gate])
    if isinstance(receipt, Refused):
        if receipt.reason is Refusal.UNKNOWN:
            raise RunNotFound(gate.run_id)
        if receipt.reason is Refusal.STATUS:
            return None
        raise RunConflict(
            f"run {gate.run_id} is busy with {receipt.detail!r}; try again in a moment", run_id=gate.run_id
        )
    assert isinstance(receipt, GateTaken)
    while True:
        plan = yield from _plan(gate)
        answer = yield from _apply(gate, plan)
        if isinstance(answer, Rewritten):
            return answer.run
        if isinstance(answer, Refused) and answer.reason is not Refusal.CHANGED:
            return None  # somebody else took the gate over and finishes it


def _plan(gate: Gate) -> Procedure[Plan]:
    (run,) = yield Read([GetRun(gate.run_id)])
    if run is None:
        raise RunNotFound(gate.run_id)
    nodes = yield from _all_nodes(gate.run_id)
    match gate.purpose:
        case "failed":
            graph = yield from _graph(run)
            return plans.failed(run, nodes, graph.children)
        case "cancel":
            return plans.cancel(nodes, grace=decode(gate.arguments)["grace"])
        case "retry":
            return plans.retry(nodes)
        case unknown:
            raise StoreCorrupt(f"run {gate.run_id}: the gate is held for {unknown!r}, which this version does not know")


def _all_nodes(run_id: RunId) -> Procedure[list[NodeRow]]:
    nodes: list[NodeRow] = []
    query = ListNodes(run_id)
    while True:
        (page,) = yield Read([query._replace(after=nodes[-1].index if nodes else -1)])
        nodes += page
        if len(page) < query.limit:
            return nodes


def _graph(run: RunRow) -> Procedure[Graph]:
    (document,) = yield Read([GetGraph(run.digest)])
    if document is None:
        raise StoreCorrupt(f"the graph {run.digest} of run {run.id} is missing")
    return Graph.load(document)


def _apply(gate: Gate, plan: Plan) -> Procedure[Receipt]:
    """Apply the changes chunk by chunk; the last chunk also finishes."""
    changes = tuple(plan.changes)
    last = max(0, len(changes) - 1) // CHUNK * CHUNK
    for start in range(0, last, CHUNK):
        (receipt,) = yield Commit([Rewrite(gate.run_id, gate.token, changes[start : start + CHUNK])])
        if isinstance(receipt, Refused):
            return receipt
    (receipt,) = yield Commit([Rewrite(gate.run_id, gate.token, changes[last:] + plan.holds_while, plan.finish)])
    return receipt  # type: ignore[no-any-return]
