"""A part of a list."""

from __future__ import annotations

from typing import Generic, TypeVar

from typing_extensions import TypedDict

Item = TypeVar("Item")


class PageOf(TypedDict, Generic[Item]):
    """A part of a list."""

    items: list[Item]
    """What is on this page, in order."""
    next: str | None
    """Pass it as `cursor` to get the page after this one; null at the end."""
