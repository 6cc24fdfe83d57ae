"""Filters of JSON and text."""

from __future__ import annotations

import base64 as base_64
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from ...codec import MAX_DEPTH, decode_strictly
from ..errors import TemplateError
from ..limits import MAX_CHARACTERS, Budget
from ..values import as_json, written
from .arguments import Filter, text_of, whole_of


def tojson(budget: Budget, value: Any) -> str:
    return as_json(value, budget)


def fromjson(budget: Budget, value: Any) -> Any:
    text = text_of(value, "fromjson", budget)
    budget.spend(len(text))
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise TemplateError(f"fromjson: nested deeper than {MAX_DEPTH} levels")
    try:
        return decode_strictly(text)
    except ValueError as error:
        raise TemplateError(f"fromjson: the text is not JSON: {error}") from None


def _depth(text: str) -> int:
    """How deep brackets are nested, those in strings included: a limit need not be exact."""
    deepest = now = 0
    for each in text:
        if each in "[{":
            now += 1
            deepest = max(deepest, now)
        elif each in "]}":
            now -= 1
    return deepest


def changing(name: str, change: Callable[[str], str]) -> Filter:
    """The filter of this name, which only changes a text."""

    def changed(budget: Budget, value: Any) -> str:
        made = change(text_of(value, name, budget))
        budget.for_text(len(made))  # `ß` in capitals are two characters
        return made

    return changed


def replace(budget: Budget, value: Any, old: Any, new: Any) -> str:
    text = text_of(value, "replace", budget)
    old, new = text_of(old, "replace", budget), text_of(new, "replace", budget)
    times = text.count(old)
    budget.for_text(len(text) + times * max(len(new) - len(old), 0))
    return text.replace(old, new)


def split(budget: Budget, value: Any, separator: Any = None) -> list[str]:
    text = text_of(value, "split", budget)
    if separator is not None and not text_of(separator, "split", budget):
        raise TemplateError("split needs a separator of at least one character")
    budget.for_items(1 + (len(text) // 2 if separator is None else text.count(separator)))
    return text.split(separator)


def lines(budget: Budget, value: Any) -> list[str]:
    text = text_of(value, "lines", budget)
    budget.for_items(1 + text.count("\n"))
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def truncate(budget: Budget, value: Any, length: Any = 255, end: Any = "...") -> str:
    """At most `length` characters, `end` included."""
    text, end = text_of(value, "truncate", budget), text_of(end, "truncate", budget)
    length = whole_of(length, "truncate", 0, MAX_CHARACTERS)
    if len(text) <= length:
        return text
    return str(text[: max(length - len(end), 0)] + end[:length])


def urlencode(budget: Budget, value: Any) -> str:
    """One value for a path or a query; an object as a whole query."""
    if type(value) is dict:
        parts: list[str] = []
        length = 0
        for key, each in value.items():
            parts.append(f"{urlencode(budget, key)}={urlencode(budget, each)}")
            length += 1 + len(parts[-1])
            budget.for_text(length)
        return "&".join(parts)
    encoded = _encoded(written(value, budget), "urlencode")
    budget.for_text(3 * len(encoded))
    return quote(encoded, safe="")


def base64(budget: Budget, value: Any) -> str:
    encoded = _encoded(text_of(value, "base64", budget), "base64")
    budget.for_text(4 * len(encoded) // 3)
    return base_64.b64encode(encoded).decode()


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise TemplateError(f"{name}: the text holds half of a surrogate pair") from None
