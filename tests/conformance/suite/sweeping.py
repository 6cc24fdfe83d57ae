"""What time changes: lost workers, due nodes, deadlines, cancellations whose grace is over, gates left held."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell.base.clock import SECOND, ManualClock
from stepwell.base.ids import RunId
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from tests.conformance.ops import *


def lose(store: Store, clock: ManualClock, worker: str, **scope: Any) -> Swept:
    """A worker claims, then its lease runs out."""
    enlist(store, worker, seconds=10)
    claim(store, worker, **scope)
    return sweep_after(store, clock, 10)


def test_nothing_to_do_is_nothing_done(store: Store) -> None:
    assert sweep(store) == Swept(0, 0, (), (), None, 0)


def test_what_a_lost_worker_held_is_ready_again(store: Store, clock: ManualClock) -> None:
    grant = claim_first(store, graph(a="", b="a"), "gone", seconds=10)
    assert sweep_after(store, clock, 10 - MARGIN).lost == 0
    swept = sweep_after(store, clock, MARGIN)
    assert (swept.lost, swept.woken, [news.run_id for news in swept.runs]) == (1, 0, [RUN])
    assert (swept.runs[0].open, swept.runs[0].active, swept.runs[0].failed) == (2, 1, 0)
    expect(node(store, 0), status=NodeStatus.READY, losses=1, failures=0, lane=LANE, reason=None)
    (attempt,) = reader.list_attempts(store, RUN)
    assert (attempt.status, attempt.ended_at) == (AttemptStatus.LOST, clock.now())
    assert attempt.error == WORKER_LOST_ERROR
    assert reader.list_workers(store) == ()
    assert store.commit([completed(grant)]) == [Refused(Refusal.FENCED)]
    assert sweep(store) == Swept(0, 0, (), (), None, 0)


@pytest.mark.parametrize("delays", [(5, 60), (60, 5)])
def test_each_node_is_woken_when_it_is_due_however_long_others_wait(
    store: Store, clock: ManualClock, delays: tuple[int, int]
) -> None:
    serve(store, patient("a", "b"), seconds=600)
    for grant, delay in zip(claim(store), delays, strict=True):
        store.commit([retried(grant, delay)])
    assert sweep_after(store, clock, 5).woken == 1
    assert sweep_after(store, clock, 55).woken == 1


def test_only_workers_that_are_late_are_lost(store: Store, clock: ManualClock) -> None:
    serve(store, graph(a="", b=""), worker="gone", seconds=10)
    enlist(store, "alive", seconds=20)
    claim(store, "gone", 1)
    (kept,) = claim(store, "alive", 1)
    assert sweep_after(store, clock, 10).lost == 1
    assert node(store, kept.index).status is NodeStatus.RUNNING
    assert [worker.id for worker in reader.list_workers(store)] == ["alive"]


def test_a_careful_node_is_interrupted_and_never_runs_again_by_itself(store: Store, clock: ManualClock) -> None:
    of = start(store, graph(spec("pay", on_lost="interrupt"), spec("other")))
    swept = lose(store, clock, "gone", lanes=[("default/thread!", 1)])
    assert statuses(store) == {"pay": "INTERRUPTED", "other": "READY"}
    assert node(store, of.index["pay"]).reason == "worker_lost"
    assert (swept.runs[0].gate, swept.runs[0].purpose, swept.runs[0].failed) == (GateState.HELD, "failed", 1)
    assert swept.gates == (HeldGate(RUN, "failed", b""),)


def test_a_node_that_took_two_workers_with_it_stands_alone(store: Store, clock: ManualClock) -> None:
    start(store, graph(spec("leak", body="loop", queue="heavy")))
    for losses in range(1, SUSPECT_AFTER + 1):
        assert node(store, 0).lane == lane("heavy/loop")
        assert lose(store, clock, f"w{losses}", lanes=[("heavy/loop", 9)]).lost == 1
        assert node(store, 0).losses == losses
    assert node(store, 0).lane == lane("heavy/loop?")
    enlist(store)
    assert claim(store, lanes=[("heavy/loop", 9), ("default/loop?", 9)]) == ()
    expect(complete_next(store, lanes=[("heavy/loop?", 1)]), number=SUSPECT_AFTER + 1, losses=SUSPECT_AFTER)
    assert reader.require_run(store, RUN).status is RunStatus.COMPLETED


def test_a_node_that_keeps_losing_workers_fails(store: Store, clock: ManualClock) -> None:
    start(store, graph(a="", b="a"))
    for losses in range(1, MAX_LOSSES):
        lose(store, clock, f"w{losses}")
        assert node(store, 0).status is NodeStatus.READY
    swept = lose(store, clock, "last")
    expect(node(store, 0), status=NodeStatus.FAILED, losses=MAX_LOSSES, reason="worker_lost")
    assert (swept.runs[0].gate, swept.runs[0].failed) == (GateState.HELD, 1)


def test_a_node_somebody_asked_for_again_is_no_longer_suspect(store: Store, clock: ManualClock) -> None:
    start(store, graph(a=""))
    for losses in range(MAX_LOSSES):
        lose(store, clock, f"w{losses}")
    enact(store, "failed", RunStatus.FAILED)
    enact(store, "retry", RunStatus.RUNNING, changed(node(store, 0), NodeStatus.PENDING, fresh=True))
    expect(node(store, 0), status=NodeStatus.READY, losses=0, lane=LANE, reason=None)


def test_a_worker_lost_in_a_run_that_stops_cancels_its_nodes(store: Store, clock: ManualClock) -> None:
    of = serve(store, graph(spec("pay", on_lost="interrupt"), a="", b=""), worker="gone", seconds=10)
    grants = by_name(of, claim(store, "gone"))
    store.commit([failed(grants["a"])])
    assert sweep_after(store, clock, 10).lost == 2
    assert statuses(store) == {"a": "FAILED", "b": "CANCELLED", "pay": "CANCELLED"}
    assert node(store, of.index["b"]).reason == "worker_lost"


def test_a_sweep_takes_no_more_than_its_limit(store: Store, clock: ManualClock) -> None:
    serve(store, graph(**{f"n{i}": "" for i in range(7)}), worker="one", seconds=8)
    enlist(store, "two", seconds=9)
    enlist(store, "idle", seconds=10)
    claim(store, "two", 3)
    claim(store, "one", 4)
    clock.advance(10)
    assert [sweep(store, 3).lost for _ in range(4)] == [3, 3, 1, 0]
    assert reader.list_workers(store) == ()
    assert set(statuses(store).values()) == {"READY"}


def test_an_expired_worker_with_nothing_left_is_forgotten(store: Store, clock: ManualClock) -> None:
    serve(store, graph(a="", b=""), worker="busy", seconds=8)
    enlist(store, "idle", seconds=9)
    claim(store, "busy")
    assert sweep_after(store, clock, 10, 1).lost == 1
    assert [worker.id for worker in reader.list_workers(store)] == ["busy"]


def test_a_due_node_wakes_and_never_early(store: Store, clock: ManualClock) -> None:
    of = serve(store, graph(soon="", later=""), seconds=600)
    grants = by_name(of, claim(store))
    store.commit([retried(grants["soon"], 5), retried(grants["later"], 7)])
    due = clock.now() + 5 * SECOND
    assert sweep(store).next_due == due
    assert sweep_after(store, clock, 5 - MARGIN).woken == 0
    clock.advance(MARGIN)
    assert clock.now() == due
    swept = sweep(store)
    assert (swept.woken, [news.run_id for news in swept.runs], swept.next_due) == (1, [RUN], due + 2 * SECOND)
    expect(node(store, of.index["soon"]), status=NodeStatus.READY, due_at=None)
    assert node(store, of.index["later"]).status is NodeStatus.WAITING


def test_the_longest_due_wake_first(store: Store, clock: ManualClock) -> None:
    grants = claim_roots(store, graph(a="", b="", c=""), "one", "two", seconds=600)
    store.commit([retried(grant, 9 - place) for place, grant in enumerate(grants)])
    assert sweep_after(store, clock, 9, 2).woken == 2
    ready = [node(store, grant.index, grant.run_id).status is NodeStatus.READY for grant in grants]
    assert ready == [False, False, False, False, True, True]
    assert sweep(store, 9).woken == 4


def test_nothing_wakes_behind_a_closed_gate(store: Store, clock: ManualClock) -> None:
    grant = claim_first(store, graph(a=""), seconds=600)
    store.commit([retried(grant, 5)])
    enact(store, "pause", RunStatus.PAUSED)
    lease = reader.list_workers(store)[0].lease_until
    assert sweep(store).next_due == lease
    assert sweep_after(store, clock, 60).woken == 0
    enact(store, "resume", RunStatus.RUNNING)
    assert sweep(store).woken == 1


def test_a_deadline_closes_the_gate(store: Store, clock: ManualClock) -> None:
    start(store, graph(a="", b="a"), timeout=60 * SECOND, on_failure="finish")
    serve(store, graph(a="", b="a"), "done", timeout=60 * SECOND, seconds=600)
    work(store, runs=("done",))
    (grant,) = claim(store)
    assert sweep(store).next_due == clock.now() + 60 * SECOND
    assert sweep_after(store, clock, 60 - MARGIN).runs == ()
    swept = sweep_after(store, clock, MARGIN)
    (news,) = swept.runs
    assert (news.run_id, news.gate, news.purpose, news.status) == (RUN, GateState.HELD, "failed", RunStatus.RUNNING)
    assert swept.gates == (HeldGate(RUN, "failed", b""),)
    expect_run(store, reason="deadline", stopping=True)
    assert list_stops(store, reader.list_workers(store)[0].id) == (grant.attempt,)
    assert sweep(store).runs == ()


def test_a_retry_gets_the_whole_time_again(store: Store, clock: ManualClock) -> None:
    start(store, graph(a=""), timeout=60 * SECOND)
    sweep_after(store, clock, 60)
    enact(store, "failed", RunStatus.FAILED, changed(node(store, 0), NodeStatus.CANCELLED), reason="deadline")
    assert reader.require_run(store, RUN).reason == "deadline"
    enact(store, "retry", RunStatus.RUNNING, changed(node(store, 0), NodeStatus.PENDING))
    expect_run(store, deadline_at=clock.now() + 60 * SECOND, reason=None, stopping=False)


def test_a_cancelled_run_is_fenced_when_its_grace_is_over(store: Store, clock: ManualClock) -> None:
    of = serve(store, graph(a="", b="", c="a"), seconds=600)
    a, b = claim(store)
    child = changed(node(store, of.index["c"]), NodeStatus.CANCELLED)
    news = enact(store, "cancel", RunStatus.CANCELLING, child, grace=5 * SECOND, stop=True)
    assert (news.status, news.gate, news.active) == (RunStatus.CANCELLING, GateState.SHUT, 2)
    assert sweep(store).next_due == clock.now() + 5 * SECOND
    store.commit([completed(a)])
    assert sweep_after(store, clock, 5 - MARGIN).runs == ()
    swept = sweep_after(store, clock, MARGIN)
    (news,) = swept.runs
    assert (swept.lost, news.status, news.gate, news.active) == (0, RunStatus.CANCELLED, GateState.SHUT, 0)
    assert node(store, b.index).status is NodeStatus.CANCELLED
    assert reader.list_attempts(store, RUN, b.index)[0].status is AttemptStatus.CANCELLED
    assert store.commit([completed(b)]) == [Refused(Refusal.FENCED)]
    assert reader.require_run(store, RUN).ended_at == clock.now()
    expect(sweep(store), runs=(), gates=(), next_due=reader.list_workers(store)[0].lease_until)


def test_a_gate_is_reported_when_its_holder_is_late(store: Store, clock: ManualClock) -> None:
    of = graph(a="")
    for run, seconds in (("first", 20), ("second", 10), ("third", 30)):
        start(store, of, run)
        hold(store, run, seconds=seconds, purpose=f"purpose of {run}")
    expect(sweep(store), gates=(), next_due=clock.now() + 10 * SECOND)
    swept = sweep_after(store, clock, 20)
    assert swept.gates == (
        HeldGate(reader.require_run(store, "first").id, "purpose of first", b"{}"),
        HeldGate(reader.require_run(store, "second").id, "purpose of second", b"{}"),
    )
    assert swept.next_due == clock.now() + HAND_OUT, "when it would be reported again"


def test_a_gate_that_was_reported_is_left_to_who_was_told(store: Store, clock: ManualClock) -> None:
    start(store, graph(a=""))
    hold(store, seconds=1, purpose="pause")
    clock.advance(1)
    assert [gate.run_id for gate in sweep(store).gates] == [RUN]
    assert sweep(store).gates == (), "two would do the same"
    assert [gate.run_id for gate in one(store, Sweep(run=RUN), Swept).gates] == [RUN], "who asks for this run is told"
    clock.advance(HAND_OUT / SECOND)
    assert [gate.run_id for gate in sweep(store).gates] == [RUN], "who was told may have died"
    hold(store, token="another", seconds=1, purpose="pause")
    clock.advance(1)
    assert [gate.run_id for gate in sweep(store).gates] == [RUN], "it is another's now, who was late too"


def test_every_part_of_a_sweep_is_limited(store: Store, clock: ManualClock) -> None:
    of = graph(a="")
    for number in range(4):
        start(store, of, f"late-{number}", timeout=SECOND)
        start(store, of, f"held-{number}")
        hold(store, f"held-{number}", seconds=1)
        start(store, of, f"cancelled-{number}")
        start(store, of, f"waits-{number}")
    enlist(store, seconds=600)
    for grant in claim(store, runs=[f"cancelled-{number}" for number in range(4)]):
        enact(store, "cancel", RunStatus.CANCELLING, run=grant.run_id, grace=SECOND, stop=True)
    for grant in claim(store, runs=[f"waits-{number}" for number in range(4)]):
        store.commit([retried(grant, 1)])
    clock.advance(1)
    left = [sweep(store, 3) for _ in range(3)]
    assert [swept.woken for swept in left] == [3, 1, 0]
    assert [sum(run.status is RunStatus.CANCELLED for run in swept.runs) for swept in left] == [3, 1, 0]
    assert [sum(run.purpose == "failed" for run in swept.runs) for swept in left] == [3, 1, 0]
    assert [len(swept.gates) for swept in left] == [3, 3, 2]


def test_a_sweep_of_one_run_leaves_the_others(store: Store, clock: ManualClock) -> None:
    claim_roots(store, graph(a=""), "one", "two", seconds=1)
    clock.advance(1)
    assert one(store, Sweep(run=RunId("one")), Swept).lost == 1
    assert (statuses(store, "one"), statuses(store, "two")) == ({"a": "READY"}, {"a": "RUNNING"})
    assert sweep(store).lost == 1


def test_after_an_outage_workers_get_one_lease_to_renew(store: Store, clock: ManualClock) -> None:
    """Nobody could renew while the store was away; who comes back first must not take everything from the others."""
    claim_roots(store, graph(a=""))
    sweep(store)
    expect(sweep_after(store, clock, 60), lost=0, workers=1)
    assert isinstance(store.commit([Renew(WORKER, 30 * SECOND, None)])[0], Renewed), "it was alive"
    for _ in range(3):
        sweep_after(store, clock, 9)
    assert sweep_after(store, clock, 9).lost == 1, "sweeps went on, and it did not renew"


def test_a_lease_that_ran_out_before_an_outage_is_over(store: Store, clock: ManualClock) -> None:
    claim_roots(store, graph(a="", b=""))
    for _ in range(4):
        sweep_after(store, clock, 9, 1)
    assert sweep_after(store, clock, 60).lost == 1


def test_deadlines_and_losses_of_many_runs_come_in_one_sweep(store: Store, clock: ManualClock) -> None:
    careful = graph(spec("pay", on_lost="interrupt"), spec("other"))
    for i in range(3):
        start(store, careful, f"lost-{i}")
        start(store, careful, f"late-{i}", timeout=30 * SECOND)
    enlist(store, seconds=30)
    claim(store, runs=[f"lost-{i}" for i in range(3)])
    swept = sweep_after(store, clock, 30)
    assert swept.lost == 6
    assert len(swept.runs) == len(swept.gates) == 6
    assert {news.gate for news in swept.runs} == {GateState.HELD}
    assert sweep(store).runs == ()


def test_a_lost_worker_and_a_passed_deadline_come_in_one_sweep(store: Store, clock: ManualClock) -> None:
    start(store, graph(a="", b=""), timeout=30 * SECOND)
    serve(store, graph(a="", b=""), "other", seconds=30)
    grants = claim(store, limit=3)
    store.commit([retried(grants[0], 30)])
    swept = sweep_after(store, clock, 30)
    assert (swept.lost, swept.woken, [news.run_id for news in swept.runs]) == (2, 1, [RUN, "other"])
    assert set(statuses(store).values()) == {"READY"}
    assert reader.require_run(store, RUN).gate is GateState.HELD
