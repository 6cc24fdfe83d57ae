"""A node fails for good: what stops, what goes on, and what a late settlement may still do."""

from __future__ import annotations

from typing import Any

from stepwell.base.clock import ManualClock
from stepwell.core.graph import Graph
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from tests.conformance.ops import *

PAIR = {"a": "", "b": "", "after_a": "a", "after_b": "b"}


def fail_one_of_two(store: Store, **options: Any) -> tuple[Graph, Grant]:
    """Two roots run; the first fails for good. (the graph, the grant that still runs)"""
    of = serve(store, graph(**PAIR), **options)
    grants = by_name(of, claim(store))
    one(store, failed(grants["a"]), Settled)
    return of, grants["b"]


def end_as_failed(store: Store) -> None:
    """What the kernel does after a failure."""
    hold(store, purpose="failed", stop=True)
    unstarted = reader.all_nodes(store, RUN, NodeStatus.PENDING, NodeStatus.READY, NodeStatus.WAITING)
    finish(store, RunStatus.FAILED, *(changed(row, NodeStatus.CANCELLED, "run_failed") for row in unstarted))


def retry_all(store: Store) -> None:
    """What the kernel does when somebody asks for a retry."""
    hold(store, purpose="retry")
    rows = reader.all_nodes(store, RUN, NodeStatus.FAILED, NodeStatus.CANCELLED, NodeStatus.INTERRUPTED)
    finish(store, RunStatus.RUNNING, *(changed(row, NodeStatus.PENDING, fresh=True) for row in rows), open_gate=True)


def test_a_final_failure_closes_the_gate(store: Store) -> None:
    _, running = fail_one_of_two(store)
    assert statuses(store) == {"a": "FAILED", "b": "RUNNING", "after_a": "PENDING", "after_b": "PENDING"}
    run = reader.require_run(store, RUN)
    assert (run.status, run.gate, run.purpose, run.stopping) == (RunStatus.RUNNING, GateState.HELD, "failed", True)
    assert (run.open, run.active, run.failed) == (3, 1, 1)
    assert list_stops(store) == (running.attempt,)
    assert sweep(store).gates == (HeldGate(RUN, "failed", b""),), "held by nobody: anybody may finish it at once"


def test_an_interrupted_node_closes_the_gate_too(store: Store) -> None:
    serve(store, graph(spec("pay", on_lost="interrupt"), spec("other")))
    (grant,) = claim(store, lanes=[("default/thread!", 1)])
    settled = one(store, Settle(grant.attempt, AttemptStatus.TIMED_OUT, NodeStatus.INTERRUPTED), Settled)
    assert (settled.run.gate, settled.run.purpose, settled.run.failed) == (GateState.HELD, "failed", 1)
    assert claim(store) == ()


def test_under_finish_independent_branches_go_on(store: Store) -> None:
    of, running = fail_one_of_two(store, on_failure="finish")
    assert reader.require_run(store, RUN).gate is GateState.OPEN
    assert list_stops(store) == ()
    one(store, completed(running), Settled)
    (grant,) = claim(store)
    assert of.order[grant.index] == "after_b"
    expect(one(store, completed(grant), Settled).run, gate=GateState.HELD, purpose="failed", active=0)
    assert statuses(store) == {"a": "FAILED", "b": "COMPLETED", "after_a": "PENDING", "after_b": "COMPLETED"}
    assert sweep(store).gates == (HeldGate(RUN, "failed", b""),)


def test_under_finish_a_waiting_retry_keeps_the_run_going(store: Store, clock: ManualClock) -> None:
    _, running = fail_one_of_two(store, on_failure="finish")
    expect(one(store, retried(running, 9), Settled).run, gate=GateState.OPEN, active=1)
    sweep_after(store, clock, 9)
    assert work(store) == 2


def test_a_failure_of_the_last_node_ends_nothing_by_itself(store: Store) -> None:
    serve(store, graph(a=""), on_failure="finish")
    work(store, failing=("a",))
    expect_run(store, status=RunStatus.RUNNING, gate=GateState.HELD, purpose="failed", ended_at=None)


def test_settlements_of_one_batch_are_judged_by_the_gate_before_it(store: Store) -> None:
    grants = claim_by_name(store, graph(**PAIR))
    first, second = store.commit([failed(grants["a"]), completed(grants["b"])])
    assert isinstance(first, Settled)
    assert first == second
    assert (first.run.gate, first.run.open, first.run.active) == (GateState.HELD, 2, 1)
    assert statuses(store) == {"a": "FAILED", "b": "COMPLETED", "after_a": "PENDING", "after_b": "READY"}
    assert claim(store) == ()


