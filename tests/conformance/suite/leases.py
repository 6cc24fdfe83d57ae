"""A worker's lease: what stands under it, what renewing it says, and what happens when it ends."""

from __future__ import annotations

from stepwell.base.clock import SECOND, ManualClock
from stepwell.base.ids import AttemptId, WorkerId
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from tests.conformance.ops import *

LEASE = 30 * SECOND


def renew(store: Store, clock: ManualClock, seconds: float, *held: AttemptId) -> Renewed:
    """After so many seconds."""
    clock.advance(seconds)
    return one(store, Renew(WORKER, LEASE, held), Renewed)


def test_a_worker_begins_under_a_lease(store: Store, clock: ManualClock) -> None:
    op = Enlist(WORKER, LEASE, b'{"host":"a"}')
    assert store.commit([op]) == [Enlisted(clock.now() + LEASE)]
    assert reader.list_workers(store) == (WorkerRow(WORKER, clock.now() + LEASE, clock.now(), b'{"host":"a"}'),)
    clock.advance(5)
    assert store.commit([op]) == [Enlisted(clock.now() + LEASE)], "enlisting again is harmless"
    assert len(reader.list_workers(store)) == 1


def test_renewing_extends_the_lease(store: Store, clock: ManualClock) -> None:
    enlist(store)
    assert renew(store, clock, 29) == Renewed(clock.now() + LEASE, (), 0)
    assert sweep_after(store, clock, 29).lost == 0
    assert reader.list_workers(store)[0].lease_until == clock.now() + SECOND


def test_a_lease_that_is_over_cannot_be_renewed(store: Store, clock: ManualClock) -> None:
    assert refused(store, Renew(WORKER, LEASE, ())) is Refusal.LEASE_EXPIRED
    enlist(store)
    clock.advance(30)
    assert store.commit([Renew(WORKER, LEASE, ())]) == [Refused(Refusal.LEASE_EXPIRED)]
    sweep(store)
    assert store.commit([Renew(WORKER, LEASE, None)]) == [Refused(Refusal.LEASE_EXPIRED)]


def test_attempts_whose_claim_was_never_answered_are_released(store: Store, clock: ManualClock) -> None:
    serve(store, graph(a="", b="", c=""))
    held, stray = claim(store, limit=2)
    assert renew(store, clock, 1, held.attempt).released == 0, (
        "claimed since the last one: the answer may be on its way"
    )
    clock.advance(1)
    (recent,) = claim(store)
    assert renew(store, clock, 0, held.attempt).released == 1
    rows = reader.all_nodes(store, RUN)
    assert [rows[grant.index].status for grant in (held, stray, recent)] == ["RUNNING", "READY", "RUNNING"]
    assert (rows[stray.index].failures, rows[stray.index].losses) == (0, 0)
    assert reader.list_attempts(store, RUN, stray.index)[0].status is AttemptStatus.RELEASED
    assert store.commit([completed(stray)]) == [Refused(Refusal.FENCED)]
    expect(claim_one(store), index=stray.index, number=2)


def test_a_renewal_that_says_nothing_of_what_is_held_releases_nothing(store: Store, clock: ManualClock) -> None:
    claim_roots(store, graph(a=""))
    for _ in range(3):
        clock.advance(1)
        assert one(store, Renew(WORKER, LEASE, None), Renewed).released == 0
    assert statuses(store) == {"a": "RUNNING"}
    assert renew(store, clock, 0).released == 1


def test_rubbish_among_the_held_changes_nothing(store: Store, clock: ManualClock) -> None:
    serve(store, graph(a=""))
    (grant,) = claim(store, claim="c1")
    renew(store, clock, 1, grant.attempt)
    others = map(AttemptId, ("rubbish", "gone.0", "c1.7"))
    assert renew(store, clock, 1, grant.attempt, *others).released == 0
    assert renew(store, clock, 1, AttemptId("c1.00"), AttemptId("rubbish")).released == 1


def test_a_careful_node_that_never_began_is_ready_again(store: Store, clock: ManualClock) -> None:
    claim_roots(store, graph(spec("pay", on_lost="interrupt")))
    renew(store, clock, 1)
    assert renew(store, clock, 1).released == 1
    assert statuses(store) == {"pay": "READY"}


def test_a_stray_attempt_of_a_run_that_stops_is_cancelled(store: Store, clock: ManualClock) -> None:
    bad, stray = claim_roots(store, graph(a="", b=""))
    renew(store, clock, 1, bad.attempt, stray.attempt)
    store.commit([failed(bad)])
    assert renew(store, clock, 1).released == 1
    assert node(store, stray.index).status is NodeStatus.CANCELLED
    assert reader.require_run(store, RUN).active == 0


def test_a_renewal_tells_what_to_stop(store: Store, clock: ManualClock) -> None:
    serve(store, graph(a="", b="", c=""), "stops", "goes on")
    enlist(store, "other")
    a, b, c = claim(store, limit=3)
    (elsewhere, *_) = claim(store, "other")
    store.commit([failed(b)])
    assert reader.require_run(store, "stops").gate is GateState.HELD
    assert renew(store, clock, 1, a.attempt, c.attempt).stop == (a.attempt, c.attempt)
    assert list_stops(store) == (a.attempt, c.attempt)
    assert list_stops(store, WorkerId("other")) == ()
    assert list_stops(store, WorkerId("nobody")) == ()
    assert elsewhere.run_id == "goes on"


def test_what_a_dismissed_worker_holds_is_lost_at_once(store: Store) -> None:
    of = serve(store, graph(spec("a"), spec("pay", on_lost="interrupt")))
    enlist(store, "other")
    grants = claim(store)
    assert store.commit([Dismiss(WORKER)]) == [Dismissed(2)]
    assert statuses(store) == {"a": "READY", "pay": "INTERRUPTED"}
    assert node(store, of.index["pay"]).reason == "worker_lost"
    assert [worker.id for worker in reader.list_workers(store)] == ["other"]
    assert store.commit([completed(grants[0])]) == [Refused(Refusal.FENCED)]
    assert store.commit([Dismiss(WORKER), Dismiss(WorkerId("nobody"))]) == [Dismissed(0), Dismissed(0)]
    expect_run(store, gate=GateState.HELD, purpose="failed", failed=1)


def test_a_worker_that_enlists_again_keeps_what_it_held(store: Store, clock: ManualClock) -> None:
    grant = claim_first(store, graph(a=""))
    clock.advance(60)
    enlist(store)
    assert sweep(store).lost == 0
    assert not isinstance(store.commit([completed(grant)])[0], Refused)


def test_workers_are_listed_by_id(store: Store) -> None:
    for worker in ("w3", "w1", "w2"):
        enlist(store, worker)
    assert [worker.id for worker in reader.list_workers(store)] == ["w1", "w2", "w3"]


def test_a_renewal_that_comes_twice_or_late_releases_nothing_claimed_since(store: Store, clock: ManualClock) -> None:
    """Found by the simulator: the second time, what was claimed before the first looked stray."""
    serve(store, graph(a=""))
    heard_at = clock.now()
    clock.advance(1)
    renewal = Renew(WORKER, LEASE, (), since=heard_at)
    (grant,) = claim(store)
    clock.advance(1)
    assert one(store, renewal, Renewed).released == 0
    clock.advance(1)
    assert one(store, renewal, Renewed).released == 0
    assert statuses(store) == {"a": "RUNNING"}
    assert one(store, Renew(WORKER, LEASE, (), since=clock.now()), Renewed).released == 1
    assert refused(store, completed(grant)) is Refusal.FENCED
