"""Carry out what needs a closed gate: hold it, read the rows, let the kernel compute, write, open or shut."""

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
    HeldGate,
    Receipt,
    Refusal,
    Refused,
    Rewrite,
    Rewritten,
    RunNews,
    RunRow,
    RunStatus,
)
from ..store import Store, reader

GATE_LEASE = 30_000_000
"""Microseconds after which somebody else may finish what a gate is held for."""

RETRYABLE = (RunStatus.FAILED, RunStatus.CANCELLED)
CANCELLABLE = (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.PAUSED)


def cancel(store: Store, run_id: RunId, *, grace: int) -> RunNews | None:
    """Cancel a run; None when it had already ended, or was being cancelled."""
    arguments = encode({"grace": grace})
    return _enact(store, Gate(run_id, new_gate_token(), "cancel", arguments, GATE_LEASE, True, CANCELLABLE))


def retry(store: Store, run_id: RunId) -> RunNews | None:
    """Run again what did not complete; None when the run had not failed or been cancelled."""
    return _enact(store, Gate(run_id, new_gate_token(), "retry", b"", GATE_LEASE, False, RETRYABLE))


def finish(store: Store, held: HeldGate) -> RunNews | None:
    """Finish what somebody left; None when somebody else does it, or it is done."""
    if held.purpose == "load":
        load(store, held.run_id)
        return None
    if held.purpose == "delete":
        delete(store, held.run_id)
        return None
    stop = held.purpose in ("failed", "cancel")
    try:
        return _enact(store, Gate(held.run_id, new_gate_token(), held.purpose, held.arguments, GATE_LEASE, stop))
    except RunConflict:
        return None


def load(store: Store, run_id: RunId, start: int = CHUNK) -> None:
    """Add the nodes of a run that are not there yet, chunk by chunk."""
    while True:
        receipt = store.commit([AddNodes(run_id, start)])[0]
        if isinstance(receipt, Refused) or not isinstance(receipt, Created) or receipt.loaded >= receipt.total:
            return
        start = receipt.loaded


def delete(store: Store, run_id: RunId) -> None:
    while True:
        receipt = store.commit([Delete(run_id)])[0]
        if isinstance(receipt, Refused):
            raise RunConflict(
                f"run {run_id} is {receipt.detail}; only an ended run can be deleted: cancel it first", run_id=run_id
            )
        if isinstance(receipt, Deleted) and receipt.finished:
            return


def _enact(store: Store, gate: Gate) -> RunNews | None:
    """Hold the gate and apply the plan for its purpose; when rows change meanwhile, compute it anew."""
    receipt = store.commit([gate])[0]
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
        answer = _apply(store, gate, _plan(store, gate))
        if isinstance(answer, Rewritten):
            return answer.run
        if isinstance(answer, Refused) and answer.reason is not Refusal.CHANGED:
            return None  # somebody else took the gate over and finishes it


def _plan(store: Store, gate: Gate) -> Plan:
    run = reader.require_run(store, gate.run_id)
    nodes = reader.all_nodes(store, gate.run_id)
    match gate.purpose:
        case "failed":
            return plans.failed(run, nodes, _graph(store, run).children)
        case "cancel":
            return plans.cancel(nodes, grace=decode(gate.arguments)["grace"])
        case "retry":
            return plans.retry(nodes)
        case unknown:
            raise StoreCorrupt(f"run {gate.run_id}: the gate is held for {unknown!r}, which this version does not know")


def _graph(store: Store, run: RunRow) -> Graph:
    document = reader.get_graph(store, run.digest)
    if document is None:
        raise StoreCorrupt(f"the graph {run.digest} of run {run.id} is missing")
    return Graph.load(document)


def _apply(store: Store, gate: Gate, plan: Plan) -> Receipt:
    """Apply the changes chunk by chunk; the last chunk also finishes."""
    changes = tuple(plan.changes)
    last = max(0, len(changes) - 1) // CHUNK * CHUNK
    for start in range(0, last, CHUNK):
        receipt = store.commit([Rewrite(gate.run_id, gate.token, changes[start : start + CHUNK])])[0]
        if isinstance(receipt, Refused):
            return receipt
    return store.commit([Rewrite(gate.run_id, gate.token, changes[last:], plan.finish)])[0]