def test_a_late_success_after_the_failure_is_recorded_and_moves_nothing(store: Store) -> None:
    of, running = fail_one_of_two(store)
    expect(one(store, completed(running, b'"done"'), Settled).run, gate=GateState.HELD, active=0)
    assert statuses(store) == {"a": "FAILED", "b": "COMPLETED", "after_a": "PENDING", "after_b": "PENDING"}
    end_as_failed(store)
    assert reader.get_outputs(store, RUN) == {of.index["b"]: b'"done"'}
    expect_run(store, status=RunStatus.FAILED, gate=GateState.SHUT, stopping=True)
    assert sweep(store).gates == ()


def test_late_settlements_that_come_together_move_nothing(store: Store) -> None:
    grants = claim_by_name(store, graph(bad="", **{f"n{i}": "" for i in range(6)}, join="n0 n1", after="n2"))
    one(store, failed(grants["bad"]), Settled)
    late = [completed(grants["n0"]), completed(grants["n1"]), completed(grants["n2"])]
    *settled, _ = store.commit([*late, retried(grants["n3"], 5), released(grants["n4"]), stopped(grants["n5"])])
    assert all(isinstance(receipt, Settled) for receipt in settled)
    assert statuses(store) == {
        "bad": "FAILED",
        "n0": "COMPLETED",
        "n1": "COMPLETED",
        "n2": "COMPLETED",
        "n3": "FAILED",
        "n4": "CANCELLED",
        "n5": "CANCELLED",
        "join": "PENDING",
        "after": "PENDING",
    }
    rows = {str(row.id): row for row in reader.all_nodes(store, RUN)}
    assert (rows["join"].waiting, rows["after"].waiting, rows["n3"].due_at) == (2, 1, None)
    end_as_failed(store)
    retry_all(store)
    assert (statuses(store)["join"], statuses(store)["after"]) == ("READY", "READY")


def test_a_success_later_than_the_end_of_the_run_is_recorded_and_not_repeated(store: Store) -> None:
    of, running = fail_one_of_two(store)
    end_as_failed(store)
    expect(one(store, completed(running, b'"done"'), Settled).run, status=RunStatus.FAILED, gate=GateState.SHUT)
    retry_all(store)
    assert statuses(store) == {"a": "READY", "b": "COMPLETED", "after_a": "PENDING", "after_b": "READY"}
    assert node(store, of.index["a"]).failures == 0
    assert work(store) == 3
    expect_run(store, status=RunStatus.COMPLETED, failed=0)
    assert [attempt.number for attempt in reader.list_attempts(store, RUN, of.index["a"])] == [1, 2]


def test_a_late_failure_in_a_run_that_stops_is_final(store: Store) -> None:
    of, running = fail_one_of_two(store)
    expect(one(store, retried(running, 5), Settled).run, failed=2, active=0)
    expect(node(store, of.index["b"]), status=NodeStatus.FAILED, due_at=None, failures=1)


def test_a_release_in_a_run_that_stops_is_a_cancellation(store: Store) -> None:
    of, running = fail_one_of_two(store)
    one(store, released(running), Settled)
    assert node(store, of.index["b"]).status is NodeStatus.CANCELLED


def test_a_body_that_stopped_as_asked_is_cancelled(store: Store) -> None:
    of, running = fail_one_of_two(store)
    one(store, stopped(running), Settled)
    assert node(store, of.index["b"]).status is NodeStatus.CANCELLED
    assert reader.list_attempts(store, RUN, of.index["b"])[0].status is AttemptStatus.CANCELLED
    assert list_stops(store) == ()


def test_a_body_that_stops_after_the_run_was_retried_runs_again(store: Store) -> None:
    """It was asked to stop; before it did, somebody asked for a retry. Its node must not be left out of that."""
    of, running = fail_one_of_two(store)
    end_as_failed(store)
    retry_all(store)
    assert list_stops(store) == ()
    first = one(store, stopped(running), Settled)
    assert one(store, stopped(running), Settled) == first._replace(repeated=True)
    assert node(store, of.index["b"]).status is NodeStatus.READY
    work(store)
    assert reader.require_run(store, RUN).status is RunStatus.COMPLETED


def test_in_a_cancelled_run_nothing_waits(store: Store) -> None:
    a, b, c = claim_roots(store, graph(a="", b="", c=""))
    enact(store, "cancel", RunStatus.CANCELLING, grace=10_000_000, stop=True)
    store.commit([retried(a, 5), failed(b)])
    by_index = {row.index: row.status for row in reader.all_nodes(store, RUN)}
    assert (by_index[a.index], by_index[b.index]) == (NodeStatus.CANCELLED, NodeStatus.FAILED)
    expect(one(store, completed(c), Settled).run, status=RunStatus.CANCELLED, gate=GateState.SHUT)
    assert reader.get_outputs(store, RUN) == {c.index: b"null"}
