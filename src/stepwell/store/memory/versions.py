"""Versions of stored definitions, on plain records."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from ...model import (
    ActivateVersion,
    GetVersion,
    ListNames,
    ListVersions,
    NameRow,
    Page,
    Receipt,
    Refusal,
    Refused,
    SaveVersion,
    VersionActivated,
    VersionRow,
    VersionSaved,
)
from ..rules.paging import page_of


@dataclass(slots=True)
class NameRecord:
    """All versions of one name. A version's number is its place, from 1."""

    versions: list[VersionRow] = field(default_factory=list)
    chosen: int | None = None

    @property
    def active(self) -> int:
        return len(self.versions) if self.chosen is None else self.chosen


Versions = dict[tuple[str, str], NameRecord]


def save_version(versions: Versions, op: SaveVersion, now: int) -> Receipt:
    record = versions.setdefault((op.kind, op.name), NameRecord())
    for known in record.versions:
        if known.digest == op.digest:
            return VersionSaved(known.number, True, record.active)
    number = len(record.versions) + 1
    record.versions.append(VersionRow(op.name, number, op.digest, len(op.body), now, False, op.body))
    return VersionSaved(number, False, record.active)


def activate_version(versions: Versions, op: ActivateVersion) -> Receipt:
    record = versions.get((op.kind, op.name))
    if record is None or not (op.number is None or 1 <= op.number <= len(record.versions)):
        return Refused(Refusal.UNKNOWN, op.name if op.number is None else f"{op.name}@{op.number}")
    record.chosen = op.number
    return VersionActivated(record.active)


def answer_version(versions: Versions, query: GetVersion | ListVersions | ListNames) -> Any:
    if isinstance(query, ListNames):
        names = sorted(
            name for kind, name in versions if kind == query.kind and (query.after is None or name > query.after)
        )
        rows = (_name_row(name, versions[query.kind, name]) for name in names)
        return page_of(rows, query.limit, attrgetter("name"))
    record = versions.get((query.kind, query.name))
    if isinstance(query, ListVersions):
        if record is None:
            return Page()
        wanted = (each for each in record.versions if each.number > query.after)
        return page_of((_row(record, each)._replace(body=None) for each in wanted), query.limit, attrgetter("number"))
    if record is None:
        return None
    for each in record.versions:
        if query.digest is not None:
            found = each.digest == query.digest
        else:
            found = each.number == (record.active if query.number is None else query.number)
        if found:
            return _row(record, each)
    return None


def _row(record: NameRecord, version: VersionRow) -> VersionRow:
    return version._replace(active=version.number == record.active)


def _name_row(name: str, record: NameRecord) -> NameRow:
    newest, active = record.versions[-1], record.versions[record.active - 1]
    return NameRow(name, newest.number, active.number, active.digest, newest.stored_at)
