"""The part of JSON Schema that describes inputs and answers. Unknown keywords are refused, not ignored.

>>> schema = {"type": "object", "properties": {"n": {"type": "integer", "default": 3}}}
>>> with_defaults(schema, {}), str(problems_of(schema, {"n": "x"})[0])
({'n': 3}, "$.n: expected an integer, got 'x'")
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from itertools import islice
from math import isfinite
from typing import Any

from ..errors import InputError
from .codec import encode_checked, same
from .forms.problems import Path, Problem, shown
from .matching import PatternError, compiled
from .words import MAX_COMPARED, suggestion

MAX_MATCHED = 10_000
"""Characters of a text that a pattern is held against."""
MAX_MISFITS = 100
FEWEST_STEPS, STEPS_PER_PART, MOST_STEPS = 200_000, 10, 10_000_000
"""What a check may take: the comparison of one value with one schema is a step. Large data may take more than small data."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_KINDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("a string", lambda value: isinstance(value, str)),
    "integer": ("an integer", lambda value: _is_number(value) and value == int(value)),
    "number": ("a number", _is_number),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "object": ("an object", lambda value: isinstance(value, dict)),
    "array": ("a list", lambda value: isinstance(value, list)),
    "null": ("null", lambda value: value is None),
}
_WORDS = ("title", "description", "$comment", "$schema", "$id", "examples", "deprecated", "readOnly", "writeOnly")
_SCHEMAS = ("items", "additionalProperties", "not")
_LISTS = ("anyOf", "oneOf", "allOf")
_TABLES = ("properties", "$defs", "definitions")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_OTHER = ("type", "required", "enum", "const", "default", "pattern", "format", "uniqueItems", "$ref")
KEYWORDS = frozenset((*_WORDS, *_SCHEMAS, *_LISTS, *_TABLES, *_COUNTS, *_NUMBERS, *_OTHER))


class _TooMuch(Exception):
    """What is left to do would take too long."""


class _Checking:
    """One check: the whole schema, to which references refer, and the steps that are left.

    References can make a small schema describe itself many times over, so steps are counted and not only levels.
    """

    def __init__(self, root: Any, checked: Any) -> None:
        self.root = root
        self._left = min(FEWEST_STEPS + STEPS_PER_PART * _size(checked), MOST_STEPS)
        self._referred: dict[str, Any] = {}

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _TooMuch

    def referred(self, reference: str) -> Any:
        """What a reference refers to; None if there is nothing."""
        if reference not in self._referred:
            self.spend(reference.count("/"))
            self._referred[reference] = _referred(reference, self.root)
        return self._referred[reference]

    def without_references(self, schema: Any) -> Any:
        while isinstance(schema, dict) and "$ref" in schema:
            self.spend(1)
            schema = self.referred(schema["$ref"])
        return schema


def _size(value: Any) -> int:
    """The parts of a value; a long text has several."""
    size, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        size += 1
        if isinstance(each, str):
            size += len(each) // 16
        elif isinstance(each, dict):
            size += len(each)
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return size


_TAKES_TOO_LONG = "checking it takes too long: its parts are described in too many ways, or refer to each other"


# Of a schema


def check_schema(schema: Any) -> list[Problem]:
    """The problems of a schema, including unsupported keywords, 100 at most."""
    checking = _Checking(schema, schema)
    misfits = _limited(_schema_misfits(schema, (), checking))
    return misfits or _limited(_default_misfits(schema, (), checking))


def _limited(misfits: Iterator[Problem]) -> list[Problem]:
    problems: list[Problem] = []
    try:
        problems.extend(islice(misfits, MAX_MISFITS))
    except _TooMuch:
        problems.append(Problem((), _TAKES_TOO_LONG))
    return problems


