"""Versions of stored definitions, and small records, on dictionaries."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from ...model import GetRecord, ListRecords, Page, PutRecord, Receipt, RecordPut, RecordRow, Refusal, Refused, versions
from ..rules.paging import page_of


@dataclass(slots=True)
class NameRecord:
    """All versions of one name. A version's number is its place, from 1."""

    stored: list[versions.VersionRow] = field(default_factory=list)
    chosen: int | None = None

    @property
    def active(self) -> int:
        return len(self.stored) if self.chosen is None else self.chosen


Versions = dict[tuple[str, str], NameRecord]


def save_version(stored: Versions, op: versions.SaveVersion, now: int) -> Receipt:
    record = stored.setdefault((op.kind, op.name), NameRecord())
    for known in record.stored:
        if known.digest == op.digest:
            return versions.VersionSaved(known.number, True, record.active)
    number = len(record.stored) + 1
    record.stored.append(versions.VersionRow(op.name, number, op.digest, len(op.body), now, False, op.body))
    return versions.VersionSaved(number, False, record.active)


def activate_version(stored: Versions, op: versions.ActivateVersion) -> Receipt:
    record = stored.get((op.kind, op.name))
    if record is None or not (op.number is None or 1 <= op.number <= len(record.stored)):
        return Refused(Refusal.UNKNOWN, op.name if op.number is None else f"{op.name}@{op.number}")
    record.chosen = op.number
    return versions.VersionActivated(record.active)


def answer_version(stored: Versions, query: versions.GetVersion | versions.ListVersions | versions.ListNames) -> Any:
    if isinstance(query, versions.ListNames):
        names = sorted(
            name for kind, name in stored if kind == query.kind and (query.after is None or name > query.after)
        )
        named = [stored[query.kind, name] for name in names]
        ends = [(each.stored[-1], each.stored[each.active - 1]) for each in named]
        rows = (versions.NameRow(new.name, new.number, on.number, on.digest, new.stored_at) for new, on in ends)
        return page_of(rows, query.limit, attrgetter("name"))
    record = stored.get((query.kind, query.name))
    if isinstance(query, versions.ListVersions):
        if record is None:
            return Page()
        wanted = (each for each in record.stored if each.number > query.after)
        return page_of((_row(record, each)._replace(body=None) for each in wanted), query.limit, attrgetter("number"))
    if record is None:
        return None
    for each in record.stored:
        if query.digest is not None:
            found = each.digest == query.digest
        else:
            found = each.number == (record.active if query.number is None else query.number)
        if found:
            return _row(record, each)
    return None


def _row(record: NameRecord, version: versions.VersionRow) -> versions.VersionRow:
    return version._replace(active=version.number == record.active)


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
