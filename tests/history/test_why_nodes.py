"""Why a node stands as it does, computed from rows: each kind of cause, and its words."""

from __future__ import annotations

import json
from datetime import UTC

import pytest

from stepwell.base.clock import SECOND
from stepwell.base.ids import NodeId, WorkerId
from stepwell.core.graph import Graph, NodeSpec, Retry
from stepwell.core.kernel.healing import arrange
from stepwell.core.model import GateState, NodeStatus, WorkerRow
from stepwell.history.why import CauseKind, Worker, nodes, rows_to_read
from stepwell.history.why.words import StoreTimes
from tests.conformance.ops import lane
from tests.core.kernel.facts import ALIVE, NOW, ago, attempt, entry, graph, known, run_row, text, why

CHAIN = graph(validate="", charge="validate", ship="charge")


def with_options(**options: object) -> Graph:
    spec = NodeSpec(NodeId("charge"), "charge", (NodeId("validate"),), **options)  # type: ignore[arg-type]
    return graph(validate="", charge=spec, ship="charge")


def test_a_node_waits_for_a_parent_that_waits_for_its_next_attempt() -> None:
    of = with_options(retry=Retry(5))
    charge = known(
        of,
        "charge",
        "WAITING",
        attempt("FAILED", 100, "ConnectionError"),
        attempt("TIMED_OUT", 10, "TimeoutError", "the body did not end within 30 s"),
        due_at=ago(-14),
    )
    answer = why(of, "ship", known(of, "ship", "PENDING"), charge)
    assert text(answer) == [
        "ship waits for charge",
        "  charge waits until 12:00:14 (in 14 s) for attempt 3 of 5",
        "    attempt 2 took too long at 11:59:50: the body did not end within 30 s",
    ]
    (cause,) = answer.causes
    (behind,) = cause.because
    assert (cause.kind, behind.kind, behind.because[0].kind) == (
        "waits_for_parents",
        "waits_until",
        "attempt_timed_out",
    )
    assert (behind.node, behind.attempt, behind.at) == ("charge", 3, ago(-14))


def test_tries_are_told_apart_from_attempts_when_somebody_asked_again() -> None:
    of = with_options(retry=Retry(5))
    charge = known(
        of, "charge", "WAITING", *(attempt("FAILED", 10, "ValueError") for _ in range(6)), due_at=ago(-90), failures=1
    )
    assert text(why(of, "charge", charge))[0] == "charge waits until 12:01:30 (in 1 m 30 s) for attempt 7 (try 2 of 5)"


def test_asking_to_be_tried_later_is_no_try_of_those_that_are_counted() -> None:
    of = with_options(retry=Retry(3))
    tries = [attempt("FAILED", 10, "RetryLater") for _ in range(4)]
    charge = known(of, "charge", "WAITING", *tries, due_at=ago(-90), failures=0, postponed=4)
    assert text(why(of, "charge", charge))[0] == "charge waits until 12:01:30 (in 1 m 30 s) for attempt 5 (try 1 of 3)"


def test_a_retry_that_is_due_and_nobody_there_to_take_it() -> None:
    asked_for_later = attempt("FAILED", 100, "RetryLater")._replace(
        error=b'{"type":"RetryLater","message":"no answer yet","later":40}'
    )
    charge = known(CHAIN, "charge", "WAITING", asked_for_later, due_at=ago(60))
    assert text(why(CHAIN, "charge", charge, workers=())) == [
        "charge waits, due since 11:59:00, for attempt 2",
        "  attempt 1 was postponed at 11:58:20 by 40.0 s: no answer yet",
        "  no worker is alive",
        "→ `stepwell work shop` works on it, or `stepwell resume r-1` on this run alone",
    ]


def test_a_wait_for_something_unheard_of_is_shown_as_it_is() -> None:
    charge = known(CHAIN, "charge", "WAITING", due_at=ago(-5), reason="signal approval")
    assert text(why(CHAIN, "charge", charge)) == ["charge waits until 12:00:05 (in 5.0 s) for signal approval"]


