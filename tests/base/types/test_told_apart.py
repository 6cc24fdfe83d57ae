"""What looks alike in JSON is told apart: members of unions in whatever order they are written, Literals, keys."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from functools import reduce
from operator import or_
from pathlib import Path, PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Required,
    TypedDict,
    TypeVar,
    Union,
)
from uuid import UUID

import pydantic
import pytest
from typing_extensions import TypeAliasType

from stepwell.base import codec
from stepwell.base.forms.problems import Misfit
from stepwell.base.types import converter
from stepwell.base.types.codecs import Codec, codec_of
from stepwell.base.types.containers import union_of
from stepwell.base.types.fields import unwrapped
from stepwell.base.types.kinds import shown
from stepwell.base.types.leaves import LEAVES
from stepwell.base.types.shapes import shape_of


@dataclasses.dataclass(frozen=True)
class Card:
    number: int
    kind: Literal["card"] = "card"


@dataclasses.dataclass(frozen=True)
class Cash:
    number: int
    kind: Literal["cash"] = "cash"


@dataclasses.dataclass(frozen=True)
class Coupon:
    number: int
    code: str


class Colour(Enum):
    RED = "red"


class Answer(Enum):
    YES = True


class Count(Enum):
    ANY = True
    TWO = 2
    HALF = 0.5


class Pair(NamedTuple):
    left: int
    right: int


class Place(NamedTuple):
    height: float
    name: str = ""


class Size(TypedDict):
    width: float
    height: NotRequired[float]


@dataclasses.dataclass(frozen=True)
class Weight:
    kilograms: float


MEMBERS: list[dict[Any, list[Any]]] = [
    {int: [0, 1, -7], bool: [True, False], str: ["", "1", "true"], type(None): [None]},
    {float: [0.5, 1.0, -0.0], int: [0, 1], str: ["1.0"], list[int]: [[], [1]]},
    {bool: [True], float: [1.0], type(None): [None]},
    {Card: [Card(1)], Cash: [Cash(1)], Coupon: [Coupon(1, "x")], int: [1]},
    {Colour: [Colour.RED], int: [1], type(None): [None]},
    {Answer: [Answer.YES], int: [1, 0], str: ["true"]},
    {Count: [*Count], str: ["2"], type(None): [None]},
    {date: [date(2026, 1, 2)], int: [1], dict[str, int]: [{}, {"a": 1}]},
    {Literal[1]: [1], Literal["1"]: ["1"], Literal[True]: [True], Literal[None]: [None]},  # type: ignore[dict-item]
    {Literal["soon"]: ["soon"], int: [0], Pair: [Pair(1, 2)], Card: [Card(7)]},
]


@pytest.mark.parametrize("members", MEMBERS, ids=lambda members: " ".join(map(str, members))[:60])
def test_a_value_of_a_union_is_of_its_own_member_in_whatever_order_they_are_written(
    members: dict[Any, list[Any]],
) -> None:
    for order in itertools.permutations(members):
        union = union_of(reduce(or_, order))
        if set(union.members) != set(order):  # Python joins Literals
            continue
        for member, values in members.items():
            for value in values:
                data = Codec(member).encode(value)
                assert union.members_of(data)[0] == member, (order, value)
                if not isinstance(value, str | None) or member in (str, type(None)):
                    assert union.member_written(value) in (member, None), (order, value)


@pytest.mark.parametrize("members", MEMBERS, ids=lambda members: " ".join(map(str, members))[:60])
def test_a_value_of_a_union_comes_back_as_it_was(members: dict[Any, list[Any]]) -> None:
    annotation = reduce(or_, members)
    codec, shape = Codec(annotation), shape_of(annotation)
    for value in itertools.chain.from_iterable(members.values()):
        found = codec.decode(codec.encode(value))
        assert (type(found), found) == (type(value), value)
        assert not shape.problems(value, "it")
        assert shape.fits(value)
    for wrong in (object(), {1: object()}, [object()], 1j):
        assert codec.problems(wrong)
        assert shape.problems(wrong, "it")


def test_of_lists_the_first_that_fits_is_read_and_the_last_gives_the_error() -> None:
    codec = Codec(list[int] | list[str])
    assert [codec.decode(data) for data in ([1], ["a"], [])] == [[1], ["a"], []]
    with pytest.raises(Misfit):
        codec.decode([1, "a"])


@pytest.mark.parametrize("other", [list[int], Any, list[int | str]], ids=str)
def test_the_order_in_which_a_union_is_written_does_not_count(other: Any) -> None:
    """Python holds both orders for equal, so that whichever is used first would decide for the whole process."""
    found = set()
    for union in (other | list[float], list[float] | other):
        converter.forget()
        read = Codec(union)
        found.add(codec.text([read.decode([1]), read.encode([1]), read.decode([1.5]), read.encode([1.5])]))
    assert len(found) == 1
    assert codec.text(read.decode([1])) == "[1]"


@pytest.mark.parametrize("value", [None, 1, "x", [1], {"a": None}, Colour.RED])
def test_a_union_with_any_takes_everything(value: Any) -> None:
    @dataclasses.dataclass
    class Note:
        about: Any | None

    data = codec_of(Note).encode(Note(value))
    assert codec_of(Note).decode(data) == Note(value.value if isinstance(value, Enum) else value)


AS_ANNOTATED: list[tuple[Any, Any]] = [
    (float, 1),
    (list[float], [1]),
    (tuple[float, ...], (1, 2)),
    (tuple[float, str], (1, "1")),
    (tuple[list[float], Any], ([1], "1")),
    (set[float], {1, 2}),
    (frozenset[float], frozenset({1})),
    (dict[str, float], {"1": 1}),
    (dict[date, float], {date(2026, 1, 2): 1}),
    (float | None, 1),
    (list[float] | str, [1]),
    (dict[str, list[float | str]], {"1": [1, "1"]}),
    (Place, Place(1)),
    (Size, {"width": 1}),
    (Size, {"width": 1, "height": 1}),
    (Weight, Weight(1)),
]


@pytest.mark.parametrize(("annotation", "value"), AS_ANNOTATED, ids=[str(each[0]) for each in AS_ANNOTATED])
def test_a_value_is_written_as_its_annotation_says_and_not_as_its_own_type(annotation: Any, value: Any) -> None:
    data = Codec(annotation).encode(value)
    assert set(re.findall(r"(?<![\"\w-])[\d.]+", codec.text(data))) <= {"1.0", "2.0"}, data
    assert Codec(annotation).decode(data) == value


@pytest.mark.parametrize("annotation", [int, float, str, Any, list, list[float], dict[str, float], float | None])
def test_plain_json_is_checked_and_never_changed(annotation: Any) -> None:
    shape = shape_of(annotation)
    for value in (1, 2.5, "x", None, [1, 2.5], {"a": 1}):
        if shape.fits(value):
            assert shape.stored(value) is shape.received(value) is value


LITERALS: list[tuple[Any, list[Any], list[Any]]] = [
    (Literal[1, "a", None], [1, "a", None], [True, 1.0, "1", "A", "", 0, False, [], {}]),
    (Literal[0, "0"], [0, "0"], [False, 0.0, "", None, -1]),
    (Literal[True], [True], [1, "true", False, 1.0, None]),
    (Literal[False, 1], [False, 1], [0, True, 1.0, None]),
    (Literal["a", "b"] | int, ["a", "b", 7], ["c", "", True, 7.0, None]),
    (list[Literal[1, 2]], [[], [1, 2, 1]], [[3], [True], [1.0], ["1"], 1]),
    (dict[str, Literal["x"]], [{}, {"a": "x"}], [{"a": "y"}, {"a": None}, ["x"]]),
    (Literal[Colour.RED, 7], [Colour.RED, 7], ["blue", 7.0, True]),
]


@pytest.mark.parametrize(("annotation", "good", "bad"), LITERALS, ids=[str(each[0])[:50] for each in LITERALS])
def test_a_literal_is_one_of_its_values_and_of_their_types(annotation: Any, good: list[Any], bad: list[Any]) -> None:
    codec, shape = Codec(annotation), shape_of(annotation)
    for value in good:
        found = codec.decode(codec.encode(value))
        assert (type(found), found) == (type(value), value)
        assert shape.fits(value)
        assert not shape.problems(value, "it")
    for value in bad:
        assert codec.problems(value), value
        assert not shape.fits(value), value
        assert shape.problems(value, "it"), value
        with pytest.raises(Misfit):
            codec.decode(value)


KEYS: list[tuple[Any, dict[Any, str], list[str]]] = [
    (int, {0: "0", -7: "-7", 10**20: "1" + "0" * 20}, ["", "x", "1.5", "true", "null"]),
    (bool, {True: "true", False: "false"}, ["1", "0", "True", "yes", ""]),
    (float, {0.5: "0.5", 2.0: "2.0"}, ["x", "", "true"]),
    (date, {date(2026, 1, 2): "2026-01-02"}, ["2026-13-02", "x", ""]),
    (UUID, {UUID(int=7): "00000000-0000-0000-0000-000000000007"}, ["7", ""]),
    (Decimal, {Decimal("1.50"): "1.50"}, ["x", ""]),
    (Colour, {Colour.RED: "red"}, ["RED", "blue", ""]),
    (Literal["a", "b"], {"a": "a", "b": "b"}, ["c", "A", ""]),
    (Literal[1, 2], {1: "1", 2: "2"}, ["3", "x", "true"]),
    (timedelta, {timedelta(minutes=90): "PT5400S"}, ["x", ""]),
    (Path, {Path("a/b"): "a/b", Path("/"): "/"}, []),
    (PurePosixPath, {PurePosixPath("a"): "a"}, []),
    (bytes, {b"": "", b"\xff": "/w=="}, ["=", "ü"]),
    (time, {time(12, 30): "12:30:00"}, ["25:00", ""]),
    (datetime, {datetime(2026, 1, 2, tzinfo=UTC): "2026-01-02T00:00:00+00:00"}, ["x", ""]),
    (str, {"": "", "1": "1", "ü": "ü", "a.b": "a.b", "true": "true", "\n": "\n"}, []),
]


@pytest.mark.parametrize(("key", "written", "wrong"), KEYS, ids=[str(each[0]) for each in KEYS])
def test_a_key_is_written_as_one_text_and_read_as_what_it_was(
    key: Any, written: dict[Any, str], wrong: list[str]
) -> None:
    codec = Codec(dict[key, int])
    value = {each: place for place, each in enumerate(written)}
    data = codec.encode(value)
    assert data == {text: place for place, text in enumerate(written.values())}
    found = codec.decode(data)
    assert [(type(each), each) for each in found] == [(type(each), each) for each in value]
    for text in wrong:
        with pytest.raises(Misfit, match=r"expected a key that is"):
            codec.decode({text: 1})
    for other in ({("x",): 1} if key is bytes else {b"x": 1}, {None: 1}, {(1, 2): 1}, {object(): 1}):
        assert codec.problems(other)


@pytest.mark.parametrize(
    "annotation", [float, Any, list[float], dict[str, float], list[Any], float | None, float | str]
)
def test_a_number_that_json_does_not_have_is_told(annotation: Any) -> None:
    for number in (math.nan, math.inf, -math.inf):
        value = (
            [number]
            if annotation in (list[float], list[Any])
            else {"a": number}
            if annotation == dict[str, float]
            else number
        )
        (problem,) = shape_of(annotation).problems(value, "it")
        assert problem.startswith("it")
        assert "is not a JSON number" in problem or ": expected " in problem


class Name(str):
    __slots__ = ()


class Letter(StrEnum):
    A = "a"


@pytest.mark.parametrize("value", ["a", Name("a"), Letter.A])
def test_a_text_of_any_class_is_written_as_plain_text(value: Any) -> None:
    for annotation, one in (
        (Place, Place(1, value)),
        (list[str], [value]),
        (dict[str, str], {"x": value}),
        (Any, [value]),
    ):
        data = Codec(annotation).encode(one)
        text = data["x"] if isinstance(data, dict) else data[-1]
        assert (type(text), text) == (str, "a")


Item = TypeVar("Item")
Bounded = TypeVar("Bounded", bound=int)
Day = NewType("Day", date)
ByName = TypeAliasType("ByName", dict[str, Item], type_params=(Item,))
Id = TypeAliasType("Id", int)
Pair = TypeAliasType("Pair", tuple[Item, Bounded], type_params=(Item, Bounded))


class Box(Generic[Item]):
    __value__ = 3


UNWRAPPED: list[tuple[Any, Any]] = [
    *((int, int), (Day, date), (Annotated[int, "m"], int), (Annotated[Day, "d"], date), (NewType("Later", Day), date)),
    *((Final[int], int), (ClassVar[int], int), (Required[int], int), (NotRequired[Annotated[int, 1]], int)),
    *((Item, Any), (Bounded, int), (Id, int), (ByName[int], dict[str, int]), (ByName[Id], dict[str, Id])),
    *((Pair[str, bool], tuple[str, bool]), (Pair[str], tuple[str, Bounded])),
    *((list[Day], list[Day]), (Box, Box), (Box[int], Box[int])),
]


@pytest.mark.parametrize(("annotation", "bare"), UNWRAPPED, ids=str)
def test_what_says_nothing_about_a_type_is_taken_off(annotation: Any, bare: Any) -> None:
    assert unwrapped(annotation) == bare


SHOWN: dict[str, Any] = {
    **{"int": int, "None": type(None), "Card": Card, "list[int]": list[int], "int | None": int | None},
    **{"Card | Cash": Card | Cash, "Box[int]": Box[int], "Box[Card | None]": Box[Card | None]},
    **{"int | str | None": Union[int, str, None], "~Item": Item},  # noqa: UP007
}


@pytest.mark.parametrize("words", SHOWN)
def test_an_annotation_is_shown_as_people_write_it(words: str) -> None:
    assert shown(SHOWN[words]).replace("NoneType", "None") == words
    assert "NoneType" not in shown(SHOWN[words]) or words == "None"


@pytest.mark.parametrize("kind", [set, frozenset, list, tuple, dict])
def test_a_container_is_told_with_what_is_in_it_if_that_is_said(kind: Any) -> None:
    inside = (str, int) if kind is dict else (int,)
    names = ", ".join(each.__name__ for each in inside)
    assert (Codec(kind).text, Codec(kind[inside]).text) == (kind.__name__, f"{kind.__name__}[{names}]")


DURATIONS: dict[str, timedelta] = {
    "PT0S": timedelta(0),
    "P1W": timedelta(weeks=1),
    "P2W1D": timedelta(days=15),
    "P1DT2H3M4.5S": timedelta(days=1, hours=2, minutes=3, seconds=4.5),
    "PT90M": timedelta(minutes=90),
    "PT0.000001S": timedelta(microseconds=1),
    "PT1,25S": timedelta(seconds=1.25),
    "PT0.1234567S": timedelta(microseconds=123_456),
    "-P1DT1S": -timedelta(days=1, seconds=1),
    "+P1D": timedelta(days=1),
}
NO_LEAVES: dict[type, list[Any]] = {
    timedelta: ["", "P", "PT", "P1", "1D", "P1S", "PT1D", "P1DT", "PT1.S", "--P1D", "P1D ", "P9999999999D", 5],
    datetime: ["", "x", "2026-13-01T00:00:00", 5],
    date: ["", "x", "2026-02-30", 5],
    time: ["", "x", "24:01", 5],
    Decimal: ["", "x", "1,5", 1.5, 5],
    UUID: ["", "x", "8f3a2b11", 5],
    bytes: ["=", "a", "ü", 5],
    bytearray: ["=", "ü", 5],
    **{kind: [5, None] for kind in (PurePath, PurePosixPath, PureWindowsPath, Path)},
}


def test_a_duration_is_read_as_iso_8601_has_it() -> None:
    found = Codec(dict[str, timedelta])
    assert found.decode({text: text for text in DURATIONS}) == DURATIONS
    assert found.decode(found.encode(DURATIONS)) == DURATIONS


# In the order of the table: each process of a test run must collect the same tests.
@pytest.mark.parametrize(
    "kind", [kind for kind in LEAVES if kind not in (PosixPath, WindowsPath)], ids=lambda kind: kind.__name__
)
def test_what_is_no_text_of_a_type_is_told_in_the_words_of_its_form(kind: type) -> None:
    for wrong in NO_LEAVES[kind]:
        with pytest.raises(Misfit, match=rf"^\$: expected .*, got .*\({type(wrong).__name__}\)$") as told:
            Codec(kind).decode(wrong)
        assert "Error" not in str(told.value)


def test_a_model_keeps_the_order_of_lists_and_its_sets_have_one() -> None:
    class Basket(pydantic.BaseModel):
        lines: list[int]
        labels: set[str]
        more: dict[str, list[set[int]]]
        pair: tuple[int, int]

    basket = Basket(lines=[3, 1, 2], labels=set("cab"), more={"x": [{10, 9, 8}, {3}]}, pair=(2, 1))
    assert codec.text(codec_of(Basket).encode(basket)) == codec.text(
        {"labels": ["a", "b", "c"], "lines": [3, 1, 2], "more": {"x": [[8, 9, 10], [3]]}, "pair": [2, 1]}
    )


def test_what_fits_no_class_of_a_union_is_told_as_that() -> None:
    for wrong in (
        {"number": 1, "kind": "coin"},
        {"kind": "card"},
        {"number": 1, "kind": None},
        {"number": 1, "kind": ["card"]},
    ):
        with pytest.raises(Misfit, match=r"^\$: expected Card or Cash"):
            Codec(Card | Cash).decode(wrong)

    @dataclasses.dataclass
    class One:
        kind: Literal[1]

    @dataclasses.dataclass
    class Two:
        kind: Literal[2]

    for part in ({"number": 1}, {"code": "x"}, {}):
        with pytest.raises(Misfit, match=r"^\$: expected Coupon or Weight"):
            Codec(Coupon | Weight).decode(part)
    for number in (True, 1.0, "1"):
        with pytest.raises(Misfit, match=r"expected .*One or .*Two"):
            codec_of(One | Two).decode({"kind": number})


def test_keys_of_another_type_are_refused_not_guessed() -> None:
    assert Codec(dict[int, int]).problems({"one": 1})
    assert Codec(dict[str, int]).problems({1: 1})
    assert Codec(dict[bool, int]).problems({2: 1})
    assert Codec(dict[int, int]).problems({True: 1})
