"""A node is performed by a run: it is handed over and parked by one op, and woken when that run has ended."""

from __future__ import annotations

import pytest

from stepwell.base.clock import ManualClock
from stepwell.core.graph import Retry
from stepwell.core.kernel.healing import arrange
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from stepwell.core.store.memory import MemoryStore
from stepwell.engine.procedures.gates import LONG_GATE_LEASE
from tests.conformance.audit import audit
from tests.conformance.clocks import PlainTime
from tests.conformance.ops import *
from tests.conformance.suite.restoring import copy, whole

CHILD = RunId("child-1")
BELOW = graph(k="", l="k")


def handed_over(store: Store, *, of: Graph | None = None, below: Graph = BELOW, **options: Any) -> Grant:
    """A run whose first node is performed by another run. The attempt that handed it over."""
    grant = claim_first(store, of or graph(a="", b="a"), **options)
    hand_over(store, grant, below)
    return grant


def ended(store: Store) -> None:
    """The child run has completed; nobody has handed that on."""
    work(store, runs=(CHILD,))
    expect_run(store, CHILD, status=RunStatus.COMPLETED, gate=GateState.HELD, purpose=ENDED)


def ended_gates(store: Store, run: str | None = None) -> list[str]:
    swept = one(store, Sweep(run=None if run is None else RunId(run)), Swept)
    return [held.run_id for held in swept.gates if held.purpose == ENDED]


def test_a_node_is_parked_and_its_child_run_created_by_one_op(store: Store) -> None:
    of, below = graph(a="", b="a"), graph(k="", l="k")
    grant = claim_first(store, of, priority=3)
    store.commit(add_graph(below))
    assert grant.wakes == 0
    child = child_run(below, grant, seed=9, priority=3, tags=(("team", "x"),), timeout=microseconds(60))
    settled = one(store, parked(grant, child), Settled)
    assert settled == Settled(False, RunNews(RUN, RunStatus.RUNNING, GateState.OPEN, None, 2, 1, 0, 3))
    row = node(store, 0)
    expect(row, status=NodeStatus.WAITING, wakes=1, due_at=None, attempt=1, reason=None, failures=0, parked=True)
    (attempt,) = reader.list_attempts(store, RUN, 0)
    expect(attempt, status=AttemptStatus.PARKED, output=b'{"run":"child-1"}', error=None)
    assert attempt.ended_at is not None
    entry = reader.list_journal(store, RUN)[-1]
    expect(entry, kind="parked", status="WAITING", index=0, attempt=1)
    expect_run(
        store,
        CHILD,
        parent=RUN,
        parent_node=0,
        depth=1,
        status=RunStatus.PENDING,
        gate=GateState.OPEN,
        seed=9,
        priority=3,
        tags=(("team", "x"),),
        timeout=60_000_000,
        open=2,
        active=1,
    )
    expect_run(store, RUN, parent=None, parent_node=None, depth=0)
    assert statuses(store, CHILD) == {"k": "READY", "l": "PENDING"}


def test_a_parked_node_is_not_claimed_and_never_due(store: Store, clock: ManualClock) -> None:
    handed_over(store)
    assert [grant.run_id for grant in claim(store)] == [CHILD]
    swept = sweep_after(store, clock, 1)
    assert (swept.woken, swept.gates) == (0, ())
    assert node(store, 0).parked
    assert ready_runs(store, RUN) == ()


@pytest.mark.parametrize("known", ["unknown", "incomplete", "other"])
def test_if_the_child_run_cannot_be_created_nothing_is_settled(store: Store, known: str) -> None:
    grant = claim_first(store, graph(a="", b="a"))
    big = Graph([spec(f"n{place}") for place in range(5)])
    if known == "incomplete":
        store.commit(add_graph(big, chunk=2)[:2])
    if known == "other":
        start(store, big, CHILD, input=b'{"order_id":8}')
    settlement = parked(grant, child_run(big, grant))
    reason = {"unknown": Refusal.UNKNOWN, "incomplete": Refusal.INCOMPLETE, "other": Refusal.CONFLICT}[known]
    assert refused(store, settlement) is reason
    assert (node(store, 0).status, node(store, 0).wakes) == (NodeStatus.RUNNING, 0)
    assert [row.id for row in reader.all_runs(store)] == ([CHILD, RUN] if known == "other" else [RUN])
    if known != "other":
        store.commit(add_graph(big))
        one(store, settlement, Settled)
        assert reader.require_run(store, CHILD).parent == RUN