def test_all_parents_that_are_open_are_counted_and_some_named() -> None:
    of = graph(a="", b="", c="", d="", e="", join="a b c d e")
    rows = [known(of, node, "PENDING") for node in "abcd"]
    answer = why(of, "join", known(of, "join", "PENDING"), known(of, "e", "COMPLETED"), *rows)
    assert text(answer) == ["join waits for 4 of its 5 parents; among them a, b, c"]
    two = [known(of, node, "COMPLETED") for node in "cde"] + [known(of, node, "PENDING") for node in "ab"]
    assert text(why(of, "join", known(of, "join", "PENDING"), *two)) == ["join waits for 2 of its 5 parents: a, b"]


def test_thousands_of_parents_are_counted_by_the_node_and_not_read() -> None:
    names = [f"part_{number}" for number in range(10_000)]
    of = graph(**dict.fromkeys(names, ""), total=" ".join(names))
    row = known(of, "total", "PENDING", waiting=9_998)
    assert rows_to_read(run_row(of), of, row.row).nodes == ()
    first = known(of, "part_7", "RUNNING", attempt("RUNNING", 4))
    assert text(why(of, "total", row, first)) == [
        "total waits for 9,998 of its 10,000 parents; among them part_7",
        "  part_7 is running since 11:59:56 (4.0 s), process 4711 on build-3",
    ]


def test_ways_that_begin_alike_are_told_as_one_and_a_long_one_is_shortened() -> None:
    of = graph(a="", b="", **{"c1": "a"}, **{f"c{n}": f"c{n - 1}" for n in range(2, 9)}, end="c8 b")
    answer = why(
        of,
        "end",
        known(of, "end", "PENDING"),
        known(of, "c8", "PENDING"),
        known(of, "b", "RUNNING", attempt("RUNNING", 1)),
        known(of, "a", "RUNNING", attempt("RUNNING", 2)),
    )
    assert text(answer) == [
        "end waits for all of its 2 parents: c8, b",
        "  c8 waits for c7",
        "    c7 waits for a, 7 steps further up",
        "      a is running since 11:59:58 (2.0 s), process 4711 on build-3",
        "  b is running since 11:59:59 (1.0 s), process 4711 on build-3",
    ]


def test_all_parents_done_while_nothing_may_move() -> None:
    run = run_row(CHAIN, "PAUSED", reason="paused")
    ship = known(CHAIN, "ship", "PENDING")
    told = text(why(CHAIN, "ship", ship, known(CHAIN, "charge", "COMPLETED"), run=run))
    assert told[:2] == ["ship waits, though all its parents are done", "  the run is paused: on request"]
    assert text(why(CHAIN, "validate", known(CHAIN, "validate", "PENDING"), run=run))[0] == "validate waits to begin"


def test_a_failed_parent_of_a_paused_run_may_still_be_retried() -> None:
    charge = known(CHAIN, "charge", "FAILED", attempt("FAILED", 10, "ValueError", "no such card"))
    run = run_row(CHAIN, "PAUSED", reason="node_failed")
    assert text(why(CHAIN, "ship", known(CHAIN, "ship", "PENDING"), charge, run=run)) == [
        "ship waits for charge",
        "  the run is paused: a node failed",
        "  charge failed for good: it has no retry=",
        "    attempt 1 failed at 11:59:50: ValueError: no such card",
        "→ `run.retry()` or `stepwell retry r-1` runs again what failed",
        "→ `run.resume()` or `stepwell resume r-1` goes on without it",
    ]


def test_below_a_failure_in_a_run_that_goes_on() -> None:
    charge = known(CHAIN, "charge", "FAILED", attempt("FAILED", 10, "ValueError", "no such card"))
    answer = why(CHAIN, "ship", known(CHAIN, "ship", "PENDING"), charge, run=run_row(CHAIN, on_failure="finish"))
    assert text(answer) == [
        "ship can no longer run: it needs charge",
        "  charge failed for good: it has no retry=",
        "    attempt 1 failed at 11:59:50: ValueError: no such card",
    ]


