"""A node is skipped: its children go on without it, and what is claimed below says how many of its parents were skipped."""

from __future__ import annotations

from stepwell.core.model import *
from stepwell.core.store import Store, reader
from tests.conformance.audit import audit
from tests.conformance.ops import *


def test_a_skipped_node_releases_its_children_as_one_that_completed(store: Store) -> None:
    grant = claim_first(store, graph(a="", b="a", c="a b"))
    settled = one(store, skipped(grant), Settled)
    assert settled.run == (RUN, RunStatus.RUNNING, GateState.OPEN, None, 2, 1, 0, 3)
    assert statuses(store) == {"a": "SKIPPED", "b": "READY", "c": "PENDING"}
    row = node(store, grant.index)
    assert (row.reason, row.failures, row.attempt) == (CONDITION, 0, 1)
    (attempt,) = reader.list_attempts(store, RUN, grant.index)
    assert (attempt.status, attempt.output, attempt.error) == (AttemptStatus.RELEASED, None, None)
    entry = reader.list_journal(store, RUN)[-1]
    assert (entry.kind, entry.status) == ("released", "SKIPPED")


def test_a_grant_says_how_many_parents_were_skipped(store: Store) -> None:
    of = graph(spec("c", "a b", needs="a b"), a="", b="", d="a b", e="b")
    grants = claim_by_name(store, of)
    store.commit([skipped(grants["a"]), completed(grants["b"], b"2")])
    below = by_name(of, claim(store, claim="again"))
    assert {name: grant.skipped for name, grant in below.items()} == {"c": 1, "d": 1, "e": 0}
    assert below["c"].inputs == ((of.index["b"], b"2"),)
    assert by_name(of, claim(store, claim="again")) == below, "a repeat says the same"


def test_parents_skipped_one_by_one_and_together_are_all_counted(store: Store) -> None:
    of = serve(store, fan(30))
    complete_next(store)
    first, *others = claim(store)
    one(store, skipped(first), Settled)
    store.commit([skipped(grant) if place % 2 else completed(grant) for place, grant in enumerate(others)])
    assert node(store, of.index["join"]).skipped == 1 + len(others) // 2
    assert claim_one(store).skipped == 1 + len(others) // 2


def test_a_node_without_skipped_parents_counts_none(store: Store) -> None:
    serve(store, graph(a="", b="a"))
    assert complete_next(store).skipped == 0
    assert claim_one(store).skipped == 0


def test_a_run_whose_nodes_are_all_skipped_completes(store: Store) -> None:
    serve(store, graph(a="", b="a"))
    one(store, skipped(claim_one(store)), Settled)
    settled = one(store, skipped(claim_one(store), PARENTS_SKIPPED), Settled)
    assert (settled.run.status, settled.run.failed) == (RunStatus.COMPLETED, 0)
    assert {row.reason for row in reader.all_nodes(store, RUN)} == {CONDITION, PARENTS_SKIPPED}


def test_a_skip_is_recorded_once_and_answered_the_same(store: Store) -> None:
    grant = claim_first(store, graph(a="", b="a", c="a b"))
    first = one(store, skipped(grant), Settled)
    assert one(store, skipped(grant), Settled) == first._replace(repeated=True)
    assert node(store, 1).skipped == 1
    assert store.commit([completed(grant)]) == [Refused(Refusal.FENCED)]


def test_a_skip_behind_a_closed_gate_is_counted_when_it_opens(store: Store) -> None:
    of = serve(store, graph(a="", b="a", c="a b"))
    grant = claim_one(store)
    hold(store, purpose="heal")
    one(store, skipped(grant), Settled)
    assert node(store, of.index["b"]).status is NodeStatus.PENDING, "behind the gate nothing moves"
    expect(finish(store, RunStatus.RUNNING, open_gate=True), gate=GateState.OPEN, open=2, active=1)
    assert [node(store, of.index[name]).skipped for name in "bc"] == [1, 1]
    assert claim_one(store).skipped == 1


def test_a_skipped_node_that_is_taken_back_counts_no_longer(store: Store) -> None:
    of = serve(store, graph(a="", b="a"))
    one(store, skipped(claim_one(store)), Settled)
    again = changed(node(store, of.index["a"]), NodeStatus.PENDING)
    waits = changed(node(store, of.index["b"]), NodeStatus.PENDING)
    enact(store, "reattempt", RunStatus.RUNNING, again, waits)
    assert node(store, of.index["b"]).skipped == 0
    assert statuses(store) == {"a": "READY", "b": "PENDING"}
    complete_next(store)
    assert claim_one(store).skipped == 0


def test_the_children_of_a_very_wide_skipped_node_all_count_it(store: Store) -> None:
    size = 3_000
    serve(store, fan(size))
    one(store, skipped(claim_one(store)), Settled)
    below: list[Grant] = []
    while grants := claim(store):
        below += grants
    assert [grant.skipped for grant in below] == [1] * size
    audit(store)
