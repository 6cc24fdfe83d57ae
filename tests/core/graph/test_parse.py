"""Whether a JSON text holds too much is known before anything is made of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stepwell.core.graph.parse import too_many

FITS: list[Any] = [[], {}, [1, 2, 3, 4], {"a": [1], "b": {}}, "[[[[[[,,,,,,", ["[[[[", ",,,,"]]
TOO_MUCH: list[Any] = [
    [1, 2, 3, 4, 5, 6],
    [[[[[]]]]],
    [[], [], [], []],
    {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6},
]


@pytest.mark.parametrize("value", FITS)
def test_what_fits_is_read(value: Any) -> None:
    """Brackets and commas in texts count as nothing."""
    assert not too_many(json.dumps(value), values=5, containers=4)


@pytest.mark.parametrize("value", TOO_MUCH)
def test_more_values_or_more_containers_are_too_much(value: Any) -> None:
    assert too_many(json.dumps(value), values=5, containers=4)
    assert not too_many(json.dumps(value), values=9, containers=9)