def test_ready_and_no_worker_alive_is_the_commonest_case_and_says_what_to_do() -> None:
    assert text(why(CHAIN, "validate", known(CHAIN, "validate", "READY"), workers=())) == [
        "validate is ready to run since 11:50:00 (10 m 00 s)",
        "  no worker is alive",
        "→ `stepwell work shop` works on it, or `stepwell resume r-1` on this run alone",
    ]


def test_the_module_to_work_with_is_also_found_in_a_job() -> None:
    of = graph(part=NodeSpec(NodeId("part"), "part", job="shop.parts:make"))
    answer = why(of, "part", known(of, "part", "READY"), run=run_row(of, target=None), workers=())
    advice = answer.advice("stepwell {}".format)
    assert advice == ["`stepwell work shop.parts` works on it, or `stepwell resume r-1` on this run alone"]


@pytest.mark.parametrize(
    ("serves", "words"),
    [
        (None, "1 worker is alive and takes it when there is room"),
        ({("Order", "d" * 64)}, "1 worker is alive and takes it when there is room"),
        (
            {("Order", "e" * 64)},
            "the 1 worker that is alive serves other versions of Order, not that of this run (dddddddddddd)",
        ),
        ({("Report", "e" * 64)}, "the 1 worker that is alive serves no Order, only Report"),
        (set(), "the 1 worker that is alive serves no Order"),
    ],
)
def test_ready_and_workers_alive(serves: set[tuple[str, str]] | None, words: str) -> None:
    worker = ALIVE._replace(serves=None if serves is None else frozenset(serves))
    answer = why(CHAIN, "validate", known(CHAIN, "validate", "READY"), workers=(worker,))
    assert text(answer)[1] == f"  {words}"
    assert bool(answer.advice()) == ("serves" in words)


def test_several_workers_alive_are_counted() -> None:
    workers = (ALIVE._replace(serves=frozenset()), ALIVE._replace(serves=frozenset()))
    told = text(why(CHAIN, "validate", known(CHAIN, "validate", "READY"), workers=workers))
    assert told[1] == "  the 2 workers that are alive serve no Order"


def test_a_queue_that_nobody_serves_is_told_with_the_command_that_does() -> None:
    of = with_options(queue="heavy")
    workers = (ALIVE._replace(queues=frozenset({"b", "a"})), ALIVE._replace(queues=frozenset({"a"})))
    told = text(why(of, "charge", known(of, "charge", "READY"), workers=workers))
    assert told[1] == "  no worker serves its queue 'heavy': the 2 workers that are alive take only 'a', 'b'"
    assert told[-1] == "→ `Engine(queues=['heavy'])` or `stepwell work shop --queues heavy` takes nodes from this queue"
    one = text(why(of, "charge", known(of, "charge", "READY"), workers=workers[1:]))
    assert one[1] == "  no worker serves its queue 'heavy': the 1 worker that is alive takes only 'a'"


def test_one_worker_that_serves_it_is_enough() -> None:
    other = ALIVE._replace(serves=frozenset({("Report", "e")}))
    answer = why(CHAIN, "validate", known(CHAIN, "validate", "READY"), workers=(other, ALIVE))
    assert text(answer)[1] == "  2 workers are alive and take it when there is room"


@pytest.mark.parametrize("info", [b"", b"\xff", b"[]", b"null", b'{"serves":3,"pid":"x","host":7}'])
def test_what_a_worker_says_of_itself_may_be_anything(info: bytes) -> None:
    assert Worker.of(WorkerRow(WorkerId("w"), 0, 0, info)) == Worker(WorkerId("w"))


def test_what_a_worker_says_it_serves() -> None:
    info = b'{"host":"h","pid":1,"serves":[["Order","d"],["odd"],7]}'
    worker = Worker.of(WorkerRow(WorkerId("w"), 0, 0, info))
    assert worker == Worker(WorkerId("w"), "h", 1, frozenset({("Order", "d")}))


