"""Planted bugs in child runs; see `mutants`."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from stepwell.core.kernel import children, plans
from stepwell.core.model import GateState, NodeStatus, RunStatus
from stepwell.core.store.memory import children as stored
from stepwell.core.store.memory import running, shaping
from stepwell.engine.procedures import children as procedures
from stepwell.engine.procedures import gates
from stepwell.engine.scheduling import scheduler
from tests.simulation.simulate import actors
from tests.simulation.simulate.planted import planted


@planted("a node is parked and its child run was not created")
def _parked_without_child() -> Any:
    return patch.object(stored, "create_one", lambda *_, **__: None)


@planted("a child run is created although its parent is stopping")
def _created_by_a_stopping_run() -> Any:
    original = stored.settle

    def settle(state: Any, group: Any, now: int) -> Any:
        receipts = original(state, group, now)
        for op in group:
            if op.child is not None and op.child.run_id not in state.runs:
                shaping.create_one(state, op.child, now)
        return receipts

    return patch.object(stored, "settle", settle)


@planted("a wake between look and park is lost")
def _lost_wake() -> Any:
    original = stored.wake

    def wake(state: Any, op: Any, now: int) -> Any:
        run = state.runs.get(op.run_id)
        before = None if run is None else run.nodes[op.index].wakes
        receipt = original(state, op, now)
        if run is not None and run.nodes[op.index].status is NodeStatus.RUNNING:
            run.nodes[op.index].wakes = before
        return receipt

    return patch.object(stored, "wake", wake)


@planted("a child run that is handed over during a pause runs")
def _runs_in_a_pause() -> Any:
    original = stored.create_one

    def create_one(state: Any, op: Any, now: int, *, paused: bool = False) -> Any:
        return original(state, op, now)

    return patch.object(stored, "create_one", create_one)


@planted("a pause misses a child run that is being created")
def _pause_misses() -> Any:
    original = plans.pause

    def pause(nodes: Any, reason: str = "paused") -> Any:
        return original(nodes, reason)._replace(holds_while=())

    return patch.object(plans, "pause", pause)


@planted("a resume misses a child run that is being created")
def _resume_misses() -> Any:
    original = plans.resume
    return patch.object(plans, "resume", lambda *arguments: original(*arguments)._replace(holds_while=()))


def _without(*verbs: str) -> Any:
    original = children.told_children

    def told(*arguments: Any) -> Any:
        wanted = original(*arguments)
        return [each for each in wanted if each.verb not in verbs] if isinstance(wanted, list) else wanted

    return patch.object(procedures, "told_children", told)


@planted("a cancel does not reach child runs")
def _no_cancel() -> Any:
    return _without("cancel")


@planted("a pause does not reach child runs")
def _no_pause() -> Any:
    return _without("pause")


@planted("a resume does not reach child runs")
def _no_resume() -> Any:
    return _without("resume")


@planted("a retry does not reach child runs")
def _no_retry() -> Any:
    return _without("retry")


@planted("a retry starts a second child run")
def _second_child() -> Any:
    original = plans._again
    return patch.object(plans, "_again", lambda row, anew=False: original(row, anew=True))


@planted("the end of a child run is handed on by nobody")
def _ends_unheard() -> Any:
    def shut_gate(run: Any, now: int) -> None:
        run.gate = GateState.SHUT

    return patch.multiple(running, shut_gate=shut_gate)


@planted("a gate that is held for the end of a child run is never finished")
def _not_handed_on() -> Any:
    def hand_on(run_id: Any) -> Any:
        return None
        yield

    return patch.object(gates, "hand_on", hand_on)


@planted("the result of a child run is taken before it has ended")
def _looked_at_too_early() -> Any:
    original = actors.after_look

    def after_look(held: Any, end: Any) -> Any:
        row = end.row
        early = row is not None and not row.status.terminal
        return original(
            held, end._replace(row=row._replace(status=RunStatus.COMPLETED), output=b"null") if early else end
        )

    return patch.object(actors, "after_look", after_look)


@planted("a cancelled run does not wait for its child runs")
def _does_not_wait() -> Any:
    original = plans.cancel

    def cancel(nodes: Any, *, grace: int) -> Any:
        return original([row._replace(wakes=0) for row in nodes], grace=grace)

    return patch.object(plans, "cancel", cancel)


@planted("a parked node of a cancelled run waits for ever")
def _waits_for_ever() -> Any:
    original = stored.wake

    def wake(state: Any, op: Any, now: int) -> Any:
        run = state.runs.get(op.run_id)
        if run is not None and run.stopping:
            return original(state, op._replace(index=-1), now)
        return original(state, op, now)

    return patch.object(stored, "wake", wake)


@planted("a removed node keeps its child run")
def _removed_keeps() -> Any:
    original = children.told_children
    return patch.object(
        procedures, "told_children", lambda purpose, run, plan, rows, removed: original(purpose, run, plan, rows)
    )


@planted("the body of a handed over node is called again")
def _called_again() -> Any:
    original = scheduler.Scheduler._hold

    def hold(self: Any, grant: Any, *arguments: Any, **keywords: Any) -> Any:
        return original(self, grant._replace(wakes=0), *arguments, **keywords)

    return patch.object(scheduler.Scheduler, "_hold", hold)
