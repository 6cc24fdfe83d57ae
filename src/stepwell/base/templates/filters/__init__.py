"""The filters of the expression language. docs/expressions.md lists them; there are no others.

A filter is a function of the budget, the value and its arguments. It gets JSON values and returns one, never calls an argument,
and spends from the budget for what it reads or makes.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import lists, numbers, texts
from .arguments import Filter
from .tests import TESTS

FILTERS: Mapping[str, Filter] = {
    "tojson": texts.tojson,
    "fromjson": texts.fromjson,
    "upper": texts.changing("upper", str.upper),
    "lower": texts.changing("lower", str.lower),
    "capitalize": texts.changing("capitalize", str.capitalize),
    "title": texts.changing("title", str.title),
    "trim": texts.changing("trim", str.strip),
    "replace": texts.replace,
    "split": texts.split,
    "lines": texts.lines,
    "truncate": texts.truncate,
    "urlencode": texts.urlencode,
    "base64": texts.base64,
    "length": lists.length,
    "first": lists.end("first", 0),
    "last": lists.end("last", -1),
    "join": lists.join,
    "sort": lists.sort,
    "min": lists.extreme("min", min),
    "max": lists.extreme("max", max),
    "sum": lists.sum_,
    "unique": lists.unique,
    "reverse": lists.reverse,
    "map": lists.map_,
    "selectattr": lists.selecting("selectattr", True),
    "rejectattr": lists.selecting("rejectattr", False),
    "keys": lists.keys,
    "values": lists.values,
    "items": lists.items,
    "int": numbers.reading("int", numbers.cut),
    "float": numbers.reading("float", float),
    "round": numbers.round_,
    "abs": numbers.abs_,
    "date": numbers.date,
    "timestamp": numbers.timestamp,
    "shift": numbers.shift,
}
"""`default` is not among them: it catches what the expression before it misses, so the compiler knows it."""

__all__ = ["FILTERS", "TESTS", "Filter"]