def test_what_a_worker_says_it_lacks() -> None:
    info = b'{"lacks":[["Order","d","no code"],["odd"],"odd",7]}'
    assert Worker.of(WorkerRow(WorkerId("w"), 0, 0, info)).lacks == {("Order", "d"): "no code"}


def test_a_node_that_killed_workers_waits_to_run_alone() -> None:
    node = known(CHAIN, "validate", "READY", attempt("LOST", 60), attempt("LOST", 30), lane=lane("default/thread?"))
    assert text(why(CHAIN, "validate", node)) == [
        "validate is ready to run since 11:59:30 (30 s)",
        "  2 workers died while running it, so it runs alone, when its worker has nothing else to do",
        "  attempt 2 was lost at 11:59:30: its worker died or did not answer in time",
        "    attempt 1 was lost at 11:59:00: its worker died or did not answer in time",
        "      the run was started at 11:50:00",
    ]


def test_ready_after_the_delay_of_a_retry_is_ready_since_it_was_woken() -> None:
    of = with_options(retry=Retry(2))
    node = known(of, "charge", "READY", attempt("FAILED", 300, "ValueError"))
    woken = entry(9, "woken", "READY", node.row.index, 1)
    assert text(why(of, "charge", node, history=(woken,)))[0] == "charge is ready to run since 11:59:00 (1 m 00 s)"


def test_running_says_where_since_when_and_how_long_it_may() -> None:
    of = with_options(timeout=30.0)
    running = known(of, "charge", "RUNNING", attempt("FAILED", 60, "ValueError"), attempt("RUNNING", 12))
    assert text(why(of, "charge", running, ended={"validate": ago(70)})) == [
        "charge is running since 11:59:48 (12 s), attempt 2, process 4711 on build-3; it has until 12:00:18 (in 18 s)",
        "  attempt 1 failed at 11:59:00: ValueError: broken",
        "    validate completed at 11:58:50",
    ]


@pytest.mark.parametrize(("on_lost", "words"), [("rerun", "runs it again"), ("interrupt", "interrupts it")])
def test_running_on_a_worker_that_is_gone(on_lost: str, words: str) -> None:
    of = with_options(on_lost=on_lost)
    node = known(of, "charge", "RUNNING", attempt("RUNNING", 12))
    assert text(why(of, "charge", node, workers=())) == [
        "charge is recorded as running since 11:59:48 (12 s)",
        f"  the worker of attempt 1 is gone; the next sweep {words}",
        "  no worker is alive",
        "→ `stepwell work shop` works on it, or `stepwell resume r-1` on this run alone",
    ]


def test_running_in_a_run_that_stops() -> None:
    node = known(CHAIN, "charge", "RUNNING", attempt("RUNNING", 12))
    answer = why(CHAIN, "charge", node, run=run_row(CHAIN, "CANCELLING", stopping=True))
    assert text(answer) == ["charge is running since 11:59:48 (12 s), process 4711 on build-3; it was told to stop"]


def test_completed_tells_what_made_it_run_back_to_the_first_attempt() -> None:
    of = graph(a="", b="", c="a b")
    done = known(
        of,
        "c",
        "COMPLETED",
        attempt("RELEASED", 40),
        attempt("LOST", 30),
        attempt("FAILED", 20, "ConnectionError", "the bank\n is closed"),
        attempt("COMPLETED", 10),
    )
    assert text(why(of, "c", done, ended={"a": ago(70), "b": ago(60)})) == [
        "c completed at 11:59:50, in attempt 4 (2.0 s)",
        "  attempt 3 failed at 11:59:40: ConnectionError: the bank is closed",
        "    attempt 2 was lost at 11:59:30: its worker died or did not answer in time",
        "      attempt 1 was given back at 11:59:20 before it began",
        "        b, the last of its 2 parents, completed at 11:59:00",
    ]


