"""What is done now and then, in a thread of its own, ends when it is told to, also by itself."""

from __future__ import annotations

import queue
import threading
import time

import pytest

from stepwell import StoreError
from stepwell.engine.worker.debounce import Debounce
from tests.engine.waiting import eventually


def test_what_it_does_may_end_it() -> None:
    ended = threading.Event()

    def act() -> None:
        made.end(30)
        ended.set()

    made = Debounce(act, "stepwell-test", 0)
    made.wake()
    assert ended.wait(30), "it waited for itself"


def test_it_acts_each_time_it_is_woken_again() -> None:
    acted: queue.SimpleQueue[int] = queue.SimpleQueue()
    made = Debounce(lambda: acted.put(1), "stepwell-test", 0)
    for _ in range(3):
        made.wake()
        acted.get(timeout=30)
    made.end(30)
    assert acted.empty()


@pytest.mark.parametrize(("woken", "last", "times"), [(True, True, 1), (True, False, 0), (False, True, 0)])
def test_what_it_was_asked_for_is_done_at_the_end_if_that_is_wanted(woken: bool, last: bool, times: int) -> None:
    acted: list[int] = []
    made = Debounce(lambda: acted.append(1), "stepwell-test", 600)
    if woken:
        made.wake()
    made.end(30, last=last)
    assert len(acted) == times


def test_while_it_stays_awake_it_acts_without_being_called_and_then_sleeps() -> None:
    acted: queue.SimpleQueue[int] = queue.SimpleQueue()
    made = Debounce(lambda: acted.put(1), "stepwell-test", 0.01, rounds=3)
    for pause in (0, 0, 0.005, 0.02, 0.2, 0, 0.2):  # while it is awake, and when it sleeps again
        time.sleep(pause)
        made.wake()
        acted.get(timeout=30)
    time.sleep(0.2)
    assert made._calls.empty()
    made.end(30)
    assert acted.empty(), "it acted although nobody had asked"


@pytest.mark.parametrize("woken", [False, True])
def test_it_is_closed_as_often_as_somebody_wants_and_leaves_no_thread(woken: bool) -> None:
    acted: queue.SimpleQueue[int] = queue.SimpleQueue()
    made = Debounce(lambda: acted.put(1), "stepwell-test", 0)
    if woken:
        made.wake()
        acted.get(timeout=30)  # now it sleeps until it is woken
    for _ in range(2):
        made.close()
    made.wake()
    made.end(30)
    assert made._thread is None or not made._thread.is_alive()
    assert acted.empty(), "it acted although it was closed"


def test_an_action_that_fails_is_reported_and_the_next_one_is_done(caplog: pytest.LogCaptureFixture) -> None:
    acted: queue.SimpleQueue[int] = queue.SimpleQueue()
    errors = iter([StoreError("the store is away"), ZeroDivisionError("a defect")])

    def act() -> None:
        acted.put(1)
        for error in errors:
            raise error

    made = Debounce(act, "stepwell-test", 0)
    for _ in range(3):
        made.wake()
        acted.get(timeout=30)
    made.end(30)
    assert [(each.levelname, each.exc_info is not None) for each in caplog.records] == [
        ("WARNING", False),
        ("ERROR", True),
    ]


def test_once_it_has_been_asleep_it_waits_for_a_call() -> None:
    """Else its thread would wake many times a second for nothing, as long as the engine is open."""
    acted: queue.SimpleQueue[int] = queue.SimpleQueue()
    made = Debounce(lambda: acted.put(1), "stepwell-test", 0.001, rounds=2)
    made.wake()
    acted.get(timeout=30)
    eventually(lambda: not made._awake, "it stays awake")
    made.end(30)
