"""Why a run is not done yet, or ended as it did; the most useful causes first."""

from __future__ import annotations

import json

import pytest

from stepwell.core.model import GateState, NodeStatus, RunStatus
from stepwell.history.why import most_telling
from tests.core.kernel.facts import ago, attempt, entry, graph, known, run_row, text, why

WIDE = graph(**dict.fromkeys("abcdefgh", ""))
N = NodeStatus


def test_what_failed_first_is_told_first_and_each_error_once() -> None:
    nodes = [
        known(WIDE, "a", "FAILED", attempt("FAILED", 10, "ValueError", "late")),
        known(WIDE, "b", "FAILED", attempt("FAILED", 30, "ConnectionError", "down")),
        known(WIDE, "c", "FAILED", attempt("FAILED", 29, "ConnectionError", "down")),
        known(WIDE, "d", "INTERRUPTED", attempt("LOST", 20)),
        known(WIDE, "e", "FAILED", attempt("FAILED", 1, "KeyError", "x")),
    ]
    assert most_telling(nodes) == ("b", "d", "a")


def test_then_what_is_due_next_what_runs_longest_and_one_that_is_ready() -> None:
    nodes = [
        known(WIDE, "a", "READY"),
        known(WIDE, "b", "READY"),
        known(WIDE, "c", "RUNNING", attempt("RUNNING", 5)),
        known(WIDE, "d", "RUNNING", attempt("RUNNING", 50)),
        known(WIDE, "e", "WAITING", due_at=ago(-50)),
    ]
    assert most_telling(nodes) == ("e", "d", "c")
    assert most_telling(nodes[:2]) == (min(nodes[:2], key=lambda each: each.row.index).row.id,)
    waiting = [known(WIDE, node, "WAITING", due_at=ago(-due)) for node, due in zip("fgh", (9, 7, 8), strict=True)]
    assert most_telling([*waiting, nodes[2]]) == ("g", "h", "c")


def test_a_failed_run_tells_its_nodes_and_the_way_on() -> None:
    node = known(WIDE, "a", "FAILED", attempt("FAILED", 10, "ValueError", "no"))
    answer = why(WIDE, None, node, run=run_row(WIDE, "FAILED"), counts={N.FAILED: 1, N.COMPLETED: 7_000})
    assert text(answer) == [
        "run r-1 of Order failed at 11:59:55: 7,001 nodes, 7,000 completed, 1 failed",
        "  a failed for good: it has no retry=",
        "    attempt 1 failed at 11:59:50: ValueError: no",
        "→ `run.retry()` or `stepwell retry r-1` runs only what did not complete",
    ]


def test_a_run_whose_time_was_up() -> None:
    run = run_row(WIDE, "FAILED", reason="deadline", deadline_at=ago(6))
    assert text(why(WIDE, None, run=run, counts={N.CANCELLED: 8}))[:2] == [
        "run r-1 of Order failed at 11:59:55: 8 nodes, all cancelled",
        "  the run had to end by 11:59:54",
    ]


@pytest.mark.parametrize(("reason", "words"), [("gremlins", "reason: gremlins"), (None, "reason: unknown")])
def test_a_run_that_failed_for_an_odd_reason(reason: str | None, words: str) -> None:
    assert text(why(WIDE, None, run=run_row(WIDE, "FAILED", reason=reason)))[1] == f"  {words}"


def test_an_unfinished_run_says_once_that_nobody_works_on_it() -> None:
    answer = why(WIDE, None, known(WIDE, "a", "READY"), run=run_row(WIDE, "PENDING"), workers=(), counts={N.READY: 8})
    assert text(answer) == [
        "run r-1 of Order is pending: 8 nodes, all ready",
        "  no worker is alive",
        "  a is ready to run since 11:50:00 (10 m 00 s)",
        "→ `stepwell work shop` works on it, or `stepwell resume r-1` on this run alone",
    ]


def test_an_unfinished_run_says_what_it_waits_for_and_when_it_must_end() -> None:
    nodes = [
        known(WIDE, "a", "RUNNING", attempt("RUNNING", 5)),
        known(WIDE, "b", "WAITING", attempt("FAILED", 3, "ValueError"), due_at=ago(-9)),
    ]
    told = text(why(WIDE, None, *nodes, run=run_row(WIDE, deadline_at=ago(-100)), counts={N.RUNNING: 1, N.WAITING: 1}))
    assert (
        told[0] == "run r-1 of Order is running: 2 nodes, 1 running, 1 waiting; it must end by 12:01:40 (in 1 m 40 s)"
    )
    assert told[1] == "  b waits until 12:00:09 (in 9.0 s) for attempt 2"
    assert told[3] == "  a is running since 11:59:55 (5.0 s), process 4711 on build-3"


