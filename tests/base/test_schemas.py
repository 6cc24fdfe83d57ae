"""JSON Schema: what fits, what does not, what is refused in a schema."""

from __future__ import annotations

import doctest
import itertools
import re
from contextlib import suppress
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.base import schemas
from stepwell.base.schemas import check_schema, problems_of, with_defaults
from stepwell.errors import InputError
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
    told = {".".join(map(str, misfit.place)): misfit.message for misfit in problems_of(ORDER, wrong)}
    assert told == {
        "id": "expected at least 1, got 0",
        "email": "it is not of the format email",
        "items.0.name": "expected a string, got 1",
        "sped": "unknown field; did you mean 'speed'?",
    }
    assert [misfit.message for misfit in problems_of(ORDER, {})] == ["this field is missing"]
    assert [misfit.message for misfit in problems_of(ORDER, [])] == ["expected an object, got an empty list"]


FITS: list[tuple[Any, list[Any], list[Any]]] = [
    ({"type": "integer"}, [1, 1.0, -3], [1.5, True, "1", None]),
    ({"type": "number"}, [1, 1.5], [False, "x"]),
    ({"type": ["string", "null"]}, ["", None], [1, []]),
    ({"const": True}, [True], [1, "true"]),
    ({"enum": [1, "a", None]}, [1, "a", None], [True, "b"]),
    ({"const": [1, {"a": 0}]}, [[1, {"a": 0}], [1.0, {"a": 0}]], [[True, {"a": 0}], [1, {"a": False}], [1], [1, {}]]),
    ({"enum": [{"a": False}, []]}, [{"a": False}, []], [{"a": 0}, {"b": False}, {}, [0]]),
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


SCALARS = st.sampled_from([None, True, False, 0, 1, 2, 3, 1.0, 2.5, -1, "", "a", "ab", "abc", "1"])
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=5,
)
SIZES = st.integers(0, 3)


def _schema_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": st.sampled_from(list(schemas._KINDS)) | st.lists(st.sampled_from(list(schemas._KINDS)), min_size=1),
        "const": DATA,
        "enum": st.lists(DATA, min_size=1, max_size=3),
        "pattern": st.sampled_from(["^a", "b", "^$", "c$"]),
        "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
        "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
        "multipleOf": st.sampled_from([1, 2, 3]),
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), SIZES),
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), st.integers(-1, 3)),
        **dict.fromkeys(("items", "additionalProperties", "not"), inner),
        **dict.fromkeys(("anyOf", "oneOf", "allOf"), some),
    }
    words = st.lists(st.sampled_from(list(keywords)), max_size=3, unique=True)
    return words.flatmap(lambda chosen: st.fixed_dictionaries({word: keywords[word] for word in chosen}))


SCHEMAS = st.recursive(st.booleans() | _schema_of(st.booleans()), _schema_of, max_leaves=4)


@settings(max_examples=250)
@given(SCHEMAS, st.lists(DATA, min_size=1, max_size=5))
def test_what_fits_a_schema_is_what_the_specification_says(schema: Any, values: list[Any]) -> None:
    assert check_schema(schema) == []
    judge = jsonschema.Draft202012Validator(schema)
    for value in values:
        assert (problems_of(schema, value) == []) is judge.is_valid(value), (schema, value)


SIZED: dict[str, tuple[Any, list[bool]]] = {
    "minLength": (["a", "ab", "abc"], [False, True, True]),
    "maxLength": (["a", "ab", "abc"], [True, True, False]),
    "minItems": ([[1], [1, 2], [1, 2, 3]], [False, True, True]),
    "maxItems": ([[1], [1, 2], [1, 2, 3]], [True, True, False]),
    "minProperties": ([{"a": 1}, {"a": 1, "b": 1}, dict.fromkeys("abc")], [False, True, True]),
    "maxProperties": ([{"a": 1}, {"a": 1, "b": 1}, dict.fromkeys("abc")], [True, True, False]),
    "minimum": ([1.9, 2, 2.1], [False, True, True]),
    "maximum": ([1.9, 2, 2.1], [True, True, False]),
    "exclusiveMinimum": ([1.9, 2, 2.1], [False, False, True]),
    "exclusiveMaximum": ([1.9, 2, 2.1], [True, False, False]),
}


