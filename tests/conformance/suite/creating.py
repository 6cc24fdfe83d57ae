"""Graphs and runs come into being: once, in chunks, and the same for whoever asks again."""

from __future__ import annotations

from stepwell.base.clock import SECOND, ManualClock
from stepwell.base.ids import Digest, RunId
from stepwell.core.graph import Graph
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from tests.conformance.ops import *


def test_a_new_run_is_pending_and_its_roots_are_ready(store: Store, clock: ManualClock) -> None:
    of = start(store, graph(a="", b="a", c=""), priority=3, timeout=60 * SECOND, seed=2**64 - 1)
    assert statuses(store) == {"a": "READY", "b": "PENDING", "c": "READY"}
    run = reader.require_run(store, RUN)
    assert (run.status, run.gate, run.purpose, run.stopping) == (RunStatus.PENDING, GateState.OPEN, None, False)
    assert (run.nodes, run.open, run.active, run.failed, run.seq) == (3, 3, 2, 0, 1)
    assert (run.workflow, run.digest, run.input, run.seed) == ("orders", of.digest, b'{"order_id":7}', 2**64 - 1)
    assert (run.priority, run.idempotency_key, run.on_failure) == (3, None, "fail_fast")
    assert (run.created_at, run.started_at, run.ended_at) == (clock.now(), None, None)
    assert run.deadline_at == clock.now() + 60 * SECOND


def test_a_graph_is_stored_once_and_read_back(store: Store) -> None:
    of = graph(a="", b="a")
    (op,) = add_graph(of)
    assert reader.get_graph(store, of.digest) is None
    assert store.commit([op, op]) == [GraphAdded(of.digest, 2, 2)] * 2
    assert store.commit([op]) == [GraphAdded(of.digest, 2, 2)]
    document = reader.get_graph(store, of.digest)
    assert document is not None
    assert Graph.load(document) == of


def test_a_graph_may_come_in_chunks_that_repeat_and_overlap(store: Store) -> None:
    of = fan(5)
    first, second, third, last = add_graph(of, chunk=2)
    assert store.commit([second])[0] == Refused(Refusal.INCOMPLETE, "the nodes before 2 are not there yet")
    assert one(store, first, GraphAdded).loaded == 2
    (whole,) = add_graph(of)
    assert one(store, whole._replace(rows=whole.rows[:3]), GraphAdded).loaded == 3
    assert one(store, second, GraphAdded).loaded == 4
    assert one(store, first, GraphAdded).loaded == 4
    assert reader.get_graph(store, of.digest) is None
    assert refused(store, create(of)) is Refusal.INCOMPLETE
    assert store.commit([third, last]) == [GraphAdded(of.digest, 6, 7), GraphAdded(of.digest, 7, 7)]
    assert one(store, create(of), Created).loaded == 7
    assert set(statuses(store)) == set(of.order)


def test_a_run_of_an_unknown_graph_is_refused(store: Store) -> None:
    op = create(graph(a=""))._replace(digest=Digest("0" * 64))
    assert store.commit([op]) == [Refused(Refusal.UNKNOWN, f"graph {'0' * 64}")]
    assert reader.get_run(store, RUN) is None


def test_the_same_id_and_payload_is_the_same_run(store: Store) -> None:
    of = start(store, graph(a="", b="a"))
    for op in (create(of), create(of, seed=8, priority=9)):
        assert store.commit([op]) == [Created(RUN, True, 2, 2)]
    assert reader.require_run(store, RUN).seed == 7
    assert reader.require_run(store, RUN).seq == 1


def test_the_same_id_with_another_payload_is_a_conflict(store: Store) -> None:
    of = start(store, graph(a=""))
    for op in (create(of, input=b"{}"), create(of, workflow="returns")):
        assert store.commit([op]) == [Refused(Refusal.CONFLICT, RUN)]
    assert reader.require_run(store, RUN).input == b'{"order_id":7}'


def test_a_run_started_again_by_newer_code_is_the_same_run(store: Store) -> None:
    of, newer = start(store, graph(a="")), graph(a="", b="a")
    store.commit(add_graph(newer))
    assert store.commit([create(newer)]) == [Created(RUN, True, 1, 1)]
    assert reader.require_run(store, RUN).digest == of.digest


def test_an_idempotency_key_belongs_to_a_workflow(store: Store) -> None:
    of = start(store, graph(a=""), "order", idempotency_key="7")
    batch = [
        create(of, "return", workflow="returns", idempotency_key="7", input=b"{}"),
        create(of, "again", workflow="returns", idempotency_key="7", input=b"{}"),
    ]
    expected = [Created(RunId("return"), False, 1, 1), Created(RunId("return"), True, 1, 1)]
    assert store.commit(batch) == expected
    assert store.commit([create(of, "other", idempotency_key="7")]) == [Created(RunId("order"), True, 1, 1)]


