"""JSON values inside expressions: how they are looked up, compared, calculated with and written as text.

Lookup is of fields and items only. Nothing here, and no filter, looks up an attribute of a Python object by a name
from a template.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from ...errors import NotJson
from ..codec import same
from ..codec import text as canonical
from ..words import suggestion
from .errors import Missing, TemplateError
from .limits import MAX_BITS, Budget


class NodeOutput:
    """The output of a node in a scope: `fetch.output` is the whole, `fetch.result` its main field, `fetch.x` a field of it."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def field(self, name: str, shown: str) -> Any:
        value = self.value
        if name == "output":
            return value
        if name == "result" and not (isinstance(value, dict) and "result" in value):
            return value
        return field(value, name, shown)


class SkippedOutput:
    """A node in a scope that was skipped: it has no output, and `default` stands for it."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def missing(self) -> Missing:
        advice = f"say what stands for it with {self.name}.result | default(...)"
        return Missing(f"node {self.name!r} was skipped and has no output: {advice}")


class TextWithFields:
    """A text in a scope that has fields as well: `entity` is its id, `entity.date` one of its variables."""

    __slots__ = ("fields", "text")

    def __init__(self, text: str, fields: dict[str, Any]) -> None:
        self.text = text
        self.fields = fields


def field(value: Any, name: str, shown: str) -> Any:
    """`value.name`: a field of an object, and never anything else."""
    kind = type(value)
    if kind is dict:
        if name in value:
            return value[name]
        raise Missing(f"{shown}: there is no field {name!r}", advice=lambda: _nearest(name, value))
    if kind is NodeOutput:
        return value.field(name, shown)
    if kind is TextWithFields:
        return field(value.fields, name, shown)
    if kind is SkippedOutput:
        raise value.missing()
    raise Missing(f"{shown}: {described(value)} has no fields")


def item(value: Any, key: Any, shown: str) -> Any:
    """`value[key]`: a field by its name, or an item of a list or a character by its place."""
    if type(key) is str:
        return field(value, key, shown)
    if not is_whole(key):
        raise TemplateError(f"{shown}: {described(key)} cannot be looked up; expected a name or a whole number")
    if type(value) is NodeOutput:
        value = value.value
    if type(value) is TextWithFields:
        value = value.text
    if type(value) is SkippedOutput:
        raise value.missing()
    if type(value) is not list and type(value) is not str:
        raise Missing(f"{shown}: {described(value)} has no items")
    if not -len(value) <= key < len(value):
        raise Missing(f"{shown}: there is no item {key}; there are {len(value):,}")
    return value[key]


def part(value: Any, start: Any, stop: Any, step: Any, budget: Budget) -> Any:
    """`value[start:stop:step]` of a list or a text."""
    if type(value) is not list and type(value) is not str:
        raise TemplateError(f"{described(value)} cannot be sliced; expected a list or a text")
    for each in (start, stop, step):
        if each is not None and not is_whole(each):
            raise TemplateError(f"a slice needs whole numbers, not {described(each)}")
    if step == 0:
        raise TemplateError("a slice cannot have steps of 0")
    (budget.for_text if type(value) is str else budget.for_items)(len(value))
    return value[start:stop:step]


def is_whole(value: Any) -> bool:
    return type(value) is int


def is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def described(value: Any) -> str:
    """A value in the words of JSON, not too long."""
    if isinstance(value, NodeOutput):
        return "the output of a node"
    if value is None:
        return "null"
    if isinstance(value, str):
        return f"the text {value!r}" if len(value) <= 40 else f"a text of {len(value):,} characters"
    if isinstance(value, list):
        return f"a list of {len(value):,}"
    if isinstance(value, dict):
        return f"an object of {len(value):,} fields"
    return f"the number {value}" if is_number(value) else canonical(value)


def plain(value: Any, shown: str) -> Any:
    """A value used as a whole. For a node, the template must say which part of its output is meant."""
    if type(value) is TextWithFields:
        return value.text
    if type(value) is SkippedOutput:
        raise value.missing()
    if type(value) is NodeOutput:
        raise TemplateError(f"{shown} is a node: write {shown}.output, or {shown}.result for its main field")
    return value


def written(value: Any, budget: Budget) -> str:
    """A value inside text: a string as it is, anything else as canonical JSON, never as Python. Null is an error."""
    if type(value) is str:
        budget.for_text(len(value))
        return value
    if value is None:
        raise Missing("null cannot stand in a text: say what stands for it with default(...)")
    return as_json(value, budget)


def as_json(value: Any, budget: Budget) -> str:
    budget.for_all_of(value)
    try:
        made = canonical(value)
    except NotJson as error:
        raise TemplateError(error.message) from None
    budget.for_text(len(made))
    return made


def checked_number(value: Any) -> Any:
    """The result of a calculation, if JSON can carry it."""
    if type(value) is int:
        if value.bit_length() > MAX_BITS:
            raise TemplateError(f"a whole number of {value.bit_length():,} bits; at most {MAX_BITS:,} are allowed")
        return value
    if type(value) is not float or not math.isfinite(value):
        raise TemplateError("the result is not a number that JSON can carry")
    return value


def add(left: Any, right: Any, budget: Budget) -> Any:
    if is_number(left) and is_number(right):
        return calculated("+", left, right)
    if type(left) is str and type(right) is str:
        budget.for_text(len(left) + len(right))
        return left + right
    if type(left) is list and type(right) is list:
        budget.for_items(len(left) + len(right))
        return left + right
    if type(left) is str or type(right) is str:
        raise TemplateError(f"cannot add {described(left)} and {described(right)}: ~ joins values as text")
    raise TemplateError(f"cannot add {described(left)} and {described(right)}")


def multiply(left: Any, right: Any, budget: Budget) -> Any:
    if is_number(left) and is_number(right):
        return calculated("*", left, right)
    if is_whole(left):
        left, right = right, left
    if left in ("", []) and is_whole(right):
        return left  # Python refuses to repeat even nothing too often
    if type(left) is str and is_whole(right):
        budget.for_text(len(left) * max(right, 0))
        return left * right
    if type(left) is list and is_whole(right):
        budget.for_items(len(left) * max(right, 0))
        return left * right
    raise TemplateError(f"cannot multiply {described(left)} and {described(right)}")


def calculated(sign: str, left: Any, right: Any) -> Any:
    """Of two numbers."""
    if not is_number(left) or not is_number(right):
        raise TemplateError(f"cannot calculate {described(left)} {sign} {described(right)}: expected two numbers")
    try:
        return checked_number(_CALCULATIONS[sign](left, right))
    except ZeroDivisionError:
        raise TemplateError(f"division by zero: {left} {sign} {right}") from None
    except OverflowError:
        raise TemplateError(f"{left} {sign} {right} is larger than any number that JSON can carry") from None


def _power(base: Any, exponent: Any) -> Any:
    if is_whole(base) and is_whole(exponent) and abs(base) > 1 and base.bit_length() * exponent > 2 * MAX_BITS:
        raise TemplateError(f"{base} ** {exponent} is too large: at most {MAX_BITS:,} bits are allowed")
    return base**exponent


_CALCULATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "**": _power,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
_COMPARISONS = {"lt": operator.lt, "lteq": operator.le, "gt": operator.gt, "gteq": operator.ge}


def compared(sign: str, left: Any, right: Any, budget: Budget) -> bool:
    if sign in ("eq", "ne"):
        if isinstance(left, list | dict | str) and type(left) is type(right):
            budget.for_all_of(left)
        return same(left, right) == (sign == "eq")
    if sign in ("in", "notin"):
        return contains(right, left, budget) == (sign == "in")
    if not (is_number(left) and is_number(right)) and not (type(left) is str and type(right) is str):
        both = f"{described(left)} with {described(right)}"
        raise TemplateError(f"cannot compare {both}: expected two numbers or two texts")
    if type(left) is str:
        budget.for_text(len(left))
    return bool(_COMPARISONS[sign](left, right))


def contains(whole: Any, sought: Any, budget: Budget) -> bool:
    if type(whole) is str and type(sought) is str:
        budget.for_text(len(whole))
        return sought in whole
    if type(whole) is dict:
        return type(sought) is str and sought in whole
    if type(whole) is list:
        budget.for_all_of(whole)
        return any(same(each, sought) for each in whole)
    raise TemplateError(f"{described(sought)} cannot be in {described(whole)}: expected a list, an object or a text")


def order_key(value: Any) -> Any:
    """What numbers, or texts, are sorted by."""
    if is_number(value) or type(value) is str:
        return value
    raise TemplateError(f"{described(value)} cannot be put in order; expected numbers or texts")


def _nearest(name: str, fields: dict[str, Any]) -> str:
    """Which field may have been meant, or which there are."""
    names = [str(each)[:40] for each in list(fields)[:200]]
    if not names:
        return ": the object is empty"
    there = f"there are {', '.join(names[:8])}" + " and more" * (len(fields) > 8)
    return f"; {suggestion(name, names, there)}"
