"""An attempt ends: recorded exactly once, by its own worker only, and its children move with it."""

from __future__ import annotations

import itertools
from functools import partial

import pytest

from stepwell.base.clock import SECOND, ManualClock
from stepwell.base.ids import AttemptId
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from tests.conformance.audit import audit
from tests.conformance.ops import *


def test_a_completion_readies_the_children_whose_last_parent_it_was(store: Store, clock: ManualClock) -> None:
    grant = claim_first(store, graph(a="", b="a", c="a", d="a b c"))
    clock.advance(2)
    settled = one(store, completed(grant, b'{"total":3}', outcome=b'{"rows":9}'), Settled)
    assert settled.repeated is False
    assert settled.run == (RUN, RunStatus.RUNNING, GateState.OPEN, None, 3, 2, 0, 3)
    assert statuses(store) == {"a": "COMPLETED", "b": "READY", "c": "READY", "d": "PENDING"}
    (attempt,) = reader.list_attempts(store, RUN, grant.index)
    assert (attempt.status, attempt.ended_at) == (AttemptStatus.COMPLETED, clock.now())
    assert (attempt.output, attempt.error, attempt.outcome) == (b'{"total":3}', None, b'{"rows":9}')
    assert reader.get_outputs(store, RUN) == {0: b'{"total":3}'}


def test_the_last_completion_completes_the_run(store: Store, clock: ManualClock) -> None:
    serve(store, graph(a="", b="a"))
    clock.advance(7)
    assert work(store) == 2
    expect_run(store, status=RunStatus.COMPLETED, gate=GateState.SHUT, ended_at=clock.now(), open=0, active=0, failed=0)
    assert sweep(store).gates == ()


def test_parents_that_complete_together_release_their_child_once(store: Store) -> None:
    of = serve(store, fan(20))
    store.commit([completed(grant) for grant in claim(store)])
    parents = claim(store)
    *_, last = receipts = store.commit([completed(grant) for grant in parents])
    assert isinstance(last, Settled)
    assert receipts == [last] * 20
    assert (last.run.open, last.run.active) == (1, 1)
    assert node(store, of.index["join"]).waiting == 0
    assert len(claim(store)) == 1
    assert claim(store) == ()


def test_parents_that_complete_one_by_one_release_their_child_with_the_last(store: Store) -> None:
    of = serve(store, fan(4))
    store.commit([completed(grant) for grant in claim(store)])
    for left, grant in zip((3, 2, 1, 0), claim(store), strict=True):
        assert node(store, of.index["join"]).status is NodeStatus.PENDING
        twice(store, [completed(grant)])
        assert node(store, of.index["join"]).waiting == left
    assert node(store, of.index["join"]).status is NodeStatus.READY


def test_parents_of_many_runs_complete_in_one_batch(store: Store) -> None:
    grants = claim_roots(store, graph(a="", b="", c="a b"), *(f"run-{i}" for i in range(5)))
    receipts = store.commit([completed(grant) for grant in grants[:-1]])
    assert all(isinstance(receipt, Settled) for receipt in receipts)
    assert [grant.run_id for grant in claim(store)] == ["run-0", "run-1", "run-2", "run-3"]
    assert node(store, 2, "run-4").status is NodeStatus.PENDING


def test_runs_that_end_in_one_batch_all_end(store: Store) -> None:
    grants = claim_roots(store, graph(a="", b=""), *(f"run-{i}" for i in range(6)))
    bad = {"run-1", "run-4"}
    receipts = store.commit([failed(g) if g.run_id in bad else completed(g) for g in grants if g.run_id != "run-5"])
    ended = {receipt.run.run_id: receipt.run for receipt in receipts if isinstance(receipt, Settled)}
    assert {run for run, news in ended.items() if news.status is RunStatus.COMPLETED} == {"run-0", "run-2", "run-3"}
    assert {run for run, news in ended.items() if news.purpose == "failed"} == bad
    for run, news in ended.items():
        expect_run(store, run, status=news.status, gate=news.gate, seq=news.seq)


