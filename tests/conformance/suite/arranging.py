"""Runs that switch to another graph, that pause, and nodes that are asked for again although they had completed."""

from __future__ import annotations

from stepwell.base.clock import SECOND, ManualClock
from stepwell.base.ids import Digest, GateToken, RunId
from stepwell.core.graph import Arranged, Graph
from stepwell.core.kernel.healing import arrange, heal
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from tests.conformance.ops import *


def arrange_op(of: Graph, start: int, token: str = TOKEN, run: str = RUN) -> SwitchGraph:
    return SwitchGraph(RunId(run), GateToken(token), of.digest, start)


def switch_graph(store: Store, old: Graph, new: Graph, run_id: str = RUN) -> tuple[Arranged, RunNews]:
    """Heal the run from one graph to another, as the kernel says."""
    arranged = arrange(old, new)
    store.commit(add_graph(arranged))
    hold(store, run_id, purpose="heal")
    loaded = len(old.order)
    while True:
        receipt = one(store, arrange_op(arranged, loaded, run=run_id), GraphSwitched)
        if receipt.loaded == receipt.total:
            break
        loaded = receipt.loaded
    run = reader.require_run(store, RunId(run_id))
    plan = heal(run, reader.all_nodes(store, run.id), old, arranged)
    end = plan.finish
    return arranged, finish(store, end.status, *plan.changes, run=run_id, open_gate=end.open_gate, reason=end.reason)


def test_a_healed_run_goes_on_with_its_new_graph(store: Store) -> None:
    old = serve(store, graph(a="", b="a", c="b"))
    complete_next(store)
    new, news = switch_graph(store, old, graph(a="", x="a", b="x", d="b c", c="b"))
    assert (news.status, news.gate, news.open) == (RunStatus.RUNNING, GateState.OPEN, 4)
    expect_run(store, digest=new.digest, nodes=5, heals=1)
    order = []
    while grants := claim(store):
        order += [new.order[grant.index] for grant in grants]
        store.commit([completed(grant) for grant in grants])
    assert order == ["x", "b", "c", "d"]
    assert reader.require_run(store, RUN).status is RunStatus.COMPLETED


def test_what_has_begun_is_settled_into_the_new_graph(store: Store) -> None:
    old = serve(store, graph(a="", b="a"))
    (a,) = claim(store)
    new, _ = switch_graph(store, old, graph(a="", b="a", c="a"))
    store.commit([completed(a, b'"done"')])
    grants = claim(store)
    assert set(by_name(new, grants)) == {"b", "c"}
    assert {grant.heals for grant in grants} == {1}
    assert a.heals == 0


def test_nodes_are_claimed_in_the_order_of_the_new_graph(store: Store) -> None:
    old = serve(store, graph(z="", y=""))
    new, _ = switch_graph(store, old, graph(y="", m="", z="", k=""))
    grants = claim(store)
    assert [new.ranks[grant.index] for grant in grants] == [0, 1, 2, 3]


def test_a_node_that_loses_all_its_parents_is_ready(store: Store) -> None:
    old = serve(store, graph(a="", b="a"))
    claim(store)
    switch_graph(store, old, graph(b=""))
    assert statuses(store) == {"a": "RUNNING", "b": "READY"}


def test_what_is_to_run_again_waits_for_a_parent_it_was_given_while_it_ran(store: Store, clock: ManualClock) -> None:
    """However that came about: given back, lost, or tried again later; and whatever else is in the same batch."""
    old = serve(store, graph(a="", b="", c="", d=""), seconds=10)
    held = by_name(old, claim(store))
    switch_graph(store, old, graph(a="", b="a", c="a", d="a"))
    store.commit([retried(held["b"], 5)])
    store.commit([released(held["c"])])
    assert (statuses(store)["b"], statuses(store)["c"]) == ("WAITING", "PENDING")
    sweep_after(store, clock, 5)
    assert statuses(store)["b"] == "PENDING"
    assert claim(store) == ()
    sweep_after(store, clock, 5)
    assert statuses(store) == {"a": "READY", "b": "PENDING", "c": "PENDING", "d": "PENDING"}
    assert reader.require_run(store, RUN).active == 1
    enlist(store)
    complete_next(store)
    assert len(claim(store)) == 3


def test_what_is_given_back_with_the_end_of_its_new_parent_is_ready(store: Store) -> None:
    for number, parent_first in enumerate((True, False)):
        run = f"run-{number}"
        old = serve(store, graph(a="", b=""), run)
        held = by_name(old, claim(store))
        switch_graph(store, old, graph(a="", b="a"), run)
        batch = [completed(held["a"]), released(held["b"])]
        store.commit(batch if parent_first else batch[::-1])
        assert statuses(store, run) == {"a": "COMPLETED", "b": "READY"}
        assert reader.require_run(store, RunId(run)).active == 1
        complete_next(store)