def _schema_misfits(schema: Any, path: Path, checking: _Checking) -> Iterator[Problem]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield Problem(path, f"expected a schema (an object, true or false), got {shown(schema)}")
        return
    for word, value in schema.items():
        at = (*path, word)
        if word not in KEYWORDS:
            meant = suggestion(word, KEYWORDS, "")
            yield Problem(at, f"unknown keyword{meant and f'; {meant}'}")
        elif word in _SCHEMAS:
            yield from _schema_misfits(value, at, checking)
        elif word in _LISTS and (not isinstance(value, list) or not value):
            yield Problem(at, "expected a list of schemas")
        elif word in _TABLES and not isinstance(value, dict):
            yield Problem(at, "expected an object of schemas")
        elif word in _LISTS or word in _TABLES:
            for place, each in value.items() if isinstance(value, dict) else enumerate(value):
                yield from _schema_misfits(each, (*at, place), checking)
        else:
            message = _wrong_keyword(word, value, checking)
            if message:
                yield Problem(at, message)


def _wrong_keyword(word: str, value: Any, checking: _Checking) -> str | None:
    if word in _COUNTS and (type(value) is not int or value < 0):
        return "expected a whole number from 0"
    if word in _NUMBERS and not _is_number(value):
        return "expected a number"
    if word == "multipleOf" and value <= 0:
        return "expected a number above 0"
    if word == "type":
        names = value if isinstance(value, list) else [value]
        wrong = [each for each in names if not isinstance(each, str) or each not in _KINDS]
        if wrong or not names:
            return f"there is no type {shown(wrong[0] if wrong else value)}; there are {', '.join(_KINDS)}"
    if word == "required" and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
        return "expected a list of names"
    if word == "enum" and (not isinstance(value, list) or not value):
        return "expected a list of values"
    if word == "pattern":
        return _wrong_pattern(value)
    if word == "format" and not isinstance(value, str):
        return "expected the name of a format"
    if word == "$ref":
        return _wrong_reference(value, checking)
    return None


def _wrong_pattern(pattern: Any) -> str | None:
    if not isinstance(pattern, str):
        return "expected a pattern, as text"
    try:
        compiled(pattern)
    except PatternError as error:
        return f"it is not a pattern: {error}"
    return None


def _wrong_reference(reference: Any, checking: _Checking) -> str | None:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return 'expected a reference inside the schema, as "#/$defs/address"'
    seen: set[str] = set()
    while isinstance(reference, str):
        if reference in seen:
            return "it refers to itself"
        seen.add(reference)
        checking.spend(1)
        target = checking.referred(reference)
        if target is None:
            return f"{reference} does not exist"
        reference = target.get("$ref") if isinstance(target, dict) else None
    return None


def _referred(reference: str, root: Any) -> Any:
    """The schema at a reference; None if there is none, as at a default, which may be anything."""
    schema, in_table = root, False
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        leads_on = in_table or name in _TABLES or name in _SCHEMAS
        if not leads_on or not isinstance(schema, dict) or name not in schema:
            return None
        schema, in_table = schema[name], not in_table and name in _TABLES
    return None if in_table else schema


def _default_misfits(schema: Any, path: Path, checking: _Checking) -> Iterator[Problem]:
    """Defaults that the schema itself would refuse."""
    if not isinstance(schema, dict):
        return
    if "default" in schema:
        for problem in _misfits(schema, schema["default"], (), checking, 0):
            yield problem._replace(place=(*path, "default", *problem.place))
    for name, each in (schema.get("properties") or {}).items():
        yield from _default_misfits(each, (*path, "properties", name), checking)


# Of a value


def problems_of(schema: Any, value: Any) -> list[Problem]:
    """Everything about a value that does not fit its schema, 100 at most."""
    return _limited(_misfits(schema, value, (), _Checking(schema, value), 0))


def with_defaults(schema: Any, value: Any) -> Any:
    """The value with the defaults of the schema filled in, also in nested objects and lists."""
    try:
        return _filled(schema, value, _Checking(schema, value), 0)
    except _TooMuch:
        raise InputError("filling in the defaults takes too long: they are far larger than what is given") from None