def test_one_that_no_store_can_keep_is_refused_with_its_settlement(store: Store) -> None:
    grant = claim_first(store, graph(a=""))
    store.commit(add_graph(BELOW))
    assert refused(store, parked(grant, child_run(BELOW, grant, tags=(("a", "\0"),)))) is Refusal.INVALID
    assert node(store, 0).status is NodeStatus.RUNNING


def test_only_what_parks_its_node_has_a_child(store: Store) -> None:
    grant = claim_first(store, graph(a=""))
    child = child_run(BELOW, grant)
    assert refused(store, completed(grant)._replace(child=child)) is Refusal.STATUS
    assert refused(store, retried(grant, 1)._replace(child=child)) is Refusal.STATUS
    assert refused(store, parked(grant)) is Refusal.STATUS, "nothing would wake it"
    assert node(store, 0).status is NodeStatus.RUNNING


def test_the_same_settlement_again_creates_no_second_run(store: Store) -> None:
    grant = claim_first(store, graph(a="", b="a"))
    store.commit(add_graph(BELOW))
    settlement = parked(grant, child_run(BELOW, grant))
    first = one(store, settlement, Settled)
    work(store, runs=(CHILD,))
    seq = reader.require_run(store, CHILD).seq
    assert one(store, settlement, Settled) == first._replace(repeated=True)
    assert node(store, 0).wakes == 1
    assert reader.require_run(store, CHILD).seq == seq


def test_a_fenced_worker_creates_no_run(store: Store, clock: ManualClock) -> None:
    grant = claim_first(store, graph(a=""), seconds=5)
    store.commit(add_graph(BELOW))
    sweep_after(store, clock, 6)
    assert refused(store, parked(grant, child_run(BELOW, grant))) is Refusal.FENCED
    assert [row.id for row in reader.all_runs(store)] == [RUN]


def test_a_run_that_has_failed_creates_none(store: Store) -> None:
    of = graph(a="", b="", c="a b")
    grants = claim_by_name(store, of)
    store.commit([*add_graph(BELOW), failed(grants["a"])])
    settled = one(store, parked(grants["b"], child_run(BELOW, grants["b"])), Settled)
    assert (settled.run.purpose, settled.run.active, settled.run.failed) == ("failed", 0, 1)
    expect(node(store, 1), status=NodeStatus.CANCELLED, wakes=0)
    assert reader.list_attempts(store, RUN, 1)[0].status is AttemptStatus.PARKED
    assert [row.id for row in reader.all_runs(store)] == [RUN]


def test_a_run_that_is_being_cancelled_creates_none(store: Store) -> None:
    grant = claim_first(store, graph(a="", b="a"))
    store.commit(add_graph(BELOW))
    hold(store, purpose="cancel", stop=True)
    finish(store, RunStatus.CANCELLING, changed(node(store, 1), NodeStatus.CANCELLED), grace=1_000_000)
    settled = one(store, parked(grant, child_run(BELOW, grant)), Settled)
    assert settled.run.status is RunStatus.CANCELLED
    assert [row.id for row in reader.all_runs(store)] == [RUN]


def test_a_node_that_a_heal_has_removed_is_not_handed_over(store: Store) -> None:
    of = graph(a="", b="")
    grants = claim_by_name(store, of)
    healed = arrange(of, graph(b=""))
    store.commit([*add_graph(healed), *add_graph(BELOW)])
    hold(store, purpose="heal", seconds=LONG_GATE_LEASE / 1e6)
    one(store, SwitchGraph(RUN, TOKEN, healed.digest, 2), GraphSwitched)
    finish(store, RunStatus.RUNNING, open_gate=True)
    one(store, parked(grants["a"], child_run(BELOW, grants["a"])), Settled)
    expect(node(store, grants["a"].index), status=NodeStatus.CANCELLED, wakes=0)
    assert [row.id for row in reader.all_runs(store)] == [RUN]


def test_in_a_paused_run_it_is_created_paused(store: Store) -> None:
    grant = claim_first(store, graph(a="", b="a"))
    enact(store, "pause", RunStatus.PAUSED)
    child = hand_over(store, grant, BELOW)
    expect(child, status=RunStatus.PAUSED, gate=GateState.SHUT, purpose=None, reason=PARENT_PAUSED, active=1, open=2)
    assert node(store, 0).parked
    assert claim(store) == ()
    enact(store, "resume", RunStatus.RUNNING, run=CHILD)
    assert [g.run_id for g in claim(store)] == [CHILD]


