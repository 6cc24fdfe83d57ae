"""An ended run is forgotten: in chunks, whole, and nobody else with it."""

from __future__ import annotations

from stepwell.base.clock import ManualClock
from stepwell.base.ids import Digest, GateToken, RunId
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from tests.conformance.ops import *


def test_only_an_ended_run_is_deleted(store: Store) -> None:
    start(store, graph(a=""))
    assert store.commit([Delete(RUN)]) == [Refused(Refusal.STATUS, RunStatus.PENDING)]
    enlist(store)
    work(store)
    assert store.commit([Delete(RUN)]) == [Deleted(True)]
    assert reader.get_run(store, RUN) is None
    assert store.commit([Delete(RUN), Delete(RunId("never was"))]) == [Deleted(True)] * 2


def test_nothing_of_a_deleted_run_is_left(store: Store) -> None:
    of = graph(a="", b="a")
    enlist(store)
    for run in (RUN, "kept"):
        start(store, of, run, idempotency_key=f"key of {run}")
        for _ in of.order:
            (grant,) = claim(store)
            store.commit([Append(grant.attempt, 0, "log", b'"hello"'), completed(grant, b'"x"')])
    one(store, Delete(RUN), Deleted)
    assert reader.all_nodes(store, RUN) == []
    assert reader.list_attempts(store, RUN) == []
    assert reader.list_journal(store, RUN) == []
    assert list(reader.list_lines(store, RUN)) == []
    assert (reader.get_outputs(store, RUN), reader.count_nodes(store, RUN)) == ({}, {})
    assert [run.id for run in reader.list_runs(store, ListRuns()).runs] == ["kept"]
    assert statuses(store, "kept") == {"a": "COMPLETED", "b": "COMPLETED"}
    assert len(reader.list_lines(store, "kept")) == 2
    assert reader.get_outputs(store, "kept") == {0: b'"x"', 1: b'"x"'}
    assert one(store, create(of, idempotency_key=f"key of {RUN}"), Created).existed is False
    assert statuses(store) == {"a": "READY", "b": "PENDING"}


def test_a_run_is_deleted_in_chunks_and_anybody_finishes_it(store: Store) -> None:
    of = worked(store, graph(**{f"n{i}": "" for i in range(7)}))
    assert one(store, Delete(RUN, 3), Deleted).finished is False
    expect_run(store, gate=GateState.HELD, purpose="delete", nodes=7)
    assert [row.index for row in reader.all_nodes(store, RUN)] == [0, 1, 2, 3]
    assert set(reader.get_outputs(store, RUN)) == {0, 1, 2, 3}
    assert sweep(store).gates == (HeldGate(RUN, "delete", b""),)
    assert refused(store, gate_op()) is Refusal.INCOMPLETE
    assert refused(store, AddNodes(RUN, 5)) is Refusal.INCOMPLETE
    assert store.commit([create(of)]) == [Created(RUN, True, 4, 7)]
    assert [one(store, Delete(RUN, 3), Deleted).finished for _ in range(3)] == [False, True, True]
    assert sweep(store).gates == ()


def test_a_worker_still_at_work_on_a_deleted_run_is_fenced(store: Store, clock: ManualClock) -> None:
    of = start(store, graph(a="", b=""))
    serve(store, of, "kept")
    op = claim_op(claim="c1", limit=3, runs=(RUN, "kept"))
    grants = one(store, op, Claimed).grants
    end_run(store, status=RunStatus.FAILED)
    one(store, Delete(RUN), Deleted)
    assert store.commit([completed(grants[0])]) == [Refused(Refusal.FENCED)]
    assert store.commit([Append(grants[1].attempt, 0, "log", b"")]) == [Refused(Refusal.FENCED)]
    assert one(store, op, Claimed).grants == grants[2:]
    assert list_stops(store) == ()
    assert sweep_after(store, clock, 60).lost == 1


def test_a_run_created_again_after_its_deletion_is_a_new_one(store: Store) -> None:
    of = start(store, graph(a=""), "first", "second")
    end_run(store, "first")
    store.commit([Delete(RunId("first"))])
    start(store, of, "first", input=b'{"other":1}')
    assert [run.id for run in reader.all_runs(store)] == ["first", "second"]
    enlist(store)
    assert [grant.run_id for grant in claim(store)] == ["second", "first"]


