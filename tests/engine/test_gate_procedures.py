"""What needs a closed gate, driven step by step, with others acting in between."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from stepwell.base.clock import ManualClock
from stepwell.base.ids import Digest, NodeId, RunId
from stepwell.core.graph import Graph, NodeSpec
from stepwell.core.kernel import settling
from stepwell.core.model import HeldGate, NodeStatus, Refused, Rewrite, RunStatus, Settle, StoreLimits, Sweep, Swept
from stepwell.core.store import Store, reader
from stepwell.core.store.memory import MemoryStore
from stepwell.engine.procedures import gates
from stepwell.engine.procedures.procedure import Commit, Procedure, carry_out, load_graph, perform
from stepwell.engine.reports.audit import audit_run
from stepwell.errors import RunBusy, RunConflict, RunNotFound, StoreCorrupt
from tests.conformance.ops import RUN, claim, completed, enlist, failed, graph, spec, start, work
from tests.simulation.simulate import controls


def step(store: Store, procedure: Procedure[Any], steps: int) -> Any:
    """The wish that stands after `steps` of a procedure were carried out."""
    wish = next(procedure)
    for _ in range(steps):
        wish = procedure.send(perform(store, wish))
    return wish


def go_on(store: Store, procedure: Procedure[Any], answer: list[Any]) -> Any:
    """Answer what a procedure wishes, to its end; what it gives."""
    try:
        while True:
            answer = perform(store, procedure.send(answer))
    except StopIteration as done:
        return done.value


def statuses(store: Store) -> dict[str, str]:
    return {node.id: node.status.name for node in reader.all_nodes(store, RUN)}


def failed_run_with_a_running_sibling() -> tuple[Store, Any]:
    store = MemoryStore(ManualClock())
    start(store, graph(a="", b=""))
    enlist(store)
    one, other = claim(store)
    store.commit([failed(one)])
    carry_out(store, gates.finish(HeldGate(RUN, "failed", b"")))
    assert reader.require_run(store, RUN).status is RunStatus.FAILED
    return store, other


def test_a_body_that_stops_while_its_run_is_retried_runs_again() -> None:
    """Found by the simulator, seed 119: the node stayed CANCELLED and the run COMPLETED without it."""
    store, other = failed_run_with_a_running_sibling()
    procedure = controls.retry(RUN)
    last = step(store, procedure, 3)  # the gate is held, run and nodes are read, the rewrite is about to be sent
    cancelled = settling.CANCELLED
    store.commit([Settle(other.attempt, cancelled.status, cancelled.node)])
    go_on(store, procedure, perform(store, last))
    assert statuses(store) == {"a": "READY", "b": "READY"}
    assert reader.require_run(store, RUN).status is RunStatus.RUNNING


def test_a_body_that_stops_after_its_run_was_retried_runs_again() -> None:
    store, other = failed_run_with_a_running_sibling()
    carry_out(store, controls.retry(RUN))
    cancelled = settling.CANCELLED
    store.commit([Settle(other.attempt, cancelled.status, cancelled.node)])
    assert set(statuses(store).values()) == {"READY"}


def test_old_news_of_a_failure_does_not_fail_a_run_that_was_retried() -> None:
    """Two processes see the gate close; one finishes it, a user retries, and only then the other gets to it."""
    store, _ = failed_run_with_a_running_sibling()
    carry_out(store, controls.retry(RUN))
    assert carry_out(store, gates.finish(HeldGate(RUN, "failed", b""))) is None
    assert reader.require_run(store, RUN).status is RunStatus.RUNNING


def test_a_heal_that_comes_after_another_does_not_undo_it() -> None:
    """Both have read the run before either of them switched it."""
    old, new, newest = (graph(spec("a", timeout=seconds)) for seconds in (1.0, 2.0, 3.0))
    store = MemoryStore(ManualClock())
    start(store, old)
    row = reader.require_run(store, RUN)
    carry_out(store, gates.switch_graph(row, old, newest))
    healed = reader.require_run(store, RUN)
    with pytest.raises(RunConflict, match="its graph was changed meanwhile"):
        carry_out(store, gates.switch_graph(row, old, new))
    after = reader.require_run(store, RUN)
    assert (after.digest, after.heals, after.status) == (healed.digest, 1, RunStatus.PENDING)
    enlist(store)
    assert len(claim(store)) == 1


def test_a_rewrite_that_somebody_left_half_done_is_finished_by_another() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    wide = Graph([NodeSpec(NodeId(f"n{number}"), f"n{number}") for number in range(4_500)])
    start(store, wide)
    step(store, controls.cancel(RUN, grace=0), 6)  # dies after the first chunk of its rewrite
    assert 0 < sum(status == NodeStatus.CANCELLED for status in statuses(store).values()) < 4_500
    clock.advance(60)
    news = carry_out(store, gates.finish(HeldGate(RUN, "cancel", b'{"grace":0}')))
    assert news is not None
    assert news.status is RunStatus.CANCELLED
    assert set(statuses(store).values()) == {"CANCELLED"}


def test_who_asks_for_what_somebody_left_half_done_is_answered_as_if_it_was_his_own() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    start(store, graph(a=""))
    step(store, controls.cancel(RUN, grace=0), 1)  # dies with the gate in its hand
    clock.advance(60)
    news = carry_out(store, controls.cancel(RUN, grace=0))
    assert news is not None
    assert news.status is RunStatus.CANCELLED


def test_a_reattempt_is_not_refused_for_what_it_has_done_itself() -> None:
    """The node is PENDING when the plan is computed anew, because another one ended between two parts of it."""
    store, other = failed_run_with_a_running_sibling()
    procedure = controls.reattempt(RUN, 0)
    last = step(store, procedure, 6)
    cancelled = settling.CANCELLED
    store.commit([Settle(other.attempt, cancelled.status, cancelled.node)])
    receipts = perform(store, last)
    assert isinstance(receipts[0], Refused)  # or there is nothing to compute anew, and this test is of no use
    assert statuses(store)["a"] == "PENDING"
    assert go_on(store, procedure, receipts).status is RunStatus.RUNNING
    assert statuses(store)["a"] == "READY"


def test_a_reattempt_that_somebody_left_half_done_is_finished_by_another() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    wide = Graph([NodeSpec(NodeId("a"), "a"), *(NodeSpec(NodeId(f"n{n}"), f"n{n}", ("a",)) for n in range(4_500))])
    start(store, wide)
    enlist(store)
    store.commit([failed(claim(store)[0])])
    carry_out(store, gates.finish(HeldGate(RUN, "failed", b"")))
    index = wide.order.index("a")
    procedure = controls.reattempt(RUN, index)
    wish = next(procedure)
    while "PENDING" not in statuses(store).values():  # dies after the first chunk of its rewrite
        wish = procedure.send(perform(store, wish))
    assert 0 < Counter(statuses(store).values())["PENDING"] < 4_501
    clock.advance(60)
    news = carry_out(store, gates.finish(HeldGate(RUN, "reattempt", b'{"node":%d}' % index)))
    assert news is not None
    assert news.status is RunStatus.RUNNING
    assert Counter(statuses(store).values()) == {"READY": 1, "PENDING": 4_500}


@pytest.mark.parametrize(
    "ask", [controls.retry, lambda run: controls.reattempt(run, 0), lambda run: controls.cancel(run, grace=0)]
)
def test_what_a_late_asker_began_and_another_finished_is_done(ask: Callable[[RunId], Procedure[Any]]) -> None:
    """It was told None, as for a run in no status for it, and then that only a FAILED run can be retried."""
    clock = ManualClock()
    store = MemoryStore(clock)
    start(store, graph(a="", b=""))
    enlist(store)
    if ask is not controls.retry:
        store.commit([completed(claim(store, limit=1)[0])])
    else:
        carry_out(store, controls.pause(RUN))
    procedure = ask(RUN)
    wish = next(procedure)
    while not isinstance(wish, Commit) or not isinstance(wish.ops[0], Rewrite):
        wish = procedure.send(perform(store, wish))
    clock.advance(60)
    (swept,) = store.commit([Sweep()])
    assert isinstance(swept, Swept)
    assert carry_out(store, gates.finish(swept.gates[0])) is not None
    news = go_on(store, procedure, perform(store, wish))
    assert news is not None
    assert news.status is reader.require_run(store, RUN).status


def test_a_cascade_that_somebody_left_anywhere_is_finished_by_another() -> None:
    """Every completion below the node is superseded once, however many of them were when its asker died."""
    left = []
    for steps in itertools.count(1):
        clock = ManualClock()
        store = MemoryStore(clock)
        store.limits = StoreLimits(nodes=2)
        of = start(store, graph(top="", a="top", b="a", c="a", d="b c", e="d", aside="top"))
        enlist(store)
        assert work(store) == 7
        procedure = controls.reattempt(RUN, of.index["a"], cascade=True)
        try:
            step(store, procedure, steps)  # dies after so many steps
        except StopIteration:
            break
        left.append(sorted(Counter(statuses(store).values()).items()))
        assert audit_run(store, RUN) == []
        clock.advance(60)
        enlist(store)
        (swept,) = store.commit([Sweep()])
        assert isinstance(swept, Swept)
        (held,) = swept.gates
        news = carry_out(store, gates.finish(held))
        assert news is not None
        assert news.status is RunStatus.RUNNING
        assert work(store) == 5
        assert reader.require_run(store, RUN).status is RunStatus.COMPLETED
        generations = {row.id: row.generation for row in reader.all_nodes(store, RUN)}
        assert generations == {"top": 0, "aside": 0, **dict.fromkeys("abcde", 1)}
        assert audit_run(store, RUN) == []
    parts = [[("COMPLETED", 7)], [("COMPLETED", 5), ("PENDING", 2)], [("COMPLETED", 3), ("PENDING", 4)]]
    assert [part for part, _ in itertools.groupby(left)] == parts, "it was left before and between its rewrites"


@pytest.mark.parametrize("purpose", ["import", "heal"])
def test_a_run_that_has_just_gone_over_is_looked_at_again(purpose: str) -> None:
    """Whoever sweeps may finish what a dead worker left between two looks: the run, and then its nodes."""
    store = MemoryStore(ManualClock())
    before = graph(a="", b="a")
    start(store, before)
    row = reader.require_run(store, RUN)
    carry_out(store, gates.switch_graph(row, before, graph(a="", b="a", c="b"), purpose="import", pinned=True))
    with pytest.raises(RunBusy, match="just switching to another graph"):
        carry_out(
            store, gates.switch_graph(row, before, graph(a="", b="a", c="b", d="c"), purpose=purpose, pinned=True)
        )


def test_a_run_that_is_deleted_while_it_is_reattempted_is_not_found() -> None:
    store, other = failed_run_with_a_running_sibling()
    cancelled = settling.CANCELLED
    store.commit([Settle(other.attempt, cancelled.status, cancelled.node)])
    procedure = controls.reattempt(RUN, 0)
    reading = step(store, procedure, 2)  # the gate is held and the run was read, its nodes are next
    carry_out(store, gates.delete(RUN))
    with pytest.raises(RunNotFound):
        go_on(store, procedure, perform(store, reading))


def test_a_run_whose_graph_is_gone_is_told_with_both() -> None:
    procedure = load_graph(RUN, Digest("0123"))
    next(procedure)
    with pytest.raises(StoreCorrupt, match=f"the graph 0123 of run {RUN} is missing"):
        procedure.send([None])
