"""Pages of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, TypeVar

from ...model import Page

Row = TypeVar("Row")


def page_of(rows: Iterable[Row], limit: int, cursor: Callable[[Row], Any]) -> Page[Row]:
    """The first `limit` of them; a full page may have another after it."""
    found = tuple(islice(rows, max(0, limit)))
    return Page(found, cursor(found[-1]) if found and len(found) == limit else None)