@pytest.mark.parametrize("keyword", schemas._BOUNDS)
def test_a_bound_is_where_it_is_said_to_be_and_is_told(keyword: str) -> None:
    values, fit = SIZED[keyword]
    found = [problems_of({keyword: 2}, value) for value in values]
    assert [not misfits for misfits in found] == fit
    for (misfit,) in filter(None, found):
        assert re.search(r"\b2\b", misfit.message), "the bound is named"


FORMATS: dict[str, tuple[list[str], list[str]]] = {
    "date": (["2026-01-15", "2024-02-29"], ["2026-02-29", "15.1.2026", "", "x"]),
    "date-time": (["2026-01-15T10:30:00Z", "2026-01-15t10:30:00+02:00"], ["2026-01-15", "2026-01-15 10:30:00", "T"]),
    "time": (["10:30:00", "10:30"], ["25:00", "x", ""]),
    "email": (["a@b", "first.last@example.com"], ["a", "@b", "a@", "a b@c", "a@b@c", "x" * 65 + "@b"]),
    "uri": (["https://x.test/a?b", "mailto:a@b", "a+b-c.d:x"], ["x", "1a:b", "a: b", "://x", "a:"]),
}


@pytest.mark.parametrize("name", schemas._FORMATS)
def test_a_format_takes_texts_of_its_form_and_whatever_is_no_text(name: str) -> None:
    good, bad = FORMATS[name]
    assert [value for value in (*good, 7, None, ["x"]) if problems_of({"format": name}, value)] == []
    assert [value for value in bad if not problems_of({"format": name}, value)] == []
    assert problems_of({"format": "of our own"}, "x") == []


PARTS: list[tuple[dict[str, Any], set[int]]] = [
    ({"minimum": 3}, {3, 4, 5}),
    ({"maximum": 4}, {1, 2, 3, 4}),
    ({"const": 2}, {2}),
    ({"enum": [1, 5]}, {1, 5}),
    ({"type": "string"}, set()),
    ({"type": "integer"}, {1, 2, 3, 4, 5}),
]


@pytest.mark.parametrize("parts", list(itertools.combinations(PARTS, 3)), ids=lambda each: str([a for a, _ in each]))
def test_combined_schemas_fit_what_their_parts_say_together(parts: Any) -> None:
    schemas, fitting = [schema for schema, _ in parts], [fits for _, fits in parts]
    for value in range(1, 6):
        count = sum(value in fits for fits in fitting)
        expected = {
            "allOf": count == len(parts),
            "anyOf": count > 0,
            "oneOf": count == 1,
            "not": value not in fitting[0],
        }
        for word, fits in expected.items():
            schema = {word: schemas[0] if word == "not" else schemas}
            assert (problems_of(schema, value) == []) is fits, (schema, value)
            assert (problems_of({"properties": {"n": schema}}, {"n": value}) == []) is fits, (schema, value)
            assert (problems_of({"minimum": 2, **schema}, value) == []) is (fits and value >= 2), (schema, value)


def test_what_a_combination_refuses_is_told_at_its_place() -> None:
    def told(schema: Any, value: Any) -> list[tuple[Any, str]]:
        return [(misfit.place, misfit.message) for misfit in problems_of({"properties": {"a": schema}}, {"a": value})]

    both = [{"minimum": 5}, {"multipleOf": 2}]
    assert told({"allOf": both}, 3) == [
        (("a",), "expected at least 5, got 3"),
        (("a",), "expected a multiple of 2, got 3"),
    ]
    assert told({"allOf": [{"items": {"type": "string"}}]}, ["x", 1]) == [(("a", 1), "expected a string, got 1")]
    assert told({"anyOf": both}, 3) == [(("a",), "it fits none of the schemas in anyOf")]
    assert told({"oneOf": both}, 3) == [(("a",), "it fits none of the schemas in oneOf; exactly one must fit")]
    assert told({"oneOf": both}, 6) == [(("a",), "it fits 2 of the schemas in oneOf; exactly one must fit")]
    assert told({"not": both[0]}, 6) == [(("a",), "it fits the schema under not")]


