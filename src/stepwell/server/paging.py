"""Cursors: where the next page begins, as a text that only the server reads."""

from __future__ import annotations

import base64
from functools import cache
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field, TypeAdapter

from ..answers.page import Item, PageOf
from ..base.codec import encode
from .problems import HttpProblem

MAX_PAGE = 1_000

Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="At most so many on this page.")]
Cursor = Annotated[
    str | None, Query(max_length=2_000, description="`next` of the page before; without it the first page.")
]

# What a cursor may say.
Number = Annotated[int, Field(gt=-(2**62), lt=2**62)]
Text = Annotated[str, Field(pattern="^[^\x00]*$")]
Pair = tuple[str, str]
Place = tuple[Number, Number]


def written(cursor: Any) -> str | None:
    """
    >>> read(written(["a", "b"]), Pair)
    ('a', 'b')
    """
    return None if cursor is None else base64.urlsafe_b64encode(encode(cursor)).decode().rstrip("=")


def read(text: str | None, kind: Any, default: Any = None) -> Any:
    """What a cursor says, which must be of this kind."""
    try:
        found = None if text is None else _reader(kind).validate_json(_decoded(text), strict=True)
    except ValueError:
        message = "the cursor is not one of this server: take `next` of the page before, as it is"
        raise HttpProblem(400, message) from None
    return default if found is None else found


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind | None)


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def page(items: list[Item], cursor: Any) -> PageOf[Item]:
    return {"items": items, "next": written(cursor)}