def test_a_late_worker_cannot_settle(store: Store, clock: ManualClock) -> None:
    late = claim_first(store, graph(a="", b="a"), "slow", seconds=1)
    sweep_after(store, clock, 1)
    assert store.commit([completed(late)]) == [Refused(Refusal.FENCED)]
    enlist(store, "next")
    (grant,) = claim(store, "next")
    assert store.commit([completed(late), completed(grant, b"2")])[0] == Refused(Refusal.FENCED)
    assert store.commit([completed(late)]) == [Refused(Refusal.FENCED)]
    assert reader.get_outputs(store, RUN) == {0: b"2"}


def test_only_the_very_id_of_an_attempt_settles_it(store: Store) -> None:
    serve(store, graph(a="", b="", c=""))
    (first,), (second,) = claim(store, limit=1, claim="c1"), claim(store, limit=1, claim="c2")
    near = ["c1", "c1.", "c1.00", "c1. 0", "c1.+0", "c1.0 ", "c1.-1", "c1.1", "c1.65536", "c1.0.0", "c1.٠", "C1.0"]
    rubbish = [
        "",
        ".",
        "c.0",
        "rubbish",
        "1",
        ".0",
        "c2.9999999999999999999999",
        "c2.0x",
        "c1.0\x00",
        "x" * 5_000 + ".0",
    ]
    for wrong in (*near, *rubbish):
        op = completed(first)._replace(attempt=AttemptId(wrong))
        assert store.commit([op]) == [Refused(Refusal.FENCED)], wrong
    assert (first.attempt, second.attempt) == ("c1.0", "c2.0")
    assert sorted(statuses(store).values()) == ["READY", "RUNNING", "RUNNING"]
    assert isinstance(store.commit([completed(second)])[0], Settled)


def test_a_repeated_settlement_gets_the_same_answer(store: Store) -> None:
    grant = claim_first(store, graph(a="", b="a"))
    op = completed(grant, b"1", error=None, outcome=b"{}")
    first = one(store, op, Settled)
    assert one(store, op, Settled) == first._replace(repeated=True)
    for other in (op._replace(output=b"2"), op._replace(outcome=None), op._replace(error=b"{}"), failed(grant)):
        assert store.commit([other]) == [Refused(Refusal.FENCED)]
    work(store)
    repeated = one(store, op, Settled)
    assert (repeated.repeated, repeated.run.status) == (True, RunStatus.COMPLETED)


def test_an_attempt_named_twice_in_a_batch_ends_once(store: Store) -> None:
    grant = claim_first(store, graph(a="", b="a", c="b"))
    first, second, third = store.commit([completed(grant, b"1"), completed(grant, b"1"), completed(grant, b"2")])
    assert isinstance(first, Settled)
    assert second == first._replace(repeated=True)
    assert third == Refused(Refusal.FENCED)
    assert reader.require_run(store, RUN).seq == 3


def test_a_retry_waits_until_it_is_due_and_holds_no_worker(store: Store, clock: ManualClock) -> None:
    grant = claim_first(store, graph(a="", b="a"), seconds=600)
    first = one(store, retried(grant, 5), Settled)
    assert one(store, retried(grant, 5), Settled) == first._replace(repeated=True)
    expect(node(store, 0), status=NodeStatus.WAITING, due_at=clock.now() + 5 * SECOND, failures=1)
    expect_run(store, gate=GateState.OPEN, open=2, active=1, failed=0)
    assert claim(store) == ()
    assert sweep_after(store, clock, 5).woken == 1
    expect(claim_one(store), number=2, failures=1)
    assert one(store, retried(grant, 5), Settled).repeated
    assert node(store, 0).status is NodeStatus.RUNNING


