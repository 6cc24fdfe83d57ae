"""The types that JSON can keep, and whether a value has one. Values are checked, never changed.

>>> shape_of(list[int]).problems([1, "2"], "ids")
["ids[1]: int is needed, got '2' (str)"]
"""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, NewType, Union, get_args, get_origin

from ...codec import encode
from ...errors import NotJson
from ...words import briefly

_LISTS = (list, collections.abc.Sequence)
_DICTS = (dict, collections.abc.Mapping)


class Shape(NamedTuple):
    """What an annotation allows. `problems(value, path)` lists what is wrong with a value found at `path`."""

    text: str
    problems: Callable[[Any, str], Sequence[str]]


class Unsupported(Exception):
    """An annotation that JSON cannot keep."""


def shape_of(annotation: Any) -> Shape:
    """The shape of an annotation, or Unsupported."""
    origin = get_origin(annotation)
    if annotation is Any or annotation is object:
        return Shape("anything", _not_json)
    if annotation is None or (isinstance(annotation, type) and annotation in _SCALARS):
        return _scalar(annotation)
    if annotation in _LISTS or origin in _LISTS:
        return _list(get_args(annotation))
    if annotation in _DICTS or origin in _DICTS:
        return _dict(annotation, get_args(annotation))
    if origin is Union or origin is UnionType:
        return _union([shape_of(each) for each in get_args(annotation)])
    if origin is Literal:
        return _literal(annotation, get_args(annotation))
    if isinstance(annotation, NewType):
        return shape_of(annotation.__supertype__)
    if hasattr(annotation, "__value__"):  # `type Name = ...`, from Python 3.12 on
        return shape_of(annotation.__value__)
    raise Unsupported(
        f"{_shown_type(annotation)}: it is kept as JSON. Use int, float, str, bool, None, list[...], "
        f"dict[str, ...], a union of these, Literal or Any; a date, for example, as an ISO string"
    )


_SCALARS: dict[Any, tuple[str, tuple[type, ...]]] = {
    int: ("int", (int,)),
    float: ("float", (float, int)),
    str: ("str", (str,)),
    bool: ("bool", (bool,)),
    NoneType: ("None", (NoneType,)),
    None: ("None", (NoneType,)),
}


def _scalar(annotation: Any) -> Shape:
    text, types = _SCALARS[annotation]

    def problems(value: Any, path: str) -> Sequence[str]:
        # To Python True is an int; to a person who asked for a number it is a mistake.
        if not isinstance(value, types) or (isinstance(value, bool) and types[0] is not bool):
            return [_refusal(path, text, value)]
        return _not_json(value, path) if isinstance(value, float) else ()

    return Shape(text, problems)


def _list(arguments: tuple[Any, ...]) -> Shape:
    item = shape_of(arguments[0] if arguments else Any)
    text = f"list[{item.text}]" if arguments else "list"

    def problems(value: Any, path: str) -> Sequence[str]:
        if not isinstance(value, list | tuple):
            return [_refusal(path, text, value)]
        return [problem for place, each in enumerate(value) for problem in item.problems(each, f"{path}[{place}]")]

    return Shape(text, problems)


def _dict(annotation: Any, arguments: tuple[Any, ...]) -> Shape:
    if arguments and arguments[0] is not str:
        raise Unsupported(f"{_shown_type(annotation)}: the keys of a JSON object are strings, so dict[str, ...]")
    item = shape_of(arguments[1] if arguments else Any)
    text = f"dict[str, {item.text}]" if arguments else "dict"

    def problems(value: Any, path: str) -> Sequence[str]:
        if not isinstance(value, dict):
            return [_refusal(path, text, value)]
        found = [f"{path}: the key {key!r} is not a string" for key in value if not isinstance(key, str)]
        for key, each in value.items():
            found += item.problems(each, f"{path}[{key!r}]")
        return found

    return Shape(text, problems)


def _union(choices: Sequence[Shape]) -> Shape:
    text = " or ".join(each.text for each in choices)

    def problems(value: Any, path: str) -> Sequence[str]:
        return () if any(not each.problems(value, path) for each in choices) else [_refusal(path, text, value)]

    return Shape(text, problems)


def _literal(annotation: Any, choices: tuple[Any, ...]) -> Shape:
    if any(type(each) not in (str, int, bool, NoneType) for each in choices):
        raise Unsupported(f"{_shown_type(annotation)}: a Literal of JSON has strings, ints, bools and None")
    text = "one of " + ", ".join(map(repr, choices))

    def problems(value: Any, path: str) -> Sequence[str]:
        right = any(value == each and type(value) is type(each) for each in choices)
        return () if right else [_refusal(path, text, value)]

    return Shape(text, problems)


def _not_json(value: Any, path: str) -> Sequence[str]:
    try:
        encode(value)
    except NotJson as error:
        return [f"{path}: {error}"]
    return ()


def _refusal(path: str, text: str, value: object) -> str:
    return f"{path}: {text} is needed, got {briefly(value)} ({type(value).__name__})"


def _shown_type(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)
