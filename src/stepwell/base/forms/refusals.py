"""What pydantic refuses, in our words: the same for documents, configs of handlers, typed data and requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .problems import Misfit, Path

EXPECTED, SECRET = "expected", "expected_secret"
"""Errors whose message is what was expected. A value that is refused as SECRET is not shown."""
MISSING, UNKNOWN = "missing", "extra_forbidden"


class ModelRefusal(NamedTuple):
    """One thing that pydantic refuses."""

    place: Path
    """In the data."""
    kind: str
    value: Any
    message: str
    expected: str | None = None
    """What the message says was expected, if it says that: `expected EXPECTED`."""
    misfit: Misfit | None = None
    """What was raised instead, with its own problems."""


def refusals(errors: Iterable[Mapping[str, Any]], data: Any) -> list[ModelRefusal]:
    """The errors that pydantic lists. Those of the members of a union are one: `expected text or secret:NAME`."""
    listed: list[ModelRefusal] = []
    for error in errors:
        refusal = _refusal(error, data)
        last = listed[-1] if listed else None
        if last is not None and last.place == refusal.place and last.expected and refusal.expected:
            names = dict.fromkeys([*last.expected.split(" or "), refusal.expected])
            expected = " or ".join(names)
            listed[-1] = last._replace(expected=expected, message=f"expected {expected}")
        else:
            listed.append(refusal)
    return listed


def _refusal(error: Mapping[str, Any], data: Any) -> ModelRefusal:
    kind, context = error["type"], error.get("ctx", {})
    message, expected = words_of(error)
    misfit = context.get("error")
    return ModelRefusal(
        _place(data, error["loc"], is_missing=kind == MISSING),
        kind,
        error.get("input"),
        message,
        expected,
        misfit if isinstance(misfit, Misfit) else None,
    )


def words_of(error: Mapping[str, Any]) -> tuple[str, str | None]:
    """The message of an error, and what it says was expected, if it says that."""
    kind, message = error["type"], str(error["msg"])
    if kind in _MESSAGES:
        return _MESSAGES[kind], None
    if kind in (EXPECTED, SECRET):
        expected = message
    elif kind == "literal_error":
        expected = "one of " + error["ctx"]["expected"].replace(" or ", ", ").replace("'", "")
    elif kind in _EXPECTATIONS:
        expected = _EXPECTATIONS[kind].format(**error.get("ctx", {}))
    elif message.startswith(_SHOULD_BE):
        expected = message.removeprefix(_SHOULD_BE)
    else:
        return message.removeprefix("Value error, ").removeprefix("Assertion failed, "), None
    return f"expected {expected}", expected


_SHOULD_BE = "Input should be "
_MESSAGES = {MISSING: "this field is missing", UNKNOWN: "unknown field"}
_EXPECTATIONS = {
    "string_type": "text",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number that JSON has",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "none_required": "null",
    "too_long": "at most {max_length} items",
    "too_short": "at least {min_length} items",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
}
"""What each error of pydantic says was expected."""


def _place(data: Any, loc: tuple[str | int, ...], *, is_missing: bool) -> Path:
    """The place of an error, without the steps that pydantic adds for members of a union and keys of a dictionary."""
    place: list[str | int] = []
    value = data
    for number, step in enumerate(loc):
        if step == "[key]":  # of a dictionary, which its place before names
            continue
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            if not is_missing or number < len(loc) - 1:
                continue
        place.append(step)
    return tuple(place)
