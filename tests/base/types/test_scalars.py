"""A scalar is read as what it is: a class derived from its own will do, and another one, which may look like it, will not."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import pytest

from stepwell.base.types.scalars import read_scalar


class Level(IntEnum):
    HIGH = 3


class Name(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("data", "cls"),
    [(1, int), (Level.HIGH, int), ("a", str), (Name("a"), str), (1.5, float), (True, bool), (False, bool)],
)
def test_what_is_of_the_class_or_derived_from_it_is_taken_as_it_is(data: Any, cls: type) -> None:
    assert read_scalar(data, cls) is data


@pytest.mark.parametrize(
    ("data", "cls"),
    [(True, int), (True, float), (1.5, int), ("1", int), (1, bool), (0, bool), (1, str), (None, str), ([1], int)],
)
def test_what_only_looks_like_it_is_refused(data: Any, cls: type) -> None:
    with pytest.raises(Exception, match="expected "):
        read_scalar(data, cls)


def test_a_whole_number_is_a_float_where_one_is_asked_for() -> None:
    number = read_scalar(2, float)
    assert (type(number), number) == (float, 2.0)
