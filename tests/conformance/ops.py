"""Graphs and ops in few words, for tests of stores and of what is built on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from stepwell.base.clock import ManualClock, microseconds
from stepwell.base.ids import AttemptId, ClaimId, GateToken, NodeId, RunId, WorkerId, new_claim_id
from stepwell.core.graph import Graph, NodeSpec, Retry
from stepwell.core.kernel import layout as storing
from stepwell.core.model import *
from stepwell.core.store import Store, reader

Kind = TypeVar("Kind")

MARGIN = 0.5
"""Seconds by which something is early enough: on a server time goes on while a test does."""
RUN = RunId("run-1")
WORKER = WorkerId("worker-1")
TOKEN = GateToken("token-1")
CHUNK = StoreLimits().nodes
LANE = Lane("default", "thread")
EVERY_LANE = (
    LANE,
    Lane("default", "loop"),
    Lane("default", "process"),
    Lane("default", "thread", careful=True),
    *(Lane("default", body, suspect=True) for body in ("thread", "loop", "process")),
)


def lane(text: str) -> Lane:
    """
    >>> lane("gpu/thread!?")
    Lane(queue='gpu', body='thread', careful=True, suspect=True)
    """
    queue, _, body = text.partition("/")
    return Lane(queue, body.rstrip("!?"), "!" in body, "?" in body)


def spec(name: str, parents: str = "", *, needs: str = "", **options: Any) -> NodeSpec:
    """A node from its name, the names of its parents and of those whose outputs it needs."""
    after, given = (tuple(map(NodeId, names.split())) for names in (parents, needs))
    return NodeSpec(NodeId(name), name, depends_on=after, needs=given, **options)


def graph(*more: NodeSpec, **parents: str) -> Graph:
    """A graph from names and what each depends on, in the order they are written.

    >>> graph(load="", clean="load", report="load clean").parents
    ((), (0,), (0, 1))
    """
    return Graph([*(spec(name, names) for name, names in parents.items()), *more])


def patient(*names: str) -> Graph:
    """Nodes side by side that may fail many times."""
    return graph(*(spec(name, retry=Retry(99)) for name in names))


def fan(size: int) -> Graph:
    """One root, `size` children, one join below them all."""
    children = [f"child_{i}" for i in range(size)]
    return graph(root="", **dict.fromkeys(children, "root"), join=" ".join(children))


def add_graph(of: Graph, *, workflow: str = "orders", chunk: int = CHUNK) -> list[AddGraph]:
    """The ops that store a graph, chunk by chunk."""
    return [*storing.add_graph(of, workflow, chunk=chunk)]


def create(of: Graph, run: str = RUN, **options: Any) -> Create:
    defaults: dict[str, Any] = {"workflow": "orders", "target": None, "input": b'{"order_id":7}', "seed": 7}
    return Create(run_id=RunId(run), digest=of.digest, **(defaults | options))


def start(store: Store, of: Graph, *runs: str, **options: Any) -> Graph:
    """Store the graph, create a run of it, or several, and load each whole."""
    chunk = store.limits.nodes
    for run in runs or (RUN,):
        op = create(of, run, **options)
        more = [AddNodes(RunId(run), begin) for begin in range(chunk, len(of), chunk)]
        receipts = store.commit([*add_graph(of, workflow=op.workflow, chunk=chunk), op, *more])
        refused = [receipt for receipt in receipts if isinstance(receipt, Refused)]
        assert not refused, refused
        assert isinstance(receipts[-1], Created)
        assert receipts[-1].loaded == len(of)
    return of


def serve(store: Store, of: Graph, *runs: str, worker: str = WORKER, seconds: float = 30, **options: Any) -> Graph:
    """Start runs, and have a worker for them whose lease ends after so many seconds."""
    enlist(store, worker, seconds=seconds)
    return start(store, of, *runs, **options)


def worked(store: Store, of: Graph, *runs: str, **options: Any) -> Graph:
    """The same, worked to their end."""
    serve(store, of, *runs, **options)
    work(store)
    return of


def claim_roots(store: Store, of: Graph, *runs: str, worker: str = WORKER, **options: Any) -> tuple[Grant, ...]:
    """Start runs, and have a worker claim all nodes that have no parents."""
    serve(store, of, *runs, worker=worker, **options)
    return claim(store, worker)


def claim_by_name(store: Store, of: Graph, **options: Any) -> dict[str, Grant]:
    return by_name(of, claim_roots(store, of, **options))


def claim_first(store: Store, of: Graph, worker: str = WORKER, **options: Any) -> Grant:
    """The same for a graph with one such node."""
    (grant,) = claim_roots(store, of, worker=worker, **options)
    return grant


def claim_one(store: Store, worker: str = WORKER, **scope: Any) -> Grant:
    """Claim the one node that is ready."""
    (grant,) = claim(store, worker, **scope)
    return grant


def complete_next(store: Store, output: bytes | None = b"null", **scope: Any) -> Grant:
    """Claim the one node that is ready, and complete it."""
    grant = claim_one(store, **scope)
    one(store, completed(grant, output), Settled)
    return grant


def one(store: Store, op: Op, kind: type[Kind]) -> Kind:
    """Commit one op that must be answered with this kind of receipt."""
    (receipt,) = store.commit([op])
    assert isinstance(receipt, kind), f"{op} was answered with {receipt}"
    return receipt


def refused(store: Store, op: Op) -> Refusal:
    """Commit one op that must be refused; why it was."""
    return one(store, op, Refused).reason


def enlist(store: Store, worker: str = WORKER, *, seconds: float = 30) -> WorkerId:
    one(store, Enlist(WorkerId(worker), microseconds(seconds), b"{}"), Enlisted)
    return WorkerId(worker)


def claim_op(
    worker: str = WORKER,
    limit: int = CHUNK,
    *,
    claim: str | None = None,
    lanes: Sequence[tuple[Lane | str, int]] | None = None,
    runs: Iterable[str] = (RUN,),
    serves: Iterable[tuple[str, str]] | None = None,
) -> Claim:
    """A claim of up to `limit` nodes of the usual lanes."""
    asked = [(every, limit) for every in EVERY_LANE] if lanes is None else lanes
    return Claim(
        new_claim_id() if claim is None else ClaimId(claim),
        WorkerId(worker),
        tuple((lane(name) if isinstance(name, str) else name, most) for name, most in asked),
        tuple(RunId(run) for run in runs) if serves is None else (),
        None if serves is None else tuple(serves),
    )


def claim(store: Store, worker: str = WORKER, limit: int = CHUNK, **scope: Any) -> tuple[Grant, ...]:
    """Of all runs there are, unless it says of which."""
    if not {"runs", "serves"} & scope.keys():
        scope["runs"] = sorted(row.id for row in reader.all_runs(store))
    return one(store, claim_op(worker, limit, **scope), Claimed).grants


def completed(grant: Grant, output: bytes | None = b"null", **more: Any) -> Settle:
    return Settle(grant.attempt, AttemptStatus.COMPLETED, NodeStatus.COMPLETED, output, **more)


def failed(grant: Grant, error: bytes = b'{"type":"ValueError"}') -> Settle:
    return Settle(grant.attempt, AttemptStatus.FAILED, NodeStatus.FAILED, error=error)


def retried(grant: Grant, seconds: float, error: bytes = b'{"type":"ValueError"}') -> Settle:
    delay = microseconds(seconds)
    return Settle(grant.attempt, AttemptStatus.FAILED, NodeStatus.WAITING, error=error, delay=delay)


def stopped(grant: Grant) -> Settle:
    return Settle(grant.attempt, AttemptStatus.CANCELLED, NodeStatus.CANCELLED)


def released(grant: Grant) -> Settle:
    return Settle(grant.attempt, AttemptStatus.RELEASED, NodeStatus.READY)


def skipped(settlement: Grant | Settle, reason: str = CONDITION) -> Settle:
    """The settlement of an attempt whose body is not called, because the node is skipped."""
    return Settle(settlement.attempt, AttemptStatus.RELEASED, NodeStatus.SKIPPED, reason=reason)


def child_run(of: Graph, grant: Grant, run: str = "child-1", **options: Any) -> Create:
    """A run that performs the node of an attempt."""
    return create(of, run, parent=grant.run_id, parent_node=grant.index, depth=1, **options)


def parked(grant: Grant, child: Create | None = None) -> Settle:
    """The settlement of an attempt that hands its node over to a run, or waits on for it."""
    output = None if child is None else b'{"run":"%s"}' % child.run_id.encode()
    return Settle(grant.attempt, AttemptStatus.PARKED, NodeStatus.WAITING, output, wakes=grant.wakes, child=child)


def hand_over(store: Store, grant: Grant, of: Graph | None = None, run: str = "child-1", **options: Any) -> RunRow:
    """The node of an attempt is performed by a new run from now on."""
    below = of or graph(k="")
    store.commit(add_graph(below))
    one(store, parked(grant, child_run(below, grant, run, **options)), Settled)
    return reader.require_run(store, run)


def wake(store: Store, index: int = 0, run: str = RUN, ended: str | None = None) -> Woken:
    return one(store, Wake(RunId(run), index, None if ended is None else RunId(ended)), Woken)


def work(store: Store, worker: str = WORKER, *, failing: Mapping[str, str] | Iterable[str] = (), **scope: Any) -> int:
    """Claim and settle until nothing is ready; nodes whose id is in `failing` fail. How many attempts it took."""
    doomed = set(failing)
    done = 0
    while grants := claim(store, worker, **scope):
        store.commit([failed(g) if node(store, g.index, g.run_id).id in doomed else completed(g) for g in grants])
        done += len(grants)
    return done


def sweep(store: Store, limit: int = 1_000) -> Swept:
    return one(store, Sweep(limit), Swept)


def sweep_after(store: Store, clock: ManualClock, seconds: float, limit: int = 1_000) -> Swept:
    clock.advance(seconds)
    return sweep(store, limit)


def gate_op(run: str = RUN, token: str = TOKEN, purpose: str = "cancel", seconds: float = 30, **more: Any) -> Gate:
    return Gate(RunId(run), GateToken(token), purpose, b"{}", microseconds(seconds), **more)


def hold(store: Store, run: str = RUN, token: str = TOKEN, purpose: str = "cancel", **more: Any) -> RunNews:
    """Hold a gate, or take over one that somebody left for this purpose."""
    row = reader.require_run(store, run)
    left = row.gate is GateState.HELD and row.purpose == purpose
    return _with_either(store, token, lambda name: gate_op(run, name, purpose, resume=left, **more), GateTaken).run


def _with_either(store: Store, token: str, op: Callable[[str], Op], kind: type[Kind]) -> Kind:
    """A token is not taken twice in a row, so tests that hold a gate again have a second one."""
    (receipt,) = store.commit([op(token)])
    if isinstance(receipt, Refused) and receipt.reason is Refusal.GATE_LOST:
        return one(store, op(f"{token}, again"), kind)
    assert isinstance(receipt, kind), receipt
    return receipt


def finish(
    store: Store,
    status: RunStatus,
    *rows: NodeChange,
    open_gate: bool = False,
    run: str = RUN,
    token: str = TOKEN,
    **more: Any,
) -> RunNews:
    """The last rewrite behind a gate, again until it is done."""
    end = Finish(status, open_gate, **more)
    receipt = _with_either(store, token, lambda name: Rewrite(RunId(run), GateToken(name), rows, end), Rewritten)
    while not receipt.finished:
        receipt = _with_either(store, token, lambda name: Rewrite(RunId(run), GateToken(name), (), end), Rewritten)
    return receipt.run


def enact(
    store: Store, purpose: str, status: RunStatus, *rows: NodeChange, run: str = RUN, stop: bool = False, **more: Any
) -> RunNews:
    """Hold the gate for a purpose and finish at once; it is open afterwards if the run goes on."""
    hold(store, run, purpose=purpose, stop=stop)
    going_on = status in (RunStatus.PENDING, RunStatus.RUNNING)
    return finish(store, status, *rows, open_gate=going_on, run=run, **more)


def changed(
    row: NodeRow, status: NodeStatus, reason: str | None = None, *, fresh: bool = False, anew: bool = False
) -> NodeChange:
    """A change computed from this row."""
    return NodeChange(row.index, row.status, row.attempt, status, reason, fresh, anew)


def node(store: Store, index: int, run: str = RUN) -> NodeRow:
    return reader.all_nodes(store, run)[index]


def expect(row: Any, **fields: Any) -> None:
    """The row has these values in these fields."""
    found = {name: getattr(row, name) for name in fields}
    assert found == fields, f"{found} in place of {fields}"


def expect_run(store: Store, run: str = RUN, /, **fields: Any) -> None:
    expect(reader.require_run(store, run), **fields)


def by_name(of: Graph, grants: Iterable[Grant]) -> dict[str, Grant]:
    return {of.order[grant.index]: grant for grant in grants}


def statuses(store: Store, run: str = RUN) -> dict[str, str]:
    """Node id -> status, for all nodes of a run."""
    return {row.id: str(row.status) for row in reader.all_nodes(store, run)}


def end_run(store: Store, run: str = RUN, status: RunStatus = RunStatus.CANCELLED) -> None:
    """End a run whatever it does: everything that has not started is cancelled, the gate is shut."""
    left = reader.require_run(store, run)
    hold(store, run, "end", (left.purpose if left.gate is GateState.HELD else None) or "cancel", stop=True)
    unstarted = (NodeStatus.PENDING, NodeStatus.READY, NodeStatus.WAITING)
    rows = [changed(row, NodeStatus.CANCELLED) for row in reader.all_nodes(store, run, *unstarted)]
    finish(store, status, *rows, run=run, token="end")


def twice(store: Store, batch: Batch) -> tuple[list[Receipt], list[Receipt]]:
    """Commit a batch, then the same again, as somebody does whose answer was lost."""
    return store.commit(batch), store.commit(batch)


def in_threads(count: int, do: Callable[[int], None]) -> None:
    """Call it in so many threads at once, with the number of each."""
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(do, range(count)))


def ready_runs(store: Store, *runs: str, lanes: Sequence[Lane] = EVERY_LANE) -> tuple[RunId, ...]:
    """Those of these runs that have READY nodes behind an open gate."""
    (found,) = store.read([ListReady(tuple(lanes), tuple(map(RunId, runs)))])
    return found  # type: ignore[no-any-return]


def list_stops(store: Store, worker: WorkerId = WORKER) -> tuple[AttemptId, ...]:
    (found,) = store.read([ListStops(worker)])
    return found  # type: ignore[no-any-return]
