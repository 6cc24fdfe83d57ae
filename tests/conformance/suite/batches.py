"""Ops are committed together; each stands or falls alone, and the same batch twice is the same as once."""

from __future__ import annotations

import threading

import pytest

from stepwell.base.clock import SECOND, ManualClock
from stepwell.base.ids import AttemptId, Digest, RunId, WorkerId
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from tests.conformance.ops import *


def completed_op(attempt: str) -> Settle:
    return Settle(AttemptId(attempt), AttemptStatus.COMPLETED, NodeStatus.COMPLETED, b"null")


def test_an_empty_batch_is_answered(store: Store) -> None:
    assert store.commit([]) == []


def test_an_answer_tells_the_time_and_what_to_stop(store: Store) -> None:
    start(store, graph(a="", b=""), "one")
    serve(store, graph(c=""), "two")
    answer = store.commit([claim_op(runs=("one", "two"))])
    (claimed,) = answer
    assert isinstance(claimed, Claimed)
    stopping = [grant.attempt for grant in claimed.grants if grant.run_id == "one"]
    begun = reader.list_attempts(store, "one")[0].started_at
    assert (answer.now, answer.stop) == (begun, ())
    store.commit([gate_op("one", stop=True)])
    assert store.commit([claim_op(runs=("two",))]).stop == tuple(stopping)
    assert store.commit([Renew(WORKER, SECOND, None)]).stop == tuple(stopping)
    assert store.commit([completed_op(claimed.grants[2].attempt)]).stop == (), (
        "who settles and asks for nothing is not told"
    )


@pytest.mark.parametrize(
    "op",
    [
        Create(RunId("r\x00"), "orders", None, Digest("0" * 64), b"", 0),
        Create(RunId("r"), "o" * 501, None, Digest("0" * 64), b"", 0),
        Create(RunId("r"), "\ud800", None, Digest("0" * 64), b"", 0),
        Create(RunId("r"), "orders", None, Digest("0" * 64), b"", 2**64),
        Create(RunId("r"), "orders", None, Digest("0" * 64), b"", 0, priority=2**63),
        Create(RunId("r"), "orders", None, Digest("0" * 64), b"", 0, tags=(("a", "1"), ("a", "2"))),
        Create(RunId("r"), "orders", None, Digest("0" * 64), b"", 0, tags=(("a", "\x00"),)),
        Enlist(WorkerId("w\x00"), SECOND, b"{}"),
        Enlist(WorkerId("w"), 2**63, b"{}"),
        gate_op("r" * 501),
    ],
    ids=lambda op: type(op).__name__,
)
def test_what_not_every_store_can_keep_is_refused_by_all(store: Store, op: Op) -> None:
    good, refusal, again = store.commit([Enlist(WORKER, SECOND, b"{}"), op, Enlist(WORKER, SECOND, b"{}")])
    assert isinstance(refusal, Refused)
    assert refusal.reason is Refusal.INVALID
    assert type(good) is type(again) is not Refused


def test_a_batch_is_applied_in_order(store: Store) -> None:
    of = graph(a="", b="a")
    receipts = store.commit(
        [
            create(of),
            *add_graph(of),
            create(of),
            claim_op(),
            Enlist(WORKER, SECOND, b"{}"),
            claim_op(claim="c1"),
            Append(AttemptId("c1.0"), 0, "log", b"1"),
            completed_op("c1.0"),
            claim_op(claim="c2"),
            completed_op("c2.0"),
            gate_op(allowed=(RunStatus.RUNNING,)),
            Delete(RUN),
            Delete(RUN),
        ]
    )
    answers = (
        "Refused GraphAdded Created Refused Enlisted Claimed Appended Settled Claimed Settled Refused Deleted Deleted"
    )
    assert [type(receipt).__name__ for receipt in receipts] == answers.split()


def test_what_is_refused_undoes_nothing_of_the_others(store: Store) -> None:
    of = graph(a="", b="a")
    grant = claim_first(store, of)
    unknown, nobody = RunId("unknown"), WorkerId("nobody")
    bad: list[Op] = [
        create(of, input=b"other"),
        create(of, "x")._replace(digest=Digest("none")),
        AddNodes(unknown, 0),
        AddNodes(RUN, 99),
        claim_op(nobody),
        completed_op("unknown.0"),
        completed_op("rubbish"),
        completed(grant)._replace(node=NodeStatus.FAILED),
        Append(AttemptId("unknown.0"), 0, "log", b""),
        Renew(nobody, SECOND, ()),
        gate_op(unknown),
        gate_op(allowed=(RunStatus.PAUSED,)),
        Rewrite(unknown, TOKEN),
        Rewrite(RUN, TOKEN, (NodeChange(0, NodeStatus.RUNNING, 1, NodeStatus.READY),), Finish(RunStatus.FAILED, False)),
        Delete(RUN),
    ]
    good = [create(of, f"good-{i}") for i in range(len(bad))]
    before = reader.list_journal(store, RUN)
    mixed: list[Op] = [op for pair in zip(bad, good, strict=True) for op in pair]
    receipts = store.commit(mixed)
    assert all(isinstance(receipt, Refused) for receipt in receipts[::2]), receipts[::2]
    assert all(isinstance(receipt, Created) for receipt in receipts[1::2])
    assert store.commit(bad) == receipts[::2]
    assert reader.list_journal(store, RUN) == before
    assert len(list(reader.all_runs(store))) == len(bad) + 1
    reasons = {receipt.reason for receipt in receipts[::2] if isinstance(receipt, Refused)}
    assert reasons >= {Refusal.CONFLICT, Refusal.UNKNOWN, Refusal.FENCED, Refusal.STATUS, Refusal.INCOMPLETE}
    assert reasons >= {Refusal.LEASE_EXPIRED, Refusal.GATE_LOST}


