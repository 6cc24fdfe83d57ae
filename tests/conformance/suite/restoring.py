"""Runs are restored from the rows of another store, with their ids, times and seq."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepwell.base.clock import SECOND, ManualClock
from stepwell.base.ids import RunId
from stepwell.core.graph import Graph
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from stepwell.core.store.memory import MemoryStore
from tests.conformance.clocks import PlainTime
from tests.conformance.ops import *

LARGE = b'"' + b"x" * 20_000 + b'"'


def elsewhere(clock: ManualClock) -> Store:
    """Another store, with one run that paused in the middle and one that completed."""
    other = MemoryStore(PlainTime(clock))
    of = graph(spec("a"), spec("b", "a", needs="a"), spec("c", "b"))
    enlist(other, seconds=600)
    for run in ("paused", "done"):
        start(
            other,
            of,
            run,
            tags=(("customer", "7"),),
            timeout=600 * SECOND,
            idempotency_key=f"key of {run}",
            input=LARGE,
        )
        (a,) = claim(other, runs=(run,))
        other.commit([Append(a.attempt, 0, "log", LARGE)])
        clock.advance(1)
        other.commit([completed(a, LARGE, outcome=b"1", lines=(("effect", b"{}"),))])
    other.commit([retried(claim_one(other, runs=("paused",)), 5)])
    enact(other, "pause", RunStatus.PAUSED, run="paused")
    assert work(other, runs=("done",)) == 2
    return other


def whole(store: Store, run: str) -> list[object]:
    row = reader.require_run(store, run)
    lines = reader.list_lines(store, run)
    return [row, reader.all_nodes(store, run), reader.list_attempts(store, run), reader.list_journal(store, run), lines]


def parts(other: Store, run: str, size: int) -> list[Op]:
    """The ops that restore a run, so many rows at a time."""
    row = reader.require_run(other, run)
    found: dict[str, Sequence[Any]] = {
        "nodes": reader.all_nodes(other, run),
        "attempts": sorted(reader.list_attempts(other, run), key=lambda attempt: (attempt.started_at, attempt.id)),
        "journal": reader.list_journal(other, run),
        "lines": reader.list_lines(other, run),
    }
    pages: list[dict[str, Any]] = [
        {kind: tuple(rows[at : at + size])} for kind, rows in found.items() for at in range(0, len(rows), size)
    ]
    return [*(Restore(row, **page) for page in pages), Restore(row, finish=True)]


def copy(store: Store, other: Store, run: str, size: int = 2) -> None:
    (document,) = other.read([GetGraph(reader.require_run(other, run).digest)])
    assert document is not None
    store.commit(add_graph(Graph.load(document)))
    for op in parts(other, run, size):
        for _ in range(2):  # each answer may be lost
            one(store, op, Restored)


def test_a_restored_run_reads_as_it_did_elsewhere(store: Store, clock: ManualClock) -> None:
    other = elsewhere(clock)
    for run in ("done", "paused"):
        copy(store, other, run)
        assert whole(store, run) == whole(other, run)
    assert [row.id for row in reader.list_runs(store, ListRuns(tags=(("customer", "7"),))).runs] == ["paused", "done"]


def test_a_restored_run_tells_what_was_cancelled(store: Store, clock: ManualClock) -> None:
    other = MemoryStore(PlainTime(clock))
    other.commit([completed(claim_first(other, graph(a="", b="a")))])
    end_run(other)
    assert statuses(other) == {"a": "COMPLETED", "b": "CANCELLED"}
    copy(store, other, RUN)
    assert whole(store, RUN) == whole(other, RUN)


def test_a_restored_run_is_found_by_its_error_and_its_end(store: Store, clock: ManualClock) -> None:
    other = MemoryStore(PlainTime(clock))
    serve(other, graph(a=""))
    clock.advance(3)
    work(other, failing=("a",))
    end_run(other, status=RunStatus.FAILED)
    copy(store, other, RUN)
    assert whole(store, RUN) == whole(other, RUN)
    for query in (ListRuns(error="ValueError"), ListRuns(order="ended"), ListRuns(order="duration")):
        assert [row.id for row in reader.list_runs(store, query).runs] == [RUN]


def test_a_restored_run_keeps_the_graphs_that_it_had_before_it_was_healed(store: Store, clock: ManualClock) -> None:
    old, new, unused = graph(a=""), graph(a="", b="a"), graph(c="")
    other = MemoryStore(PlainTime(clock))
    start(other, new)
    enact(other, "pause", RunStatus.PAUSED)
    store.commit([op for each in (old, new, unused) for op in add_graph(each)])
    one(store, Restore(reader.require_run(other, RUN), former_graphs=(old.digest,)), Restored)
    copy(store, other, RUN)
    assert [digest for digest, _ in reader.rows(store, ListUnusedGraphs())] == [unused.digest]
    assert refused(store, DeleteGraph(old.digest)) is Refusal.STATUS


def test_a_restored_run_goes_on_where_it_was(store: Store, clock: ManualClock) -> None:
    copy(store, elsewhere(clock), "paused")
    enlist(store, seconds=600)
    assert claim(store) == ()
    enact(store, "resume", RunStatus.RUNNING, run="paused")
    assert sweep_after(store, clock, 10).woken == 1
    expect(complete_next(store), number=2, failures=1, inputs=((0, LARGE),))
    assert work(store) == 1
    assert reader.require_run(store, "paused").status is RunStatus.COMPLETED


def test_nothing_of_a_run_that_is_being_restored_can_be_claimed_or_asked(store: Store, clock: ManualClock) -> None:
    other = elsewhere(clock)
    enlist(store, seconds=600)
    (document,) = other.read([GetGraph(reader.require_run(other, "paused").digest)])
    store.commit(add_graph(Graph.load(document)))
    for op in parts(other, "paused", 2)[:-1]:
        one(store, op, Restored)
        assert claim(store) == ()
        assert refused(store, gate_op("paused")) is Refusal.INCOMPLETE
    clock.advance(LOAD_LEASE / SECOND)
    assert [gate.purpose for gate in sweep(store).gates] == ["restore"], "whoever did this has died"
    while not one(store, Delete(RunId("paused")), Deleted).finished:
        pass
    assert reader.get_run(store, "paused") is None


def test_what_cannot_be_restored_is_refused(store: Store, clock: ManualClock) -> None:
    other = elsewhere(clock)
    row = reader.require_run(other, "done")
    assert refused(store, Restore(row)) is Refusal.UNKNOWN, "its graph is not there"
    copy(store, other, "paused")
    assert refused(store, Restore(row, finish=True)) is Refusal.INCOMPLETE
    another = row._replace(id=RunId("paused"), created_at=row.created_at + 1)
    assert refused(store, Restore(another)) is Refusal.CONFLICT
    held = row._replace(id=RunId("held"), gate=GateState.HELD, purpose="pause")
    assert refused(store, Restore(held)) is Refusal.STATUS
    (attempt, *_) = reader.list_attempts(other, "done")
    running = attempt._replace(status=AttemptStatus.RUNNING, ended_at=None)
    assert refused(store, Restore(row, attempts=(running,))) is Refusal.STATUS
    while not one(store, Delete(RunId("done")), Deleted).finished:
        pass


def test_a_run_whose_idempotency_key_another_run_has_is_not_restored(store: Store, clock: ManualClock) -> None:
    other = elsewhere(clock)
    row = reader.require_run(other, "done")
    of = start(
        store, graph(spec("a"), spec("b", "a", needs="a"), spec("c", "b")), "first", idempotency_key=row.idempotency_key
    )
    for op in parts(other, "done", 2):
        assert refused(store, op) is Refusal.CONFLICT
    assert [each.id for each in reader.list_runs(store, ListRuns()).runs] == ["first"]
    assert one(store, create(of, "again", idempotency_key=row.idempotency_key), Created).run_id == "first"
    end_run(store, "first")
    while not one(store, Delete(RunId("first")), Deleted).finished:
        pass
    copy(store, other, "done")
    created = one(store, create(of, "again", idempotency_key=row.idempotency_key, input=LARGE), Created)
    assert created.run_id == "done", "the key is that of the copy now"
    other_workflow = row._replace(id=RunId("elsewhere"), workflow="another")
    one(store, Restore(other_workflow), Restored)
    while not one(store, Delete(RunId("elsewhere")), Deleted).finished:
        pass
