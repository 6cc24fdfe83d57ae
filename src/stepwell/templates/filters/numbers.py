"""Filters of numbers and dates."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from ..errors import TemplateError
from ..limits import Budget
from ..values import checked_number, described, is_number
from .arguments import NOT_GIVEN, Filter, whole_of
from .dates import formatted, iso, moment, shifted


def reading(name: str, read: Callable[[Any], Any]) -> Filter:
    def number(budget: Budget, value: Any, default: Any = NOT_GIVEN) -> Any:
        try:
            if is_number(value) or (isinstance(value, str) and "_" not in value and len(value) <= 400):
                return checked_number(read(value))
        except (ValueError, OverflowError, TemplateError):
            pass
        if default is not NOT_GIVEN:
            return default
        raise TemplateError(f"{name}: {described(value)} is no {'whole number' if name == 'int' else 'number'}")

    return number


def cut(value: Any) -> int:
    """A whole number; what comes after the point is cut off."""
    try:
        return int(value)
    except ValueError:
        return int(float(value))


def round_(budget: Budget, value: Any, digits: Any = 0) -> Any:
    """Halves are rounded away from zero. Without digits the result is a whole number."""
    if not is_number(value):
        raise TemplateError(f"round needs a number, not {described(value)}")
    digits = whole_of(digits, "round", 0, 15)
    if abs(value) < 1e15:
        value = float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))
    return checked_number(value if digits else int(value))


def abs_(budget: Budget, value: Any) -> Any:
    if not is_number(value):
        raise TemplateError(f"abs needs a number, not {described(value)}")
    return abs(value)


def date(budget: Budget, value: Any, form: Any = "%Y-%m-%d") -> str:
    if type(form) is not str or len(form) > 200:
        raise TemplateError("date needs a format as '%d.%m.%Y', of at most 200 characters")
    return formatted(moment(value), form)


def timestamp(budget: Budget, value: Any) -> Any:
    seconds = moment(value).timestamp()
    return int(seconds) if seconds == int(seconds) else seconds


def shift(budget: Budget, value: Any, days: Any = 0, hours: Any = 0, minutes: Any = 0, seconds: Any = 0) -> str:
    return iso(shifted(moment(value), days=days, hours=hours, minutes=minutes, seconds=seconds))
