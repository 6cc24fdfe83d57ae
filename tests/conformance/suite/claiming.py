"""READY nodes are taken: in order, by one worker only, and with what their bodies need."""

from __future__ import annotations

from typing import Any

from stepwell.base.clock import ManualClock
from stepwell.base.ids import RunId
from stepwell.core.graph import Graph
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from tests.conformance.ops import *


def named(of: Graph, grants: tuple[Grant, ...]) -> list[str]:
    return [of.order[grant.index] for grant in grants]


def test_a_claim_makes_the_node_an_attempt_of_the_worker(store: Store, clock: ManualClock) -> None:
    serve(store, graph(a="", b="a"))
    clock.advance(1)
    (grant,) = claim(store, claim="c1")
    assert grant == Grant(grant.attempt, RUN, 0, 1, 0, 0, ())
    assert statuses(store) == {"a": "RUNNING", "b": "PENDING"}
    expect_run(store, status=RunStatus.RUNNING, started_at=clock.now(), open=2, active=1)
    (attempt,) = reader.list_attempts(store, RUN)
    assert (attempt.id, attempt.index, attempt.number, attempt.worker) == (grant.attempt, 0, 1, WORKER)
    assert (attempt.started_at, attempt.ended_at, attempt.output) == (clock.now(), None, None)


def test_nobody_else_gets_a_node_that_was_claimed(store: Store) -> None:
    start(store, graph(a="", b="", c=""))
    enlist(store, "one")
    enlist(store, "two")
    first, second, third = claim(store, "one", 2), claim(store, "two", 2), claim(store, "one")
    assert (len(first), len(second), len(third)) == (2, 1, 0)
    assert len({grant.index for grant in first + second}) == 3


def test_the_order_is_priority_then_admission_then_the_graph(store: Store) -> None:
    of = graph(a="", b="", c="")
    enlist(store)
    for run, priority in (("old", 0), ("urgent", 5), ("idle", -5), ("new", 0)):
        start(store, of, run, priority=priority)
    expected = [(run, index) for run in ("urgent", "old", "new", "idle") for index in range(3)]
    for scope in ({}, {"runs": ("idle", "new", "old", "urgent")}, {"serves": (("orders", of.digest),)}):
        grants = claim(store, lanes=[(LANE, 7)], **scope)
        assert [(grant.run_id, grant.index) for grant in grants] == expected[:7]
        again = claim(store, lanes=[(LANE, 7)], **scope)
        assert [(grant.run_id, grant.index) for grant in again] == expected[7:]
        assert [grant.attempt for grant in grants + again] == [
            attempt.id for run, index in expected for attempt in reader.list_attempts(store, run, index)[-1:]
        ]
        store.commit([released(grant) for grant in grants + again])


def test_within_a_run_nodes_nearer_to_the_roots_come_first(store: Store) -> None:
    of = serve(store, graph(a="", b="a", c="b", x="", y="x", z="y"))
    while "c" not in (ready := {row.id for row in reader.all_nodes(store, RUN, NodeStatus.READY)}):
        grants = by_name(of, claim(store))
        store.commit([completed(grant) if name in "abx" else released(grant) for name, grant in grants.items()])
    assert ready == {"c", "y"}
    assert named(of, claim(store)) == ["y", "c"]


def test_what_becomes_ready_again_or_late_comes_before_what_lies_behind_it(store: Store, clock: ManualClock) -> None:
    of = serve(store, graph(a="", b="a", c="b", d="c", x="", y="x"), seconds=600)
    first = by_name(of, claim(store))
    store.commit([completed(first["a"])])
    for name in "bc":
        assert named(of, (complete_next(store),)) == [name]
    assert statuses(store)["d"] == "READY"
    store.commit([completed(first["x"])])
    late = claim(store)
    assert named(of, late) == ["y", "d"]
    store.commit([released(grant) for grant in late])
    (given_back,) = claim(store, limit=1)
    assert named(of, (given_back,)) == ["y"]
    store.commit([retried(given_back, 5)])
    assert named(of, claim(store)) == ["d"]
    sweep_after(store, clock, 6)
    assert named(of, claim(store)) == ["y"]


def test_what_becomes_ready_late_is_found_whatever_else_the_batch_settles(store: Store) -> None:
    of = serve(store, graph(a="", b="a", c="b", x="", y="x"))
    other = start(store, graph(z=""), "other")
    held = by_name(of, claim(store, runs=(RUN,))) | by_name(other, claim(store, runs=("other",)))
    store.commit([completed(held["a"])])
    (second,) = claim(store, runs=(RUN,))
    store.commit([completed(second)])
    assert named(of, claim(store, runs=(RUN,))) == ["c"]
    store.commit([completed(held["x"]), failed(held["z"])])
    assert named(of, claim(store, runs=(RUN,))) == ["y"]