def _filled(schema: Any, value: Any, checking: _Checking, depth: int) -> Any:
    schema = checking.without_references(schema)
    checking.spend(1)
    if not isinstance(schema, dict) or depth > 100:
        return value
    if isinstance(value, dict):
        made = dict(value)
        for name, each in (schema.get("properties") or {}).items():
            known = checking.without_references(each)
            checking.spend(1)
            if name in made:
                made[name] = _filled(each, made[name], checking, depth + 1)
            elif isinstance(known, dict) and "default" in known:
                made[name] = known["default"]
                checking.spend(_size(known["default"]))
        return made
    if isinstance(value, list) and "items" in schema:
        return [_filled(schema["items"], each, checking, depth + 1) for each in value]
    return value


def _misfits(schema: Any, value: Any, path: Path, checking: _Checking, depth: int) -> Iterator[Problem]:
    schema = checking.without_references(schema)
    checking.spend(1)
    if schema is True or schema is None:
        return
    if schema is False:
        yield Problem(path, "nothing is allowed here")
        return
    if depth > 100:
        yield Problem(path, "it is nested too deeply")
        return
    kinds = schema.get("type")
    if kinds is not None:
        names = kinds if isinstance(kinds, list) else [kinds]
        checking.spend(len(names))
        if not any(_KINDS[name][1](value) for name in names):
            needed = " or ".join(_KINDS[name][0] for name in names)
            yield Problem(path, f"expected {needed}, got {shown(value)}")
            return
    for compared in ([schema["const"]] if "const" in schema else []), schema.get("enum", []):
        checking.spend(len(compared) * (_size(value) if isinstance(value, dict | list | str) else 1))
    if "const" in schema and not same(schema["const"], value):
        yield Problem(path, f"expected {shown(schema['const'])}, got {shown(value)}")
    if "enum" in schema and not any(same(each, value) for each in schema["enum"]):
        allowed = ", ".join(map(shown, schema["enum"][:10]))
        yield Problem(path, f"expected one of {allowed}, got {shown(value)}")
    if isinstance(value, str):
        yield from _text_misfits(schema, value, path, checking)
    elif isinstance(value, list):
        yield from _list_misfits(schema, value, path, checking, depth)
    elif isinstance(value, dict):
        yield from _object_misfits(schema, value, path, checking, depth)
    elif _is_number(value):
        yield from _number_misfits(schema, value, path)
    yield from _combined_misfits(schema, value, path, checking, depth)


def _combined_misfits(
    schema: dict[str, Any], value: Any, path: Path, checking: _Checking, depth: int
) -> Iterator[Problem]:
    def fits(each: Any) -> bool:
        return next(_misfits(each, value, path, checking, depth + 1), None) is None

    for each in schema.get("allOf", ()):
        yield from _misfits(each, value, path, checking, depth + 1)
    if "anyOf" in schema:
        alike = [each for each in schema["anyOf"] if _takes_kind(checking.without_references(each), value)]
        if len(alike) == 1:  # the others are of other types: its misfits are what is wrong
            yield from _misfits(alike[0], value, path, checking, depth + 1)
        elif not any(map(fits, alike)):
            yield Problem(path, "it fits none of the schemas in anyOf")
    if "oneOf" in schema:
        count = sum(map(fits, schema["oneOf"]))
        if count != 1:
            yield Problem(path, f"it fits {count or 'none'} of the schemas in oneOf; exactly one must fit")
    if "not" in schema and fits(schema["not"]):
        yield Problem(path, "it fits the schema under not")


def _takes_kind(schema: Any, value: Any) -> bool:
    kinds = schema.get("type") if isinstance(schema, dict) else None
    if kinds is None:
        return schema is not False
    return any(_KINDS[name][1](value) for name in (kinds if isinstance(kinds, list) else [kinds]))


_BOUNDS: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minLength": (operator.lt, "expected at least {} characters"),
    "maxLength": (operator.gt, "expected at most {} characters"),
    "minItems": (operator.lt, "expected at least {} items"),
    "maxItems": (operator.gt, "expected at most {} items"),
    "minProperties": (operator.lt, "expected at least {} fields"),
    "maxProperties": (operator.gt, "expected at most {} fields"),
    "minimum": (operator.lt, "expected at least {}, got {}"),
    "maximum": (operator.gt, "expected at most {}, got {}"),
    "exclusiveMinimum": (operator.le, "expected more than {}, got {}"),
    "exclusiveMaximum": (operator.ge, "expected less than {}, got {}"),
}
"""By keyword: the comparison that makes a length or number wrong, and the message."""


