"""When the regular duties are due."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell.engine.worker.timetable import (
    STOPS_EVERY,
    SWEEP_EVERY,
    WATCH_BUSY,
    WATCH_LATEST,
    WATCH_SOONEST,
    Timetable,
)


class Body:
    def __init__(self, *, over: bool = False) -> None:
        self.over = over


def limited(timetable: Timetable, at: int, *, over: bool = False) -> Any:
    body: Any = Body(over=over)
    timetable.time_limit(body, at)
    return body


def test_two_whose_time_is_up_at_the_same_moment_are_both_told() -> None:
    timetable = Timetable()
    bodies = [limited(timetable, 5) for _ in range(3)]
    assert timetable.overdue(5) == bodies


def test_everything_is_due_at_first() -> None:
    due = Timetable().due(0, busy=True)
    assert (due.sweep, due.stops, due.watch, due.overdue) == (True, True, True, [])


def test_stops_are_read_only_while_something_is_held_and_not_too_often() -> None:
    timetable = Timetable()
    assert not timetable.due(0, busy=False).stops
    assert timetable.due(0, busy=True).stops
    assert not timetable.due(STOPS_EVERY - 1, busy=True).stops
    assert timetable.due(STOPS_EVERY, busy=True).stops


def test_sweeping_is_regular_and_sooner_when_something_becomes_due() -> None:
    timetable = Timetable()
    timetable.swept(0, None)
    assert timetable.sweep_at == SWEEP_EVERY
    timetable.swept(0, 300_000)
    assert timetable.sweep_at == 300_000
    timetable.swept(0, -5)
    assert timetable.sweep_at == 1_000
    timetable.sweep_by(400)
    assert timetable.sweep_at == 400


def test_what_becomes_known_while_a_sweep_is_under_way_is_not_forgotten() -> None:
    """The sweep may have been before it, and its answer comes after."""
    timetable = Timetable()
    assert timetable.due(0, busy=False).sweep
    timetable.sweep_by(50_000)
    timetable.swept(10, None)
    assert timetable.sweep_at == 50_000
    assert timetable.due(50_000, busy=False).sweep
    timetable.swept(50_010, None)
    assert timetable.sweep_at == 50_010 + SWEEP_EVERY


def test_a_hint_is_followed_at_once_and_many_not_all_the_time() -> None:
    timetable = Timetable()
    timetable.watched(0)
    assert timetable.watch_at == WATCH_LATEST
    timetable.hinted(10, busy=False)
    assert timetable.watch_at == WATCH_SOONEST
    timetable.watched(WATCH_SOONEST)
    timetable.hinted(WATCH_LATEST, busy=False)
    assert timetable.watch_at == WATCH_LATEST, "it has not looked for long"
    timetable.watched(WATCH_LATEST)
    timetable.hinted(WATCH_LATEST + 10, busy=True)
    assert timetable.watch_at == WATCH_LATEST + WATCH_BUSY, "busy, it hears mostly of itself"


def test_who_shares_a_store_with_many_sweeps_less_often() -> None:
    timetable = Timetable()
    timetable.swept(0, None, share=7)
    assert timetable.sweep_at == 7 * SWEEP_EVERY
    timetable.swept(0, 40_000, share=7)
    assert timetable.sweep_at == 40_000, "but in time for what it knows of"


def test_bodies_whose_time_is_up_are_named_once_and_in_order() -> None:
    timetable = Timetable()
    late, early = limited(timetable, 200), limited(timetable, 100)
    limited(timetable, 150, over=True)
    assert timetable.due(99, busy=True).overdue == []
    assert timetable.due(100, busy=True).overdue == [early]
    assert timetable.due(500, busy=True).overdue == [late]
    assert timetable.due(500, busy=True).overdue == []


@pytest.mark.parametrize(("busy", "expected"), [(True, STOPS_EVERY), (False, 300_000)])
def test_it_wakes_for_whatever_comes_first(busy: bool, expected: int) -> None:
    timetable = Timetable()
    timetable.due(0, busy=True)
    timetable.swept(0, None)
    timetable.watched(0)
    limited(timetable, 300_000)
    assert timetable.next_at(0, busy=busy) == expected
    assert timetable.next_at(10_000_000, busy=busy) == 10_000_000
