"""Records, notes and drafts in a database."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from ....base.codec import encode_checked
from ...patterns.paths import TEMPORARY, checked_path
from ..address import draft_name, probe_path, split_address
from ..cache import EMPTY, Cache
from ..files.drafts import DraftFiles
from ..files.root import Root
from ..listing import Folder
from ..port import Draft, NoteKind
from ..records import Record, StageFailure, failure_from
from ..snapshot import Snapshot
from .port import Change, Database, rows_of
from .schema import (
    FAILURE_COLUMNS,
    FAILURE_KEY,
    FORGET_RECORD,
    RECORD,
    RECORD_COLUMNS,
    RECORDED,
    WRITE_CONTENT,
    WRITE_FAILURE,
    WRITE_NOTE,
    WRITE_RECORD,
)

_RECORDS = f"SELECT path, {RECORD_COLUMNS} FROM states"


def written(value: Any) -> str:
    return encode_checked(value).decode()


class DatabaseRecords:
    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[str, Record]:
        return _records(self._database.rows(f"{_RECORDS} WHERE {RECORDED}"))

    def find(self, addresses: Iterable[str]) -> dict[str, Record]:
        return find_records(self._database, addresses)

    def read(self, folder: str) -> dict[str, Record]:
        prefix = f"{folder}/" if folder else ""
        rows = self._database.rows(
            f"{_RECORDS} WHERE {RECORDED} AND path > ? AND path < ?",
            (prefix, f"{prefix}\U0010ffff"),
        )
        return _records([row for row in rows if split_address(row[0])[0] == prefix])

    def change(self, changes: Mapping[str, Record | None]) -> None:
        with self._database.changing() as change:
            rows = [(address, record) for address, record in changes.items() if record is not None]
            forgotten = [(address,) for address, record in changes.items() if record is None]
            change.run_many(WRITE_RECORD, [(path, each.content_hash, *record_values(each)) for path, each in rows])
            change.run_many(FORGET_RECORD, forgotten)
            change.run_many("DELETE FROM states WHERE path = ? AND version IS NULL", forgotten)


def find_records(source: Change | Database, addresses: Iterable[str]) -> dict[str, Record]:
    return _records(rows_of(source, f"{_RECORDS} WHERE {RECORDED} AND path IN", addresses))


def record_values(record: Record | None) -> tuple[str | None, ...]:
    """The values of the columns of a record."""
    if record is None:
        return (None,) * len(RECORD)
    pipeline, _, stage = record.produced_by.rpartition("#")
    members = None if record.members is None else written(dict(record.members))
    hashes = (record.code_hash, record.config_hash, record.content_hash, record.inputs_hash, record.check_hash)
    made = (record.produced_at, record.produced_at)
    return (record.entity, pipeline, stage, *hashes, written(dict(record.inputs)), members, record.stale, *made)


def _records(rows: Iterable[Any]) -> dict[str, Record]:
    return {address: _record(*values) for address, *values in rows}


def _record(
    entity: str, pipeline: str, stage: str, code: str, config: str, content: str, common: str, check: str,
    inputs: str, members: str | None, stale: str, created_at: str, updated_at: str,
) -> Record:  # fmt: skip
    by = f"{pipeline}#{stage}" if pipeline else stage
    known = None if members is None else json.loads(members)
    return Record(code, config, content, common, updated_at, by, entity, json.loads(inputs), known, check, stale)


class DatabaseNotes:
    """Failures are in a table of their own, because people query it. The key of one has the pipeline, the stage and the entity:
    `auto-blog#summary 2026-01-15`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, kind: NoteKind) -> dict[str, Any]:
        if kind == "failures":
            rows = self._database.rows(f"SELECT {FAILURE_KEY}, {FAILURE_COLUMNS} FROM state_failures")
            return {
                f"{pipeline}#{stage} {entity}" if entity else f"{pipeline}#{stage}": StageFailure(*values).to_json()
                for pipeline, stage, entity, *values in rows
            }
        rows = self._database.rows("SELECT key, value FROM state_notes WHERE kind = ?", (kind,))
        return {key: json.loads(value) for key, value in rows}

    def change(self, kind: NoteKind, changes: Mapping[str, Any]) -> None:
        rows = [(key, value) for key, value in changes.items() if value is not None]
        forgotten = [key for key, value in changes.items() if value is None]
        with self._database.changing() as change:
            if kind == "failures":
                failures = {key: failure for key, value in rows if (failure := failure_from(value)) is not None}
                change.run_many(WRITE_FAILURE, [(*_failure_key(key), *failure) for key, failure in failures.items()])
                delete = "DELETE FROM state_failures WHERE pipeline = ? AND state_type = ? AND entity_id = ?"
                change.run_many(delete, [_failure_key(key) for key in forgotten])
            else:
                change.run_many(WRITE_NOTE, [(kind, key, written(value)) for key, value in rows])
                change.run_many(
                    "DELETE FROM state_notes WHERE kind = ? AND key = ?", [(kind, key) for key in forgotten]
                )


def _failure_key(text: str) -> tuple[str, str, str]:
    """The pipeline, the stage and the entity."""
    pipeline, _, unit = text.partition("#")
    stage, _, entity = unit.partition(" ")
    return pipeline, stage, entity


class DatabaseDrafts(DraftFiles):
    """A body writes a file on its machine. When it is done, the content goes into the database, not yet published."""

    def __init__(self, database: Database) -> None:
        super().__init__(Root(database.scratch))
        self._database = database

    def open(self, address: str, token: str) -> Draft:
        checked_path(probe_path(address))
        key = split_address(address)[1]
        # The name comes last, because its suffix says what it is; what it is a draft of is in the settlement.
        path = f"drafts/{TEMPORARY}{token}-{os.urandom(3).hex()}-{draft_name(key)}"
        self.make(path, is_directory=address.endswith("/") or "{" in key)
        return Draft(address, self._root.place(path))

    def keep(self, draft: Draft) -> str:
        now = time.time_ns()
        contents = {sha256(content).hexdigest(): content for content in self._contents(draft)}
        # If it is lost with the machine, whoever publishes it finds it gone, and it is made again.
        with self._database.changing(durable=False) as change:
            change.run_many(WRITE_CONTENT, [(digest, contents[digest], now) for digest in sorted(contents)])
            change.run("INSERT INTO state_drafts (name, added) VALUES (?, ?)", (name_of(draft), now))
        self.remove(draft)
        return name_of(draft)

    def _contents(self, draft: Draft) -> list[bytes]:
        if draft.address[-1:] == "/" or "{" in draft.address:
            return [self.read(draft, member) for member in self.members(draft)]
        return [self.read(draft)]

    def named(self, address: str, name: str) -> Draft:
        return Draft(address, self._root.place(f"drafts/{os.path.basename(name)}"))

    def discard(self, draft: Draft) -> None:
        self.remove(draft)
        with self._database.changing(durable=False) as change:
            change.run("DELETE FROM state_drafts WHERE name = ?", (name_of(draft),))


def name_of(draft: Draft) -> str:
    return os.path.basename(draft.place)


class NoCache:
    """Caches nothing: the database finds everything as quickly."""

    def read(self) -> Cache:
        return EMPTY

    def changed(self, folders: Sequence[Folder]) -> list[str] | None:
        return None

    def save(self, snapshot: Snapshot, verdict: dict[str, Any]) -> None:
        pass