def test_the_same_batch_twice_is_the_same_as_once(store: Store) -> None:
    of = graph(a="", b="a", c="a")
    batch: list[Op] = [
        *add_graph(of),
        create(of),
        Enlist(WORKER, 30 * SECOND, b"{}"),
        claim_op(claim="c1"),
        completed_op("c1.0"),
        claim_op(claim="c2"),
        gate_op(),
    ]
    first = store.commit(batch)
    rows = (reader.require_run(store, RUN), reader.all_nodes(store, RUN), reader.list_attempts(store, RUN))
    second = store.commit(batch)
    assert rows == (reader.require_run(store, RUN), reader.all_nodes(store, RUN), reader.list_attempts(store, RUN))
    graph_added, created, enlisted, claimed, settled, claimed_next, gated = second
    assert (graph_added, claimed_next, gated) == (first[0], first[5], first[6])
    assert isinstance(enlisted, Enlisted)
    assert isinstance(graph_added, GraphAdded)
    assert created == Created(RUN, True, 3, 3)
    assert claimed == Claimed(())
    assert isinstance(settled, Settled)
    assert settled.repeated


def test_threads_that_claim_at_once_share_the_work(store: Store) -> None:
    start(store, graph(**{f"n{i}": "" for i in range(60)}, join=" ".join(f"n{i}" for i in range(60))))
    for i in range(4):
        enlist(store, f"w{i}", seconds=600)
    barrier = threading.Barrier(4)
    done = [0] * 4

    def loop(i: int) -> None:
        barrier.wait()
        while reader.require_run(store, RUN).status is not RunStatus.COMPLETED:
            done[i] += work(store, f"w{i}", limit=3)

    in_threads(4, loop)
    assert sum(done) == 61
    assert set(statuses(store).values()) == {"COMPLETED"}
    assert [attempt.number for attempt in reader.list_attempts(store, RUN)] == [1] * 61


def test_maintenance_may_be_asked_for_at_any_time(store: Store, clock: ManualClock) -> None:
    enlist(store)
    before = reader.list_workers(store)
    receipts = store.commit([Sweep(), Dismiss(WorkerId("nobody")), Sweep(0)])
    assert len(receipts) == 3
    assert reader.list_workers(store) == before
    for _ in range(3):
        clock.advance(10)
        store.commit([Sweep(0)])
    assert reader.list_workers(store) == (), "it held nothing"


def test_a_settlement_and_the_claim_that_follows_are_one_batch_twice_the_same(store: Store) -> None:
    """What every node of a chain costs: its child is claimed in the commit that completes it."""
    of = serve(store, graph(a="", b="a", c="b"))
    (held,) = claim(store, claim="c0")
    for number, node in enumerate("bc", start=1):
        batch: list[Op] = [completed_op(held.attempt), claim_op(claim=f"c{number}", runs=(RUN,))]
        first, again = store.commit(batch), store.commit(batch)
        assert isinstance(first[0], Settled)
        assert isinstance(first[1], Claimed)
        assert first[1] == again[1], "the claim is found again"
        assert again[0] == Settled(True, first[0].run._replace(seq=first[0].run.seq + 1)), "and so is the settlement"
        (held,) = first[1].grants
        assert (of.in_order[held.index].id, held.number) == (node, 1)
        assert first[0].run.active == 1
    assert one(store, completed_op(held.attempt), Settled).run.status is RunStatus.COMPLETED
    kinds = [entry.kind for entry in reader.list_journal(store, RUN)]
    assert kinds[-7:] == ["claimed", "completed", "claimed", "completed", "claimed", "completed", "run"]


def test_a_settlement_stands_when_the_claim_beside_it_is_refused(store: Store) -> None:
    held = claim_first(store, graph(a="", b="a"))
    settled, refused = store.commit([completed_op(held.attempt), claim_op(claim="c9", worker="nobody", runs=(RUN,))])
    assert isinstance(settled, Settled)
    assert refused == Refused(Refusal.LEASE_EXPIRED)
    assert statuses(store) == {"a": "COMPLETED", "b": "READY"}


def test_a_claim_beside_a_settlement_takes_only_what_it_asks_for(store: Store) -> None:
    held = claim_first(store, graph(a="", b="a"))
    _, claimed = store.commit(
        [completed_op(held.attempt), claim_op(lanes=(("gpu/thread", 5),), claim="c9", runs=(RUN,))]
    )
    assert claimed == Claimed(())
    assert statuses(store) == {"a": "COMPLETED", "b": "READY"}