def test_a_long_history_is_told_back_to_a_few_attempts() -> None:
    node = known(CHAIN, "validate", "COMPLETED", *(attempt("LOST") for _ in range(50)), attempt("COMPLETED", 1))
    assert [line.strip().split(" was")[0] for line in text(why(CHAIN, "validate", node))[1:]] == [
        "attempt 50",
        "attempt 49",
        "attempt 48",
    ]


@pytest.mark.parametrize(
    ("purpose", "before", "words"),
    [
        ("retry", attempt("FAILED", 400, "ValueError"), "the run was retried (run.retry())"),
        ("reattempt", attempt("SUPERSEDED", 400), "the node was run again on request (run.reattempt())"),
        ("heal", attempt("CANCELLED", 400), "the code of the workflow changed and the run switched to it"),
        ("mend", attempt("LOST", 400), "the run was changed: mend"),
    ],
)
def test_that_somebody_asked_for_it_again_is_told_from_the_gates(purpose: str, before: object, words: str) -> None:
    node = known(CHAIN, "validate", "COMPLETED", before, attempt("COMPLETED", 1))  # type: ignore[arg-type]
    gates = (
        entry(2, "gate", "failed"),
        entry(3, "run", "FAILED"),
        entry(4, "gate", purpose),
        entry(9, "gate", "pause"),
    )
    told = text(why(CHAIN, "validate", node, gates=gates, history=(entry(5, "rewrote", "PENDING", 0, 1),)))
    assert words in told[1]
    assert told[1].endswith(" at 11:55:00")
    assert told[2].startswith("    attempt 1 ")


@pytest.mark.parametrize(
    ("retry", "attempts", "changes", "words"),
    [
        (None, [attempt("FAILED", 5, "ValueError")], {}, "it has no retry="),
        (
            Retry(2),
            [attempt("FAILED", 8, "ValueError"), attempt("FAILED", 5, "ValueError")],
            {},
            "all 2 attempts are used up",
        ),
        (Retry(1), [attempt("FAILED", 8, "ValueError")], {}, "its only attempt is used up"),
        (
            Retry(5, retry_on=(ConnectionError, "shop.errors.Busy")),
            [attempt("FAILED", 5, "ValueError")],
            {},
            "it is retried only after ConnectionError or shop.errors.Busy",
        ),
        (None, [attempt("LOST", 9)] * 5, {"reason": "worker_lost"}, "5 workers died while running it"),
        (None, [attempt("FAILED", 5, "ValueError")], {"reason": "gremlins"}, "gremlins"),
        (None, [attempt("FAILED", 5, "RetryLater")] * 3, {}, "it has no retry="),
        (
            Retry(2),
            [attempt("FAILED", 5, "RetryLater")._replace(error=b'{"type":"RetryLater","postponed":1000}')],
            {},
            "it was postponed 1,000 times, which is its limit",
        ),
    ],
)
def test_why_a_failure_is_for_good(
    retry: object, attempts: list[object], changes: dict[str, object], words: str
) -> None:
    of = with_options(retry=retry)
    node = known(of, "charge", "FAILED", *attempts, **changes)  # type: ignore[arg-type]
    told = text(why(of, "charge", node, run=run_row(of, "FAILED")))
    assert told[0] == f"charge failed for good: {words}"
    assert told[1].startswith(f"  attempt {len(attempts)} ")
    assert told[-1] == "→ `run.retry()` or `stepwell retry r-1` runs only what did not complete"


def test_upstream_failed_names_the_node_that_broke() -> None:
    of, run = CHAIN, run_row(CHAIN, "FAILED")
    broken = known(of, "validate", "FAILED", attempt("FAILED", 10, "ValueError", "no order"))
    ship = known(of, "ship", "UPSTREAM_FAILED", reason="upstream: validate")
    assert rows_to_read(run, of, ship.row).nodes == ("validate",)
    assert text(why(of, "ship", ship, broken, run=run))[:3] == [
        "ship did not run: it depends on validate through other nodes",
        "  validate failed for good: it has no retry=",
        "    attempt 1 failed at 11:59:50: ValueError: no order",
    ]
    charge = known(of, "charge", "UPSTREAM_FAILED", reason="upstream: validate")
    assert text(why(of, "charge", charge, broken, run=run))[0] == "charge did not run: it depends on validate"