def test_a_removed_node_ends_and_nothing_follows_from_it(store: Store, clock: ManualClock) -> None:
    """However it ends: completed, failed, tried again later, given back, or lost with its worker."""
    endings = {
        "completed": (completed, "COMPLETED"),
        "failed": (failed, "CANCELLED"),
        "retried": (lambda grant: retried(grant, 1), "CANCELLED"),
        "stopped": (stopped, "CANCELLED"),
        "released": (released, "CANCELLED"),
    }
    old = serve(store, graph(**dict.fromkeys((*endings, "lost"), ""), last=" ".join(endings)))
    enlist(store, "other", seconds=1)
    held = by_name(old, claim(store, limit=3)) | by_name(old, claim(store, "other"))
    switch_graph(store, old, graph(last=""))
    assert statuses(store)["last"] == "READY"
    store.commit([endings[name][0](held[name]) for name in endings])  # type: ignore[operator]
    sweep_after(store, clock, 2)
    assert statuses(store) == {name: end for name, (_, end) in endings.items()} | {"lost": "CANCELLED", "last": "READY"}
    complete_next(store)
    assert reader.require_run(store, RUN).status is RunStatus.COMPLETED


def test_one_that_is_removed_and_settled_alone_fails_nothing_either(store: Store) -> None:
    old = serve(store, graph(a="", b=""))
    held = by_name(old, claim(store))
    switch_graph(store, old, graph(b=""))
    store.commit([failed(held["a"])])
    store.commit([completed(held["b"])])
    assert reader.require_run(store, RUN).status is RunStatus.COMPLETED


def test_options_of_unstarted_nodes_are_those_of_the_new_graph(store: Store) -> None:
    old = start(store, graph(a="", b="a"))
    moved = spec("b", "a", queue="large")
    switch_graph(store, old, graph(spec("a"), moved))
    assert node(store, 1).lane == lane("large/thread")


def test_a_suspect_is_looked_for_in_the_queue_it_is_in_now(store: Store, clock: ManualClock) -> None:
    old = start(store, graph(a=""))
    for _ in range(SUSPECT_AFTER):
        enlist(store, seconds=1)
        claim(store)
        sweep_after(store, clock, 2)
    assert node(store, 0).lane == lane("default/thread?")
    switch_graph(store, old, graph(spec("a", queue="large")))
    assert node(store, 0).lane == lane("large/thread?")


def test_switching_is_repeated_without_harm(store: Store) -> None:
    old = start(store, graph(a=""))
    new = arrange(old, graph(a="", b="a"))
    store.commit(add_graph(new))
    hold(store, purpose="heal")
    first, second = twice(store, [arrange_op(new, 1)])
    assert first == second == [GraphSwitched(2, 2)]
    assert reader.require_run(store, RUN).heals == 1
    finish(store, RunStatus.PENDING, open_gate=True)


def test_thousands_of_new_nodes_join_in_chunks(store: Store) -> None:
    chunk = store.limits.nodes
    old = start(store, graph(a=""))
    more = [spec(f"n{number}") for number in range(store.limits.nodes + 10)]
    new = arrange(old, graph(spec("a"), *more))
    store.commit(add_graph(new))
    hold(store, purpose="heal")
    assert one(store, arrange_op(new, 1), GraphSwitched) == GraphSwitched(chunk + 1, chunk + 11)
    assert refused(store, arrange_op(new, chunk + 2)) is Refusal.INCOMPLETE
    assert one(store, arrange_op(new, chunk + 1), GraphSwitched) == GraphSwitched(chunk + 11, chunk + 11)
    assert finish(store, RunStatus.PENDING, open_gate=True).active == chunk + 11


def test_only_who_holds_the_gate_may_change_the_graph(store: Store) -> None:
    old = start(store, graph(a="", b=""))
    new = arrange(old, graph(a="", b="", c="a"))
    assert refused(store, arrange_op(new, 2)) is Refusal.UNKNOWN
    assert refused(store, arrange_op(new, 2, run="nobody")) is Refusal.UNKNOWN
    store.commit(add_graph(new, chunk=2)[:1])
    hold(store, purpose="heal")
    assert refused(store, arrange_op(new, 2)) is Refusal.INCOMPLETE
    store.commit(add_graph(new, chunk=2))
    assert refused(store, arrange_op(new, 2, token="other")) is Refusal.GATE_LOST
    small = graph(a="")
    store.commit(add_graph(small))
    assert refused(store, arrange_op(small, 2)) is Refusal.CONFLICT
    finish(store, RunStatus.PENDING, open_gate=True)


def test_graphs_are_told_apart_by_when_they_were_first_stored(store: Store) -> None:
    first, second = graph(a=""), graph(a="", b="")
    store.commit([*add_graph(second), *add_graph(first), *add_graph(second)])
    (ages,) = store.read([GetGraphAges((first.digest, second.digest, Digest("0" * 64)))])
    assert set(ages) == {first.digest, second.digest}
    assert ages[second.digest] < ages[first.digest]