PLACES: list[tuple[Any, str]] = [
    ({"default": "x", "type": "integer"}, "default"),
    ({"properties": {"a": {"default": {"b": 1}, "properties": {"b": {"type": "string"}}}}}, "properties.a.default.b"),
    (
        {"properties": {"a": {"properties": {"b": {"type": "integer", "default": "x"}}}}},
        "properties.a.properties.b.default",
    ),
    ({"properties": {"a": {"default": [1, "x"], "items": {"type": "integer"}}}}, "properties.a.default.1"),
    (
        {"properties": {"a": {"$ref": "#/$defs/n", "default": 1}}, "$defs": {"n": {"type": "string"}}},
        "properties.a.default",
    ),
    ({"properties": {"a": {"anyOf": [{"type": "string"}, {"minimum": 5}], "default": 4}}}, "properties.a.default"),
    ({"properties": {"a": {"required": ["b"], "default": {}}}}, "properties.a.default.b"),
]


@pytest.mark.parametrize(("schema", "place"), PLACES, ids=[str(each[0])[:50] for each in PLACES])
def test_a_default_that_its_own_schema_refuses_is_told_at_its_place(schema: Any, place: str) -> None:
    found = [".".join(map(str, misfit.place)) for misfit in check_schema(schema)]
    assert found == [place]


WRONG: list[tuple[Any, str, str]] = [
    ([], "", "expected a schema"),
    ({"typ": "string"}, "typ", "did you mean 'type'?"),
    ({"type": "text"}, "type", "is no type"),
    ({"properties": {"a": {"minimum": "1"}}}, "properties.a.minimum", "expected a number"),
    ({"required": "a"}, "required", "a list of names"),
    ({"enum": []}, "enum", "a list of values"),
    ({"minLength": -1}, "minLength", "from 0"),
    ({"anyOf": []}, "anyOf", "a list of schemas"),
    ({"pattern": "("}, "pattern", "it is not a pattern"),
    ({"pattern": "(?=a)b"}, "pattern", "without lookaround"),
    ({"pattern": r"(a)\1"}, "pattern", "without lookaround and references"),
    ({"pattern": "(a{1000}){1000}"}, "pattern", "invalid repetition size"),
    ({"pattern": r"\p{L}{9}"}, "pattern", "it is too large"),
    ({"$ref": "#/$defs/x"}, "$ref", "does not exist"),
    ({"$ref": "https://example.com/schema"}, "$ref", "inside the schema"),
    ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "$defs.a.$ref", "refers to itself"),
    ({"properties": {"n": {"type": "integer", "default": "x"}}}, "properties.n.default", "expected an integer"),
]


@pytest.mark.parametrize(("schema", "path", "message"), WRONG, ids=[each[2] + each[1] for each in WRONG])
def test_a_schema_that_is_wrong_is_refused(schema: Any, path: str, message: str) -> None:
    first = check_schema(schema)[0]
    assert ".".join(map(str, first.place)) == path
    assert message in first.message


def test_a_schema_that_contains_itself_ends() -> None:
    schema = {"$ref": "#/$defs/tree", "$defs": {"tree": {"properties": {"down": {"$ref": "#/$defs/tree"}}}}}
    assert check_schema(schema) == []
    value: Any = {}
    for _ in range(150):
        value = {"down": value}
    assert problems_of(schema, value)[0].message == "it is nested too deeply"
    with processor_time.at_most(processor_time.SECOND):
        assert problems_of({"items": {"type": "string"}}, [1] * 100_000)


