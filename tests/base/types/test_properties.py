"""Whatever a type is made of: what is read of what was written is what it was, and it is written in one way only."""

from __future__ import annotations

import dataclasses
import math
import os
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any, NamedTuple
from uuid import UUID

from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

from stepwell.base.codec import decode, encode
from stepwell.base.forms.problems import Misfit
from stepwell.base.types.codecs import Codec, to_json
from stepwell.base.types.kinds import examine
from stepwell.base.types.misfit import Unsupported
from tests.base.types.kinds_of_types import Colour, Letter, Line, Size


class Made(NamedTuple):
    """A type, and how to draw values of it."""

    annotation: Any
    values: st.SearchStrategy[Any]
    hashable: bool = True
    has_keys: bool = False


DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=2)
LEAVES = [
    Made(int, st.integers()),
    Made(float, st.floats(allow_nan=False, allow_infinity=False)),
    Made(str, st.text(st.characters(codec="utf-8"), max_size=4)),
    Made(bool, st.booleans()),
    Made(date, st.dates()),
    # Zones with names become offsets, and Python holds hours that a zone has twice or never for unequal to any other.
    Made(
        datetime,
        st.datetimes(timezones=st.none() | st.integers(-1439, 1439).map(lambda m: timezone(timedelta(minutes=m)))),
    ),
    Made(time, st.times()),
    Made(timedelta, st.timedeltas()),
    Made(Decimal, DECIMALS),
    Made(UUID, st.uuids()),
    Made(bytes, st.binary(max_size=5)),
    Made(Colour, st.sampled_from(Colour)),
    Made(Size, st.sampled_from(Size)),
    Made(Letter, st.sampled_from(Letter)),
    Made(Line, st.builds(Line, st.text(st.characters(codec="utf-8"), max_size=2), DECIMALS, st.integers(0, 3))),
]
KEYS = [made for made in LEAVES if made.annotation not in (Line, float, datetime)]


def containers(inner: st.SearchStrategy[Made]) -> st.SearchStrategy[Made]:
    return st.one_of(
        inner.map(lambda made: Made(list[made.annotation], st.lists(made.values, max_size=3), False, made.has_keys)),  # type: ignore[name-defined]
        st.tuples(inner, inner).map(
            lambda pair: Made(
                tuple[pair[0].annotation, pair[1].annotation],  # type: ignore[name-defined]
                st.tuples(pair[0].values, pair[1].values),
                pair[0].hashable and pair[1].hashable,
                pair[0].has_keys or pair[1].has_keys,
            )
        ),
        inner.filter(lambda made: made.hashable).map(
            lambda made: Made(set[made.annotation], st.sets(made.values, max_size=3), False, made.has_keys)  # type: ignore[name-defined]
        ),
        st.tuples(st.sampled_from(KEYS), inner).map(
            lambda pair: Made(
                dict[pair[0].annotation, pair[1].annotation],  # type: ignore[name-defined]
                st.dictionaries(pair[0].values, pair[1].values, max_size=3),
                False,
                pair[1].has_keys or pair[0].annotation is not str,
            )
        ),
        st.lists(inner, min_size=2, max_size=3).map(union_of),
        st.tuples(st.integers(0, 2), st.lists(inner, min_size=1, max_size=3)).map(lambda pair: class_of(*pair)),
    )


def union_of(members: list[Made]) -> Made:
    annotation = reduce(or_, (each.annotation for each in members), None)
    values = st.none() | st.one_of([each.values for each in members])
    return Made(annotation, values, all(each.hashable for each in members), any(each.has_keys for each in members))


COUNT = iter(range(10**9))


def class_of(place: int, fields: list[Made]) -> Made:
    """A dataclass whose fields are numbered from `place` on, so that some share fields and some do not."""
    names = [f"f{place + number}" for number in range(len(fields))]
    pairs = [(name, made.annotation) for name, made in zip(names, fields, strict=True)]
    cls = dataclasses.make_dataclass(f"Made{next(COUNT)}", pairs, frozen=True)
    values = st.builds(cls, **{name: made.values for name, made in zip(names, fields, strict=True)})
    return Made(cls, values, all(each.hashable for each in fields), any(each.has_keys for each in fields))


TYPES = st.recursive(st.sampled_from(LEAVES), containers, max_leaves=6)
EXPLORE = int(os.environ.get("STEPWELL_EXPLORE", "0"))
"""How many types are drawn at random; otherwise the same few each time, so that nothing new is found on the wrong day."""
QUICKLY = settings(
    max_examples=EXPLORE or 150, deadline=None, derandomize=not EXPLORE, suppress_health_check=list(HealthCheck)
)


def is_kept(annotation: Any) -> bool:
    try:
        examine(annotation)
    except Unsupported:
        return False
    return True


@QUICKLY
@given(TYPES, st.data())
def test_what_is_read_is_what_was_written(made: Made, data: st.DataObject) -> None:
    assume(is_kept(made.annotation))
    note(repr(made.annotation))
    codec = Codec(made.annotation)
    value = data.draw(made.values)
    written = encode(codec.encode(value))
    again = codec.decode(decode(written))
    assert again == value
    assert type(again) is type(value) or (type(value) is int and type(again) is float)
    assert encode(codec.encode(again)) == written
    assert encode(codec.encode(decode(written))) == written  # its JSON is one, too
    if not made.has_keys:
        assert encode(to_json(value)) == encode(to_json(again))


@QUICKLY
@given(TYPES, st.data())
def test_a_value_of_another_type_is_refused_with_its_place_or_is_the_same_json(made: Made, data: st.DataObject) -> None:
    """Nothing else may come of it: no other error, and no other value."""
    assume(is_kept(made.annotation))
    codec = Codec(made.annotation)
    other = data.draw(st.sampled_from([3, "x", 1.5, True, None, [], {}, [1, "a"], {"f0": 1}, Colour.RED, object()]))
    try:
        written = codec.encode(other)
    except Misfit as misfit:
        assert misfit.problems  # noqa: PT017  # that it is refused is allowed, not needed
        return
    assert encode(written) == encode(codec.encode(codec.decode(written)))


@given(st.timedeltas())
def test_durations_are_exact(value: timedelta) -> None:
    codec = Codec(timedelta)
    assert codec.decode(codec.encode(value)) == value


@given(st.sets(st.one_of(st.integers(), st.text(max_size=2), st.booleans(), st.none(), DECIMALS), max_size=6))
def test_the_order_of_a_set_does_not_depend_on_how_it_was_made(value: set[Any]) -> None:
    one, other = set(), set()
    for item in value:
        one.add(item)
    for item in reversed(list(value)):
        other.add(item)
    assert encode(to_json(one)) == encode(to_json(other))


def test_numbers_in_a_set_are_in_the_order_of_numbers() -> None:
    assert to_json({10, 9, 1.5}) == [1.5, 9, 10]
    assert math.isclose(to_json({0.1})[0], 0.1)
