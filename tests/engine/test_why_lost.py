"""What `run.why()` says of nodes whose workers were lost, on both stores, with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from stepwell import Engine
from stepwell.base.clock import ManualClock
from stepwell.base.ids import NodeId
from stepwell.core.graph import NodeSpec
from stepwell.core.model import MAX_LOSSES, Enlist, RunStatus, Sweep, Swept
from stepwell.core.store import Store
from stepwell.core.store.memory import MemoryStore
from stepwell.engine import Run
from stepwell.engine.procedures.gates import finish as finish_gate
from stepwell.engine.procedures.procedure import carry_out
from stepwell.stores.sqlite import SqliteStore
from tests.conformance.ops import (
    CHUNK,
    RUN,
    WORKER,
    add_graph,
    claim,
    completed,
    create,
    enlist,
    fan,
    finish,
    graph,
    hold,
    node,
    one,
    retried,
    start,
    sweep,
)
from tests.conformance.suite.arranging import switch_graph


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    opened: Store = (
        MemoryStore(clock) if request.param == "memory" else SqliteStore(tmp_path / "stepwell.db", clock=clock)
    )
    yield opened
    opened.close()


def lines(store: Store, of: str | None = None) -> list[str]:
    run: Run = Engine(store, runner=None).get(RUN)
    return run.why(of).text(command="stepwell {}".format, zone=UTC).split("\n")


def lose(store: Store, clock: ManualClock) -> None:
    """A worker claims what is ready, and is never heard of again."""
    enlist(store)
    assert claim(store)
    for seconds in (10, 10, 11):  # nobody was away
        clock.advance(seconds)
        sweep(store)


def test_a_lease_that_ran_out_unnoticed_and_the_loss_that_follows(store: Store, clock: ManualClock) -> None:
    start(store, graph(charge="", ship="charge"))
    enlist(store)
    claim(store)
    assert lines(store, "charge")[0] == "charge is running since 22:13:20 (0.00 s)"
    clock.advance(31)
    assert lines(store, "ship") == [
        "ship waits for charge",
        "  charge is recorded as running since 22:13:20 (31 s)",
        "    the worker of attempt 1 is gone; the next sweep runs it again",
        "    no worker is alive",
        "→ `stepwell work MODULE` works on it, or `stepwell resume run-1` on this run alone",
    ]
    sweep(store)
    assert lines(store, "charge")[:3] == [
        "charge is ready to run since 22:13:51 (0.00 s)",
        "  no worker is alive",
        "  attempt 1 was lost at 22:13:51: its worker died or did not answer in time",
    ]


def test_a_suspect_runs_alone_and_fails_for_good_in_the_end(store: Store, clock: ManualClock) -> None:
    of = start(store, graph(charge="", ship="charge"))
    for _ in range(2):
        lose(store, clock)
    enlist(store)
    assert (
        lines(store, "charge")[1]
        == "  2 workers died while running it, so it runs alone, when its worker has nothing else to do"
    )
    for _ in range(MAX_LOSSES - 2):
        lose(store, clock)
    carry_out(store, finish_gate(one(store, Sweep(run=RUN), Swept).gates[0]))
    assert node(store, of.index["charge"]).status == "FAILED"
    assert lines(store, "charge")[:2] == [
        "charge failed for good: 5 workers died while running it",
        "  attempt 5 was lost at 22:15:55: its worker died or did not answer in time",
    ]
    assert lines(store, "ship")[0] == "ship did not run: it depends on charge"


def test_interrupted_by_a_loss(store: Store, clock: ManualClock) -> None:
    start(store, graph(NodeSpec(NodeId("charge"), "charge", on_lost="interrupt")))
    lose(store, clock)
    carry_out(store, finish_gate(one(store, Sweep(run=RUN), Swept).gates[0]))
    assert lines(store)[1:3] == [
        "  charge was interrupted: it may have done part of its work, and is not run again by itself",
        "    attempt 1 was lost at 22:13:51: its worker died or did not answer in time",
    ]


def test_a_retry_that_is_due_and_that_nobody_takes(store: Store, clock: ManualClock) -> None:
    start(store, graph(charge=""))
    enlist(store)
    store.commit([retried(grant, 5, b'{"type":"OSError","message":"no"}') for grant in claim(store)])
    assert lines(store, "charge")[0] == "charge waits until 22:13:25 (in 5.0 s) for attempt 2"
    clock.advance(40)
    assert lines(store, "charge")[:3] == [
        "charge waits, due since 22:13:25, for attempt 2",
        "  attempt 1 failed at 22:13:20: OSError: no",
        "  no worker is alive",
    ]
    enlist(store)
    sweep(store)
    assert lines(store, "charge")[0] == "charge is ready to run since 22:14:00 (0.00 s)"


def test_a_worker_that_serves_something_else(store: Store) -> None:
    of = start(store, graph(charge=""), target="shop:Orders")
    store.commit([Enlist(WORKER, 30_000_000, b'{"serves":[["orders","0123"]]}')])
    assert lines(store, "charge")[1] == (
        f"  the 1 worker that is alive serves other versions of orders, not that of this run ({of.digest[:12]})"
    )
    assert "no worker is alive" not in lines(store)[1]
    store.commit([Enlist(WORKER, 30_000_000, b'{"serves":[["orders","%s"]]}' % of.digest.encode())])
    assert lines(store, "charge")[1] == "  1 worker is alive and takes it when there is room"


def test_a_gate_that_somebody_left(store: Store, clock: ManualClock) -> None:
    start(store, graph(charge="", ship="charge"))
    hold(store, purpose="cancel")
    clock.advance(31)
    for of in ("charge", "ship", None):
        assert lines(store, of)[1:3] == [
            "  the run is held for a moment: it is being cancelled",
            "  no worker is alive",
        ]


def test_a_node_that_is_not_loaded_yet(store: Store, clock: ManualClock) -> None:
    """Whoever started the run died between two chunks of it."""
    of = fan(CHUNK)
    store.commit([*add_graph(of), create(of)])
    assert lines(store, "join")[1:3] == [
        "  the run is held for a moment: its nodes are still being stored",
        "  no worker is alive",
    ]


def test_paused_healed_and_removed(store: Store, clock: ManualClock) -> None:
    old = start(store, graph(load="", report="load"))
    enlist(store, seconds=1_000)
    store.commit([completed(grant) for grant in claim(store)])
    switch_graph(store, old, graph(clean="", load="clean", ship="load"))
    assert lines(store, "clean")[:2] == [
        "clean was skipped: it joined the run when nodes after it had already started",
        "  the code of the workflow changed and the run switched to it at 22:13:20",
    ]
    assert lines(store, "report")[0] == "report was cancelled before it began, because the workflow no longer has it"
    clock.advance(1)
    hold(store, purpose="heal")
    finish(store, RunStatus.PAUSED, reason="ship may have been renamed to send")
    assert lines(store)[1] == "  the run is paused since 22:13:21 (0.00 s): ship may have been renamed to send"
    assert lines(store)[2].startswith('→ if a node was renamed, declare it with `@step(was="old_name")`')
