"""What our reducers make of a value and the next one."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell import reducers
from stepwell.reducers import add, append, extend, last, maximum, merge, minimum, union


@pytest.mark.parametrize(
    ("reduce", "current", "new", "result"),
    [
        (append, [1], 2, [1, 2]),
        (append, [1], [2, 3], [1, 2, 3]),
        (append, [], (1, 2), [(1, 2)]),
        (extend, [[1]], [[2], [3]], [[1], [2], [3]]),
        (add, 2, 3, 5),
        (add, 2, -0.5, 1.5),
        (maximum, 1, 2, 2),
        (maximum, 2, 1, 2),
        (maximum, None, 1, 1),
        (maximum, 1, None, 1),
        (maximum, None, None, None),
        (maximum, -1, 0, 0),
        (minimum, 1, 2, 1),
        (minimum, 2, 1, 1),
        (minimum, None, 1, 1),
        (minimum, 1, None, 1),
        (minimum, 0, -1, -1),
        (merge, {"a": 1, "b": 1}, {"b": 2, "c": 3}, {"a": 1, "b": 2, "c": 3}),
        (union, [], ["b", "a", "b"], ["a", "b"]),
        (union, ["a", "c"], ["c", "b", "a", "d"], ["a", "b", "c", "d"]),
        (last, 1, None, None),
    ],
)
def test_a_reducer(reduce: Any, current: Any, new: Any, result: Any) -> None:
    assert reduce(current, new) == result


def test_of_equals_the_first_stays() -> None:
    assert type(maximum(1, 1.0)) is type(minimum(1, 1.0)) is int


def test_these_are_all() -> None:
    assert set(reducers.__all__) == {"add", "append", "extend", "last", "maximum", "merge", "minimum", "union"}