def lanes_graph() -> Graph:
    careful, loop = spec("careful", on_lost="interrupt"), spec("async", body="loop")
    return graph(spec("usual"), careful, loop, spec("gpu", queue="gpu"), spec("second"))


def test_a_claim_takes_only_from_the_lanes_it_names(store: Store) -> None:
    of = serve(store, lanes_graph())
    assert claim(store, lanes=[("elsewhere/thread", 9)]) == ()
    assert claim(store, lanes=[]) == ()
    assert named(of, claim(store, lanes=[("gpu/thread", 9), ("default/loop", 9)])) == ["gpu", "async"]
    assert named(of, claim(store, lanes=[("default/thread!", 9)])) == ["careful"]
    assert set(named(of, claim(store, lanes=[(LANE, 9)]))) == {"usual", "second"}


def test_the_limits_of_lanes_are_cumulative(store: Store) -> None:
    of = serve(store, lanes_graph())
    grants = claim(store, lanes=[("default/thread!", 1), (LANE, 2), ("gpu/thread", 2), ("default/loop", 3)])
    assert [of.nodes[name].lane for name in named(of, grants)] == [lane("default/thread!"), LANE, lane("default/loop")]


def test_a_lane_named_twice_gives_each_node_once(store: Store) -> None:
    serve(store, graph(a="", b="", c=""))
    assert len(claim(store, lanes=[(LANE, 1), (LANE, 2)])) == 2


def test_a_limit_of_nothing_takes_nothing(store: Store) -> None:
    serve(store, graph(a="", b=""))
    assert claim(store, lanes=[(LANE, 0)]) == ()
    assert claim(store, lanes=[(LANE, -1)]) == ()
    assert statuses(store) == {"a": "READY", "b": "READY"}


def test_one_claim_takes_at_most_a_chunk(store: Store) -> None:
    serve(store, graph(**{f"n{i}": "" for i in range(store.limits.nodes + 7)}))
    grants = claim(store, lanes=[(LANE, 100_000)])
    assert [grant.index for grant in grants] == list(range(store.limits.nodes))
    rest = claim(store, lanes=[(LANE, 100_000)])
    assert [grant.index for grant in rest] == list(range(store.limits.nodes, store.limits.nodes + 7))


def test_a_claim_may_name_the_runs_it_serves(store: Store) -> None:
    serve(store, graph(a=""), "one", "two", "three")
    assert claim(store, runs=()) == ()
    assert claim(store, runs=("none",)) == ()
    assert [grant.run_id for grant in claim(store, runs=("three", "one", "none"))] == ["one", "three"]
    assert [grant.run_id for grant in claim(store)] == ["two"]


def test_a_claim_may_name_the_workflows_it_has_code_for(store: Store) -> None:
    of, other = serve(store, graph(a=""), "orders"), start(store, graph(a="", b=""), "newer")
    start(store, of, "returns", workflow="returns")
    assert claim(store, serves=()) == ()
    assert claim(store, serves=(("orders", "0" * 64), ("elsewhere", of.digest))) == ()
    assert [grant.run_id for grant in claim(store, serves=(("returns", of.digest),))] == ["returns"]
    both = (("orders", of.digest), ("orders", other.digest))
    assert [grant.run_id for grant in claim(store, serves=both * 2)] == ["orders", "newer", "newer"]
    assert claim(store, serves=both) == ()


def test_who_serves_a_version_finds_what_was_given_back(store: Store, clock: ManualClock) -> None:
    """By somebody, by one who gives back several, and by one who is gone: also after a claim that found nothing."""
    of = serve(store, graph(a="", b=""), seconds=600)
    enlist(store, "gone", seconds=10)
    serves = (("orders", of.digest),)

    def take(worker: str = WORKER) -> tuple[Grant, ...]:
        grants = claim(store, worker, serves=serves)
        assert claim(store, serves=serves) == ()
        return grants

    first, second = take()
    store.commit([released(first)])
    (third,) = take()
    assert third.index == first.index
    store.commit([released(second), released(third)])
    assert len(take("gone")) == 2
    assert sweep_after(store, clock, 10).lost == 2
    assert len(take()) == 2


