"""Versions of stored definitions."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from ....core.model import NameRow, Receipt, Refusal, Refused, VersionRow, versions
from ....core.store.rules.codes import VERSION_CODE
from ....core.store.rules.paging import page_of
from .ending import Transaction

_ACTIVE = "coalesce((SELECT c.number FROM chosen_version c WHERE (c.kind, c.name) = (?1, ?2)), max(v.number))"
_STANDING = f"SELECT max(v.number), {_ACTIVE} FROM version v WHERE (v.kind, v.name) = (?1, ?2)"
_VERSION = f"""
SELECT name, number, digest, length(body), stored_at,
       number = (SELECT {_ACTIVE} FROM version v WHERE (v.kind, v.name) = (?1, ?2))
"""
_NAMES = """
SELECT v.name, max(v.number), coalesce(c.number, max(v.number)), max(v.stored_at)
  FROM version v LEFT JOIN chosen_version c ON (c.kind, c.name) = (v.kind, v.name)
 WHERE v.kind = ?1 AND (?2 IS NULL OR v.name > ?2) GROUP BY v.name ORDER BY v.name LIMIT ?3
"""


def save_version(tx: Transaction, op: versions.SaveVersion) -> Receipt:
    key = (VERSION_CODE[op.kind], op.name)
    known = tx.one("SELECT number FROM version WHERE (kind, name, digest) = (?, ?, ?)", (*key, op.digest))
    if known is None:
        newest = tx.one("SELECT coalesce(max(number), 0) FROM version WHERE (kind, name) = (?, ?)", key)
        assert newest is not None
        number = newest[0] + 1
        insert = "INSERT INTO version (kind, name, number, digest, body, stored_at) VALUES (?, ?, ?, ?, ?, ?)"
        tx.db.execute(insert, (*key, number, op.digest, op.body, tx.now))
    else:
        number = known[0]
    standing = tx.one(_STANDING, key)
    assert standing is not None
    return versions.VersionSaved(number, known is not None, standing[1])


def activate_version(tx: Transaction, op: versions.ActivateVersion) -> Receipt:
    key = (VERSION_CODE[op.kind], op.name)
    standing = tx.one(_STANDING, key)
    newest = None if standing is None else standing[0]
    if newest is None or not (op.number is None or 1 <= op.number <= newest):
        return Refused(Refusal.UNKNOWN, op.name if op.number is None else f"{op.name}@{op.number}")
    if op.number is None:
        tx.db.execute("DELETE FROM chosen_version WHERE (kind, name) = (?, ?)", key)
        return versions.VersionActivated(newest)
    tx.db.execute("INSERT OR REPLACE INTO chosen_version (kind, name, number) VALUES (?, ?, ?)", (*key, op.number))
    return versions.VersionActivated(op.number)


def answer_version(tx: Transaction, query: versions.GetVersion | versions.ListVersions | versions.ListNames) -> Any:
    kind = VERSION_CODE[query.kind]
    if isinstance(query, versions.ListNames):
        found = []
        for name, newest, active, stored_at in tx.all(_NAMES, (kind, query.after, query.limit)):
            digest = tx.one("SELECT digest FROM version WHERE (kind, name, number) = (?, ?, ?)", (kind, name, active))
            assert digest is not None
            found.append(NameRow(name, newest, active, digest[0], stored_at))
        return page_of(found, query.limit, attrgetter("name"))
    if isinstance(query, versions.ListVersions):
        listed = _VERSION + "FROM version WHERE (kind, name) = (?1, ?2) AND number > ?3 ORDER BY number LIMIT ?4"
        rows = tx.all(listed, (kind, query.name, query.after, query.limit))
        return page_of([_row(row) for row in rows], query.limit, attrgetter("number"))
    by_number = f"number = coalesce(?3, (SELECT {_ACTIVE} FROM version v WHERE (v.kind, v.name) = (?1, ?2)))"
    condition = by_number if query.digest is None else "digest = ?3"
    argument = query.number if query.digest is None else query.digest
    one = f"{_VERSION}, body FROM version WHERE (kind, name) = (?1, ?2) AND {condition}"
    found_row = tx.one(one, (kind, query.name, argument))
    return None if found_row is None else _row(found_row)


def _row(row: Any) -> VersionRow:
    name, number, digest, size, stored_at, active, *body = row
    return VersionRow(name, number, digest, size, stored_at, bool(active), *body)
