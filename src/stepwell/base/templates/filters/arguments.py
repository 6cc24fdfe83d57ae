"""What filters take: each says what it needs, and spends what looking at it costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import TemplateError
from ..limits import Budget
from ..values import described, field, is_whole

Filter = Callable[..., Any]
NOT_GIVEN: Any = object()
MAX_PATH = 1_000
"""Characters of the path of a field, which is followed in every item of a list."""


def text_of(value: Any, name: str, budget: Budget) -> str:
    if type(value) is not str:
        raise TemplateError(f"{name} needs a text, not {described(value)}")
    budget.for_text(len(value))
    return value


def list_of(value: Any, name: str, budget: Budget) -> list[Any]:
    if type(value) is not list:
        raise TemplateError(f"{name} needs a list, not {described(value)}")
    budget.for_items(len(value))
    return value


def object_of(value: Any, name: str, budget: Budget) -> dict[str, Any]:
    if type(value) is not dict:
        raise TemplateError(f"{name} needs an object, not {described(value)}")
    budget.for_items(len(value))
    return value


def whole_of(value: Any, name: str, least: int, most: int) -> int:
    if not is_whole(value) or not least <= value <= most:
        raise TemplateError(f"{name} needs a whole number from {least} to {most:,}, not {described(value)}")
    return int(value)


def deep_field(path: Any, name: str) -> Callable[[Any], Any]:
    """What `attribute="a.b"` means of an item, which raises Missing where it is not there."""
    if type(path) is not str or len(path) > MAX_PATH:
        raise TemplateError(f"{name} needs the name of a field, not {described(path)}")
    fields, words = path.split("."), f"{name}: {path}"

    def find(value: Any) -> Any:
        for each in fields:
            value = field(value, each, words)
        return value

    return find
