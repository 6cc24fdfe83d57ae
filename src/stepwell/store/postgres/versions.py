"""Questions about versions of stored definitions, and about small records."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from ...model import (
    GetRecord,
    GetVersion,
    ListNames,
    ListRecords,
    ListVersions,
    NameRow,
    RecordRow,
    VersionRow,
)
from ..rules.codes import VERSION_CODE
from ..rules.paging import page_of
from .texts import storable

Asked = tuple[str, dict[str, Any], Callable[[list[tuple[Any, ...]]], Any]]

_VERSION = """
SELECT v.name, v.number, v.digest, length(v.body), v.stored_at, v.number = active_version_1(%(kind)s, %(name)s)
"""
_NAMES = """
SELECT n.name, n.newest, n.active, v.digest, n.stored_at
  FROM (SELECT name, max(number) AS newest, active_version_1(%(kind)s, name) AS active, max(stored_at) AS stored_at
          FROM version WHERE kind = %(kind)s AND (%(after)s::text IS NULL OR name > %(after)s)
         GROUP BY name ORDER BY name LIMIT %(limit)s) n
       JOIN version v ON v.kind = %(kind)s AND v.name = n.name AND v.number = n.active
 ORDER BY n.name
"""


def ask_version(query: GetVersion | ListVersions | ListNames) -> Asked:
    kind = VERSION_CODE[query.kind]
    if isinstance(query, ListNames):
        limit = query.limit
        given: dict[str, Any] = {
            "kind": kind,
            "after": None if query.after is None else storable(query.after),
            "limit": limit,
        }
        return _NAMES, given, lambda rows: page_of([NameRow(*row) for row in rows], limit, attrgetter("name"))
    named: dict[str, Any] = {"kind": kind, "name": storable(query.name)}
    if isinstance(query, ListVersions):
        limit = query.limit
        listed = f"""{_VERSION} FROM version v WHERE v.kind = %(kind)s AND v.name = %(name)s AND v.number > %(after)s
 ORDER BY v.number LIMIT %(limit)s"""
        given = named | {"after": query.after, "limit": limit}
        return listed, given, lambda rows: page_of([VersionRow(*row) for row in rows], limit, attrgetter("number"))
    wanted = "v.number = coalesce(%(number)s::int, active_version_1(%(kind)s, %(name)s))"
    if query.digest is not None:
        wanted = "v.digest = %(digest)s"
    digest = None if query.digest is None else storable(query.digest)
    one = f"{_VERSION}, v.body FROM version v WHERE v.kind = %(kind)s AND v.name = %(name)s AND {wanted}"
    return one, named | {"number": query.number, "digest": digest}, lambda rows: VersionRow(*rows[0]) if rows else None


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