def test_a_released_attempt_counts_as_nothing(store: Store) -> None:
    grant = claim_first(store, graph(a=""))
    one(store, released(grant), Settled)
    expect(node(store, 0), status=NodeStatus.READY, failures=0, losses=0, attempt=1)
    expect(claim_one(store), number=2, failures=0, losses=0)


def test_an_attempt_that_its_worker_gives_up_is_lost_and_ready_again(store: Store) -> None:
    grant = claim_first(store, graph(a=""))
    one(store, Settle(grant.attempt, AttemptStatus.LOST, NodeStatus.READY, error=b"{}"), Settled)
    assert node(store, 0).status is NodeStatus.READY
    assert reader.list_attempts(store, RUN)[0].status is AttemptStatus.LOST
    assert len(claim(store)) == 1


@pytest.mark.parametrize("width", [1, 20])
def test_what_a_worker_settles_itself_is_no_loss(store: Store, width: int) -> None:
    """However many it settles at once."""
    for number, settle in enumerate((completed, failed, partial(retried, seconds=1), released)):
        run = f"run-{number}"
        grants = claim_roots(store, graph(**{f"n{place}": "" for place in range(width)}), run)
        store.commit([settle(grant) for grant in grants])
        assert len(grants) == width
        assert {row.losses for row in reader.all_nodes(store, run)} == {0}


def test_failures_and_timeouts_are_counted(store: Store, clock: ManualClock) -> None:
    serve(store, patient("a"), seconds=600)
    for count, status in enumerate((AttemptStatus.FAILED, AttemptStatus.TIMED_OUT, AttemptStatus.FAILED), 1):
        (grant,) = claim(store)
        one(store, Settle(grant.attempt, status, NodeStatus.WAITING, error=b"{}", delay=None), Settled)
        assert node(store, 0).failures == count
        assert node(store, 0).due_at == clock.now(), "without a delay it is due at once"
        assert sweep(store).woken == 1
    store.commit([released(grant) for grant in claim(store)])
    assert node(store, 0).failures == 3


@pytest.mark.parametrize("beside", [False, True])
def test_what_asked_to_be_tried_later_is_counted_apart_from_failures(
    store: Store, clock: ManualClock, beside: bool
) -> None:
    """Settled alone, or together with others, which a store may do in another way."""
    serve(store, patient("a", "b"), seconds=600)
    for count in range(1, 4):
        grants = {grant.index: grant for grant in claim(store)}
        later = retried(grants[0], 5)._replace(postponed=True)
        if beside:
            store.commit([later, retried(grants[1], 5)])
        else:
            store.commit([later])
            store.commit([retried(grants[1], 5)])
        assert one(store, later, Settled).repeated, "the same again counts nothing"
        assert [(row.failures, row.postponed) for row in reader.all_nodes(store, RUN)] == [(0, count), (count, 0)]
        assert node(store, 0).due_at == clock.now() + 5 * SECOND
        sweep_after(store, clock, 5)
    again = {grant.index: grant for grant in claim(store)}
    assert [(again[index].failures, again[index].postponed) for index in (0, 1)] == [(0, 3), (3, 0)]


def test_who_asks_for_a_node_again_forgets_that_it_was_postponed(store: Store) -> None:
    grant = claim_first(store, graph(a=""))
    one(store, retried(grant, 5)._replace(postponed=True), Settled)
    enact(store, "cancel", RunStatus.CANCELLED, changed(node(store, 0), NodeStatus.CANCELLED), stop=True)
    assert node(store, 0).postponed == 1
    enact(store, "retry", RunStatus.RUNNING, changed(node(store, 0), NodeStatus.PENDING, fresh=True))
    assert (node(store, 0).status, node(store, 0).postponed) == (NodeStatus.READY, 0)


