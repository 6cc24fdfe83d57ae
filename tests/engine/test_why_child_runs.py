"""`why` goes on in the runs that perform nodes: it names them, and gives their own causes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from stepwell import Engine, Run
from tests.engine.nightly import Nightly, Outer, child_of
from tests.engine.waiting import eventually


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine("memory://") as engine:
        yield engine


def parked(engine: Engine, child: str, status: str) -> Run:
    """A run one node of which waits for a child run whose node has this status."""
    run = engine.start(Outer(child=child), run_id="outer")
    eventually(
        lambda: any(child.node("read").status == status for child in run.children()),
        f"no child run has a node that is {status}",
    )
    return run


def lines(run: Run, node: str | None = None) -> list[str]:
    """The text without times and without the digits of child runs."""
    text = re.sub(r"( since| at| until)? \d\d:\d\d:\d\d( \([^)]*\))?", "", run.why(node).text())
    return [re.sub(r"\.[0-9a-f]{16}", ".CHILD", line) for line in text.splitlines()]


def test_a_parked_node_waits_for_a_run_and_has_its_causes(engine: Engine) -> None:
    run = parked(engine, "patient", "WAITING")
    waits = [
        "inner waits for run outer.CHILD of Patient, which is running",
        "  read waits for attempt 2 of 3",
        "    attempt 1 failed: ValueError: not there yet",
    ]
    assert lines(run, "inner") == waits
    assert lines(run, "last") == ["last waits for inner", *(f"  {line}" for line in waits)]
    assert lines(run)[1:] == [f"  {line}" for line in waits]
    (cause,) = run.why("inner").causes
    assert (cause.kind, cause.detail["run"]) == ("waits_for_run", child_of(engine, run).id)
    run.cancel(grace_seconds=0)


def test_a_child_run_that_is_paused_says_what_gets_it_going(engine: Engine) -> None:
    run = parked(engine, "picky", "FAILED")
    child = child_of(engine, run)
    eventually(lambda: child.status == "PAUSED", "the child run does not pause")
    first, paused, *_, advice = lines(run, "inner")
    assert first == "inner waits for run outer.CHILD of Picky, which is paused"
    assert paused == "  the run is paused: a node failed"
    assert advice == "→ `engine.get('outer.CHILD').why()` says what gets that run going again"
    assert lines(child)[-2:] == ["→ `run.retry()` runs again what failed", "→ `run.resume()` goes on without it"]
    run.cancel(grace_seconds=0)


def test_a_child_run_of_a_paused_run_says_that_its_parent_is_paused(engine: Engine) -> None:
    run = parked(engine, "patient", "WAITING")
    run.pause()
    child = child_of(engine, run)
    assert lines(child)[1:] == [
        "  the run is paused: its parent run is paused",
        "→ `run.parent.resume()` goes on with both",
    ]
    assert lines(run, "inner") == [
        "inner waits for run outer.CHILD of Patient, which is paused",
        "  the run is paused: on request",
        "→ `run.resume()` goes on",
    ]
    run.cancel(grace_seconds=0)


def test_a_node_that_failed_with_its_child_run_names_it_and_the_node_that_failed_there(engine: Engine) -> None:
    run = engine.run(Nightly(file="broken"), run_id="night", check=False)
    first, attempt, *rest, advice = lines(run, "imported")
    assert first == "imported failed for good: the run that performs it did not complete"
    assert attempt.startswith("  attempt 2 failed: ChildFailed: child run night.CHILD of Import is FAILED")
    assert rest == [
        "    run night.CHILD of Import failed",
        "      read failed for good: it has no retry=",
        "        attempt 1 failed: ValueError: the file is broken",
    ]
    assert advice == "→ `run.retry()` runs only what did not complete"


def test_a_node_whose_child_run_was_cancelled_says_so(engine: Engine) -> None:
    run = parked(engine, "patient", "WAITING")
    child_of(engine, run).cancel(grace_seconds=0)
    run.wait()
    assert lines(run, "inner")[2:4] == ["    run outer.CHILD of Patient cancelled", "      the run was cancelled"]


def test_a_node_that_a_run_has_performed_names_it(engine: Engine) -> None:
    run = engine.run(Nightly(), run_id="night")
    assert lines(run, "imported") == ["imported completed: run night.CHILD performed it", "  find completed"]
