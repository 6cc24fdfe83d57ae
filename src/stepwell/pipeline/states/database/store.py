"""States in a database: the content of files by hash, records beside them, all changes of a batch in one transaction."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from ....base.ids import time_ordered
from ...patterns.paths import checked_path
from ..address import member_paths
from ..files.root import Root
from ..listing import Folder
from ..notes import read_failures
from ..port import Draft, Publication, Published, Wanted
from ..publishing import Present, is_foreign, publish_batch
from ..records import Record, members_hash
from ..single import Stamp
from ..snapshot import Snapshot
from .files import DatabaseFiles
from .kept import DatabaseDrafts, DatabaseNotes, DatabaseRecords, NoCache, find_records, name_of, record_values
from .port import Change, Database, rows_of
from .schema import FILES, WRITE_FILE, WRITE_NOTE, WRITE_RECORD

FORGOTTEN_SECONDS = 86_400.0
"""Older drafts, and older contents that no state has, are removed."""


class DatabaseStates:
    """The states of pipelines in one database: `sqlite:///states.db`, or `postgresql://...`."""

    def __init__(self, database: Database, pipeline: str = "") -> None:
        self.url = database.url
        self.pipeline = pipeline
        self.files = DatabaseFiles(database)
        self.records = DatabaseRecords(database)
        self.drafts = DatabaseDrafts(database)
        self.notes = DatabaseNotes(database)
        self.cache = NoCache()
        self._database = database

    def close(self) -> None:
        self._database.close()

    @property
    def root_id(self) -> str:
        ask = "SELECT value FROM state_notes WHERE kind = 'root' AND key = 'id'"
        found = self._database.rows(ask)
        if not found:
            with self._database.changing() as change:
                change.run(
                    "INSERT INTO state_notes (kind, key, value) VALUES ('root', 'id', ?) ON CONFLICT DO NOTHING",
                    (time_ordered(),),
                )
            found = self._database.rows(ask)
        return str(found[0][0])

    def lease(self, name: str, patience: float) -> AbstractContextManager[Callable[[], bool]]:
        return self._database.lease(checked_path(name), patience)

    def lease_number(self, name: str) -> int:
        return self._database.lease_number(checked_path(name))

    def snapshot(
        self, wanted: Wanted, folders: Sequence[Folder] | None = None, only: Collection[str] | None = None
    ) -> Snapshot:
        """Everything: the cache of a database never says that a part is enough."""
        snapshot = Snapshot(self.files.find_hash)
        for folder in self.files.walk(wanted) if folders is None else folders:
            snapshot.tree[folder.path] = {name: folder.stamp(position) for position, name in enumerate(folder.names)}
        for path, content in self._database.rows(f"SELECT path, content FROM states WHERE {FILES}"):
            snapshot.hashes[path] = content
        snapshot.records = self.records.all()
        snapshot.failures = read_failures(self.notes, self.pipeline)
        return snapshot

    # Changing

    def sync(self, drafts: Iterable[Draft]) -> None:
        """Nothing to do: the transaction that publishes drafts makes them durable."""

    def publish(
        self, publications: Sequence[Publication], check: Callable[[], object] = lambda: None
    ) -> list[Published]:
        """One transaction: what is in it is seen, all of it or nothing."""
        with self._database.changing() as change:
            check()
            published = publish_batch(_Batch(change, publications, self.files), publications)
        for each in publications:
            self.drafts.remove(each.draft)
        return published

    def tidy(self) -> None:
        pass

    def finish(self, folders: Iterable[Folder]) -> list[str]:
        """A transaction leaves nothing to finish. Once a day, remove what nobody needs any more."""
        now = time.time_ns()
        long_ago = now - int(FORGOTTEN_SECONDS * 1e9)
        known = self._database.rows("SELECT value FROM state_notes WHERE kind = 'root' AND key = 'cleaned'")
        if known and long_ago < int(known[0][0]) <= now:
            return []
        with self._database.changing() as change:
            change.run("DELETE FROM state_drafts WHERE added < ?", (long_ago,))
            change.run(
                "DELETE FROM state_contents WHERE added < ? AND NOT EXISTS (SELECT 1 FROM states WHERE content = hash) "
                "AND NOT EXISTS (SELECT 1 FROM state_aside WHERE content = hash)",
                (long_ago,),
            )
            change.run(WRITE_NOTE, ("root", "cleaned", str(now)))
        self._remove_old_files()
        return []

    def _remove_old_files(self) -> None:
        """Remove what killed bodies left on this machine, and the copies that they read."""
        scratch = Root(self._database.scratch)
        for kind in ("drafts", "reads"):
            home = scratch.place(kind)
            for name in os.listdir(home) if os.path.isdir(home) else ():
                there = scratch.stat(f"{kind}/{name}")
                if there is not None and time.time() - there.st_mtime > FORGOTTEN_SECONDS:
                    scratch.remove(f"{kind}/{name}")

    def remove(self, addresses: Iterable[str]) -> list[str]:
        with self._database.changing() as change:
            known = find_records(change, addresses)
            paths = [path for address, record in known.items() for path in (address, *_members(address, record))]
            change.run_many("DELETE FROM states WHERE path = ?", [(path,) for path in paths])
        return list(known)


def _members(address: str, record: Record | None) -> list[str]:
    return [] if record is None or record.members is None else member_paths(address, record.members)


class _Batch:
    """Publications of one transaction: what they find is read at once, and what they change is written at once."""

    def __init__(self, change: Change, publications: Sequence[Publication], files: DatabaseFiles) -> None:
        self._change = change
        self._publications = publications
        self._files = files
        self._drafts = {
            name
            for (name,) in rows_of(
                change, "SELECT name FROM state_drafts WHERE name IN", [name_of(each.draft) for each in publications]
            )
        }
        self._former = find_records(change, [each.draft.address for each in publications])
        paths = [
            path
            for each in publications
            for path in (each.draft.address, *_members(each.draft.address, each.record))
        ]  # fmt: skip
        self._there: dict[str, str] = dict(
            rows_of(change, f"SELECT path, content FROM states WHERE {FILES} AND path IN", paths)
        )
        digests = [
            d for each in publications for d in (each.record.content_hash, *(each.record.members or {}).values())
        ]
        self._sizes: dict[str, int] = dict(
            rows_of(change, "SELECT hash, length(body) FROM state_contents WHERE hash IN", digests)
        )

    def present(self, publications: Sequence[Publication]) -> list[Present]:
        return [
            Present(self._content_at(each.draft.address, each.record), name_of(each.draft) in self._drafts)
            for each in publications
        ]

    def reveal(self, accepted: Sequence[tuple[Publication, str | None]]) -> dict[str, Stamp | None]:
        now = time.time_ns()
        files: list[tuple[Any, ...]] = []
        records: list[tuple[str | None, ...]] = []
        aside: list[tuple[str, str, int]] = []
        removed: list[tuple[str]] = []
        for publication, content in accepted:
            address, record = publication.draft.address, publication.record
            if record.members is None:
                if content is not None and is_foreign(publication, content):
                    aside.append((address, content, now))
                files.append((address, *self._content(record.content_hash, now), *record_values(record)))
                continue
            kept = set(_members(address, record))
            removed += [(path,) for path in _members(address, self._former.get(address)) if path not in kept]
            if address.endswith("/"):  # also what somebody else put there
                removed += [(address + name,) for name in self._files.members(address) if address + name not in kept]
            for path, digest in zip(_members(address, record), record.members.values(), strict=True):
                files.append((checked_path(path), *self._content(digest, now), *record_values(None)))
            records.append((address, record.content_hash, *record_values(record)))
        run = self._change.run_many
        run("INSERT INTO state_aside (path, content, at) VALUES (?, ?, ?)", aside)
        run("DELETE FROM states WHERE path = ?", removed)
        run(WRITE_FILE, files)
        run(WRITE_RECORD, records)
        names = [name_of(each.draft) for each in self._publications]
        run("DELETE FROM state_drafts WHERE name = ?", [(name,) for name in names if name in self._drafts])
        return {each.draft.address: None for each, _ in accepted}

    def _content(self, digest: str, now: int) -> tuple[str, int, int]:
        return digest, self._sizes[digest], now

    def _content_at(self, address: str, record: Record) -> str | None:
        """The content hash of what is at the final place now; None if there is nothing."""
        if record.members is None:
            return self._there.get(address)
        if address.endswith("/"):
            found = self._files.members(address)
            return members_hash(found) if found else None
        members = {
            name: self._there.get(path) for name, path in zip(record.members, _members(address, record), strict=True)
        }
        if not members or None in members.values():
            return None
        return members_hash({name: digest or "" for name, digest in members.items()})
