"""Pages of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

from ...model import AttemptColumns, NodeColumns, Page
from .codes import ATTEMPT_STATUS, NODE_STATUS

Row = TypeVar("Row")


def page_of(rows: Iterable[Row], limit: int, cursor: Callable[[Row], Any]) -> Page[Row]:
    """The first `limit` of them; a full page may have another after it."""
    found = tuple(islice(rows, max(0, limit)))
    return Page(found, cursor(found[-1]) if found and len(found) == limit else None)


def node_columns(seq: int, rows: Sequence[tuple[Any, ...]], limit: int) -> NodeColumns:
    """Columns of (index, id, status code, reason)."""
    if not rows:
        return NodeColumns(seq)
    indexes, ids, codes, reasons = zip(*rows, strict=True)
    cursor = indexes[-1] if len(rows) >= limit else None
    return NodeColumns(seq, indexes, ids, tuple(map(NODE_STATUS.__getitem__, codes)), reasons, cursor)


def attempt_columns(seq: int, rows: Sequence[tuple[Any, ...]], limit: int) -> AttemptColumns:
    """Columns of (index, number, status code, start, end)."""
    if not rows:
        return AttemptColumns(seq)
    indexes, numbers, codes, started, ended = zip(*rows, strict=True)
    cursor = (indexes[-1], numbers[-1]) if len(rows) >= limit else None
    return AttemptColumns(seq, indexes, numbers, tuple(map(ATTEMPT_STATUS.__getitem__, codes)), started, ended, cursor)