def test_a_large_one_that_is_created_paused_stays_so_when_it_is_loaded(store: Store) -> None:
    grant = claim_first(store, graph(a=""))
    enact(store, "pause", RunStatus.PAUSED)
    big = Graph([spec(f"n{place}") for place in range(store.limits.nodes + 1)])
    child = hand_over(store, grant, big)
    assert (child.status, child.purpose) == (RunStatus.PAUSED, "load")
    one(store, AddNodes(CHILD, store.limits.nodes), Created)
    expect_run(store, CHILD, status=RunStatus.PAUSED, gate=GateState.SHUT, reason=PARENT_PAUSED, active=len(big))


def test_behind_a_gate_that_is_held_it_runs_and_the_node_has_changed(store: Store) -> None:
    """Who holds the gate notices: its plan holds only as long as what was RUNNING still is."""
    grant = claim_first(store, graph(a="", b="a"))
    before = node(store, 0)
    hold(store, purpose="pause")
    assert hand_over(store, grant, BELOW).gate is GateState.OPEN
    stays = changed(before, NodeStatus.RUNNING)
    assert refused(store, Rewrite(RUN, TOKEN, (stays,), Finish(RunStatus.PAUSED, False))) is Refusal.CHANGED
    finish(store, RunStatus.PAUSED)


def test_a_large_one_is_loaded_by_anybody(store: Store, clock: ManualClock) -> None:
    grant = claim_first(store, graph(a=""))
    big = Graph([spec(f"n{place}") for place in range(store.limits.nodes + 1)])
    hand_over(store, grant, big)
    expect_run(store, CHILD, status=RunStatus.PENDING, gate=GateState.HELD, purpose="load")
    swept = sweep_after(store, clock, LOAD_LEASE / 1e6 + MARGIN)
    assert [held.run_id for held in swept.gates if held.purpose == "load"] == [CHILD]
    one(store, AddNodes(CHILD, store.limits.nodes), Created)
    expect_run(store, CHILD, gate=GateState.OPEN, active=len(big))


def test_many_are_handed_over_beside_other_settlements(store: Store) -> None:
    of = graph(root="", **dict.fromkeys("abcdef", "root"), last="a b c d e f")
    serve(store, of)
    complete_next(store)
    grants = by_name(of, claim(store))
    ops: list[Op] = [*add_graph(BELOW)]
    for place, name in enumerate("abcdef"):
        grant = grants[name]
        ops.append(parked(grant, child_run(BELOW, grant, f"child-{name}")) if place % 2 else completed(grant))
    *settled, claimed = store.commit([*ops, claim_op(runs=(RUN,))])
    assert all(isinstance(receipt, Settled) for receipt in settled[-6:])
    assert claimed == Claimed(())
    assert [row.id for row in reader.all_runs(store)] == ["child-f", "child-d", "child-b", RUN]
    expect_run(store, open=4, active=3)
    assert node(store, of.index["last"]).waiting == 3


# Its end


def test_the_end_of_a_child_run_is_held_until_it_is_handed_on(store: Store) -> None:
    handed_over(store)
    ended(store)
    assert node(store, 0).parked, "the end of a run touches no other run"
    assert ended_gates(store) == [CHILD]
    assert ended_gates(store) == [], "it was handed out a moment ago"
    assert ended_gates(store, CHILD) == [CHILD]
    assert refused(store, Delete(CHILD)) is Refusal.INCOMPLETE
    assert refused(store, gate_op(CHILD, purpose="reattempt")) is Refusal.INCOMPLETE
    woken = wake(store, 0, ended=CHILD)
    assert woken == Woken(RunNews(RUN, RunStatus.RUNNING, GateState.OPEN, None, 2, 1, 0, 4), "default")
    expect_run(store, CHILD, status=RunStatus.COMPLETED, gate=GateState.SHUT, purpose=None)
    assert ended_gates(store, CHILD) == []
    expect(reader.list_journal(store, RUN)[-1], kind="woken", status="READY", index=0, attempt=1)
    one(store, Delete(CHILD), Deleted)