def test_an_idempotency_key_names_one_run(store: Store) -> None:
    of = start(store, graph(a=""), "first", idempotency_key="order 7")
    assert store.commit([create(of, "second", idempotency_key="order 7")]) == [Created(RunId("first"), True, 1, 1)]
    assert reader.get_run(store, "second") is None
    conflict = store.commit([create(of, "second", idempotency_key="order 7", input=b"{}")])
    assert conflict == [Refused(Refusal.CONFLICT, "first")]
    assert one(store, create(of, "third", idempotency_key="order 8"), Created).existed is False


def test_one_batch_may_name_a_run_or_a_key_twice(store: Store) -> None:
    of = graph(a="")
    receipts = store.commit(
        [
            *add_graph(of),
            create(of, "a"),
            create(of, "a"),
            create(of, "a", input=b"{}"),
            create(of, "b", idempotency_key="k"),
            create(of, "c", idempotency_key="k"),
            create(of, "d"),
        ]
    )
    assert receipts[1:] == [
        Created(RunId("a"), False, 1, 1),
        Created(RunId("a"), True, 1, 1),
        Refused(Refusal.CONFLICT, "a"),
        Created(RunId("b"), False, 1, 1),
        Created(RunId("b"), True, 1, 1),
        Created(RunId("d"), False, 1, 1),
    ]
    assert [run.id for run in reader.all_runs(store)] == ["d", "b", "a"]


def test_a_thousand_runs_are_created_in_one_batch(store: Store) -> None:
    of = graph(a="", b="a")
    batch = [create(of, f"run-{i}") for i in range(1_000)]
    receipts = store.commit([*add_graph(of), *batch])
    assert receipts[1:] == [Created(op.run_id, False, 2, 2) for op in batch]
    assert store.commit(batch) == [Created(op.run_id, True, 2, 2) for op in batch]
    assert [run.id for run in reader.all_runs(store)] == [op.run_id for op in reversed(batch)]


def big_graph(store: Store) -> Graph:
    """More nodes than one op may add: many roots, one join."""
    return graph(**{f"n{i}": "" for i in range(2 * store.limits.nodes + store.limits.nodes // 4)}, join="n0 n1 n2")


def test_a_large_run_is_loaded_in_chunks_and_opens_with_the_last(store: Store) -> None:
    of = big_graph(store)
    store.commit(add_graph(of))
    enlist(store)
    assert one(store, create(of), Created) == Created(RUN, False, store.limits.nodes, len(of))
    expect_run(store, status=RunStatus.PENDING, gate=GateState.HELD, purpose="load", nodes=len(of))
    assert claim(store) == ()
    assert ready_runs(store, RUN) == ()
    assert refused(store, AddNodes(RUN, 2 * store.limits.nodes)) is Refusal.INCOMPLETE
    assert one(store, AddNodes(RUN, store.limits.nodes), Created) == Created(
        RUN, False, 2 * store.limits.nodes, len(of)
    )
    assert one(store, AddNodes(RUN, store.limits.nodes), Created) == Created(RUN, True, 2 * store.limits.nodes, len(of))
    assert refused(store, gate_op()) is Refusal.INCOMPLETE
    assert claim(store) == ()
    assert one(store, AddNodes(RUN, 2 * store.limits.nodes), Created) == Created(RUN, False, len(of), len(of))
    expect_run(store, gate=GateState.OPEN, purpose=None, open=len(of), active=len(of) - 1)
    assert [row.id for row in reader.all_nodes(store, RUN)] == list(of.order)
    assert [row.id for row in reader.all_nodes(store, RUN, NodeStatus.PENDING)] == ["join"]
    assert len(claim(store, limit=10)) == 10
    assert one(store, AddNodes(RUN, store.limits.nodes), Created) == Created(RUN, True, len(of), len(of))
    assert one(store, AddNodes(RUN, len(of)), Created) == Created(RUN, False, len(of), len(of)), "there are no more"


def test_a_run_whose_loader_died_is_reported_and_anybody_finishes_it(store: Store, clock: ManualClock) -> None:
    of = big_graph(store)
    store.commit([*add_graph(of), create(of)])
    expect(sweep(store), gates=(), next_due=clock.now() + LOAD_LEASE)
    assert sweep_after(store, clock, LOAD_LEASE / SECOND - MARGIN).gates == ()
    assert sweep_after(store, clock, MARGIN).gates == (HeldGate(RUN, "load", b""),)
    store.commit([AddNodes(RUN, store.limits.nodes), AddNodes(RUN, 2 * store.limits.nodes)])
    assert sweep(store).gates == ()
    assert ready_runs(store, RUN) == (RUN,)


def test_nodes_of_an_unknown_run_are_refused(store: Store) -> None:
    assert refused(store, AddNodes(RUN, 0)) is Refusal.UNKNOWN