SELF = {"$ref": "#/$defs/a"}
LONG = "a" * 10_000
HOSTILE: dict[str, tuple[Any, Any]] = {
    "a pattern that tries every way": ({"pattern": "a*a*a*a*a*a*a*a*b"}, LONG),
    "a repeated group that repeats": ({"pattern": "(a+)+(a|a)*(.*)*b"}, LONG),
    "a large pattern": ({"items": {"pattern": "(.{0,100}){4}z"}}, [LONG] * 300),
    "two branches to itself": ({**SELF, "$defs": {"a": {"anyOf": [{"not": SELF}, {"not": SELF}]}}}, 1),
    "all of itself": ({**SELF, "$defs": {"a": {"allOf": [{"anyOf": [SELF]}, {"anyOf": [SELF]}]}}}, 1),
    "a chain of references": (
        {"$ref": "#/$defs/0", "$defs": {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(20_000)} | {"20000": {}}},
        1,
    ),
    "many values held against many": ({"items": {"enum": [[n] for n in range(20_000)]}}, [[-1]] * 20_000),
    "many names needed by many": ({"items": {"required": [str(n) for n in range(20_000)]}}, [{}] * 20_000),
    "many fields that nobody knows": (
        {"additionalProperties": False, "properties": {f"{n}" * 9: {} for n in range(2_000)}},
        {f"{n}x" * 9: 1 for n in range(2_000)},
    ),
    "choices of unknown fields": (
        {"anyOf": [{"additionalProperties": False, "properties": {"ab" * 50: {}}}] * 20_000},
        {"ba" * 50: 1},
    ),
    "keywords that nobody knows": ({f"requierd{n}": 1 for n in range(20_000)}, 1),
    "lists of which all differ": (
        {**SELF, "$defs": {"a": {"uniqueItems": True, "items": SELF}}},
        [[[LONG] * 99] * 9] * 9,
    ),
    "a large default for each of many": (
        {"items": {"properties": {"x": {"default": [0] * 10_000}}}},
        [{} for _ in range(10_000)],
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_check_ends_soon_whatever_is_checked(what: str) -> None:
    schema, value = HOSTILE[what]
    with processor_time.at_most(3 * processor_time.SECOND):
        if not check_schema(schema):
            with suppress(InputError):  # the defaults are too large
                problems_of(schema, with_defaults(schema, value))


def test_a_check_that_takes_too_long_is_a_problem() -> None:
    schema = {**SELF, "$defs": {"a": {"anyOf": [{"not": SELF}, {"not": SELF}]}}}
    assert "takes too long" in check_schema({**schema, "default": 1})[0].message
    assert "takes too long" in problems_of(schema, 1)[0].message
    assert check_schema(schema) == [], "a schema may refer to itself"


def test_values_are_told_in_the_words_of_json() -> None:
    told = {
        "null": None,
        "true": True,
        "false": False,
        "7": 7,
        "'x'": "x",
        "an object": {"a": 1},
        "a list of 2": [1, 2],
    }
    for words, value in told.items():
        assert problems_of({"type": "string", "not": {}}, value)[0].message.endswith((f"got {words}", "under not"))
        assert problems_of({"const": value}, 0.5)[0].message == f"expected {words}, got 0.5"
        assert problems_of({"enum": [value, 3]}, 0.5)[0].message == f"expected one of {words}, 3, got 0.5"
    kinds = {kind: words for kind, (words, _) in schemas._KINDS.items()}
    for kind, words in kinds.items():
        other = 0.5 if kind == "string" else "x"
        assert problems_of({"type": [kind, kind]}, other)[0].message == f"expected {words} or {words}, got {other!r}"


def test_a_long_text_may_be_held_against_much_and_a_short_one_not() -> None:
    """The steps that a check may take grow with what is checked, also with the length of a text."""
    enum = {"enum": ["x"] * 400_000}
    assert "takes too long" in problems_of(enum, "y")[0].message
    assert problems_of(enum, "x" * 16 * 100_000) != []
    assert [schemas._size(value) for value in ("x" * 15, "x" * 1_600, ["x" * 160] * 10, {"a": [1, None]})] == [
        1,
        101,
        111,
        5,
    ]


def test_a_number_of_any_size_is_a_multiple_or_not() -> None:
    assert problems_of({"multipleOf": 7}, 7 * 10**400) == []
    assert problems_of({"multipleOf": 7}, 10**400) != []
