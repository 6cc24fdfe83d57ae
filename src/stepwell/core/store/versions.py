"""Stored definitions, written once above all stores: the records of `core/model/versions.py`, put and read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...base.words import shown
from ...errors import InputError, StoreBusy, StoreCorrupt
from ..model import GetRecord, ListRecords, Page, PutRecord, RecordPut
from ..model.versions import (
    VERSION_CONTENT,
    VERSION_INDEX,
    IndexEntry,
    NameRow,
    VersionIndex,
    VersionKind,
    VersionRow,
    VersionSaved,
)
from .port import Store
from .reader import all_records, get_record
from .rules.values import refuse_values

_TRIES = 100
"""Each means that another caller changed the same name in between."""


def save_version(
    store: Store,
    kind: VersionKind,
    name: str,
    digest: str,
    content: bytes,
    entries: Sequence[PutRecord] = (),
) -> VersionSaved:
    """Store a definition as the next version of its name, unless a version with this digest exists. The newest version is
    active unless another was chosen.

    All is one commit, with `entries`, which the audit log gets. Of two savers at once the second finds another index, and saves
    again after it.
    """
    wrong = refuse_values(PutRecord(VERSION_INDEX[kind], name, content))
    if wrong is not None:
        raise InputError(f"the {kind} {shown(name)} cannot be stored: {wrong.detail}")
    for _ in range(_TRIES):
        index, expected = _index(store, kind, name)
        number = index.number_of(digest)
        if number is not None:
            return VersionSaved(number, True, index.active)
        entry = IndexEntry(digest, len(content), store.now())
        index = index._replace(entries=(*index.entries, entry))
        if _put(store, kind, index, expected, *entries, PutRecord(VERSION_CONTENT[kind], digest, content)):
            return VersionSaved(len(index.entries), False, index.active)
    raise _contended(kind, name)


def activate_version(
    store: Store, kind: VersionKind, name: str, number: int | None, entries: Sequence[PutRecord] = ()
) -> int | None:
    """Choose the active version of a name and return it; with None it is the newest again, also of those to come. None if
    there is no such version. `entries`: what the audit log gets of it.
    """
    for _ in range(_TRIES):
        index, expected = _index(store, kind, name)
        if not index.has(number):
            return None
        if index.chosen == number:
            return index.active
        index = index._replace(chosen=number)
        if _put(store, kind, index, expected, *entries):
            return index.active
    raise _contended(kind, name)


def get_version(
    store: Store, kind: VersionKind, name: str, number: int | None = None, *, digest: str | None = None
) -> VersionRow | None:
    """A version by its number, by its digest, or else the active one. None if there is none."""
    index, _ = _index(store, kind, name)
    if digest is not None:
        number = index.number_of(digest)
        return None if number is None else index.row(number)
    return index.row(index.active if number is None else number) if index.has(number) else None


def get_content(store: Store, kind: VersionKind, digest: str) -> bytes:
    """What a version holds. It never changes."""
    record = get_record(store, VERSION_CONTENT[kind], digest)
    if record is None:
        raise StoreCorrupt(f"the {kind} with the digest {digest} is missing from {store.url}")
    return record.value


def all_versions(store: Store, kind: VersionKind, name: str) -> list[VersionRow]:
    """The versions of a name, oldest first."""
    return _index(store, kind, name)[0].rows()


def all_names(store: Store, kind: VersionKind, page: int = 1_000) -> Iterator[NameRow]:
    """All names that have versions, in order."""
    return (
        VersionIndex.decoded(row.key, row.value).name_row() for row in all_records(store, VERSION_INDEX[kind], page)
    )


def list_names(store: Store, kind: VersionKind, after: str | None, limit: int) -> Page[NameRow]:
    """One page of them; `after` is the last name of the page before."""
    (rows,) = store.read([ListRecords(VERSION_INDEX[kind], after, limit)])
    return Page((VersionIndex.decoded(row.key, row.value).name_row() for row in rows), rows.cursor)


def _index(store: Store, kind: VersionKind, name: str) -> tuple[VersionIndex, int]:
    """The index of a name, and the version of its record to compare."""
    (record,) = store.read([GetRecord(VERSION_INDEX[kind], name)])
    return (VersionIndex(name), 0) if record is None else (VersionIndex.decoded(name, record.value), record.version)


def _put(store: Store, kind: VersionKind, index: VersionIndex, expected: int, *others: PutRecord) -> bool:
    """Whether the index was as expected. What follows it comes first of the others."""
    receipt, *_ = store.commit([PutRecord(VERSION_INDEX[kind], index.name, index.encoded(), expected), *others])
    return isinstance(receipt, RecordPut)


def _contended(kind: VersionKind, name: str) -> StoreBusy:
    return StoreBusy(f"{kind} {name!r} is being changed by others all the time; try again later")
