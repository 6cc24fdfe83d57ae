"""Procedures behind a closed gate: hold it, read the rows, let the kernel compute, write, open or shut it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...base.codec import decode, encode, sha256
from ...base.ids import RunId, new_gate_token
from ...core.graph import Graph
from ...core.kernel import healing, plans
from ...core.kernel.importing import import_problems
from ...core.kernel.layout import add_graph
from ...core.kernel.plans import NotNow, Plan, unchanged
from ...core.model import RUN_VERBS, GetRun, NodeRow, PutRecord, Receipt, Refused, RunNews, RunRow, ops, receipts
from ...errors import RunBusy, RunConflict, RunNotFound, StoreCorrupt
from ...history.audit_log import withdrawn
from .children import child_rows, hand_on, tell
from .forking import share_all
from .procedure import AskLimits, Commit, Procedure, Read, all_nodes, load_graph, news_of

GATE_LEASE = 10_000_000
"""Microseconds after which somebody else may finish what a gate is held for. A late holder is fenced, and loses only time."""
LONG_GATE_LEASE = 60_000_000
"""The same for switching to another graph, which may write a hundred thousand rows."""


CHILD_GRACE = 5_000_000
"""Microseconds that the bodies of child runs have to stop when their parent has failed."""
BUSY_TIMES = 20


def ask(run_id: RunId, purpose: str, **arguments: Any) -> ops.Gate:
    """The gate to hold for a request."""
    stop = purpose in ("failed", "cancel")
    encoded = encode(arguments) if arguments else b""
    lease = LONG_GATE_LEASE if "digest" in arguments else GATE_LEASE
    return ops.Gate(run_id, new_gate_token(), purpose, encoded, lease, stop, RUN_VERBS[purpose].allowed)


def ask_to_reattempt(run_id: RunId, index: int, *, cascade: bool) -> ops.Gate:
    return ask(run_id, "reattempt", node=index, **({"cascade": True} if cascade else {}))


def switch_graph(
    run: RunRow,
    current: Graph,
    new: Graph,
    *,
    purpose: str = "heal",
    pinned: bool = False,
    accept: bool = False,
    trusted: bool = True,
    entries: Sequence[PutRecord] = (),
) -> Procedure[RunNews | None]:
    """Switch a run to another graph; None when its status does not allow it.

    A heal that might do the work of a renamed node twice pauses the run instead, unless that is accepted.
    """
    # What a dead worker held no longer runs, so a new node before it does not come too late.
    yield Commit([ops.Sweep(run=run.id)])
    arranged = healing.arrange(current, new, pinned=pinned, trusted=trusted)
    if arranged.document == current.document:
        return None
    nodes = yield from all_nodes(run.id)
    if len(nodes) > len(current.order):  # somebody has just finished a change, perhaps this very one
        raise RunBusy(f"run {run.id} is just switching to another graph; try again in a moment", run_id=run.id)
    obstacle = _obstacle(purpose, run, current, arranged, nodes, accept=accept)
    if isinstance(obstacle, NotNow):  # no need to close the gate for that
        raise RunConflict(f"run {run.id}: {obstacle.message}", run_id=run.id)
    ((chunk, *_),) = yield AskLimits()
    for op in add_graph(arranged, run.workflow, chunk=chunk):
        yield Commit([op])
    gate = ask(run.id, purpose, base=current.digest, digest=arranged.digest, accept=accept)
    return (yield from enact(gate, entries))


def finish(held: receipts.HeldGate) -> Procedure[RunNews | None]:
    """Finish what a gate was left held for; None when it is done, or somebody else does it."""
    if held.purpose == "load":
        yield from load(held.run_id)
        return None
    if held.purpose == ops.ENDED:
        return (yield from hand_on(held.run_id))
    if held.purpose in ("delete", "restore"):  # who restored it has died, and the run is still elsewhere
        yield from delete(held.run_id)
        return None
    stop = held.purpose in ("failed", "cancel")
    try:
        gate = ops.Gate(held.run_id, new_gate_token(), held.purpose, held.arguments, GATE_LEASE, stop, resume=True)
        return (yield from enact(gate))
    except RunConflict:
        return None


def load(run_id: RunId, start: int = 0) -> Procedure[None]:
    """Add the nodes of a run that are not there yet, chunk by chunk."""
    while True:
        (receipt,) = yield Commit([ops.AddNodes(run_id, start)])
        if not isinstance(receipt, receipts.Created) or receipt.loaded >= receipt.total:
            return
        start = receipt.loaded


def delete(run_id: RunId, entries: Sequence[PutRecord] = ()) -> Procedure[None]:
    """Delete a run with all runs below it. `entries`: what the audit log gets of it.

    The run is marked first, so that whoever finds it half deleted deletes the rest.
    """
    children = yield from child_rows(run_id)
    for child in children:
        if not child.status.terminal:
            raise RunConflict(f"run {run_id}: its child run {child.id} is still {child.status}", run_id=run_id)
    if children:
        yield from _delete_part(ops.Delete(run_id, limit=1), entries)
    for child in children:
        yield from delete(child.id)
    finished = False
    while not finished:
        finished = yield from _delete_part(ops.Delete(run_id), entries)


def _delete_part(op: ops.Delete, entries: Sequence[PutRecord]) -> Procedure[bool]:
    """Whether it is gone."""
    receipt, *_ = yield Commit([op, *entries])
    if isinstance(receipt, Refused) and receipt.detail == ops.ENDED:
        yield from hand_on(op.run_id)
        return False
    if isinstance(receipt, Refused):
        raise RunConflict(
            f"run {op.run_id} is {receipt.detail}; only an ended run can be deleted: cancel it first", run_id=op.run_id
        )
    return isinstance(receipt, receipts.Deleted) and receipt.finished


def enact(gate: ops.Gate, entries: Sequence[PutRecord] = ()) -> Procedure[RunNews | None]:
    """Hold the gate and apply the plan for its purpose; if rows change meanwhile, compute it again.

    `entries`: what the audit log gets of it, unless the plan gives up.
    """
    receipt, *_ = yield Commit([gate, *entries])
    if isinstance(receipt, Refused) and receipt.reason in _LEFT and not gate.resume:
        news = yield from _finish_what_was_left(gate)
        if news is not None:
            return news
        receipt, *_ = yield Commit([gate, *entries])
    if isinstance(receipt, Refused):
        if receipt.reason is receipts.Refusal.UNKNOWN:
            raise RunNotFound(gate.run_id)
        if receipt.reason is receipts.Refusal.STATUS:
            return None
        raise RunBusy(f"run {gate.run_id} is busy with {receipt.detail!r}; try again in a moment", run_id=gate.run_id)
    assert isinstance(receipt, receipts.GateTaken)
    begun = gate.resume
    while True:
        run = yield from _run(gate)
        plan = yield from _plan(gate, run, begun=begun)
        begun = True
        if isinstance(plan, Plan):
            plan = (yield from _tell_children(gate, run, plan)) or plan
        if isinstance(plan, NotNow):
            yield from _apply(gate, Plan([], unchanged(run)), withdrawn(entries))
            raise RunConflict(f"run {gate.run_id}: {plan.message}", run_id=gate.run_id)
        answer = yield from _apply(gate, plan)
        if isinstance(answer, receipts.Rewritten):
            return answer.run
        if isinstance(answer, Refused) and answer.reason is not receipts.Refusal.CHANGED:
            # Somebody else took over the gate because this was late, and finishes what was asked for.
            return None if gate.resume else news_of((yield from _run(gate)))


def _tell_children(gate: ops.Gate, run: RunRow, plan: Plan) -> Procedure[NotNow | None]:
    """Request of the child runs what the plan means for them, before it is carried out: whoever takes over the gate asks again.
    NotNow if the plan cannot be carried out because of them."""
    arguments = decode(gate.arguments) if gate.arguments else {}
    told = yield from tell(gate.purpose, run, arguments.get("digest", run.digest), plan)
    if isinstance(told, NotNow):
        return told
    for child, verb, reason in told:
        options: dict[str, Any] = {} if reason is None else {"reason": reason}
        if verb == "cancel":
            options["grace"] = arguments.get("grace", CHILD_GRACE)
        news = yield from _patiently(ask(child, verb, **options))
        if news is not None and news.purpose == ops.ENDED:
            yield from hand_on(child)
    return None


def _patiently(gate: ops.Gate) -> Procedure[RunNews | None]:
    """Ask a child run, a few times if somebody else is just changing it. If it stays busy, whoever takes over the gate of the
    parent asks again."""
    for _ in range(BUSY_TIMES):
        try:
            return (yield from enact(gate))
        except RunBusy:
            (run,) = yield Read([GetRun(gate.run_id)])
            if run is not None and run.purpose == "load":
                yield from load(run.id)
        except RunNotFound:
            return None
    return (yield from enact(gate))


_LEFT = (receipts.Refusal.INCOMPLETE, receipts.Refusal.GATE_HELD)
"""The refusals of a gate that somebody holds, or died holding."""


def _finish_what_was_left(gate: ops.Gate) -> Procedure[RunNews | None]:
    """Finish what somebody left, since nobody else may be there; its result, if it was the same request."""
    (swept,) = yield Commit([ops.Sweep(run=gate.run_id)])
    for held in swept.gates:
        news = yield from finish(held)
        if (held.purpose, held.arguments) == (gate.purpose, gate.arguments):
            return news
    return None


def preview(gate: ops.Gate) -> Procedure[tuple[RunRow, Plan | NotNow]]:
    """What holding this gate would do now."""
    run = yield from _run(gate)
    if gate.allowed and run.status not in gate.allowed:
        return run, NotNow(f"it is {run.status}")
    return run, (yield from _plan(gate, run))


def _run(gate: ops.Gate) -> Procedure[RunRow]:
    (run,) = yield Read([GetRun(gate.run_id)])
    if run is None:
        raise RunNotFound(gate.run_id)
    return run  # type: ignore[no-any-return]


def _plan(gate: ops.Gate, run: RunRow, *, begun: bool = False) -> Procedure[Plan | NotNow]:
    """`begun`: part of the plan may have been applied, here or by somebody who died."""
    arguments = decode(gate.arguments) if gate.arguments else {}
    if gate.purpose in ("heal", "import", "freeze"):
        return (yield from _plan_switch(gate, run, arguments))
    nodes = yield from all_nodes(gate.run_id)
    match gate.purpose:
        case "failed":
            graph = yield from load_graph(run.id, run.digest)
            return plans.failed(run, nodes, graph.children)
        case "cancel":
            return plans.cancel(nodes, grace=arguments["grace"])
        case "retry":
            healed = run.heals > 0 or run.fork is not None  # perhaps the origin of the fork was
            removed = (yield from load_graph(run.id, run.digest)).removed if healed else frozenset()
            return plans.retry(nodes, removed, _new_input(arguments))
        case "reattempt":
            if arguments["node"] >= len(nodes):  # the run is being deleted, its nodes first
                raise RunNotFound(gate.run_id)
            graph = yield from load_graph(run.id, run.digest)
            cascade = arguments.get("cascade", False)
            return plans.reattempt(arguments["node"], nodes, graph, cascade=cascade, begun=begun)
        case "fork":
            return (yield from share_all(gate, run)) or NotNow("somebody else holds its gate now")
        case "pause":
            if arguments.get("judged", sha256(run.input)) != sha256(run.input):
                return NotNow("its input was changed just now; try again")
            return plans.pause(nodes, arguments.get("reason", "paused"))
        case "resume":
            return plans.resume(run, nodes, _new_input(arguments))
        case unknown:
            raise StoreCorrupt(f"run {gate.run_id}: the gate is held for {unknown!r}, which this version does not know")


def _new_input(arguments: Mapping[str, Any]) -> bytes | None:
    return encode(arguments["input"]) if "input" in arguments else None


def _plan_switch(gate: ops.Gate, run: RunRow, arguments: Mapping[str, Any]) -> Procedure[Plan | NotNow]:
    """Switch the graph, unless that is done, and plan what becomes of the nodes."""
    before = yield from load_graph(run.id, arguments["base"])
    graph = yield from load_graph(run.id, arguments["digest"])
    if run.digest not in (arguments["base"], graph.digest):
        return NotNow("its graph was changed meanwhile")
    if run.digest != graph.digest:
        nodes = yield from all_nodes(run.id)
        obstacle = _obstacle(gate.purpose, run, before, graph, nodes, accept=arguments["accept"])
        if obstacle is not None:
            return obstacle
    start = len(before.order)
    while True:
        (receipt,) = yield Commit([ops.SwitchGraph(run.id, gate.token, graph.digest, start)])
        if not isinstance(receipt, receipts.GraphSwitched) or receipt.loaded >= receipt.total:
            break  # a refusal comes again when the plan is applied
        start = receipt.loaded
    nodes = yield from all_nodes(run.id)
    if len(nodes) < len(graph.order):
        return NotNow("somebody else holds its gate now")
    return healing.heal(run, nodes, before, graph)


def _obstacle(
    purpose: str, run: RunRow, current: Graph, graph: Graph, nodes: list[NodeRow], *, accept: bool
) -> Plan | NotNow | None:
    """What keeps a run from switching. A possible rename pauses a run that is going on."""
    if purpose == "import":
        problems = import_problems(current, nodes, graph)
        return NotNow("; ".join(map(str, problems))) if problems else None
    possible_rename = None if accept else healing.possible_rename(current, graph, nodes)
    if possible_rename is None:
        return None
    if run.status.moving:
        return plans.pause(nodes, possible_rename)
    return NotNow(possible_rename)


def _apply(gate: ops.Gate, plan: Plan, more: Sequence[PutRecord] = ()) -> Procedure[Receipt]:
    """Apply the changes chunk by chunk; the last chunk also finishes, and `more` goes with it."""
    changes = tuple(plan.changes)
    ((chunk, *_),) = yield AskLimits()
    last = max(0, len(changes) - 1) // chunk * chunk
    for start in range(0, last, chunk):
        (receipt,) = yield Commit([ops.Rewrite(gate.run_id, gate.token, changes[start : start + chunk])])
        if isinstance(receipt, Refused):
            return receipt
    rows = changes[last:] + plan.holds_while
    while True:
        receipt, *_ = yield Commit([ops.Rewrite(gate.run_id, gate.token, rows, plan.finish), *more])
        if not isinstance(receipt, receipts.Rewritten) or receipt.finished:
            return receipt  # type: ignore[no-any-return]
        rows = plan.holds_while  # the rest is written; opening the gate of a large run takes several commits
