"""Attempts are found through their nodes, and what a worker holds through the runs it holds nodes of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.base.clock import SECOND, ManualClock
from stepwell.core.model import AttemptStatus, Dismiss, NodeStatus, Refusal, Refused, Renew, Restore, Settle
from stepwell.core.store.reader import (
    all_nodes,
    each_attempt,
    get_run,
    list_attempts,
    list_journal,
    list_workers,
    require_run,
)
from stepwell.stores.sqlite import SqliteStore
from stepwell.stores.sqlite.ops import gates
from tests.conformance.ops import (
    RUN,
    add_graph,
    claim,
    claim_first,
    claim_op,
    completed,
    enlist,
    graph,
    hold,
    start,
    statuses,
    sweep,
)

PAGE = 4096 + 24
CHAIN = graph(**{f"n{place:03}": "" if place == 0 else f"n{place - 1:03}" for place in range(300)})


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000 * SECOND)


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "runs.db", clock=clock)
    yield store
    store.close()


def held(store: SqliteStore) -> int:
    return len(store._reader.execute("SELECT run, worker FROM held").fetchall())


def test_a_node_of_a_chain_writes_few_pages(store: SqliteStore) -> None:
    """Run, nodes, attempts, claims, journal, and the indexes of what is READY: a chain costs mostly what its pages cost."""
    grant = claim_first(store, CHAIN)
    pages = []
    for place in range(200):
        before = store._log.used
        _, claimed = store.commit([completed(grant), claim_op(claim=f"c{place:03}", runs=(RUN,))])
        (grant,) = claimed.grants  # type: ignore[union-attr]
        pages.append((store._log.used - before) // PAGE)
    assert sorted(pages)[100] == 6
    assert held(store) == 1, "the worker is noted once for the run, not for each node"


def test_who_claims_with_the_settlement_of_another_is_noted_too(store: SqliteStore) -> None:
    grant = claim_first(store, graph(a="", b="a"))
    enlist(store, "other")
    store.commit([completed(grant), claim_op("other", runs=(RUN,))])
    assert statuses(store)["b"] == "RUNNING"
    store.commit([Dismiss(enlist(store, "other"))])
    assert statuses(store)["b"] == "READY", "nobody else would find what it held"


def test_what_a_worker_holds_is_forgotten_with_the_run(store: SqliteStore) -> None:
    grant = claim_first(store, graph(a=""))
    assert held(store) == 1
    store.commit([completed(grant)])
    assert statuses(store) == {"a": "COMPLETED"}
    assert held(store) == 0


def test_a_renewal_forgets_the_runs_of_which_the_worker_holds_nothing(store: SqliteStore) -> None:
    """A run that waits, or failed, may do so for long."""
    grant = claim_first(store, graph(a="", b="a"))
    worker = claim_op().worker
    store.commit([Renew(worker, 60 * SECOND, held=(grant.attempt,))])
    assert held(store) == 1
    store.commit([Settle(grant.attempt, AttemptStatus.FAILED, NodeStatus.WAITING, error=b"{}", delay=SECOND)])
    store.commit([Renew(worker, 60 * SECOND, held=())])
    assert held(store) == 0


def test_a_dead_worker_is_forgotten_after_all_it_held_is_lost(store: SqliteStore, clock: ManualClock) -> None:
    start(store, graph(a="", b="", c=""))
    enlist(store, seconds=1)
    assert len(claim(store)) == 3
    sweep(store)
    for _ in range(10):  # as sweeps that come in time do, so that it does not look like an outage of the store
        clock.advance(1)
        sweep(store, limit=1)
    assert statuses(store) == dict.fromkeys("abc", "READY")
    assert [attempt.status for attempt in list_attempts(store, RUN)] == [AttemptStatus.LOST] * 3
    assert held(store) == 0
    assert not list_workers(store)


def test_a_worker_that_signs_off_holds_nothing(store: SqliteStore) -> None:
    claim_first(store, graph(a=""))
    store.commit([Dismiss(claim_op().worker)])
    assert held(store) == 0
    assert statuses(store) == {"a": "READY"}


def test_attempts_are_listed_in_order_a_page_at_a_time_however_they_ended(store: SqliteStore) -> None:
    start(store, graph(a="", b="", c=""))
    enlist(store)
    for grant in claim(store)[:2]:
        store.commit([Settle(grant.attempt, AttemptStatus.RELEASED, NodeStatus.READY)])
    for grant in claim(store, claim="again"):
        store.commit([completed(grant)])
    whole = [(0, 1, "RELEASED"), (0, 2, "COMPLETED"), (1, 1, "RELEASED"), (1, 2, "COMPLETED"), (2, 1, "RUNNING")]
    for limit in range(1, 6):
        assert [(a.index, a.number, str(a.status)) for a in each_attempt(store, RUN, limit=limit)] == whole


def test_a_worker_is_not_told_with_each_claim_what_to_stop(store: SqliteStore, clock: ManualClock) -> None:
    """The nodes of the run are looked through for it. What is new is told at once, and the rest again soon."""
    start(store, CHAIN, "one", "two")
    start(store, graph(a=""), "other")
    enlist(store)
    (one,) = claim(store, runs=("one",))
    (two,) = claim(store, runs=("two",))
    hold(store, "one", stop=True)

    def told() -> tuple[str, ...]:
        return store.commit([claim_op(runs=("other",))]).stop

    assert told() == (one.attempt,)
    assert told() == ()
    hold(store, "two", stop=True)
    assert told() == (one.attempt, two.attempt)
    clock.advance(0.2)
    assert told() == (one.attempt, two.attempt)
    assert store.commit([Renew(claim_op().worker, SECOND, None)]).stop == (one.attempt, two.attempt), (
        "who renews is told all"
    )


def test_superseding_looks_at_the_nodes_that_it_changes(store: SqliteStore) -> None:
    """Not at all attempts in the file, for each of them."""
    plan = store._writer.execute(f"EXPLAIN QUERY PLAN {gates._SUPERSEDE}", {"run": 1})
    steps = [str(row[3]) for row in plan]
    assert any("SEARCH attempt USING INTEGER PRIMARY KEY" in step for step in steps)
    assert not [step for step in steps if "AUTOMATIC" in step or "SCAN attempt" in step or "SCAN n" in step]


def test_a_restored_completion_belongs_to_a_node_that_knows_it(store: SqliteStore, tmp_path: Path) -> None:
    """The run went on between the moments at which its nodes and its attempts were read for a copy."""
    other = SqliteStore(tmp_path / "other.db")
    of = graph(a="")
    other.commit([completed(claim_first(other, of))])
    row, nodes, attempts = require_run(other, RUN), all_nodes(other, RUN), list_attempts(other, RUN)
    store.commit(add_graph(of))
    early = nodes[0]._replace(status=NodeStatus.FAILED, attempt=0)
    (_, refused) = store.commit([Restore(row, nodes=(early,)), Restore(row, attempts=tuple(attempts))])
    assert isinstance(refused, Refused)
    assert refused.reason is Refusal.INCOMPLETE
    assert store._reader.execute("SELECT 1 FROM attempt UNION ALL SELECT 1 FROM claim").fetchall() == []
    other.close()


def test_a_restored_attempt_comes_after_its_node(store: SqliteStore, tmp_path: Path) -> None:
    """Or nobody would find it, not even who deletes a run that was left half restored."""
    other = SqliteStore(tmp_path / "other.db")
    of = graph(a="")
    other.commit([completed(claim_first(other, of))])
    row, attempts = require_run(other, RUN), tuple(list_attempts(other, RUN))
    store.commit(add_graph(of))
    (refused,) = store.commit([Restore(row, attempts=attempts)])
    assert isinstance(refused, Refused)
    assert refused.reason is Refusal.INCOMPLETE
    assert get_run(store, RUN) is None, "nothing of it is stored"
    parts = [
        Restore(row, nodes=tuple(all_nodes(other, RUN)), attempts=attempts, journal=tuple(list_journal(other, RUN)))
    ]
    store.commit([*parts, Restore(row, finish=True)])
    assert list_attempts(store, RUN) == list_attempts(other, RUN)
    other.close()