@pytest.mark.parametrize("reason", [None, "upstream: gone", "what?"])
def test_upstream_failed_for_an_odd_reason(reason: str | None) -> None:
    ship = known(CHAIN, "ship", "UPSTREAM_FAILED", reason=reason)
    run = run_row(CHAIN, "FAILED")
    assert rows_to_read(run, CHAIN, ship.row).nodes == ()
    assert text(why(CHAIN, "ship", ship, run=run))[0].startswith("ship did not run: ")


def test_interrupted_says_that_it_may_be_half_done() -> None:
    of = with_options(on_lost="interrupt")
    node = known(of, "charge", "INTERRUPTED", attempt("LOST", 10), reason="worker_lost")
    assert text(why(of, "charge", node, run=run_row(of, "FAILED"))) == [
        "charge was interrupted: it may have done part of its work, and is not run again by itself",
        "  attempt 1 was lost at 11:59:50: its worker died or did not answer in time",
        "→ see whether charge did its work: a retry runs it once more",
        "→ `run.retry()` or `stepwell retry r-1` runs only what did not complete",
    ]


@pytest.mark.parametrize(
    ("reason", "first", "second"),
    [
        ("run_failed", "before it began, because the run failed", "validate failed for good: it has no retry="),
        ("run_cancelled", "before it began, because the run was cancelled", "the run was cancelled at 11:52:00"),
        ("deadline", "before it began, because the time of the run was up", "the run had to end by 11:59:40"),
        (
            "removed",
            "before it began, because the workflow no longer has it",
            "the code of the workflow changed and the run switched to it at 11:53:00",
        ),
        ("floods", "before it began, reason: floods", None),
    ],
)
def test_cancelled_says_by_what(reason: str, first: str, second: str | None) -> None:
    broken = known(CHAIN, "validate", "FAILED", attempt("FAILED", 10, "ValueError"))
    gates = (entry(2, "gate", "cancel"), entry(3, "gate", "heal"))
    run = run_row(CHAIN, "FAILED", deadline_at=ago(20))
    node = known(CHAIN, "ship", "CANCELLED", reason=reason)
    of = arrange(CHAIN, graph(validate="", charge="validate")) if reason == "removed" else CHAIN
    assert rows_to_read(run, of, node.row).broken == (reason == "run_failed")
    told = text(why(of, "ship", node, broken, run=run, gates=gates))
    assert told[0] == f"ship was cancelled {first}"
    assert second is None or told[1] == f"  {second}"


def test_one_that_is_gone_is_so_whatever_it_was_cancelled_for_and_one_that_is_back_is_not() -> None:
    gone = arrange(CHAIN, graph(validate="", charge="validate"))
    node = known(CHAIN, "ship", "CANCELLED", reason="run_failed")
    assert text(why(gone, "ship", node, run=run_row(CHAIN, "FAILED"))) == [
        "ship was cancelled before it began, because the workflow no longer has it"
    ]
    back = known(CHAIN, "ship", "CANCELLED", reason="removed")
    told = text(why(arrange(gone, CHAIN), "ship", back, run=run_row(CHAIN, "FAILED")))
    assert told[0] == "ship was cancelled before it began, because the run failed"
    assert "retry" in told[-1]


def test_only_the_loss_that_it_was_cancelled_for_is_told_with_it() -> None:
    for reason, behind in [("worker_lost", 1), ("floods", 0)]:
        node = known(CHAIN, "ship", "CANCELLED", attempt("LOST", 10), reason=reason)
        (cause,) = why(CHAIN, "ship", node, run=run_row(CHAIN, "FAILED")).causes
        assert len(cause.because) == behind