def _out_of_bounds(schema: dict[str, Any], number: float, path: Path, *keywords: str) -> Iterator[Problem]:
    for keyword in keywords:
        if keyword in schema:
            is_wrong, message = _BOUNDS[keyword]
            if is_wrong(number, schema[keyword]):
                yield Problem(path, message.format(schema[keyword], number))


def _text_misfits(schema: dict[str, Any], value: str, path: Path, checking: _Checking) -> Iterator[Problem]:
    yield from _out_of_bounds(schema, len(value), path, "minLength", "maxLength")
    if "pattern" in schema and not _matches(schema["pattern"], value, checking):
        yield Problem(path, f"it does not match {schema['pattern']}")
    check = _FORMATS.get(schema.get("format", ""))
    if check is not None and not check(value):
        yield Problem(path, f"it is not of the format {schema['format']}")


def _matches(pattern: str, value: str, checking: _Checking) -> bool:
    if len(value) > MAX_MATCHED:
        return False
    try:
        matcher = compiled(pattern)
    except PatternError:  # of a schema that was never checked
        return False
    checking.spend(len(value) * matcher.size // 300)
    return matcher.search(value) is not None


def _list_misfits(
    schema: dict[str, Any], value: list[Any], path: Path, checking: _Checking, depth: int
) -> Iterator[Problem]:
    yield from _out_of_bounds(schema, len(value), path, "minItems", "maxItems")
    if schema.get("uniqueItems") is True:
        checking.spend(_size(value))
    if schema.get("uniqueItems") is True and len({encode_checked(each) for each in value}) < len(value):
        yield Problem(path, "it holds an item twice")
    if "items" in schema:
        for place, each in enumerate(value):
            yield from _misfits(schema["items"], each, (*path, place), checking, depth + 1)


def _object_misfits(
    schema: dict[str, Any], value: dict[str, Any], path: Path, checking: _Checking, depth: int
) -> Iterator[Problem]:
    known = schema.get("properties", {})
    checking.spend(len(schema.get("required", ())))
    for name in schema.get("required", ()):
        if name not in value:
            yield Problem((*path, name), "this field is missing")
    yield from _out_of_bounds(schema, len(value), path, "minProperties", "maxProperties")
    more = schema.get("additionalProperties", True)
    for name, each in value.items():
        if name in known:
            yield from _misfits(known[name], each, (*path, name), checking, depth + 1)
        elif more is False:
            checking.spend(len(known) + min(len(name) * sum(map(len, known)), MAX_COMPARED))
            meant = f"; {suggestion(name, known, most=20)}" if known else ""
            yield Problem((*path, name), f"unknown field{meant}")
        elif more is not True:
            yield from _misfits(more, each, (*path, name), checking, depth + 1)


def _number_misfits(schema: dict[str, Any], value: float, path: Path) -> Iterator[Problem]:
    yield from _out_of_bounds(schema, value, path, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    step = schema.get("multipleOf")
    if step is not None and not _is_multiple(value, step):
        yield Problem(path, f"expected a multiple of {step}, got {value}")


def _is_multiple(value: float, step: float) -> bool:
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    try:
        times = value / step
    except OverflowError:  # an integer that no float can be
        return True
    return not isfinite(times) or abs(times - round(times)) <= 1e-9


def _reads(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return check


_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": _reads(date.fromisoformat),
    "date-time": lambda text: "T" in text.upper() and _reads(datetime.fromisoformat)(text),
    "time": _reads(time.fromisoformat),
    "email": lambda text: re.fullmatch(r"[^@\s]{1,64}@[^@\s]{1,255}", text) is not None,
    "uri": lambda text: re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:\S+", text) is not None,
}