def test_a_woken_node_is_claimed_and_settled_without_its_body(store: Store) -> None:
    handed_over(store)
    ended(store)
    assert ready_runs(store, RUN) == ()
    wake(store, 0, ended=CHILD)
    assert ready_runs(store, RUN) == (RUN,)
    grant = claim_one(store)
    expect(grant, number=2, wakes=1, index=0)
    one(store, completed(grant, b'"result"'), Settled)
    assert statuses(store) == {"a": "COMPLETED", "b": "READY"}
    assert reader.get_outputs(store, RUN) == {0: b'"result"'}
    assert claim_one(store).wakes == 0


def test_a_child_run_that_fails_is_held_too(store: Store) -> None:
    handed_over(store)
    work(store, failing="k", runs=(CHILD,))
    expect_run(store, CHILD, purpose="failed")
    rows = [changed(row, NodeStatus.UPSTREAM_FAILED) for row in reader.all_nodes(store, CHILD, NodeStatus.PENDING)]
    news = enact(store, "failed", RunStatus.FAILED, *rows, run=CHILD, stop=True)
    assert (news.status, news.gate, news.purpose) == (RunStatus.FAILED, GateState.HELD, ENDED)
    assert ended_gates(store) == [CHILD]
    wake(store, 0, ended=CHILD)
    expect_run(store, CHILD, status=RunStatus.FAILED, gate=GateState.SHUT)
    assert node(store, 0).status is NodeStatus.READY


def test_one_that_is_cancelled_is_held_too(store: Store, clock: ManualClock) -> None:
    handed_over(store)
    claim_one(store)
    hold(store, CHILD, purpose="cancel", stop=True)
    pending = reader.all_nodes(store, CHILD, NodeStatus.PENDING)
    rows = [changed(row, NodeStatus.CANCELLED) for row in pending]
    finish(store, RunStatus.CANCELLING, *rows, run=CHILD, grace=1_000_000)
    swept = sweep_after(store, clock, 2)
    (news,) = swept.runs
    assert (news.status, news.gate, news.purpose) == (RunStatus.CANCELLED, GateState.HELD, ENDED)
    assert [held.run_id for held in swept.gates] == [CHILD]


def test_one_that_is_cancelled_before_anything_ran_is_held_too(store: Store) -> None:
    handed_over(store, below=graph(k=""))
    hold(store, CHILD, purpose="cancel", stop=True)
    news = finish(store, RunStatus.CANCELLING, changed(node(store, 0, CHILD), NodeStatus.CANCELLED), run=CHILD, grace=0)
    assert (news.status, news.gate, news.purpose) == (RunStatus.CANCELLED, GateState.HELD, ENDED)


def test_one_that_is_retried_is_held_again_when_it_ends_again(store: Store) -> None:
    handed_over(store, below=graph(k=""))
    work(store, failing="k", runs=(CHILD,))
    enact(store, "failed", RunStatus.FAILED, run=CHILD, stop=True)
    wake(store, 0, ended=CHILD)
    again = changed(node(store, 0, CHILD), NodeStatus.PENDING, fresh=True)
    enact(store, "retry", RunStatus.RUNNING, again, run=CHILD)
    expect_run(store, CHILD, status=RunStatus.RUNNING, gate=GateState.OPEN)
    ended(store)


def test_an_ended_one_stays_shut_when_its_gate_is_held_for_something_else(store: Store) -> None:
    handed_over(store, below=graph(k=""))
    work(store, failing="k", runs=(CHILD,))
    enact(store, "failed", RunStatus.FAILED, run=CHILD, stop=True)
    wake(store, 0, ended=CHILD)
    news = enact(store, "heal", RunStatus.FAILED, run=CHILD)
    assert (news.gate, news.purpose) == (GateState.SHUT, None)


def test_a_run_that_performs_no_node_ends_as_ever(store: Store) -> None:
    worked(store, graph(a=""))
    expect_run(store, gate=GateState.SHUT, purpose=None)


# Waking


def test_a_wake_that_comes_again_changes_nothing(store: Store) -> None:
    handed_over(store)
    wake(store)
    seq = reader.require_run(store, RUN).seq
    assert wake(store).queue == "default"
    expect(node(store, 0), status=NodeStatus.READY, wakes=1)
    grant = claim_one(store, runs=(RUN,))
    one(store, completed(grant), Settled)
    assert wake(store).queue is None
    assert (node(store, 0).status, node(store, 0).wakes) == (NodeStatus.COMPLETED, 1)
    assert reader.require_run(store, RUN).seq == seq + 2


