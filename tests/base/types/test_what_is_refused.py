"""What plain JSON could not tell apart, or could not keep, is refused before anything runs, and says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import InitVar, dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, TypedDict

import pytest

from stepwell.base.forms.problems import Misfit
from stepwell.base.types.codecs import Codec
from stepwell.base.types.kinds import examine
from stepwell.base.types.misfit import Unsupported
from tests.base.types.kinds_of_types import Address, Bank, Card, Letter, Line, Money, Options, Order, Page, Point, Size


@dataclass
class Account:
    iban: str
    note: str = ""


@dataclass
class Secret:
    text: InitVar[str]


@dataclass
class Holder:
    function: Callable[[], int]


@dataclass
class Unreadable:
    day: Nowhere  # type: ignore[name-defined]  # noqa: F821


class Odd(Enum):
    PAIR = (1, 2)


class Same(TypedDict):
    iban: str


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (datetime | str, "datetime and str are both text in JSON"),
        (datetime | date, "both text in JSON"),
        (Letter | str, "both text in JSON"),
        (Size | int, "both a number in JSON"),
        (Size | float, "both a number in JSON"),
        (Bank | Account, "Bank and Account have the same required fields"),
        (Bank | Same, "Bank and Same have the same required fields"),
        (Bank | dict, "Bank and dict are both an object in JSON"),
        (Address | dict[str, int], "both an object in JSON"),
        (list[int] | set[int], "list[int] and set[int] are both a list in JSON"),
        (Point | tuple[int, int], "both a list in JSON"),
        (Money | int, "Money and int are both a number in JSON"),
        (Any | date, "both text in JSON"),
        (list[Bank | Account], "the same required fields"),
        (dict[tuple[int, int], str], "the keys of a JSON object are texts"),
        (dict[int | str, str], "the keys of a JSON object are texts"),
        (dict[int | None, str], "the keys of a JSON object are texts"),
        (dict[Line, str], "the keys of a JSON object are texts"),
        (Odd, "(1, 2) is no JSON"),
        (Literal[b"x"], "a Literal of JSON has strings"),
        (Secret, "an InitVar is not kept"),
        (Holder, "Holder: its field 'function' cannot be"),
        (Page[complex], "its field 'items' cannot be complex"),
        (Unreadable, "an annotation of it cannot be read (NameError"),
        (complex, "stepwell.types.register(complex, encode, decode)"),
        (Iterator[int], "nothing says how"),
    ],
)
def test_a_type_that_cannot_be_kept_says_why(annotation: Any, reason: str) -> None:
    with pytest.raises(Unsupported) as caught:
        examine(annotation)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "annotation",
    [
        Literal["a"] | str,
        Literal["a"] | Literal["b"],
        int | float,
        Card | Bank | None,
        Bank | Point | int,
        Options | Bank,
    ],
)
def test_what_json_does_tell_apart_is_kept(annotation: Any) -> None:
    assert examine(annotation)


@pytest.mark.parametrize(
    ("annotation", "value", "problems"),
    [
        (Line, {"sku": "a"}, ["$.price: this field is missing"]),
        (Line, {"sku": 1, "price": "x"}, ["$.sku: expected str, got 1", "$.price: expected a decimal number as text"]),
        (list[Line], [{"sku": "a", "price": "1"}, 3], ["$[1]: expected Line, got 3 (int)"]),
        (dict[str, list[Line]], {"a b": [{"sku": "a", "price": None}]}, ['$["a b"][0].price: expected a decimal']),
        (Order, Line("a", Decimal(1)), [f"$.{name}: this field is missing" for name in ("id", "placed", "lines")]),
        (Card | Bank, {"colour": "red"}, ["$: expected Card or Bank"]),
        (dict[int, str], {"x": "a"}, ["$: expected a key that is int, got 'x'"]),
        (dict[str, date], {1: date(2026, 1, 1)}, ["$: the key 1 is not a string"]),
        (tuple[int, date], [1], ["$: expected tuple[int, date], which has 2 items"]),
        (Point, [], ["$: expected Point, and its item 'x' is missing"]),
        (
            Address,
            {"street": 7, "inner": [{}]},
            ["$.street: expected text, got 7 (int)", "$.inner[0].street: this field is missing"],
        ),
        (Options, {}, ["$.when: this field is missing"]),
        (Money, 3, ["$: Money refuses it: AttributeError"]),
        (Line, object(), ["$: expected Line, got <object"]),
        (set[int], "abc", ["$: expected set[int], got 'abc' (str)"]),
        (list[int], {"a": 1}, ["$: expected list[int]"]),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_every_place(
    annotation: Any, value: Any, problems: list[str]
) -> None:
    with pytest.raises(Misfit) as caught:
        Codec(annotation).encode(value)
    found = [problem.below("$") for problem in caught.value.problems]
    assert len(found) == len(problems), found
    assert all(map(str.startswith, found, problems)), found


def test_what_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(Misfit, match="nested too deeply"):
        Codec(list[list[Any]]).encode(endless)


@pytest.mark.parametrize(
    ("annotation", "stored", "value"),
    [
        (Bank, {"iban": "x", "colour": "red"}, Bank("x")),
        (Line, {"sku": "a", "price": "1"}, Line("a", Decimal(1), 1)),
        (Options, {"when": "2026-01-31T12:00:00", "new": 1}, {"when": datetime(2026, 1, 31, 12)}),
        (Point, ["1"], Point(Decimal(1), Decimal(0))),
        (Point, ["1", "2", "3"], Point(Decimal(1), Decimal(2))),
        (Address, {"street": "x", "new": 1}, Address(street="x")),
    ],
)
def test_types_evolve(annotation: Any, stored: Any, value: Any) -> None:
    """Unknown fields are left out, missing ones have their default."""
    assert Codec(annotation).decode(stored) == value
