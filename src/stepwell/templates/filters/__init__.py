"""The filters of the expression language. docs/expressions.md lists them; there are no others.

A filter is a function of the budget, the value and its arguments. It is called by name from this closed table, gets JSON
values and gives a JSON value; it never calls an argument, and spends from the budget what it looks at or makes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import lists, numbers, texts
from .tests import TESTS

Filter = Callable[..., Any]

FILTERS: Mapping[str, Filter] = {
    "tojson": texts.tojson,
    "fromjson": texts.fromjson,
    "upper": texts.upper,
    "lower": texts.lower,
    "capitalize": texts.capitalize,
    "title": texts.title,
    "trim": texts.trim,
    "replace": texts.replace,
    "split": texts.split,
    "lines": texts.lines,
    "truncate": texts.truncate,
    "urlencode": texts.urlencode,
    "base64": texts.base64,
    "length": lists.length,
    "first": lists.first,
    "last": lists.last,
    "join": lists.join,
    "sort": lists.sort,
    "min": lists.min_,
    "max": lists.max_,
    "sum": lists.sum_,
    "unique": lists.unique,
    "reverse": lists.reverse,
    "map": lists.map_,
    "selectattr": lists.selectattr,
    "rejectattr": lists.rejectattr,
    "keys": lists.keys,
    "values": lists.values,
    "items": lists.items,
    "int": numbers.int_,
    "float": numbers.float_,
    "round": numbers.round_,
    "abs": numbers.abs_,
    "date": numbers.date,
    "timestamp": numbers.timestamp,
    "shift": numbers.shift,
}
"""`default` is not among them: it catches what the expression before it misses, so the compiler knows it."""

__all__ = ["FILTERS", "TESTS", "Filter"]