def test_who_looks_too_early_parks_the_node_again(store: Store) -> None:
    handed_over(store)
    wake(store)
    grant = claim_one(store, runs=(RUN,))
    one(store, parked(grant), Settled)
    expect(node(store, 0), parked=True, wakes=1, attempt=2)
    assert [attempt.output for attempt in reader.list_attempts(store, RUN, 0)] == [b'{"run":"child-1"}', None]
    ended(store)
    wake(store, 0, ended=CHILD)
    assert claim_one(store).number == 3


def test_a_wake_between_look_and_park_is_not_lost(store: Store) -> None:
    handed_over(store)
    wake(store)
    grant = claim_one(store, runs=(RUN,))
    ended(store)
    assert wake(store, 0, ended=CHILD).queue is None
    expect(node(store, 0), status=NodeStatus.RUNNING, wakes=2)
    one(store, parked(grant), Settled)
    expect(node(store, 0), status=NodeStatus.READY, wakes=2, due_at=None)
    grant = claim_one(store)
    assert grant.wakes == 2
    one(store, parked(grant), Settled)
    assert node(store, 0).parked


def test_a_wake_while_the_body_still_hands_over_makes_it_ready(store: Store) -> None:
    """Of an earlier child, from before the node was attempted again."""
    grant = handed_over(store, of=graph(a=""))
    wake(store)
    second = claim_one(store, runs=(RUN,))
    wake(store)
    one(store, parked(second, child_run(BELOW, second, "child-2")), Settled)
    expect(node(store, 0), status=NodeStatus.READY, wakes=3)
    assert reader.require_run(store, "child-2").parent == grant.run_id


def test_a_wake_behind_a_shut_gate_is_due_when_it_opens(store: Store) -> None:
    handed_over(store)
    enact(store, "pause", RunStatus.PAUSED)
    assert wake(store, 0, ended=CHILD).queue is None
    row = node(store, 0)
    assert (row.status, row.parked) == (NodeStatus.WAITING, False)
    assert row.due_at is not None
    assert sweep(store).woken == 0
    enact(store, "resume", RunStatus.RUNNING)
    assert sweep(store).woken == 1
    expect(node(store, 0), status=NodeStatus.READY, due_at=None)
    assert claim_one(store, runs=(RUN,)).wakes == 1


def test_a_wake_behind_a_held_gate_is_due_when_it_opens(store: Store) -> None:
    handed_over(store)
    hold(store, purpose="heal")
    wake(store)
    assert node(store, 0).due_at is not None
    finish(store, RunStatus.RUNNING, open_gate=True)
    assert sweep(store).woken == 1
    assert node(store, 0).status is NodeStatus.READY


def test_a_cancelled_run_ends_when_its_children_have(store: Store) -> None:
    handed_over(store)
    hold(store, purpose="cancel", stop=True)
    news = finish(store, RunStatus.CANCELLING, changed(node(store, 1), NodeStatus.CANCELLED), grace=0)
    assert (news.status, news.active) == (RunStatus.CANCELLING, 1)
    woken = wake(store)
    assert woken.run is not None
    assert (woken.run.status, woken.run.gate, woken.queue) == (RunStatus.CANCELLED, GateState.SHUT, None)
    expect(node(store, 0), status=NodeStatus.CANCELLED, reason="run_cancelled")


def test_a_wake_while_a_run_is_being_cancelled_cancels_the_node(store: Store) -> None:
    handed_over(store)
    hold(store, purpose="cancel", stop=True)
    wake(store)
    assert node(store, 0).status is NodeStatus.CANCELLED
    news = finish(store, RunStatus.CANCELLING, changed(node(store, 1), NodeStatus.CANCELLED), grace=0)
    assert news.status is RunStatus.CANCELLED


def test_a_wake_with_a_parent_that_a_heal_has_added_waits_for_it(store: Store) -> None:
    of = graph(a="")
    grant = claim_first(store, of)
    hand_over(store, grant, BELOW)
    healed = arrange(of, graph(x="", a="x"))
    store.commit(add_graph(healed))
    hold(store, purpose="heal")
    one(store, SwitchGraph(RUN, TOKEN, healed.digest, 1), GraphSwitched)
    finish(store, RunStatus.RUNNING, open_gate=True)
    assert wake(store).queue is None
    assert node(store, 0).status is NodeStatus.PENDING
    complete_next(store, runs=(RUN,))
    assert claim_one(store, runs=(RUN,)).wakes == 1


