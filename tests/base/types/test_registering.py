"""Types of other libraries are taught where they are defined."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

import stepwell
from stepwell import DefinitionError, Engine, Workflow, step
from stepwell.base.types.codecs import Codec, codec_of
from stepwell.base.types.misfit import Unsupported
from stepwell.base.types.shapes import shape_of


class Temperature:
    def __init__(self, kelvin: float) -> None:
        self.kelvin = kelvin

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Temperature) and self.kelvin == other.kelvin

    def __hash__(self) -> int:
        return hash(self.kelvin)


class Cents(int):
    """Derived from what JSON has."""


def test_a_type_is_taught_once_and_known_at_once() -> None:
    with pytest.raises(Unsupported, match=r"register\(Temperature, encode, decode\)"):
        Codec(Temperature)
    stepwell.types.register(Temperature, lambda it: {"kelvin": it.kelvin}, lambda data: Temperature(data["kelvin"]))
    codec = codec_of(dict[str, list[Temperature]])
    assert codec.decode(codec.encode({"now": [Temperature(3.5)]})) == {"now": [Temperature(3.5)]}
    # Taught anew, what was compiled before is forgotten.
    stepwell.types.register(Temperature, lambda it: it.kelvin, Temperature)
    assert codec_of(list[Temperature]).encode([Temperature(3.5)]) == [3.5]


def test_what_was_found_out_before_a_type_was_taught_is_forgotten() -> None:
    @dataclass
    class Weight:
        kilograms: int

    assert codec_of(Weight | int) is codec_of(Weight | int)
    assert shape_of(Weight | int).stored(Weight(3)) == {"kilograms": 3}
    stepwell.types.register(Weight, lambda it: it.kilograms, Weight)
    for look in (codec_of, shape_of):
        with pytest.raises(Unsupported, match="both a number in JSON"):
            look(Weight | int)
    assert shape_of(Weight).stored(Weight(3)) == 3


def test_what_is_encoded_may_itself_be_of_any_type_that_is_kept() -> None:
    stepwell.types.register(Temperature, lambda it: Decimal(it.kelvin), lambda data: Temperature(float(data)))
    codec = codec_of(Temperature)
    assert codec.encode(Temperature(2.5)) == "2.5"
    assert codec.decode("2.5") == Temperature(2.5)


def test_a_type_derived_from_a_number_is_read_as_itself() -> None:
    stepwell.types.register(Cents, int, Cents)
    again = codec_of(list[Cents]).decode(codec_of(list[Cents]).encode([Cents(3)]))
    assert again == [3]
    assert type(again[0]) is Cents


class Weather(Workflow):
    @step
    def measure(self) -> Any:
        return [Temperature(1.5)]

    @step
    def convert(self, measure: Any) -> Any:
        return measure


def test_a_taught_type_needs_no_annotation_to_be_stored() -> None:
    stepwell.types.register(Temperature, lambda it: it.kelvin, Temperature)
    with Engine("memory://") as engine:
        assert engine.run(Weather()).result == [1.5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, str, str), "expected a class"),
        ((Temperature, "x", str), "encode='x' cannot be called"),
        ((Temperature, str, None), "decode=None cannot be called"),
    ],
)
def test_nonsense_is_refused(arguments: tuple[Any, Any, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        stepwell.types.register(*arguments)
