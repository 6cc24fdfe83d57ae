"""JSON Schema: what fits, what does not, what is refused in a schema."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

from stepwell import schemas
from stepwell.schemas import KEYWORDS, check_schema, problems_of, with_defaults
from tests import processor_time

ORDER = {
    "type": "object",
    "required": ["id"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "email": {"type": "string", "format": "email"},
        "items": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/item"}},
        "speed": {"enum": ["slow", "fast"], "default": "slow"},
    },
    "$defs": {
        "item": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 1}},
        }
    },
}


def test_the_example_is_right() -> None:
    assert doctest.testmod(schemas).failed == 0


def test_defaults_are_filled_in_everywhere() -> None:
    given = {"id": 7, "items": [{"name": "tea"}, {"name": "rum", "count": 2}]}
    assert with_defaults(ORDER, given) == {
        "id": 7,
        "items": [{"name": "tea", "count": 1}, {"name": "rum", "count": 2}],
        "speed": "slow",
    }
    assert "speed" not in given


def test_all_that_does_not_fit_is_told_with_its_place() -> None:
    wrong = {"id": 0, "email": "nobody", "items": [{"name": 1}], "sped": "fast"}
    told = {".".join(map(str, misfit.path)): misfit.message for misfit in problems_of(ORDER, wrong)}
    assert told == {
        "id": "at least 1 is needed, not 0",
        "email": "it is no email",
        "items.0.name": "a string is needed, not 1",
        "sped": "there is no such field; did you mean 'speed'?",
    }
    assert [misfit.message for misfit in problems_of(ORDER, {})] == ["it is needed"]
    assert [misfit.message for misfit in problems_of(ORDER, [])] == ["an object is needed, not a list of 0"]


FITS: list[tuple[Any, list[Any], list[Any]]] = [
    ({"type": "integer"}, [1, 1.0, -3], [1.5, True, "1", None]),
    ({"type": "number"}, [1, 1.5], [False, "x"]),
    ({"type": ["string", "null"]}, ["", None], [1, []]),
    ({"const": True}, [True], [1, "true"]),
    ({"enum": [1, "a", None]}, [1, "a", None], [True, "b"]),
    ({"minimum": 2, "exclusiveMaximum": 5}, [2, 4.9, "text"], [1, 5]),
    ({"multipleOf": 0.1}, [0.3, 7], [0.25]),
    ({"minLength": 2, "maxLength": 3}, ["ab", "abc", 7], ["a", "abcd"]),
    ({"pattern": "^[a-z]+$"}, ["abc"], ["ABC", "a" * 10_001]),
    ({"format": "date"}, ["2026-01-15"], ["15.1.2026"]),
    ({"format": "date-time"}, ["2026-01-15T10:30:00Z"], ["2026-01-15"]),
    ({"minItems": 1, "maxItems": 2, "uniqueItems": True}, [[1], [1, 2]], [[], [1, 1], [1, 2, 3]]),
    ({"minProperties": 1, "maxProperties": 1}, [{"a": 1}], [{}, {"a": 1, "b": 2}]),
    ({"additionalProperties": {"type": "string"}}, [{"a": "x"}], [{"a": 1}]),
    ({"anyOf": [{"type": "string"}, {"minimum": 5}]}, ["x", 6], [4]),
    ({"oneOf": [{"minimum": 1}, {"minimum": 5}]}, [2], [6, 0]),
    ({"allOf": [{"minimum": 1}, {"maximum": 5}]}, [3], [0, 6]),
    ({"not": {"type": "null"}}, [1], [None]),
    (True, [None, 1], []),
    (False, [], [None, 1]),
]


@pytest.mark.parametrize(("schema", "good", "bad"), FITS, ids=[str(each[0])[:50] for each in FITS])
def test_what_fits(schema: Any, good: list[Any], bad: list[Any]) -> None:
    assert check_schema(schema) == []
    for value in good:
        assert problems_of(schema, value) == []
    for value in bad:
        assert problems_of(schema, value) != []


WRONG: list[tuple[Any, str, str]] = [
    ([], "", "a schema is an object"),
    ({"typ": "string"}, "typ", "did you mean 'type'?"),
    ({"type": "text"}, "type", "is no type"),
    ({"properties": {"a": {"minimum": "1"}}}, "properties.a.minimum", "a number is needed"),
    ({"required": "a"}, "required", "a list of names"),
    ({"enum": []}, "enum", "a list of values"),
    ({"minLength": -1}, "minLength", "from 0"),
    ({"anyOf": []}, "anyOf", "a list of schemas"),
    ({"pattern": "("}, "pattern", "it is no pattern"),
    ({"pattern": "(a+)+$"}, "pattern", "may take for ever"),
    ({"pattern": "(a|a)*$"}, "pattern", "may take for ever"),
    ({"$ref": "#/$defs/x"}, "$ref", "nothing at"),
    ({"$ref": "https://example.com/schema"}, "$ref", "inside the schema"),
    ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "$defs.a.$ref", "refers to itself"),
    ({"properties": {"n": {"type": "integer", "default": "x"}}}, "properties.n.default", "an integer is needed"),
]


@pytest.mark.parametrize(("schema", "path", "message"), WRONG, ids=[each[2] + each[1] for each in WRONG])
def test_a_schema_that_is_wrong_is_refused(schema: Any, path: str, message: str) -> None:
    first = check_schema(schema)[0]
    assert ".".join(map(str, first.path)) == path
    assert message in first.message


def test_every_keyword_is_looked_at_somewhere() -> None:
    assert len(KEYWORDS) > 30


def test_a_schema_that_contains_itself_ends() -> None:
    schema = {"$ref": "#/$defs/tree", "$defs": {"tree": {"properties": {"down": {"$ref": "#/$defs/tree"}}}}}
    assert check_schema(schema) == []
    value: Any = {}
    for _ in range(150):
        value = {"down": value}
    assert problems_of(schema, value)[0].message == "it is nested too deeply"
    with processor_time.at_most(processor_time.SECOND):
        assert problems_of({"items": {"type": "string"}}, [1] * 100_000)