def test_nodes_that_no_run_performs_are_left_alone(store: Store, clock: ManualClock) -> None:
    of = graph(spec("c", retry=Retry(9)), a="", b="a")
    grants = claim_by_name(store, of)
    one(store, retried(grants["c"], 60), Settled)
    before = reader.all_nodes(store, RUN)
    for index in range(3):
        assert wake(store, index).queue is None
    assert reader.all_nodes(store, RUN) == before
    one(store, completed(grants["a"]), Settled)
    assert wake(store, of.index["b"]).queue == "default"


def test_where_nobody_waits_the_end_is_handed_on_all_the_same(store: Store) -> None:
    handed_over(store, of=graph(a=""))
    ended(store)
    unknown = RunId("gone")
    assert one(store, Wake(unknown, 0, CHILD), Woken) == Woken(None, None)
    expect_run(store, CHILD, gate=GateState.SHUT, purpose=None)
    assert wake(store, 99) == Woken(None, None)
    assert wake(store, -1) == Woken(None, None)
    assert wake(store, 0, ended="gone").queue == "default"
    assert wake(store, 0, ended=RUN).queue == "default"
    expect_run(store, gate=GateState.OPEN)


def test_a_gate_that_is_held_for_something_else_is_not_shut_by_a_wake(store: Store) -> None:
    handed_over(store)
    hold(store, CHILD, purpose="pause")
    wake(store, 0, ended=CHILD)
    expect_run(store, CHILD, gate=GateState.HELD, purpose="pause")
    finish(store, RunStatus.PAUSED, run=CHILD)


# Failures and requests


def test_a_worker_lost_while_it_looks_interrupts_nothing(store: Store, clock: ManualClock) -> None:
    of = graph(spec("a", on_lost="interrupt"))
    grant = claim_first(store, of, seconds=5)
    hand_over(store, grant, BELOW)
    wake(store)
    for loss in range(4):
        enlist(store, f"other-{loss}", seconds=5)
        claim_one(store, f"other-{loss}", runs=(RUN,))
        sweep_after(store, clock, 6)
        expect(node(store, 0), status=NodeStatus.READY, reason=None, wakes=1)
        assert not node(store, 0).lane.suspect
    assert [attempt.status for attempt in reader.list_attempts(store, RUN, 0)[1:]] == [AttemptStatus.LOST] * 4


def test_a_dismissed_worker_that_looked_interrupts_nothing(store: Store) -> None:
    handed_over(store, of=graph(spec("a", on_lost="interrupt")))
    wake(store)
    claim_one(store, runs=(RUN,))
    one(store, Dismiss(WORKER), Dismissed)
    assert node(store, 0).status is NodeStatus.READY


def test_who_asks_again_keeps_the_run_that_performs_a_node_or_not(store: Store) -> None:
    of = graph(a="", b="")
    grants = claim_by_name(store, of)
    for name in "ab":
        hand_over(store, grants[name], BELOW, f"child-{name}")
        wake(store, of.index[name])
    by = by_name(of, claim(store, runs=(RUN,)))
    store.commit([failed(by["a"]), failed(by["b"])])
    keeps = changed(node(store, of.index["a"]), NodeStatus.PENDING, fresh=True)
    anew = changed(node(store, of.index["b"]), NodeStatus.PENDING, fresh=True, anew=True)
    left = reader.require_run(store, RUN)
    assert left.purpose == "failed"
    rows = [changed(row, NodeStatus.CANCELLED) for row in reader.all_nodes(store, RUN, NodeStatus.WAITING)]
    enact(store, "failed", RunStatus.FAILED, *rows, stop=True)
    enact(store, "retry", RunStatus.RUNNING, keeps, anew)
    assert {name: grant.wakes for name, grant in by_name(of, claim(store, runs=(RUN,))).items()} == {"a": 1, "b": 0}