@pytest.mark.parametrize("status", list(AttemptStatus))
def test_only_the_settlements_in_the_table_are_accepted(store: Store, status: AttemptStatus) -> None:
    legal = SETTLEMENTS.get(status, frozenset())
    grant = claim_first(store, graph(a="", b="a"))
    for asked in set(NodeStatus) - legal:
        assert refused(store, Settle(grant.attempt, status, asked)) is Refusal.STATUS, asked
        assert refused(store, Settle(AttemptId("unknown.0"), status, asked)) is Refusal.STATUS, asked
        with_a_claim = store.commit([Settle(grant.attempt, status, asked, b"null"), claim_op(lanes=[(LANE, 1)])])
        assert with_a_claim == [Refused(Refusal.STATUS, f"{status} -> {asked}"), Claimed(())], asked
    assert node(store, 0).status is NodeStatus.RUNNING
    illegal = Settle(grant.attempt, AttemptStatus.RUNNING, NodeStatus.COMPLETED)
    below = graph(k="")
    store.commit(add_graph(below))
    child = child_run(below, grant) if status is AttemptStatus.PARKED else None
    for asked in sorted(legal)[:1]:
        first, second = store.commit([illegal, Settle(grant.attempt, status, asked, child=child)])
        assert isinstance(first, Refused)
        assert isinstance(second, Settled)


def test_a_wide_batch_settles_and_claims_what_follows(store: Store) -> None:
    of = serve(store, fan(store.limits.nodes - 2))
    store.commit([completed(grant) for grant in claim(store)])
    grants = claim(store)
    *settled, claimed = store.commit([*(completed(g, b'{"i":%d}' % g.index) for g in grants), claim_op(runs=(RUN,))])
    assert len(settled) == store.limits.nodes - 2
    assert isinstance(claimed, Claimed)
    assert [of.order[grant.index] for grant in claimed.grants] == ["join"]
    outputs = reader.get_outputs(store, RUN)
    assert outputs == {0: b"null"} | {grant.index: b'{"i":%d}' % grant.index for grant in grants}


def test_two_very_wide_parents_that_complete_together_release_every_child_once(store: Store) -> None:
    """Each has more children than a store releases at once: some are its own, and some wait for both."""
    own, shared = {f"{root}{n}": root for root in "ab" for n in range(400)}, {f"c{n}": "a b" for n in range(700)}
    of = serve(store, graph(a="", b="", **own, **shared, last=" ".join(shared)))
    roots = claim(store)
    assert all(isinstance(receipt, Settled) for receipt in store.commit([completed(grant) for grant in roots]))
    audit(store)
    done = [grant.index for grant in roots]
    while grants := claim(store):
        assert all(isinstance(receipt, Settled) for receipt in store.commit([completed(grant) for grant in grants]))
        done += [grant.index for grant in grants]
        assert len(done) <= len(of)
    assert sorted(done) == list(range(len(of)))
    assert done[-1] == of.index["last"]
    expect_run(store, status=RunStatus.COMPLETED, gate=GateState.SHUT, open=0, active=0, failed=0)
    audit(store)


def test_large_payloads_come_back_whole(store: Store) -> None:
    sizes = (0, 1, 16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1, 300_000)
    payloads = [bytes([97 + i]) * size for i, size in enumerate(sizes)] + [b"\x00", b"\x00" * 33, b"\x00" * 20_000]
    grants = claim_roots(store, graph(**{f"n{i}": "" for i in range(len(payloads))}), input=payloads[-1])
    around = list(itertools.islice(itertools.cycle(payloads), 1, len(payloads) + 1))
    ops = [completed(g, p, outcome=q) for g, p, q in zip(grants, payloads, around, strict=True)]
    first, second = twice(store, ops)
    assert all(isinstance(receipt, Settled) and not receipt.repeated for receipt in first)
    assert all(isinstance(receipt, Settled) and receipt.repeated for receipt in second)
    assert reader.get_outputs(store, RUN) == dict(enumerate(payloads))
    assert [attempt.outcome for attempt in reader.list_attempts(store, RUN)] == around
    assert reader.require_run(store, RUN).input == payloads[-1]
