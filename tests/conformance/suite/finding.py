"""Runs are found by the error that they failed with, and listed by when they ended or how long they took."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell.base.clock import ManualClock
from stepwell.base.codec import encode
from stepwell.base.ids import RunId
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from stepwell.core.store.rules.payloads import LONGEST_TYPE
from tests.conformance.ops import *

THREE = graph(a="", b="", c="")


def error(type: Any, traceback: str = "") -> bytes:
    return encode({"message": "no", "traceback": traceback, "type": type})


def ids(store: Store, **options: Any) -> list[str]:
    """The ids of all runs that a query finds, one page of two after the other."""
    found, query = list[str](), ListRuns(2, **options)
    while True:
        page = reader.list_runs(store, query)
        assert len(page.runs) <= 2
        found += [row.id for row in page.runs]
        if page.cursor is None:
            return found
        query = query._replace(before=page.cursor)


def fail(store: Store, run: str, *types: str) -> None:
    """Start a run, let one node after the other fail, and end it."""
    serve(store, THREE, run, on_failure="finish")
    for type, grant in zip(types, claim(store, runs=(run,)), strict=False):
        store.commit([failed(grant, error(type))])
    end_run(store, run, RunStatus.FAILED)


@pytest.mark.parametrize("together", [False, True])
def test_a_run_has_the_error_of_its_first_failed_node(store: Store, together: bool) -> None:
    serve(store, THREE, on_failure="finish")
    a, b, c = claim(store)
    settlements = [retried(a, 1, error("TimeoutError")), failed(c, error("KeyError")), failed(b, error("ValueError"))]
    for batch in [settlements] if together else [[op] for op in settlements]:
        store.commit(batch)
    expect_run(store, error="KeyError", failed=2)
    twice(store, settlements)
    expect_run(store, error="KeyError")


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (error("shop.Déclined"), "shop.Déclined"),
        (error("KeyError", "x" * 20_000), "KeyError"),
        (error("E" * 300), "E" * LONGEST_TYPE),
        (error("a\nb"), None),
        (error("a\x00b"), None),
        (error(""), None),
        (error(7), None),
        (b"\x00 no record", None),
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_the_error_of_a_run_is_the_class_that_its_node_recorded(
    store: Store, payload: bytes, expected: str | None, together: bool
) -> None:
    serve(store, THREE, on_failure="finish")
    a, b, _ = claim(store)
    store.commit([failed(a, payload), *([completed(b)] if together else [])])
    expect_run(store, error=expected)


def test_a_failure_that_says_no_class_leaves_the_error_to_the_next(store: Store) -> None:
    serve(store, THREE, on_failure="finish")
    a, b, _ = claim(store)
    store.commit([failed(a, b"no record"), failed(b, error("KeyError"))])
    expect_run(store, error="KeyError")


def test_a_run_has_the_error_of_a_lost_worker(store: Store, clock: ManualClock) -> None:
    serve(store, graph(spec("a", on_lost="interrupt")))
    claim_one(store)
    sweep_after(store, clock, 31)
    assert statuses(store) == {"a": "INTERRUPTED"}
    expect_run(store, error="WorkerLost")


def test_an_error_goes_when_all_that_failed_is_asked_for_again(store: Store) -> None:
    serve(store, THREE, on_failure="pause")
    a, b, _ = claim(store)
    store.commit([failed(a, error("KeyError")), failed(b, error("ValueError"))])
    expect_run(store, status=RunStatus.PAUSED, error="KeyError")
    enact(store, "retry", RunStatus.RUNNING, changed(node(store, 1), NodeStatus.PENDING, fresh=True), tolerate=True)
    expect_run(store, error="KeyError", failed=1)
    assert ids(store, error="KeyError") == [RUN]
    enact(store, "retry", RunStatus.RUNNING, changed(node(store, 0), NodeStatus.PENDING, fresh=True))
    expect_run(store, error=None, failed=0)
    assert ids(store, error="KeyError") == []
    grant = claim(store)[0]
    store.commit([failed(grant, error("OSError"))])
    expect_run(store, error="OSError")


def test_runs_are_found_by_their_error(store: Store) -> None:
    fail(store, "one", "KeyError", "ValueError")
    fail(store, "two", "ValueError")
    fail(store, "three", "KeyError")
    serve(store, THREE, "four", workflow="ValueErrors")
    assert ids(store, error="KeyError") == ["three", "one"]
    assert ids(store, error="ValueError", statuses=(RunStatus.FAILED,)) == ["two"]
    assert ids(store, error="keyerror") == ids(store, error="Key") == []
    assert ids(store, text="valueerror") == ["four", "two"]
    assert store.read([CountRuns(ListRuns(error="KeyError"), "status")]) == [CountedRuns((("FAILED", 2),))]
    assert store.read([CountRuns(ListRuns(text="ERROR"), "status")])[0].counts == (("FAILED", 3), ("PENDING", 1))
    store.commit([Delete(RunId("one"))])
    assert ids(store, error="KeyError") == ["three"]


def test_runs_are_listed_by_when_they_ended_and_by_how_long_they_took(store: Store, clock: ManualClock) -> None:
    serve(store, graph(a=""), "long", "short", "late", "unborn", "running", seconds=600)
    (long,) = claim(store, runs=("long",))
    clock.advance(10)
    (short,) = claim(store, runs=("short",))
    clock.advance(10)
    store.commit([completed(short)])
    clock.advance(10)
    store.commit([completed(long)])
    claim(store, runs=("running",))
    clock.advance(10)
    end_run(store, "unborn")
    (late,) = claim(store, runs=("late",))
    clock.advance(1)
    store.commit([failed(late, error("KeyError"))])
    end_run(store, "late", RunStatus.FAILED)
    assert ids(store) == ["running", "unborn", "late", "short", "long"]
    assert ids(store, order="ended") == ["late", "unborn", "long", "short"]
    assert ids(store, order="duration") == ["unborn", "long", "short", "late"], "one that never began waited for it"
    completed_ones = {"order": "duration", "statuses": (RunStatus.COMPLETED,)}
    assert ids(store, **completed_ones) == ["long", "short"]
    assert ids(store, order="ended", error="KeyError") == ids(store, order="ended", prefix="lat") == ["late"]
    assert ids(store, order="ended", text="ON") == ["long"]
    assert ids(store, order="ended", text="orders") == ["late", "unborn", "long", "short"]
    assert ids(store, order="ended", statuses=(RunStatus.RUNNING,)) == []
    counts = (("CANCELLED", 1), ("COMPLETED", 2), ("FAILED", 1))
    assert store.read([CountRuns(ListRuns(order="ended"), "status")]) == [CountedRuns(counts)]
    enact(
        store, "retry", RunStatus.RUNNING, changed(node(store, 0, "late"), NodeStatus.PENDING, fresh=True), run="late"
    )
    assert ids(store, order="ended") == ["unborn", "long", "short"]
    store.commit([Delete(RunId("long"))])
    assert ids(store, order="duration") == ["unborn", "short"]


@pytest.mark.parametrize("order", ["ended", "duration"])
def test_pages_of_an_order_go_on_where_they_were_although_equal_runs_end_meanwhile(
    store: Store, clock: ManualClock, order: RunOrder
) -> None:
    def end(*runs: str, after: float) -> None:
        """End runs of the same length at the same moment, as far as the store's clock lets them."""
        serve(store, graph(a=""), *runs)
        grants = claim(store, runs=runs)
        clock.advance(after)
        store.commit([completed(grant) for grant in grants])

    end(*(f"run-{number}" for number in range(5)), after=5)
    query = ListRuns(2, order=order)
    first = reader.list_runs(store, query)
    assert [row.id for row in first.runs] == ["run-4", "run-3"]
    end("longer", "last", after=9)
    end("shorter", after=1)
    rest, before = list[str](), first.cursor
    while before is not None:
        page = reader.list_runs(store, query._replace(before=before))
        rest += [row.id for row in page.runs]
        before = page.cursor
    assert rest == ["run-2", "run-1", "run-0"] + ["shorter"] * (order == "duration")
