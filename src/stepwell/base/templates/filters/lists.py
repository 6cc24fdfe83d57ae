"""Filters of lists and objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import Missing, TemplateError
from ..limits import Budget
from ..values import add, as_json, described, is_number, order_key, written
from .arguments import NOT_GIVEN, Filter, deep_field, list_of, object_of, text_of
from .tests import TESTS


def length(budget: Budget, value: Any) -> int:
    if isinstance(value, str | list | dict):
        return len(value)
    raise TemplateError(f"length needs a text, a list or an object, not {described(value)}")


def end(name: str, place: int) -> Filter:
    def find(budget: Budget, value: Any) -> Any:
        items = list_of(value, name, budget)
        if not items:
            raise Missing(f"{name}: the list is empty")
        return items[place]

    return find


def join(budget: Budget, value: Any, separator: Any = "", attribute: Any = None) -> str:
    items = list_of(value, "join", budget)
    separator = text_of(separator, "join", budget)
    if attribute is not None:
        items = [*map(deep_field(attribute, "join"), items)]
    parts = [written(each, budget) for each in items]
    budget.for_text(sum(map(len, parts)) + len(separator) * len(parts))
    return str(separator.join(parts))


def _sorted_by(items: list[Any], attribute: Any, name: str) -> list[tuple[Any, Any]]:
    find = None if attribute is None else deep_field(attribute, name)
    keyed = [(order_key(each if find is None else find(each)), each) for each in items]
    if len({type(key) is str for key, _ in keyed}) > 1:
        raise TemplateError(f"{name}: numbers and texts have no order among each other")
    return keyed


def sort(budget: Budget, value: Any, reverse: Any = False, attribute: Any = None) -> list[Any]:
    items = list_of(value, "sort", budget)
    keyed = _sorted_by(items, attribute, "sort")
    for key, _ in keyed:
        budget.spend(16 if type(key) is not str else 16 + len(key))
    keyed.sort(key=lambda pair: pair[0], reverse=bool(reverse))
    return [each for _, each in keyed]


def extreme(name: str, choose: Callable[..., Any]) -> Filter:
    def find(budget: Budget, value: Any, attribute: Any = None) -> Any:
        keyed = _sorted_by(list_of(value, name, budget), attribute, name)
        if not keyed:
            raise Missing(f"{name}: the list is empty")
        for key, _ in keyed:
            if type(key) is str:
                budget.for_text(len(key))
        return choose(keyed, key=lambda pair: pair[0])[1]

    return find


def sum_(budget: Budget, value: Any, attribute: Any = None, start: Any = 0) -> Any:
    total, find = start, None if attribute is None else deep_field(attribute, "sum")
    for each in list_of(value, "sum", budget):
        number = each if find is None else find(each)
        if not is_number(number):
            raise TemplateError(f"sum needs numbers, not {described(number)}")
        total = add(total, number, budget)
    return total


def unique(budget: Budget, value: Any) -> list[Any]:
    """Each value once, where it first was."""
    seen: dict[str, Any] = {}
    for each in list_of(value, "unique", budget):
        budget.spend(8)
        seen.setdefault(as_json(each, budget), each)
    return list(seen.values())


def reverse(budget: Budget, value: Any) -> Any:
    if type(value) is str:
        return text_of(value, "reverse", budget)[::-1]
    return list_of(value, "reverse", budget)[::-1]


def map_(budget: Budget, value: Any, attribute: Any, default: Any = None) -> list[Any]:
    """The same field of every item; `default` where it is missing."""
    results, find = [], deep_field(attribute, "map")
    for each in list_of(value, "map", budget):
        try:
            results.append(find(each))
        except Missing:
            if default is None:
                raise
            results.append(default)
    return results


def selecting(name: str, wanted: bool) -> Filter:
    """The items of which a field is true, or passes a test: `selectattr("status", "eq", "open")`; or all others."""

    def select(budget: Budget, value: Any, attribute: Any, test: Any = None, argument: Any = NOT_GIVEN) -> list[Any]:
        if test is not None and (type(test) is not str or test not in TESTS):
            raise TemplateError(f"{name}: there is no test {test!r}; there are {', '.join(TESTS)}")
        arguments = () if argument is NOT_GIVEN else (argument,)
        kept, find = [], deep_field(attribute, name)
        for each in list_of(value, name, budget):
            try:
                tested, missing = find(each), False
            except Missing:
                tested, missing = None, True
            if test in ("defined", "undefined"):
                holds = missing == (test == "undefined")
            elif missing:
                holds = False
            else:
                holds = bool(tested) if test is None else bool(TESTS[test](budget, tested, *arguments))
            if holds == wanted:
                kept.append(each)
        return kept

    return select


def keys(budget: Budget, value: Any) -> list[Any]:
    return sorted(object_of(value, "keys", budget))


def values(budget: Budget, value: Any) -> list[Any]:
    """In the order of their keys, so that the same object always gives the same list."""
    return [each for _, each in sorted(object_of(value, "values", budget).items(), key=lambda pair: pair[0])]


def items(budget: Budget, value: Any) -> list[Any]:
    pairs = sorted(object_of(value, "items", budget).items(), key=lambda pair: pair[0])
    return [[key, each] for key, each in pairs]
