"""What a reducer requires of its field, and of what nodes return."""

from __future__ import annotations

import collections.abc
import inspect
from collections.abc import Callable
from dataclasses import MISSING
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ...base.types.fields import unwrapped
from ...base.types.misfit import Unsupported
from ...base.types.shapes import Shape, shape_of
from ...reducers import add, append, extend, last, maximum, merge, minimum, union
from ..code.address import address_of

Reducer = Callable[[Any, Any], Any]

_LISTS = (list, collections.abc.Sequence)
_DICTS = (dict, collections.abc.Mapping)
_SETS = (set, frozenset, collections.abc.Set)
_NUMBERS = frozenset({int, float})
_SUMS: dict[Any, Any] = {Decimal: Decimal(0), timedelta: timedelta(0)}
"""What can be added besides numbers, and its zero."""
_ORDERED = frozenset({str, Decimal, timedelta, datetime, date, time})


class ReducerMisfit(Exception):
    """Why a function cannot be a reducer."""


_EMPTY: dict[Any, Callable[[], Any]] = {append: list, extend: list, union: list, merge: dict, add: int}


def starts_at(reducer: Reducer, annotation: Any) -> Any:
    """The initial value of a field without a default; MISSING when its reducer has none."""
    if reducer is add and unwrapped(annotation) in _SUMS:
        return _SUMS[unwrapped(annotation)]
    return _EMPTY[reducer]() if reducer in _EMPTY else MISSING


def begun(reducer: Reducer, default: Any) -> Any:
    """A default as the reducer would have left it: a `union` has sorted, unique items."""
    return union([], default) if reducer is union else default


def on_stored(reducer: Reducer, shape: Shape, delta: Shape) -> Reducer:
    """A reducer to be called with JSON: it gets and gives converted values.

    Built-in ones that only put things together work on JSON as well.
    """
    if (shape.codec is None and delta.codec is None) or reducer in (append, extend, merge, last):
        return reducer

    def reduce(current: Any, new: Any) -> Any:
        left, right = shape.received(current), delta.received(new)
        return shape.stored(left | right if reducer is union else reducer(left, right))

    return reduce


def refusal(reducer: Reducer, annotation: Any) -> str | None:
    """Why a field of this type cannot have this reducer, if so."""
    kinds = _kinds(annotation)
    if reducer in (append, extend):
        return None if _is(annotation, _LISTS) else f"{reducer.__name__} is for lists, for example list[str]"
    if reducer is union:
        items = get_args(unwrapped(annotation))
        if _is(annotation, _SETS):
            return None
        sortable = bool(items) and (_kinds(items[0]) <= _NUMBERS or _kinds(items[0]) == {str})
        fits = _is(annotation, _LISTS) and sortable
        return None if fits else "union sorts its items, so it is for set[...], list[str], list[int] or list[float]"
    if reducer is merge:
        return None if _is(annotation, _DICTS) else "merge is for objects, for example dict[str, int]"
    if reducer is add:
        fits = kinds <= _NUMBERS or (len(kinds) == 1 and kinds <= _SUMS.keys())
        return None if fits else "add is for int, float, Decimal and timedelta"
    if reducer in (maximum, minimum):
        some = kinds - {NoneType}
        fits = bool(some) and (some <= _NUMBERS or (len(some) == 1 and some <= _ORDERED))
        return None if fits else f"{reducer.__name__} is for numbers, for str, Decimal, and for dates and times"
    return None


def delta_annotation(reducer: Reducer, annotation: Any) -> Any:
    """The type of what a node may return for a field."""
    if reducer is append:
        items = get_args(unwrapped(annotation))
        if not items or items[0] is Any:
            return Any
        either = annotation | items[0]
        return annotation if _is_ambiguous(either) else either
    if getattr(reducer, "__module__", None) == append.__module__:
        return annotation
    return _second_parameter(reducer)


def _is_ambiguous(annotation: Any) -> bool:
    """Whether items are lists in JSON, so that one item cannot be told from several: then a list is required."""
    try:
        shape_of(annotation)
    except Unsupported:
        return True
    return False


def _second_parameter(reducer: Reducer) -> Any:
    """The type of what a custom reducer takes; anything if it has no annotation."""
    name = getattr(reducer, "__qualname__", None)
    if name and "<lambda>" in name:
        raise ReducerMisfit("a lambda cannot be a reducer, because no message could name it: write a function")
    if isinstance(reducer, type) or not name or not isinstance(getattr(reducer, "__module__", None), str):
        raise ReducerMisfit(f"expected a reducer, a function of a module, got {reducer!r}")
    if inspect.iscoroutinefunction(reducer) or inspect.isgeneratorfunction(reducer):
        raise ReducerMisfit(f"{address_of(reducer)} cannot be a reducer: it must return its result at once")
    try:
        signature = inspect.signature(reducer)
    except (TypeError, ValueError):  # some functions written in C have none
        return Any
    try:
        signature.bind(None, None)
    except TypeError:
        raise ReducerMisfit(
            f"{address_of(reducer)}{signature} cannot be a reducer: it is called with two values, what the field is and "
            f"what a node returned"
        ) from None
    try:
        hints = get_type_hints(reducer)
    except Exception:
        return Any
    names = list(signature.parameters)
    return hints.get(names[1], Any) if len(names) > 1 else Any


def _is(annotation: Any, kinds: tuple[Any, ...]) -> bool:
    plain = unwrapped(annotation)
    return (get_origin(plain) or plain) in kinds


def _kinds(annotation: Any) -> frozenset[Any]:
    """The types of a union, or the one type."""
    plain = unwrapped(annotation)
    if get_origin(plain) in (Union, UnionType):
        return frozenset().union(*map(_kinds, get_args(plain)))
    if get_origin(plain) is Literal:
        return frozenset(map(type, get_args(plain)))
    return frozenset({NoneType if plain is None else plain})
