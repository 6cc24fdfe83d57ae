"""The JSON Schema of a class's inputs says what each annotation says, and refuses nothing that the class would take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, NewType

import pytest
from pydantic import BaseModel, Field

from stepwell import Workflow, step
from stepwell.define.types.input_schema import input_schema


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


OrderId = NewType("OrderId", int)


class Order(Workflow):
    number: OrderId
    names: list[str]
    sizes: Sequence[float]
    pair: tuple[int, str]
    prices: dict[str, int]
    notes: Mapping[str, Any]
    anything: dict  # type: ignore[type-arg]
    colour: Colour
    kind: Literal["a", 2]
    maybe: int | None
    whatever: Any
    express: bool = False

    @step
    def ship(self) -> None: ...


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("number", {"type": "integer"}),
        ("names", {"type": "array", "items": {"type": "string"}}),
        ("sizes", {"type": "array", "items": {"type": "number"}}),
        ("pair", {"type": "array"}),
        ("prices", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("notes", {"type": "object"}),
        ("anything", {"type": "object"}),
        ("colour", {"enum": ["red", "blue"]}),
        ("kind", {"enum": ["a", 2]}),
        ("maybe", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("whatever", {}),
        ("express", {"type": "boolean", "default": False}),
    ],
)
def test_an_annotation_is_told(name: str, schema: dict[str, Any]) -> None:
    assert input_schema(Order)["properties"][name] == schema


def test_what_has_a_default_is_not_required_and_nothing_else_is_taken() -> None:
    made = input_schema(Order)
    assert made["required"] == [name for name in made["properties"] if name != "express"]
    assert made["additionalProperties"] is False
    assert made["type"] == "object"


@dataclass
class Address:
    town: str
    above: Address | None = None
    zip: int = 0


class Line(BaseModel):
    count: int
    note: str = ""
    within: Address


class Named(BaseModel):
    name: str = Field(alias="Name")


class Checked(BaseModel):
    name: str = Field(min_length=2)


class Orders(Workflow):
    line: Line
    address: Address
    named: Named
    checked: Checked

    @step
    def ship(self) -> None: ...


def test_a_class_in_a_class_is_told_and_a_model_takes_other_scalars() -> None:
    town, number = {"type": "string"}, {"type": "integer"}
    address = {
        "type": "object",
        "properties": {"town": town, "above": {"anyOf": [{}, {"type": "null"}]}, "zip": number},
        "required": ["town"],
    }
    assert input_schema(Orders)["properties"] == {
        "line": {
            "type": "object",
            "properties": {"count": {}, "note": {}, "within": address},
            "required": ["count", "within"],
        },
        "address": address,
        "named": {"type": "object", "properties": {"Name": {}}},
        "checked": {},
    }
