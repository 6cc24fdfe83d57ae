"""What a user asks of a run in a simulated world, as the procedures that the engine uses."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from stepwell.base.clock import microseconds
from stepwell.base.ids import RunId
from stepwell.core.graph import Graph
from stepwell.core.model import (
    FAILED_NODES,
    TERMINAL_RUNS,
    Create,
    GetGraph,
    GetRun,
    ListNodes,
    NodeStatus,
    RunNews,
    RunStatus,
)
from stepwell.engine.procedures import gates
from stepwell.engine.procedures.begin_fork import create_fork
from stepwell.engine.procedures.forking import fork_arguments
from stepwell.engine.procedures.procedure import Procedure, Read
from stepwell.errors import StoreError
from tests.simulation.simulate import controls
from tests.simulation.simulate.workload import Workload

LATER = "later"
"""The answer of somebody who waits for a good moment."""
Asked: TypeAlias = "Procedure[RunNews | str | None]"


@cache
def load(document: bytes) -> Graph:
    return Graph.load(document)


def ask(what: str, run: RunId, workload: Workload, name: str = "") -> Asked:
    """ "cancel", "retry", "pause", "resume", "reattempt", "reattempt any", "cascade", "heal", "heal carefully", "fork", until
    the store has answered.

    It is asked once the run has begun, or "early", perhaps before there is a run, or "late", once its last node has begun.
    A fork gets this `name`.
    """
    when, _, verb = what.partition(" ") if what.startswith(("early ", "late ")) else ("", "", what)
    return persistently(lambda: _in_time(when, run, _verb(verb, run, workload, name)))


def _in_time(when: str, run_id: RunId, procedure: Asked) -> Asked:
    if when != "early":
        run, nodes = yield Read([GetRun(run_id), ListNodes(run_id)])
        if (
            run is None
            or run.started_at is None
            or (when == "late" and not run.status.terminal and not nodes[-1].attempt)
        ):
            return LATER
    return (yield from procedure)


def _verb(what: str, run: RunId, workload: Workload, name: str) -> Asked:
    match what:
        case "cancel":
            return controls.cancel(run, grace=microseconds(0.5))
        case "retry":
            return controls.retry(run)
        case "pause":
            return controls.pause(run)
        case "resume":
            return controls.resume(run)
        case "reattempt":
            return reattempt_last(run)
        case "reattempt any" | "cascade":
            return reattempt_any(run, cascade=what == "cascade")
        case "heal" | "heal carefully":
            return heal(run, workload, accept=what == "heal")
        case "fork":
            return fork(run, RunId(name))
        case unknown:
            raise AssertionError(f"nobody can ask for {unknown}")


def heal(run_id: RunId, workload: Workload, *, accept: bool) -> Asked:
    """Go over to the other version of the graph: there are two, as in a deploy and a rollback."""
    (run,) = yield Read([GetRun(run_id)])
    if run is None:
        return None
    (document,) = yield Read([GetGraph(run.digest)])
    current = load(document)
    new = workload.later if current.follows == workload.graph.digest else workload.graph
    assert new is not None
    return (yield from gates.switch_graph(run, current, new, accept=accept))


def fork(run_id: RunId, name: RunId) -> Asked:
    """A fork from somewhere: from now, from before a node, or from any point of the history."""
    run, nodes = yield Read([GetRun(run_id), ListNodes(run_id)])
    if run is None:
        return None
    rng = random.Random(f"{name} {run.seq}")
    seq, before = run.seq, None
    where = rng.choice(("now", "seq", "seq", "node", "node"))
    if where == "seq":
        seq = rng.randint(1, run.seq)
    elif where == "node":
        before = rng.choice(nodes).index
    place = fork_arguments(run, seq, before)
    create = Create(name, run.workflow, None, run.digest, run.input, run.seed, run.on_failure, fork=place)
    yield from create_fork(create)
    return None


def reattempt_last(run_id: RunId) -> Asked:
    """Once the last node has ended, somebody wants it once more."""
    run, nodes = yield Read([GetRun(run_id), ListNodes(run_id)])
    if nodes and nodes[-1].status in (NodeStatus.COMPLETED, NodeStatus.FAILED, NodeStatus.CANCELLED):
        return (yield from controls.reattempt(run_id, nodes[-1].index))
    return None if run is None or run.status in (RunStatus.PAUSED, *TERMINAL_RUNS) else LATER


def reattempt_any(run_id: RunId, *, cascade: bool) -> Asked:
    """Once a node has ended, somebody wants it once more, with `cascade` also all that is below it."""
    run, nodes = yield Read([GetRun(run_id), ListNodes(run_id)])
    ended = [node for node in nodes if node.status in (NodeStatus.COMPLETED, *FAILED_NODES, NodeStatus.CANCELLED)]
    if run is not None and ended:
        asked = random.Random(f"{run_id} {run.seq}").choice(ended)
        return (yield from controls.reattempt(run_id, asked.index, cascade=cascade))
    return None if run is None or run.status in (RunStatus.PAUSED, *TERMINAL_RUNS) else LATER


def persistently(make: Callable[[], Asked]) -> Asked:
    """Ask again when the store fails, as a person would."""
    while True:
        try:
            return (yield from make())
        except StoreError:
            continue
        except Exception:  # somebody else is at it, or the run is not there yet
            return None
