"""Pages of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

from ...model import AttemptColumns, ListLines, ListMarks, NodeColumns, Page
from ...model.rows import LineRow
from .codes import ATTEMPT_STATUS, NODE_STATUS
from .payloads import error_type

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
    """Columns of (index, number, status code, start, end), and perhaps (worker, error)."""
    if not rows:
        return AttemptColumns(seq)
    indexes, numbers, codes, started, ended, *details = zip(*rows, strict=True)
    cursor = (indexes[-1], numbers[-1]) if len(rows) >= limit else None
    statuses = tuple(map(ATTEMPT_STATUS.__getitem__, codes))
    workers, errors = details or ((), ())
    return AttemptColumns(
        seq, indexes, numbers, statuses, started, ended, workers, tuple(map(error_type, errors)), cursor
    )


def line_matches(line: LineRow, query: ListLines | ListMarks) -> bool:
    """Whether a line is asked for, wherever the page begins. Marks, which have negative indexes, are asked for apart."""
    if isinstance(query, ListMarks):
        return line.index < 0 and (query.indexes is None or line.node in query.indexes)
    return (
        line.index >= 0
        and (query.index is None or line.node == query.index)
        and (query.number is None or line.number == query.number)
        and (query.kind is None or line.kind == query.kind)
        and (query.since is None or line.at >= query.since)
    )