def test_a_claim_of_nothing_in_particular_takes_nothing(store: Store) -> None:
    serve(store, graph(a=""))
    assert claim(store, runs=()) == ()


def test_who_claims_what_it_serves_is_told_what_the_runs_are(store: Store) -> None:
    of = graph(a="", b="")
    enlist(store)
    for run in ("one", "two"):
        start(store, of, run, input=b'{"of":"%s"}' % run.encode(), target="shop:Order", tags=(("customer", "7"),))
    op = claim_op(serves=(("orders", of.digest),), claim="c1", limit=3)
    claimed = one(store, op, Claimed)
    assert [grant.run_id for grant in claimed.grants] == ["one", "one", "two"]
    assert claimed.runs == tuple(reader.require_run(store, run) for run in ("one", "two"))
    assert one(store, op, Claimed) == claimed, "also when it asks again"
    assert one(store, claim_op(runs=("two",)), Claimed).runs == (), "who names runs knows them"


def test_of_many_versions_the_most_urgent_run_comes_first_whatever_has_gone_before(store: Store) -> None:
    graphs = [graph(**{f"{place}_{i}": "" for i in range(3)}) for place in range(4)]
    enlist(store)
    for place, of in enumerate(graphs * 3):
        start(store, of, f"run-{place:02}", priority=(3, 0, 7, 1)[place % 4])
    serves = [("orders", of.digest) for of in graphs[:3]]
    taken = [claim(store, limit=3, serves=serves)[0].run_id for _ in range(9)]
    assert taken == ["run-02", "run-06", "run-10", "run-00", "run-04", "run-08", "run-01", "run-05", "run-09"]
    assert claim(store, serves=serves) == ()
    hold(store, "run-00")
    assert [grant.run_id for grant in claim(store, limit=1, serves=[("orders", graphs[3].digest)])] == ["run-03"]


def test_runs_with_ready_nodes_in_a_lane_can_be_listed(store: Store) -> None:
    of, other = graph(a="", b="a"), graph(c="")
    enlist(store)
    for place, run in enumerate(("one", "two", "three", "four", "five")):
        start(store, of if place % 2 else other, run, priority=place % 3)

    def ready(*lanes: Lane, runs: tuple[str, ...] = (), serves: Any = (), limit: int = 100) -> list[str]:
        (found,) = store.read([ListReady(lanes, tuple(map(RunId, runs)), tuple(serves), limit)])
        return list(found)

    every = ("one", "two", "three", "four", "five")
    assert ready(LANE, runs=every) == ["three", "two", "five", "one", "four"]
    assert ready(LANE, lane("default/loop"), runs=every, limit=2) == ["three", "two"]
    assert ready(lane("default/loop"), runs=every) == ready(runs=every) == ready(LANE) == []
    assert ready(LANE, serves=[("orders", of.digest)]) == ["two", "four"]
    assert ready(LANE, runs=("one", "two"), serves=[("orders", of.digest), ("returns", other.digest)]) == [
        "two",
        "one",
        "four",
    ]
    claim(store, runs=("two",))
    hold(store, "four")
    assert ready(LANE, serves=[("orders", of.digest)]) == ready(LANE, runs=("two", "four", "none")) == []


def test_those_of_some_runs_that_have_ready_nodes_behind_an_open_gate_are_told(store: Store) -> None:
    serve(store, graph(a=""), "free", "taken", "held", "also free", "not asked for")
    claim(store, runs=("taken",))
    hold(store, "held")
    assert sorted(ready_runs(store, "free", "taken", "held", "also free", "unknown")) == ["also free", "free"]


def test_behind_a_closed_gate_nothing_is_claimed(store: Store) -> None:
    of = serve(store, graph(a=""), "held", "shut", "free")
    hold(store, "held")
    end_run(store, "shut")
    assert [grant.run_id for grant in claim(store)] == ["free"]
    assert claim(store, runs=("held", "shut")) == ()
    assert claim(store, serves=(("orders", of.digest),)) == ()


def test_a_run_behind_many_that_are_held_is_found(store: Store) -> None:
    of = graph(a="")
    enlist(store)
    store.commit(add_graph(of))
    held = [f"held-{number}" for number in range(410)]
    store.commit([create(of, run) for run in held])
    store.commit([gate_op(run, purpose="pause") for run in held])
    start(store, of, "free")
    serves = (("orders", of.digest),)
    assert [grant.run_id for grant in claim(store, lanes=[(LANE, 1)], serves=serves)] == ["free"]
    assert claim(store, lanes=[(LANE, 1)], serves=serves) == ()


