"""The JSON Schema of a class's inputs says what each annotation says, and refuses nothing that the class would take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Literal, NewType

import pytest

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
