"""States in a database: the content of files by hash, records beside them, all changes of a batch in one transaction."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from ....base.ids import time_ordered
from ...patterns.paths import checked_path
from ..files.root import Root
from ..listing import Folder
from ..notes import read_failures
from ..port import Draft, Publication, Published, Wanted
from ..publishing import Accepted, Present, contents_of, files_of, publish_batch
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
        rows = self._database.rows(ask)
        if not rows:
            with self._database.changing() as change:
                change.run(
                    "INSERT INTO state_notes (kind, key, value) VALUES ('root', 'id', ?) ON CONFLICT DO NOTHING",
                    (time_ordered(),),
                )
            rows = self._database.rows(ask)
        return str(rows[0][0])

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
            published = publish_batch(_DatabaseBatch(change, publications, self.files), publications)
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
            files = {
                path: each for address, record in known.items() for path, each in files_of(address, record).items()
            }
            there = contents_at(change, files)
            _keep_aside(change, {path: content for path, content in there.items() if content != files[path]})
            change.run_many("DELETE FROM states WHERE path = ?", [(path,) for path in (*known, *files)])
        return list(known)


def contents_at(change: Change, paths: Iterable[str]) -> dict[str, str]:
    """The content hashes of those of these files that are there."""
    return dict(rows_of(change, f"SELECT path, content FROM states WHERE {FILES} AND path IN", paths))


def _keep_aside(change: Change, contents: Mapping[str, str]) -> None:
    """Keep what nobody recorded and is about to be replaced or removed."""
    now = time.time_ns()
    rows = [(path, content, now) for path, content in contents.items()]
    change.run_many("INSERT INTO state_aside (path, content, at) VALUES (?, ?, ?)", rows)


class _DatabaseBatch:
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
        paths = {
            path for draft, *records, _ in publications for each in records for path in files_of(draft.address, each)
        }
        self._there = contents_at(change, paths)
        digests = [
            d for each in publications for d in (each.record.content_hash, *(each.record.members or {}).values())
        ]
        self._sizes: dict[str, int] = dict(
            rows_of(change, "SELECT hash, length(body) FROM state_contents WHERE hash IN", digests)
        )

    def present(self, publications: Sequence[Publication]) -> list[Present]:
        return [
            Present(self._contents_at(each.draft.address, each.record), name_of(each.draft) in self._drafts)
            for each in publications
        ]

    def _contents_at(self, address: str, record: Record) -> dict[str, str]:
        if address.endswith("/"):
            members = self._files.members(address)
            return {address: members_hash(members)} if members else {}
        return {path: self._there[path] for path in contents_of(address, record) if path in self._there}

    def reveal(self, accepted: Sequence[Accepted]) -> dict[str, Stamp | None]:
        now = time.time_ns()
        files: list[tuple[Any, ...]] = []
        records: list[tuple[str | None, ...]] = []
        aside: dict[str, str] = {}
        removed: list[tuple[str]] = []
        for (draft, record, former, _), _, _ in accepted:
            address = draft.address
            after, before = files_of(address, record), files_of(address, former)
            there = {path: self._there[path] for path in (*before, *after) if path in self._there}
            if address.endswith("/"):  # also what somebody else put there
                there = {address + name: content for name, content in self._files.members(address).items()}
            aside |= {path: each for path, each in there.items() if each not in (after.get(path), before.get(path))}
            removed += [(path,) for path in there if path not in after]
            of_file = record_values(record if record.members is None else None)
            files += [(checked_path(path), *self._content(digest, now), *of_file) for path, digest in after.items()]
            if record.members is not None:
                records.append((address, record.content_hash, *record_values(record)))
        _keep_aside(self._change, aside)
        run = self._change.run_many
        run("DELETE FROM states WHERE path = ?", removed)
        run(WRITE_FILE, files)
        run(WRITE_RECORD, records)
        names = [name_of(each.draft) for each in self._publications]
        run("DELETE FROM state_drafts WHERE name = ?", [(name,) for name in names if name in self._drafts])
        return {each.publication.draft.address: None for each in accepted}

    def _content(self, digest: str, now: int) -> tuple[str, int, int]:
        return digest, self._sizes[digest], now
