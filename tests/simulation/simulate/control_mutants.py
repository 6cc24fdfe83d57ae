"""Planted bugs in what people can ask of a run, and in healing; see `mutants`."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from stepwell.core.kernel import healing, plans
from stepwell.core.model import GateState, NodeStatus, settled_as
from stepwell.core.store.memory import running, shaping
from stepwell.engine.procedures import forking, gates
from stepwell.engine.scheduling import scheduler
from stepwell.engine.worker import duties
from tests.simulation.simulate.planted import planted


@planted("a worker goes on with a graph that the run no longer has")
def _old_facts() -> Any:
    return patch.object(scheduler.Scheduler, "knows", lambda self, grant: grant.run_id in self.facts)


@planted("a node that comes too late runs all the same")
def _late_nodes_run() -> Any:
    return patch.object(healing, "_late", lambda nodes, graph, joining: set())


@planted("a node that was removed is run")
def _removed_nodes_run() -> Any:
    original = healing._becomes

    def becomes(run: Any, row: Any, graph: Any, late: Any, returning: Any) -> Any:
        return (row.status, None) if row.index in graph.removed else original(run, row, graph, late, returning)

    return patch.object(healing, "_becomes", becomes)


@planted("the failure of a removed node fails the run")
def _removed_nodes_fail() -> Any:
    def careless(asked: NodeStatus, **facts: bool) -> NodeStatus:
        return settled_as(asked, **facts | {"removed": False})

    return patch.object(running, "settled_as", careless)


@planted("a gate that was left is taken for something else")
def _gates_are_stolen() -> Any:
    original = shaping.gate

    def gate(state: Any, op: Any, now: int) -> Any:
        run = state.runs.get(op.run_id)
        left = run is not None and run.gate is GateState.HELD and (run.token is None or (run.expires_at or 0) <= now)
        if left and not op.resume and run.purpose not in ("load", "delete"):
            run.gate = GateState.OPEN
        return original(state, op, now)

    return patch.object(shaping, "gate", gate)


@planted("a run that goes on forgets what ended behind the gate")
def _no_rederiving() -> Any:
    return patch.object(shaping, "rederive", lambda run: run.recount())


@planted("a node is attempted again although something stands on it")
def _careless_reattempt() -> Any:
    original = plans.reattempt

    def reattempt(index: int, nodes: Any, graph: Any, **how: bool) -> Any:
        found = original(index, nodes, graph, **how | {"cascade": True})
        return _without_completed(found, index) if isinstance(found, plans.Plan) else found

    return patch.object(plans, "reattempt", reattempt)


def _without_completed(plan: plans.Plan, asked: int) -> plans.Plan:
    changes = plan.changes
    return plan._replace(changes=[row for row in changes if row.was is not NodeStatus.COMPLETED or row.index == asked])


@planted("a node is attempted again while what is below it is running")
def _reattempt_above_what_runs() -> Any:
    return patch.object(plans, "_stood_on", lambda asked, below, **how: None)


@planted("a cascade begins at the top")
def _cascade_from_the_top() -> Any:
    original = plans.reattempt

    def reattempt(index: int, nodes: Any, graph: Any, **how: bool) -> Any:
        found = original(index, nodes, graph, **how)
        return found._replace(changes=found.changes[::-1]) if isinstance(found, plans.Plan) else found

    return patch.object(plans, "reattempt", reattempt)


@planted("a completion that was superseded still counts")
def _nothing_superseded() -> Any:
    original = shaping._apply

    def apply(run: Any, row: Any, completed: Any, now: int) -> bool:
        before = [attempt.status for attempt in run.attempts]
        applied = original(run, row, completed, now)
        for attempt, status in zip(run.attempts, before, strict=True):
            attempt.status = status
        return applied

    return patch.object(shaping, "_apply", apply)


@planted("a fork begins before it has what it shares")
def _forks_do_not_wait() -> Any:
    original = running.close_gate

    def close_gate(run: Any, purpose: str, now: int, arguments: bytes = b"") -> None:
        if purpose != "fork":
            original(run, purpose, now, arguments)

    return patch.object(shaping, "close_gate", close_gate)


@planted("a fork does again what it shares")
def _nothing_is_shared() -> Any:
    return patch.object(shaping, "_share_one", lambda *facts: None)


@planted("a fork shares what was done after the point it was forked at")
def _forks_of_now() -> Any:
    original = forking._at
    return patch.object(forking, "_at", lambda origin, graph, seq: original(origin, graph, 2**60))


@planted("a fork whose maker died is left as it is")
def _forks_are_left() -> Any:
    original = gates.finish

    def finish(held: Any) -> Any:
        if held.purpose == "fork":
            return None
        return (yield from original(held))

    return patch.object(duties, "finish", finish)


@planted("what is to run again does not wait for a parent it was given meanwhile")
def _nothing_is_held_back() -> Any:
    return patch.object(running, "hold_back", lambda ended: None)
