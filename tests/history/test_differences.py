"""What differs between two values, in lines that people can read."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

from stepwell.history import differences as differences_module
from stepwell.history.differences import MOST_CHANGES, differences
from stepwell.history.replay import checkpoint


@pytest.mark.parametrize("module", [differences_module, checkpoint])
def test_the_examples_are_right(module: Any) -> None:
    done = doctest.testmod(module)
    assert done.attempted
    assert not done.failed


@pytest.mark.parametrize(
    ("recorded", "now", "shown"),
    [
        (1, 1.0, "$: recorded 1, now 1.0"),
        (True, 1, "$: recorded true, now 1"),
        (None, {}, "$: recorded null, now {}"),
        ({"a": None}, {}, "$.a: recorded null, now nothing"),
        ([[1]], [[2]], "$[0][0]: recorded 1, now 2"),
        ([1], {"a": 1}, '$: recorded [1], now {"a":1}'),
        ({"a": 1}, [1], '$: recorded {"a":1}, now [1]'),
        ([1, 2], [1], "$[1]: recorded 2, now nothing"),
        ("é", "e", '$: recorded "é", now "e"'),
    ],
)
def test_the_place_and_both_values_are_told(recorded: Any, now: Any, shown: str) -> None:
    assert differences(recorded, now) == (shown,)


def test_equal_values_have_none() -> None:
    assert differences({"a": [1, 2.5, None]}, {"a": [1, 2.5, None]}) == ()


def test_a_long_text_is_shown_where_it_differs() -> None:
    (line,) = differences("x" * 100_000 + "a" + "y" * 100_000, "x" * 100_000 + "b" + "y" * 100_000)
    assert "xa" in line
    assert "xb" in line
    assert len(line) < 500


def test_of_many_places_the_first_are_shown() -> None:
    lines = differences(list(range(1_000)), list(range(1, 1_001)))
    assert len(lines) == MOST_CHANGES + 1
    assert lines[-1] == "and more"