def test_one_that_stopped_once_and_was_cancelled_later_was_not_stopped_by_that() -> None:
    node = known(CHAIN, "ship", "CANCELLED", attempt("CANCELLED", 10), reason="run_failed")
    (cause,) = why(CHAIN, "ship", node, run=run_row(CHAIN, "FAILED")).causes
    assert (cause.detail["stopped"], cause.at) == (False, None)
    node = known(CHAIN, "ship", "CANCELLED", attempt("CANCELLED", 10))
    (cause,) = why(CHAIN, "ship", node, run=run_row(CHAIN, "FAILED")).causes
    assert (cause.detail["stopped"], cause.at) == (True, ago(10))


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (run_row(CHAIN, "CANCELLED"), "because the run was cancelled"),
        (run_row(CHAIN, "FAILED"), "because the run failed"),
        (run_row(CHAIN, "FAILED", reason="deadline", deadline_at=ago(9)), "because the time of the run was up"),
    ],
)
def test_a_body_that_was_stopped_has_the_reason_of_its_run(run: object, words: str) -> None:
    node = known(CHAIN, "ship", "CANCELLED", attempt("CANCELLED", 10))
    answer = why(CHAIN, "ship", node, run=run)  # type: ignore[arg-type]
    assert text(answer)[0] == f"ship was stopped while it ran at 11:59:50, {words}"


def test_lost_while_the_run_was_stopping() -> None:
    node = known(CHAIN, "ship", "CANCELLED", attempt("LOST", 10), reason="worker_lost")
    told = text(why(CHAIN, "ship", node, run=run_row(CHAIN, "CANCELLED")))
    assert told[0] == "ship was cancelled because the run was stopping when its worker was lost"
    assert told[1] == "  attempt 1 was lost at 11:59:50: its worker died or did not answer in time"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("healed_late", "it joined the run when nodes after it had already started"),
        ("condition", "its condition did not hold"),
        ("parents_skipped", "all of its parents were skipped"),
        ("sunday", "sunday"),
    ],
)
def test_skipped_says_why(reason: str, words: str) -> None:
    node = known(CHAIN, "charge", "SKIPPED", reason=reason)
    told = text(why(CHAIN, "charge", node, gates=(entry(3, "gate", "heal"),)))
    assert told[0] == f"charge was skipped: {words}"
    assert len(told) == (2 if reason == "healed_late" else 1)


@pytest.mark.parametrize("status", ["PENDING", "READY", "WAITING"])
def test_while_the_gate_is_held_or_the_run_paused_that_is_the_reason(status: str) -> None:
    node = known(CHAIN, "charge", status, due_at=ago(5) if status == "WAITING" else None)
    held = run_row(CHAIN, gate=GateState.HELD, purpose="load")
    stands = "the run is held for a moment: its nodes are still being stored"
    assert text(why(CHAIN, "charge", node, run=held))[1] == f"  {stands}"
    unheard = why(CHAIN, "charge", node, run=held._replace(purpose="mend"), workers=())
    assert text(unheard)[1:3] == ["  the run is held for a moment: mend", "  no worker is alive"]
    paused = why(CHAIN, "charge", node, run=run_row(CHAIN, "PAUSED", reason="paused"), workers=())
    assert text(paused)[1:] == [
        "  the run is paused: on request",
        "→ `run.resume()` or `stepwell resume r-1` goes on",
    ]


def test_a_node_that_is_no_longer_in_the_graph_is_explained_too() -> None:
    gone = known(CHAIN, "ship", "CANCELLED", reason="removed", id="packed")
    assert text(why(CHAIN, "packed", gone))[0].startswith("packed was cancelled before it began")
    ran = known(CHAIN, "ship", "COMPLETED", attempt("COMPLETED", 3), id="packed")
    assert rows_to_read(run_row(CHAIN), CHAIN, ran.row).ended == ()
    assert text(why(CHAIN, "packed", ran))[0] == "packed completed at 11:59:57 (2.0 s)"