def test_a_parked_node_that_is_cancelled_is_not_woken(store: Store) -> None:
    handed_over(store)
    hold(store, purpose="failed", stop=True)
    rows = [changed(row, NodeStatus.CANCELLED) for row in reader.all_nodes(store, RUN)]
    finish(store, RunStatus.FAILED, *rows)
    ended(store)
    assert wake(store, 0, ended=CHILD).queue is None
    assert node(store, 0).status is NodeStatus.CANCELLED
    expect_run(store, CHILD, gate=GateState.SHUT)


# Finding them


def test_child_runs_are_found_by_their_parent(store: Store) -> None:
    of = graph(a="", b="", c="")
    grants = claim_by_name(store, of)
    for name in "abc":
        hand_over(store, grants[name], BELOW, f"child-{name}")
    start(store, BELOW, "other")
    work(store, runs=("child-b",))
    found = reader.list_runs(store, ListRuns(parent=RUN))
    assert [row.id for row in found.runs] == ["child-c", "child-b", "child-a"]
    page = reader.list_runs(store, ListRuns(parent=RUN, limit=2))
    assert [row.id for row in page.runs] == ["child-c", "child-b"]
    rest = reader.list_runs(store, ListRuns(parent=RUN, limit=2, before=page.cursor))
    assert [row.id for row in rest.runs] == ["child-a"]
    done = reader.list_runs(store, ListRuns(parent=RUN, statuses=(RunStatus.COMPLETED,)))
    assert [row.id for row in done.runs] == ["child-b"]
    assert [row.id for row in reader.list_runs(store, ListRuns(roots=True)).runs] == ["other", RUN]
    assert [row.id for row in reader.list_runs(store, ListRuns(roots=True, workflow="orders", limit=1)).runs] == [
        "other"
    ]
    assert reader.list_runs(store, ListRuns(parent=RunId("nobody"))).runs == ()
    (counted,) = store.read([CountRuns(ListRuns(roots=True), "workflow")])
    assert counted == CountedRuns((("orders", 2),))
    (counted,) = store.read([CountRuns(ListRuns(parent=RUN), "status")])
    assert counted == CountedRuns((("COMPLETED", 1), ("PENDING", 2)))


def test_many_child_runs_are_found_page_by_page(store: Store) -> None:
    """More than a store searches at once among others."""
    of = Graph([spec(f"n{place}") for place in range(30)])
    for grant in claim_roots(store, of):
        hand_over(store, grant, graph(k=""), f"child-{grant.index:02}")
        start(store, graph(k=""), f"other-{grant.index:02}")
    ids: list[str] = []
    query = ListRuns(parent=RUN, limit=7)
    while True:
        (page,) = store.read([query])
        ids += [row.id for row in page.runs]
        if page.cursor is None:
            break
        query = query._replace(before=page.cursor)
    assert ids == [f"child-{place:02}" for place in reversed(range(30))]


def test_a_tree_is_restored_as_it_was_elsewhere(store: Store, clock: ManualClock) -> None:
    other = MemoryStore(PlainTime(clock))
    handed_over(other)
    for run in (CHILD, RUN):
        enact(other, "pause", RunStatus.PAUSED, run=run)
    for run in (RUN, CHILD):
        copy(store, other, run)
        assert whole(store, run) == whole(other, run)
    assert [row.id for row in reader.list_runs(store, ListRuns(parent=RUN)).runs] == [CHILD]
    enact(store, "resume", RunStatus.RUNNING)
    assert wake(store).queue == "default"


def test_a_deleted_child_run_is_no_longer_found(store: Store) -> None:
    handed_over(store)
    ended(store)
    wake(store, 0, ended=CHILD)
    one(store, Delete(CHILD), Deleted)
    assert reader.list_runs(store, ListRuns(parent=RUN)).runs == ()


def test_a_fork_shares_the_result_and_no_child_run(store: Store) -> None:
    of = graph(a="", b="a")
    handed_over(store, of=of)
    ended(store)
    wake(store, 0, ended=CHILD)
    one(store, completed(claim_one(store), b'"result"'), Settled)
    start(store, of, "fork", fork=b"{}", origin=RUN)
    hold(store, "fork", purpose="fork")
    one(store, Share(RunId("fork"), TOKEN, RUN, new_claim_id(), ((0, 2),)), Shared)
    finish(store, RunStatus.PENDING, open_gate=True, run="fork")
    expect(node(store, 0, "fork"), status=NodeStatus.COMPLETED, wakes=0, attempt=1)
    assert reader.get_outputs(store, "fork") == {0: b'"result"'}
    audit(store)
