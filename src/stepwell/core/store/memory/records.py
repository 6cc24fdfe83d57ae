"""Small records, on a dictionary."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from ...model import GetRecord, ListRecords, PutRecord, Receipt, RecordPut, RecordRow, Refusal, Refused
from ..rules.paging import page_of

Records = dict[tuple[str, str], RecordRow]


def put_record(records: Records, op: PutRecord, now: int) -> Receipt:
    there = records.get((op.kind, op.key))
    version = 0 if there is None else there.version
    if op.value == (None if there is None else there.value):
        return RecordPut(version)
    if op.expected is not None and op.expected != version:
        return Refused(Refusal.CONFLICT, str(version))
    if op.value is None:
        del records[op.kind, op.key]
        return RecordPut(0)
    row = RecordRow(op.key, max(now, version + 1), op.value)
    records[op.kind, op.key] = row
    return RecordPut(row.version)


def answer_record(records: Records, query: GetRecord | ListRecords) -> Any:
    if isinstance(query, GetRecord):
        return records.get((query.kind, query.key))
    keys = sorted(key for kind, key in records if kind == query.kind and (query.after is None or key > query.after))
    return page_of((records[query.kind, key] for key in keys), query.limit, attrgetter("key"))
