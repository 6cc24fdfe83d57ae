"""The tests of the expression language: what may stand after `is`, or be named in `selectattr`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..values import compared, is_whole
from .arguments import text_of

Test = Callable[..., bool]


def _of_kind(*kinds: type) -> Test:
    return lambda budget, value: type(value) in kinds


def _by_method(name: str, holds: Callable[[str, str], bool]) -> Test:
    return lambda budget, value, other: holds(text_of(value, name, budget), text_of(other, name, budget))


def _comparing(sign: str) -> Test:
    return lambda budget, value, other: compared(sign, value, other, budget)


TESTS: Mapping[str, Test] = {
    "defined": lambda budget, value: True,
    "undefined": lambda budget, value: False,
    "none": lambda budget, value: value is None,
    "true": lambda budget, value: value is True,
    "false": lambda budget, value: value is False,
    "boolean": _of_kind(bool),
    "number": _of_kind(int, float),
    "integer": _of_kind(int),
    "string": _of_kind(str),
    "list": _of_kind(list),
    "mapping": _of_kind(dict),
    "even": lambda budget, value: is_whole(value) and value % 2 == 0,
    "odd": lambda budget, value: is_whole(value) and value % 2 == 1,
    "startswith": _by_method("startswith", str.startswith),
    "endswith": _by_method("endswith", str.endswith),
    "eq": _comparing("eq"),
    "ne": _comparing("ne"),
    "lt": _comparing("lt"),
    "le": _comparing("lteq"),
    "gt": _comparing("gt"),
    "ge": _comparing("gteq"),
    "in": _comparing("in"),
}