def test_a_run_that_is_being_loaded_or_that_somebody_left() -> None:
    run = run_row(WIDE, "PENDING", gate=GateState.HELD, purpose="load")
    assert text(why(WIDE, None, run=run))[1:] == ["  the run is held for a moment: its nodes are still being stored"]
    assert text(why(WIDE, None, run=run, workers=()))[2:] == [
        "  no worker is alive",
        "→ `stepwell work shop` works on it, or `stepwell resume r-1` on this run alone",
    ]


@pytest.mark.parametrize(
    ("reason", "words", "ways_on"),
    [
        ("paused", "on request", ["`run.resume()` or `stepwell resume r-1` goes on"]),
        (None, "on request", ["`run.resume()` or `stepwell resume r-1` goes on"]),
        (
            "node_failed",
            "a node failed",
            [
                "`run.retry()` or `stepwell retry r-1` runs again what failed",
                "`run.resume()` or `stepwell resume r-1` goes on without it",
            ],
        ),
        (
            "charge may have been renamed to pay",
            "charge may have been renamed to pay",
            [
                'if a node was renamed, declare it with `@step(was="old_name")`; if not:',
                "`run.resume(accept=True)` or `stepwell resume r-1 --accept` goes on with the new nodes",
                "`run.freeze()` or `stepwell freeze r-1` keeps the graph it has",
            ],
        ),
    ],
)
def test_a_paused_run_says_why_and_how_to_go_on(reason: str | None, words: str, ways_on: list[str]) -> None:
    broken = known(WIDE, "a", "FAILED", attempt("FAILED", 10, "ValueError"))
    gates = (entry(3, "gate", "pause"), entry(4, "run", "PAUSED"))
    told = text(why(WIDE, None, broken, run=run_row(WIDE, "PAUSED", reason=reason), gates=gates, workers=()))
    assert told[1] == f"  the run is paused since 11:54:00 (6 m 00 s): {words}"
    assert told[2] == "  a failed for good: it has no retry="
    assert told[-len(ways_on) :] == [f"→ {way}" for way in ways_on]


def test_a_cancelled_run_says_when_and_one_that_is_being_cancelled_what_still_runs() -> None:
    gates = (entry(3, "gate", "cancel"),)
    assert text(why(WIDE, None, run=run_row(WIDE, "CANCELLED"), gates=gates))[1] == (
        "  the run was cancelled at 11:53:00"
    )
    node = known(WIDE, "a", "RUNNING", attempt("RUNNING", 5))
    told = text(why(WIDE, None, node, run=run_row(WIDE, "CANCELLING", stopping=True), gates=gates))
    assert told[2] == "  a is running since 11:59:55 (5.0 s), process 4711 on build-3; it was told to stop"


def test_a_completed_run_tells_what_was_asked_of_it() -> None:
    gates = tuple(entry(seq, "gate", purpose) for seq, purpose in enumerate(("failed", "retry", "heal"), 1))
    told = text(why(WIDE, None, run=run_row(WIDE, "COMPLETED"), gates=gates, counts={N.COMPLETED: 8}))
    assert told == [
        "run r-1 of Order completed at 11:59:55: 8 nodes, all completed",
        "  the code of the workflow changed and the run switched to it at 11:53:00",
        "  the run was retried (run.retry()) at 11:52:00",
    ]


@pytest.mark.parametrize("status", list(RunStatus))
def test_every_status_has_words_and_json(status: RunStatus) -> None:
    answer = why(WIDE, None, run=run_row(WIDE, status), counts={N.PENDING: 8})
    assert str(answer).startswith("run r-1 of Order ")
    assert json.loads(json.dumps(answer.to_dict()))["status"] == status


def test_of_many_requests_the_latest_three_are_told() -> None:
    gates = tuple(entry(seq, "gate", "retry") for seq in range(1, 6))
    answer = why(WIDE, None, run=run_row(WIDE, "COMPLETED"), gates=gates, counts={N.COMPLETED: 8})
    assert [cause.at for cause in answer.causes] == [each.at for each in gates[:1:-1]]
