"""Questions about small records."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from ...model import GetRecord, ListRecords, RecordRow
from ..rules.paging import page_of
from .texts import storable

Asked = tuple[str, dict[str, Any], Callable[[list[tuple[Any, ...]]], Any]]

_ONE = "SELECT key, version, value FROM record WHERE kind = %(kind)s AND key = %(key)s"
_MANY = """
SELECT key, version, value FROM record WHERE kind = %(kind)s AND (%(after)s::text IS NULL OR key > %(after)s)
 ORDER BY key LIMIT %(limit)s
"""


def ask_record(query: GetRecord | ListRecords) -> Asked:
    kind = storable(query.kind)
    if isinstance(query, GetRecord):
        given: dict[str, Any] = {"kind": kind, "key": storable(query.key)}
        return _ONE, given, lambda rows: RecordRow(*rows[0]) if rows else None
    limit = query.limit
    given = {"kind": kind, "after": None if query.after is None else storable(query.after), "limit": limit}
    return _MANY, given, lambda rows: page_of([RecordRow(*row) for row in rows], limit, attrgetter("key"))
