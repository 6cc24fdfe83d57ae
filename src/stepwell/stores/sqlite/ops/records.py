"""Records: small values by kind and key."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from ....core.model import GetRecord, ListRecords, PutRecord, Receipt, RecordPut, RecordRow, Refusal, Refused
from ....core.store.rules.paging import page_of
from .ending import Transaction

_ONE = "SELECT key, version, value FROM record WHERE (kind, key) = (?, ?)"
_MANY = "SELECT key, version, value FROM record WHERE kind = ?1 AND (?2 IS NULL OR key > ?2) ORDER BY key LIMIT ?3"


def put_record(tx: Transaction, op: PutRecord) -> Receipt:
    there = tx.one(_ONE, (op.kind, op.key))
    version = 0 if there is None else there[1]
    if op.value == (None if there is None else there[2]):
        return RecordPut(version)
    if op.expected is not None and op.expected != version:
        return Refused(Refusal.CONFLICT, str(version))
    if op.value is None:
        tx.db.execute("DELETE FROM record WHERE (kind, key) = (?, ?)", (op.kind, op.key))
        return RecordPut(0)
    version = max(tx.now, version + 1)
    put = "INSERT OR REPLACE INTO record (kind, key, version, value) VALUES (?, ?, ?, ?)"
    tx.db.execute(put, (op.kind, op.key, version, op.value))
    return RecordPut(version)


def answer_record(tx: Transaction, query: GetRecord | ListRecords) -> Any:
    if isinstance(query, GetRecord):
        row = tx.one(_ONE, (query.kind, query.key))
        return None if row is None else RecordRow(*row)
    rows = tx.all(_MANY, (query.kind, query.after, query.limit))
    return page_of([RecordRow(*row) for row in rows], query.limit, attrgetter("key"))
