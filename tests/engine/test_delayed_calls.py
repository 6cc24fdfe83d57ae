"""Calls that a thread makes later, each once however often it was asked for; the thread ends when it is told to."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator

import pytest

from stepwell import StoreError
from stepwell.engine.delayed_calls import DelayedCalls
from tests.engine.waiting import eventually

Made = queue.SimpleQueue[str]


@pytest.fixture
def calls() -> Iterator[DelayedCalls]:
    calls = DelayedCalls("stepwell-test")
    yield calls
    calls.end(30)
    assert calls._thread is None or not calls._thread.is_alive()


@pytest.fixture
def made() -> Made:
    return queue.SimpleQueue()


def test_a_call_may_end_its_thread(calls: DelayedCalls) -> None:
    ended = threading.Event()

    def end() -> None:
        calls.end(30)
        ended.set()

    calls.add(end).wake()
    assert ended.wait(30), "it waited for itself"


def test_it_is_made_each_time_it_is_woken_again(calls: DelayedCalls, made: Made) -> None:
    call = calls.add(lambda: made.put(""))
    for _ in range(3):
        call.wake()
        made.get(timeout=30)
    calls.end(30)
    assert made.empty()


def test_woken_often_it_is_made_once(calls: DelayedCalls, made: Made) -> None:
    call = calls.add(lambda: made.put(""), 0.05)
    for _ in range(50):
        call.wake()
    made.get(timeout=30)
    calls.end(30)
    assert made.empty()


def test_each_is_made_after_its_own_delay(calls: DelayedCalls, made: Made) -> None:
    late, soon, now = (
        calls.add(lambda name=name: made.put(name), at) for name, at in (("late", 0.2), ("soon", 0.1), ("now", 0))
    )
    for call in (late, soon, now):
        call.wake()
    assert [made.get(timeout=30) for _ in range(3)] == ["now", "soon", "late"]


def test_a_call_that_takes_long_knows_that_others_wait(calls: DelayedCalls, made: Made) -> None:
    others, asked = calls.add(lambda: made.put("other")), threading.Event()

    def long() -> None:
        made.put(str(calls.others_wait()))
        asked.wait(30)
        made.put(str(calls.others_wait()))

    calls.add(long).wake()
    first = made.get(timeout=30)
    others.wake()
    asked.set()
    assert [first, made.get(timeout=30), made.get(timeout=30)] == ["False", "True", "other"]


@pytest.mark.parametrize(("woken", "last", "times"), [(True, True, 1), (True, False, 0), (False, True, 0)])
def test_what_was_asked_for_is_done_at_the_end_if_that_is_wanted(
    calls: DelayedCalls, made: Made, woken: bool, last: bool, times: int
) -> None:
    call = calls.add(lambda: made.put(""), 600)
    if woken:
        call.wake()
    calls.end(30, last=call if last else None)
    assert made.qsize() == times


def test_while_its_thread_stays_awake_it_is_made_without_a_request(calls: DelayedCalls, made: Made) -> None:
    call = calls.add(lambda: made.put(""), 0.01, rounds=3)
    for pause in (0, 0, 0.005, 0.02, 0.2, 0, 0.2):  # while it is awake, and when it sleeps again
        time.sleep(pause)
        call.wake()
        made.get(timeout=30)
    time.sleep(0.2)
    assert calls._requests.empty()
    calls.end(30)
    assert made.empty(), "it was made although nobody had asked"


def test_a_request_while_its_thread_falls_asleep_is_not_lost(calls: DelayedCalls, made: Made) -> None:
    call = calls.add(lambda: made.put(""), 0.0005, rounds=1)
    for pause in range(200):
        time.sleep(pause % 10 / 10_000)
        call.wake()
        made.get(timeout=30)


@pytest.mark.parametrize("woken", [False, True])
def test_it_is_closed_as_often_as_somebody_wants(calls: DelayedCalls, made: Made, woken: bool) -> None:
    call = calls.add(lambda: made.put(""))
    if woken:
        call.wake()
        made.get(timeout=30)  # now it sleeps until it is woken
    for _ in range(2):
        calls.close()
    call.wake()
    calls.end(30)
    assert made.empty(), "it was made although it was closed"


def test_a_call_that_fails_is_reported_and_the_next_one_is_made(
    calls: DelayedCalls, made: Made, caplog: pytest.LogCaptureFixture
) -> None:
    errors = iter([StoreError("the store is away"), ZeroDivisionError("a defect")])

    def fail() -> None:
        made.put("")
        for error in errors:
            raise error

    call = calls.add(fail)
    for _ in range(3):
        call.wake()
        made.get(timeout=30)
    calls.end(30)
    assert [(record.levelname, record.exc_info is not None) for record in caplog.records] == [
        ("WARNING", False),
        ("ERROR", True),
    ]


def test_once_its_rounds_are_over_its_thread_sleeps(calls: DelayedCalls, made: Made) -> None:
    """Else it would wake many times a second for nothing, as long as the engine is open."""
    call = calls.add(lambda: made.put(""), 0.001, rounds=2)
    call.wake()
    made.get(timeout=30)
    eventually(lambda: not calls._due, "it stays awake")
