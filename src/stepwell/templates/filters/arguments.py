"""What filters take: each says what it needs, and spends what looking at it costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import TemplateError
from ..limits import Budget
from ..values import described, field, is_whole

Filter = Callable[..., Any]
NOT_GIVEN: Any = object()


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


def deep_field(value: Any, path: Any, name: str) -> Any:
    """What `attribute="a.b"` means of one item; Missing when it is not there."""
    if type(path) is not str:
        raise TemplateError(f"{name} needs the name of a field, not {described(path)}")
    for each in path.split("."):
        value = field(value, each, f"{name}: {path}")
    return value