def test_a_graph_that_a_run_has_is_not_deleted(store: Store) -> None:
    of = start(store, graph(a="", b="a"))
    assert list_unused_graphs(store) == ()
    assert store.commit([DeleteGraph(of.digest)]) == [Refused(Refusal.STATUS, "in use")]
    end_run(store)
    assert list_unused_graphs(store) == ()
    store.commit([Delete(RUN)])
    assert list_unused_graphs(store) == (of.digest,)
    assert store.commit([DeleteGraph(of.digest), DeleteGraph(of.digest)]) == [Deleted(True)] * 2
    assert list_unused_graphs(store) == ()
    assert (reader.get_graph(store, of.digest), reader.get_graph_ages(store, of.digest)) == (None, {})
    assert refused(store, create(of)) is Refusal.UNKNOWN


def test_a_graph_that_a_run_had_before_a_heal_is_not_deleted(store: Store) -> None:
    old, new = graph(a=""), graph(a="", b="a")
    start(store, old)
    store.commit(add_graph(new))
    store.commit([gate_op(purpose="heal"), SwitchGraph(RUN, GateToken(TOKEN), new.digest, 1)])
    assert list_unused_graphs(store) == ()
    assert refused(store, DeleteGraph(old.digest)) is Refusal.STATUS
    finish(store, RunStatus.FAILED)
    store.commit([Delete(RUN)])
    assert sorted(list_unused_graphs(store)) == sorted((old.digest, new.digest))


def test_a_graph_is_deleted_in_chunks_and_can_be_stored_again_at_any_time(store: Store) -> None:
    of = graph(**{f"n{i}": f"n{i - 1}" if i else "" for i in range(7)})
    store.commit(add_graph(of))
    for chunks in range(4):
        ended = [one(store, DeleteGraph(of.digest, 3), Deleted).finished for _ in range(chunks)]
        assert ended == [False, False, True][:chunks]
        if chunks:
            assert refused(store, create(of)) is (Refusal.UNKNOWN if ended[-1] else Refusal.INCOMPLETE)
        store.commit(add_graph(of))
    worked(store, of)
    assert set(statuses(store).values()) == {"COMPLETED"}


def test_nothing_of_another_graph_goes_with_a_deleted_one(store: Store) -> None:
    of = graph(spec("a"), spec("b", "a", needs="a"), spec("c", "b", needs="a b"))
    store.commit(add_graph(of))
    other = graph(a="", b="a")
    store.commit(add_graph(other))
    while not one(store, DeleteGraph(other.digest, 1), Deleted).finished:
        pass
    serve(store, of)
    needed = {}
    while grants := claim(store):
        needed |= {grant.index: [index for index, _ in grant.inputs] for grant in grants}
        store.commit([completed(grant) for grant in grants])
    assert needed == {0: [], 1: [0], 2: [0, 1]}


def test_graphs_that_nobody_uses_are_listed_in_pages(store: Store) -> None:
    for size in range(1, 6):
        store.commit(add_graph(graph(**{f"n{i}": "" for i in range(size)})))
    every = list_unused_graphs(store)
    assert len(every) == 5
    assert every == tuple(sorted(every))
    assert list_unused_graphs(store, limit=2) == every[:2]
    assert list_unused_graphs(store, after=every[1], limit=2) == every[2:4]
    assert tuple(digest for digest, _ in reader.rows(store, ListUnusedGraphs(limit=2))) == every


def test_a_graph_that_is_stored_anew_is_younger_than_those_it_was_older_than(store: Store) -> None:
    first, second = graph(a=""), graph(a="", b="")
    store.commit(add_graph(first))
    store.commit(add_graph(second))
    store.commit([DeleteGraph(first.digest)])
    store.commit(add_graph(first))
    ages = reader.get_graph_ages(store, first.digest, second.digest)
    assert ages[first.digest] > ages[second.digest]


def test_a_graph_that_was_stored_again_lately_can_be_told(store: Store, clock: ManualClock) -> None:
    of = graph(a="")
    store.commit(add_graph(of, workflow="returns"))
    clock.advance(10)
    before = int(clock.now())
    assert store.read([ListUnusedGraphs(stored_before=before)]) == [((of.digest, "returns"),)]
    store.commit(add_graph(of))
    assert store.read([ListUnusedGraphs(stored_before=before)]) == [()]
    moment = store.commit(add_graph(of)).now
    assert store.read([ListUnusedGraphs(stored_before=moment)]) == [()]
    assert store.read([ListUnusedGraphs(stored_before=moment + 1)]) == [((of.digest, "returns"),)]


def list_unused_graphs(store: Store, after: str | None = None, limit: int = 100) -> tuple[str, ...]:
    (found,) = store.read([ListUnusedGraphs(None if after is None else Digest(after), limit)])
    return tuple(digest for digest, _ in found)