def test_a_failure_pauses_a_run_that_asks_for_it(store: Store) -> None:
    held = claim_by_name(store, graph(a="", b="", c="a", d="b"), on_failure="pause")
    store.commit([failed(held["a"])])
    expect_run(store, status=RunStatus.PAUSED, gate=GateState.SHUT, reason="node_failed", stopping=False)
    store.commit([completed(held["b"])])
    assert statuses(store) == {"a": "FAILED", "b": "COMPLETED", "c": "PENDING", "d": "PENDING"}
    assert claim(store) == ()


def test_a_paused_run_that_is_resumed_goes_on_without_what_failed(store: Store) -> None:
    held = claim_by_name(store, graph(a="", b="", c="a", d="b"), on_failure="pause")
    store.commit([failed(held["a"]), completed(held["b"])])
    expect(enact(store, "resume", RunStatus.RUNNING, tolerate=True), status=RunStatus.RUNNING, gate=GateState.OPEN)
    assert reader.require_run(store, RUN).tolerated == 1
    assert work(store) == 1
    assert statuses(store)["d"] == "COMPLETED"


def test_a_run_tolerates_what_had_failed_and_nothing_more(store: Store) -> None:
    for alone, run in ((True, "run-1"), (False, "run-2")):
        of = serve(store, graph(a="", b="", c="", d="b"), run, on_failure="pause")
        held = by_name(of, claim(store))
        store.commit([failed(held["a"])])
        enact(store, "resume", RunStatus.RUNNING, run=run, tolerate=True)
        last = [completed(held["b"]), failed(held["c"])]
        receipts = [*store.commit(last[:1]), *store.commit(last[1:])] if alone else store.commit(last)
        assert isinstance(receipts[1], Settled)
        assert (receipts[1].run.status, receipts[1].run.gate) == (RunStatus.PAUSED, GateState.SHUT)
        hold(store, run, purpose="retry")
        both = reader.all_nodes(store, RunId(run), NodeStatus.FAILED)
        again = [changed(row, NodeStatus.PENDING, fresh=True) for row in both]
        finish(store, RunStatus.RUNNING, *again, run=run, open_gate=True)
        assert reader.require_run(store, RunId(run)).tolerated == 0, "nothing is left that had failed"
        store.commit([failed(by_name(of, claim(store))["a"])])
        assert reader.require_run(store, RunId(run)).status is RunStatus.PAUSED


def test_all_that_ends_while_a_run_is_paused_counts_when_it_is_resumed(store: Store) -> None:
    a = claim_first(store, graph(a="", b="a"))
    enact(store, "pause", RunStatus.PAUSED, reason="paused")
    store.commit([completed(a)])
    assert claim(store) == ()
    enact(store, "resume", RunStatus.RUNNING)
    assert work(store) == 1
    assert reader.require_run(store, RUN).status is RunStatus.COMPLETED


def test_a_deadline_begins_anew_when_a_run_goes_on_and_not_when_it_is_healed(store: Store, clock: ManualClock) -> None:
    old = start(store, graph(a="", b="a"), timeout=10 * SECOND)
    before = reader.require_run(store, RUN).deadline_at
    clock.advance(1)
    switch_graph(store, old, graph(a="", b="a", c="b"))
    assert reader.require_run(store, RUN).deadline_at == before
    enact(store, "pause", RunStatus.PAUSED)
    enact(store, "resume", RunStatus.RUNNING)
    assert reader.require_run(store, RUN).deadline_at == clock.now() + 10 * SECOND


def test_an_ended_run_that_is_healed_stays_as_it_ended(store: Store, clock: ManualClock) -> None:
    old = serve(store, graph(a="", b="a"))
    store.commit([failed(claim_one(store))])
    hold(store, token="first", purpose="failed")
    finish(store, RunStatus.FAILED, changed(node(store, 1), NodeStatus.UPSTREAM_FAILED), token="first")
    ended = reader.require_run(store, RUN).ended_at
    clock.advance(1)
    switch_graph(store, old, graph(a="", c="", b="a"))
    expect_run(store, status=RunStatus.FAILED, gate=GateState.SHUT, ended_at=ended)
    assert statuses(store) == {"a": "FAILED", "b": "UPSTREAM_FAILED", "c": "CANCELLED"}


def test_a_completed_node_that_is_asked_for_again_has_a_new_generation(store: Store) -> None:
    of = serve(store, graph(a="", b=""))
    held = by_name(of, claim(store))
    assert held["a"].generation == 0
    store.commit([completed(held["a"])])
    a = of.index["a"]
    enact(store, "reattempt", RunStatus.RUNNING, changed(node(store, a), NodeStatus.PENDING, fresh=True))
    assert node(store, a).generation == 1
    (again,) = claim(store)
    assert (again.number, again.generation) == (2, 1)
    store.commit([failed(again)])
    enact(store, "failed", RunStatus.FAILED)
    enact(store, "retry", RunStatus.RUNNING, changed(node(store, a), NodeStatus.PENDING, fresh=True))
    assert node(store, a).generation == 1, "only a completion that is superseded begins a new generation"
    attempts = reader.list_attempts(store, RUN, a)
    assert [attempt.status for attempt in attempts] == [AttemptStatus.SUPERSEDED, AttemptStatus.FAILED]
