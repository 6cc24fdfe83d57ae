"""When the regular chores are due."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell.runner.worker.timetable import STOPS_EVERY, SWEEP_EVERY, WATCH_BUSY, WATCH_LATEST, WATCH_SOONEST, Chores


class Body:
    def __init__(self, *, over: bool = False) -> None:
        self.over = over


def limited(chores: Chores, at: int, *, over: bool = False) -> Any:
    body: Any = Body(over=over)
    chores.time_limit(body, at)
    return body


def test_everything_is_due_at_first() -> None:
    due = Chores().due(0, busy=True)
    assert (due.sweep, due.stops, due.watch, due.overdue) == (True, True, True, [])


def test_stops_are_read_only_while_something_is_held_and_not_too_often() -> None:
    chores = Chores()
    assert not chores.due(0, busy=False).stops
    assert chores.due(0, busy=True).stops
    assert not chores.due(STOPS_EVERY - 1, busy=True).stops
    assert chores.due(STOPS_EVERY, busy=True).stops


def test_sweeping_is_regular_and_sooner_when_something_becomes_due() -> None:
    chores = Chores()
    chores.swept(0, None)
    assert chores.sweep_at == SWEEP_EVERY
    chores.swept(0, 300_000)
    assert chores.sweep_at == 300_000
    chores.swept(0, -5)
    assert chores.sweep_at == 1_000
    chores.sweep_by(400)
    assert chores.sweep_at == 400


def test_what_becomes_known_while_a_sweep_is_under_way_is_not_forgotten() -> None:
    """The sweep may have been before it, and its answer comes after."""
    chores = Chores()
    assert chores.due(0, busy=False).sweep
    chores.sweep_by(50_000)
    chores.swept(10, None)
    assert chores.sweep_at == 50_000
    assert chores.due(50_000, busy=False).sweep
    chores.swept(50_010, None)
    assert chores.sweep_at == 50_010 + SWEEP_EVERY


def test_watching_is_frequent_while_others_change_things() -> None:
    chores = Chores()
    chores.watched(0, changed=True, busy=False)
    assert chores.watch_at == WATCH_SOONEST
    for _ in range(10):
        chores.watched(0, changed=False, busy=False)
    assert chores.watch_at == WATCH_LATEST
    chores.watched(0, changed=True, busy=True)
    assert chores.watch_at == WATCH_BUSY


def test_bodies_whose_time_is_up_are_named_once_and_in_order() -> None:
    chores = Chores()
    late, early = limited(chores, 200), limited(chores, 100)
    limited(chores, 150, over=True)
    assert chores.due(99, busy=True).overdue == []
    assert chores.due(100, busy=True).overdue == [early]
    assert chores.due(500, busy=True).overdue == [late]
    assert chores.due(500, busy=True).overdue == []


@pytest.mark.parametrize(("busy", "expected"), [(True, STOPS_EVERY), (False, 300_000)])
def test_it_wakes_for_whatever_comes_first(busy: bool, expected: int) -> None:
    chores = Chores()
    chores.due(0, busy=True)
    chores.swept(0, None)
    for _ in range(10):
        chores.watched(0, changed=False, busy=False)
    limited(chores, 300_000)
    assert chores.next_at(0, busy=busy) == expected
    assert chores.next_at(10_000_000, busy=busy) == 10_000_000
