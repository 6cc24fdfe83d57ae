"""Records, notes and drafts in a database."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from ....codec import encode_checked
from ...patterns.paths import TEMPORARY, checked_path
from ..address import draft_name, probe_path, split_address
from ..cache import EMPTY, Cache
from ..files.drafts import discard
from ..files.second_process import system_error
from ..listing import Folder
from ..port import Draft, NoteKind
from ..records import Record, record_from
from ..single import call_each
from ..snapshot import Snapshot
from .port import Change, Database, rows_of
from .schema import WRITE_CONTENT, WRITE_FAILURE, WRITE_NOTE, WRITE_RECORD


def written(value: Any) -> str:
    return encode_checked(value).decode()


class DatabaseRecords:
    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[str, Record]:
        return _records(self._database.rows("SELECT path, record FROM states WHERE record IS NOT NULL"))

    def find(self, addresses: Iterable[str]) -> dict[str, Record]:
        return find_records(self._database, addresses)

    def read(self, folder: str) -> dict[str, Record]:
        prefix = f"{folder}/" if folder else ""
        rows = self._database.rows(
            "SELECT path, record FROM states WHERE record IS NOT NULL AND path > ? AND path < ?",
            (prefix, f"{prefix}\U0010ffff"),
        )
        return _records([row for row in rows if split_address(row[0])[0] == prefix])

    def change(self, changes: Mapping[str, Record | None]) -> None:
        with self._database.changing() as change:
            kept = [(address, record) for address, record in changes.items() if record is not None]
            forgotten = [(address,) for address, record in changes.items() if record is None]
            change.run_many(WRITE_RECORD, [(path, each.content_hash, written(each.to_json())) for path, each in kept])
            change.run_many("UPDATE states SET record = NULL WHERE path = ?", forgotten)
            change.run_many("DELETE FROM states WHERE path = ? AND version IS NULL", forgotten)


def find_records(source: Change | Database, addresses: Iterable[str]) -> dict[str, Record]:
    return _records(rows_of(source, "SELECT path, record FROM states WHERE record IS NOT NULL AND path IN", addresses))


def _records(rows: Iterable[Any]) -> dict[str, Record]:
    return {address: record_from(json.loads(text)) for address, text in rows}


class DatabaseNotes:
    """Failures are in a table of their own, because people query it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, kind: NoteKind) -> dict[str, Any]:
        if kind == "failures":
            rows = self._database.rows("SELECT unit, failure FROM state_failures")
        else:
            rows = self._database.rows("SELECT key, value FROM state_notes WHERE kind = ?", (kind,))
        return {key: json.loads(value) for key, value in rows}

    def change(self, kind: NoteKind, changes: Mapping[str, Any]) -> None:
        kept = [(key, written(value)) for key, value in changes.items() if value is not None]
        forgotten = [key for key, value in changes.items() if value is None]
        with self._database.changing() as change:
            if kind == "failures":
                change.run_many(WRITE_FAILURE, kept)
                change.run_many("DELETE FROM state_failures WHERE unit = ?", [(key,) for key in forgotten])
            else:
                change.run_many(WRITE_NOTE, [(kind, key, value) for key, value in kept])
                change.run_many(
                    "DELETE FROM state_notes WHERE kind = ? AND key = ?", [(kind, key) for key in forgotten]
                )


class DatabaseDrafts:
    """A body writes a file on its machine. When it is done, the content goes into the database, not yet published."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._home = os.path.join(database.scratch, "drafts")

    def open(self, address: str, token: str) -> Draft:
        checked_path(probe_path(address))
        key = split_address(address)[1]
        os.makedirs(self._home, exist_ok=True)
        # The name comes last, because its suffix says what it is; what it is a draft of is in the settlement.
        place = os.path.join(self._home, f"{TEMPORARY}{token}-{os.urandom(3).hex()}-{draft_name(key)}")
        if address.endswith("/") or "{" in key:
            os.mkdir(place)
        return Draft(address, place)

    def write_many(self, contents: Sequence[tuple[Draft, bytes]]) -> list[OSError | None]:
        numbers = call_each("write", [(draft.place, content) for draft, content in contents])
        return [
            None if number is None else system_error(number, draft.place)
            for number, (draft, _) in zip(numbers, contents, strict=True)
        ]

    def keep(self, draft: Draft) -> str:
        now = time.time_ns()
        contents = {sha256(content).hexdigest(): content for content in _contents(draft.place)}
        # If it is lost with the machine, whoever publishes it finds it gone, and it is made again.
        with self._database.changing(durable=False) as change:
            change.run_many(WRITE_CONTENT, [(digest, contents[digest], now) for digest in sorted(contents)])
            change.run("INSERT INTO state_drafts (name, added) VALUES (?, ?)", (name_of(draft), now))
        discard(draft)
        return name_of(draft)

    def named(self, address: str, name: str) -> Draft:
        return Draft(address, os.path.join(self._home, os.path.basename(name)))

    def discard(self, draft: Draft) -> None:
        discard(draft)
        with self._database.changing(durable=False) as change:
            change.run("DELETE FROM state_drafts WHERE name = ?", (name_of(draft),))


def name_of(draft: Draft) -> str:
    return os.path.basename(draft.place)


def _contents(place: str) -> list[bytes]:
    if not os.path.isdir(place):
        return [Path(place).read_bytes()]
    return [Path(folder, name).read_bytes() for folder, _, names in os.walk(place) for name in names]


class NoCache:
    """Caches nothing: the database finds everything as quickly."""

    def read(self) -> Cache:
        return EMPTY

    def changed(self, folders: Sequence[Folder]) -> list[str] | None:
        return None

    def save(self, snapshot: Snapshot, verdict: dict[str, Any]) -> None:
        pass