def test_a_worker_whose_lease_is_over_claims_nothing(store: Store, clock: ManualClock) -> None:
    start(store, graph(a=""))
    assert refused(store, claim_op()) is Refusal.LEASE_EXPIRED
    enlist(store, seconds=10)
    clock.advance(10)
    assert refused(store, claim_op()) is Refusal.LEASE_EXPIRED
    assert statuses(store) == {"a": "READY"}


def test_a_repeated_claim_returns_what_is_still_current(store: Store) -> None:
    serve(store, graph(a="", b="", c="", d=""))
    op = claim_op(claim="c1", limit=3)
    first, second = twice(store, [op])
    assert first == second
    grants = one(store, op, Claimed).grants
    assert len(grants) == 3
    store.commit([completed(grants[1])])
    assert one(store, op, Claimed).grants == (grants[0], grants[2])
    assert one(store, claim_op(claim="c1", limit=100), Claimed).grants == (grants[0], grants[2])
    store.commit([completed(grants[0]), completed(grants[2])])
    assert one(store, op, Claimed).grants == ()
    assert statuses(store)[reader.all_nodes(store, RUN)[3].id] == "READY"


def test_an_empty_claim_is_an_empty_answer(store: Store) -> None:
    enlist(store)
    assert claim(store) == ()


def test_a_claim_carries_the_outputs_its_body_needs(store: Store) -> None:
    large = b'"' + b"x" * 40_000 + b'"'
    of = graph(spec("d", "b c", needs="c a"), spec("e", "b c", needs="b"), a="", b="a", c="a")
    a = claim_first(store, of)
    assert a.inputs == ()
    store.commit([completed(a, large)])
    b, c = sorted(claim(store), key=lambda grant: of.order[grant.index])
    assert (b.inputs, c.inputs) == ((), ())
    store.commit([completed(b, None), completed(c, b"")])
    op = claim_op(claim="c1")
    grants = by_name(of, one(store, op, Claimed).grants)
    assert dict(grants["d"].inputs) == {of.index["a"]: large, of.index["c"]: b""}
    assert list(grants["d"].inputs) == sorted(grants["d"].inputs)
    assert grants["e"].inputs == (), "a node that returned nothing has no output to carry"
    assert by_name(of, one(store, op, Claimed).grants) == grants


def test_a_node_freed_in_a_batch_is_claimed_in_the_same_batch(store: Store) -> None:
    of = graph(a="", b="a", c="b")
    grant = claim_first(store, of)
    for name in ("b", "c"):
        _, receipt = store.commit([completed(grant), claim_op(runs=(RUN,))])
        assert isinstance(receipt, Claimed)
        (grant,) = receipt.grants
        assert of.order[grant.index] == name
    store.commit([completed(grant)])
    assert reader.require_run(store, RUN).status is RunStatus.COMPLETED


def test_a_node_freed_in_a_batch_has_only_the_attempts_of_its_own_run(store: Store) -> None:
    of = serve(store, graph(a="", b="a"), "one")
    assert work(store) == 2
    again = [changed(node(store, index, "one"), NodeStatus.PENDING, fresh=True) for index in (0, 1)]
    enact(store, "reattempt", RunStatus.RUNNING, *again, run="one")
    start(store, of, "two")
    (grant,) = claim(store, runs=("two",))
    _, receipt = store.commit([completed(grant), claim_op(runs=("two",), lanes=[(LANE, 1)])])
    assert isinstance(receipt, Claimed)
    assert [(grant.index, grant.number) for grant in receipt.grants] == [(1, 1)]


def test_a_run_that_was_paused_before_it_began_starts_when_it_is_claimed(store: Store, clock: ManualClock) -> None:
    serve(store, graph(a=""))
    enact(store, "pause", RunStatus.PAUSED)
    clock.advance(5)
    enact(store, "resume", RunStatus.RUNNING)
    assert reader.require_run(store, RUN).started_at is None
    claim(store)
    assert reader.require_run(store, RUN).started_at == clock.now()


def test_attempts_are_numbered_from_one(store: Store, clock: ManualClock) -> None:
    start(store, graph(a=""))
    for number in (1, 2, 3):
        enlist(store, f"w{number}", seconds=1)
        expect(claim_one(store, f"w{number}"), number=number, losses=number - 1)
        assert sweep_after(store, clock, 1).lost == 1
    assert node(store, 0).status is NodeStatus.READY
    assert [attempt.number for attempt in reader.list_attempts(store, RUN)] == [1, 2, 3]