def test_nodes_that_share_a_name_are_told_apart() -> None:
    of = graph(
        n_1=NodeSpec(NodeId("n_1"), "mail"), n_2=NodeSpec(NodeId("n_2"), "mail"), n_3=NodeSpec(NodeId("n_3"), "log")
    )
    assert text(why(of, "n_1", known(of, "n_1", "READY")))[0].startswith("mail (n_1) is ready")
    assert text(why(of, "n_3", known(of, "n_3", "READY")))[0].startswith("log is ready")


@pytest.mark.parametrize("status", list(NodeStatus))
def test_every_status_has_words_and_json_also_when_little_was_read(status: NodeStatus) -> None:
    answer = why(CHAIN, "charge", known(CHAIN, "charge", status), blockers=())
    assert str(answer).startswith("charge ")
    found = json.loads(json.dumps(answer.to_dict()))
    assert (found["run"], found["node"], found["status"]) == ("r-1", "charge", status)
    assert found["causes"][0]["kind"] in set(CauseKind)
    assert found["text"] == str(answer)


def test_what_can_be_done_about_a_missing_job_is_told_below_it_line_by_line() -> None:
    message = "the job is missing\n  - restore it\n  - give up"
    told = text(why(CHAIN, "charge", known(CHAIN, "charge", "FAILED", attempt("FAILED", 10, "MissingJob", message))))
    at = next(place for place, line in enumerate(told) if line.endswith("MissingJob: the job is missing"))
    depth = len(told[at]) - len(told[at].lstrip())
    assert told[at + 1 : at + 3] == [" " * (depth + 2) + "- restore it", " " * (depth + 2) + "- give up"]
    other = text(why(CHAIN, "charge", known(CHAIN, "charge", "FAILED", attempt("FAILED", 10, "KeyError", message))))
    assert not [line for line in other if line.strip() == "- give up"]


def test_an_error_that_cannot_be_read_is_no_reason_to_say_nothing() -> None:
    for error in (b"\xff", b"[]", b"{}"):
        node = known(CHAIN, "charge", "FAILED", attempt("FAILED", 10)._replace(error=error))
        assert text(why(CHAIN, "charge", node))[1] == "  attempt 1 failed at 11:59:50: its error cannot be read"


def test_names_and_messages_cannot_play_tricks_on_a_terminal() -> None:
    of = graph(n_1=NodeSpec(NodeId("n_1"), "line\none"))
    node = known(of, "n_1", "FAILED", attempt("FAILED", 10, "ValueError", "red \x1b[31m\x07\r\n\u202eé → ok"))
    assert text(why(of, "n_1", node)) == [
        "line\\none failed for good: it has no retry=",
        "  attempt 1 failed at 11:59:50: ValueError: red \\x1b[31m\\x07 \\u202eé → ok",
    ]


def test_a_time_that_has_come_is_told_without_how_long_it_is_until_then() -> None:
    times = StoreTimes(NOW, UTC)
    assert [times.until(NOW + SECOND * seconds) for seconds in (14, 0, -5)] == [
        "12:00:14 (in 14 s)",
        "12:00:00",
        "11:59:55",
    ]


def test_of_thousands_of_parents_the_ends_are_not_read() -> None:
    for width in (1_000, 1_001):
        of = graph(
            **{f"p{number}": "" for number in range(width)}, join=" ".join(f"p{number}" for number in range(width))
        )
        ended = rows_to_read(run_row(of), of, known(of, "join", "READY").row).ended
        assert len(ended) == (width if width == 1_000 else 0)


def test_times_of_another_day_have_a_date() -> None:
    node = known(CHAIN, "charge", "COMPLETED", attempt("COMPLETED", 86_400))
    assert text(why(CHAIN, "charge", node))[0] == "charge completed at 2026-01-14 12:00:00 (2.0 s)"


def test_every_status_of_a_node_has_an_explanation() -> None:
    assert set(nodes._WHY) == set(NodeStatus)
