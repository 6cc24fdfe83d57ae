"""Cursors: where the next page begins, as a text that only the server reads."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

from fastapi import Query

from ..codec import decode, encode
from .models import Page
from .problems import Problem

MAX_PAGE = 1_000

Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="At most so many on this page.")]
Cursor = Annotated[
    str | None, Query(max_length=2_000, description="`next` of the page before; without it the first page.")
]


def written(cursor: Any) -> str | None:
    """
    >>> read(written([7, "a"]))
    [7, 'a']
    """
    return None if cursor is None else base64.urlsafe_b64encode(encode(cursor)).decode().rstrip("=")


def read(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, binascii.Error):
        raise wrong() from None


def read_number(text: str | None, default: int) -> int:
    found = read(text)
    if found is None:
        return default
    if isinstance(found, bool) or not isinstance(found, int) or not -(2**62) < found < 2**62:
        raise wrong()
    return found


def read_text(text: str | None) -> str | None:
    found = read(text)
    if found is not None and (not isinstance(found, str) or "\x00" in found):
        raise wrong()
    return found


def read_pair(text: str | None) -> tuple[str, str] | None:
    found = read(text)
    if found is None:
        return None
    if not isinstance(found, list) or len(found) != 2 or not all(isinstance(each, str) for each in found):
        raise wrong()
    return found[0], found[1]


def page(items: list[Any], cursor: Any) -> Page[Any]:
    return Page.model_validate({"items": items, "next": written(cursor)})


def wrong() -> Problem:
    return Problem(400, "the cursor is not one of this server: take `next` of the page before, as it is")
