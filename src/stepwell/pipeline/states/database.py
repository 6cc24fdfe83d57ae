"""States in a SQLite database: the content of files by hash, records beside them, all changes of a batch in one transaction.

    states           a row for each file, and for each state of several files: path, content, size, when, record
    state_contents   what is in files, once for each hash
    state_failures   what failed, and when it is tried again
    state_notes      the id of the root, what stages were made of, what triggers were fired for
    state_aside      files that were replaced although nobody had recorded them so

Drafts are files in `<database>-drafts/`; what bodies take as a Path is copied to `<database>-reads/`.
"""

from __future__ import annotations

import json
import os
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ...codec import encode_checked
from ...errors import StoreBusy
from ...ids import time_ordered
from ..patterns.paths import TEMPORARY, checked_path
from ..patterns.pattern import Pattern
from .cache import EMPTY, Cache
from .lease import hold_lease, lease_number
from .listing import Folder, Stamp
from .manifests import draft_name, split_address
from .port import Draft, Publication, Published
from .publishing import discard
from .records import Failure, Record, failure_from, members_hash, record_from
from .snapshot import Snapshot

_SCHEMA = """
CREATE TABLE IF NOT EXISTS states (
    path TEXT PRIMARY KEY, content TEXT, size INTEGER, changed INTEGER, version INTEGER, record TEXT
);
CREATE TABLE IF NOT EXISTS state_contents (hash TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state_failures (unit TEXT PRIMARY KEY, failure TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state_notes (kind TEXT, key TEXT, value TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state_aside (path TEXT, content TEXT, at INTEGER);
"""
_DRAFT_SECONDS = 86_400.0


class DatabaseStates:
    """The states of pipelines in one database, `sqlite:///states.db`."""

    def __init__(self, url: str, pipeline: str = "") -> None:
        import apsw

        self.url = url
        self.pipeline = pipeline
        self.path = os.path.abspath(unquote(url.removeprefix("sqlite:///")))
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self._lock = threading.RLock()
        self._connection = apsw.Connection(self.path)
        self._connection.set_busy_timeout(60_000)
        self._busy = apsw.BusyError
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.execute(_SCHEMA)
        self._drafts = f"{self.path}-drafts"
        self._reads = f"{self.path}-reads"

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _changing(self) -> Iterator[Any]:
        """One transaction: all of it or nothing."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except self._busy:
                raise StoreBusy(f"{self.url} is locked by another process") from None
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        with self._lock:
            return list(self._connection.execute(statement, values))

    @property
    def root_id(self) -> str:
        found = self._notes("root")
        if not found:
            with self._changing() as connection:
                connection.execute("INSERT OR IGNORE INTO state_notes VALUES ('root', 'id', ?)", (time_ordered(),))
            found = self._notes("root")
        return found["id"]

    def lease(self, name: str, patience: float) -> AbstractContextManager[Callable[[], bool]]:
        return hold_lease(f"{self.path}.{checked_path(name)}.lease", name, patience)

    def lease_number(self, name: str) -> int:
        return lease_number(f"{self.path}.{checked_path(name)}.lease")

    # Looking

    def exists(self, path: str) -> bool:
        if path.endswith("/"):
            return bool(self._below(path))
        return bool(self._rows("SELECT 1 FROM states WHERE path = ? AND version IS NOT NULL", checked_path(path)))

    def read(self, path: str) -> bytes:
        return self.read_with_stamp(path)[0]

    def read_with_stamp(self, path: str) -> tuple[bytes, Stamp]:
        found = self._rows(
            "SELECT body, size, changed, version FROM states JOIN state_contents ON hash = content WHERE path = ?",
            checked_path(path),
        )
        if not found:
            raise FileNotFoundError(path)
        body, size, changed, version = found[0]
        return bytes(body), (size, changed, version, 0)

    def still_is(self, path: str, stamp: Stamp, digest: str) -> bool:
        return self.hash_of(path) == digest

    def hash_of(self, path: str) -> str | None:
        found = self._rows("SELECT content FROM states WHERE path = ? AND version IS NOT NULL", path)
        return str(found[0][0]) if found else None

    def files_below(self, path: str) -> list[str] | None:
        found = [f"{path}/{name}" for name in self._below(f"{path}/")]
        return found or None

    def stamp(self, path: str) -> Stamp | None:
        found = self._rows("SELECT size, changed, version FROM states WHERE path = ? AND version IS NOT NULL", path)
        return (*found[0], 0) if found else None

    def local(self, path: str) -> Path:
        """A copy for a body that wants a Path: of a file, or of a whole directory."""
        if path.endswith("/"):
            members = self._below(path)
            home = Path(self._reads, members_hash(members))
            for member in members:
                self._copy(home / member, self.read(path + member))
            home.mkdir(parents=True, exist_ok=True)
            return home
        content = self.read(path)
        return self._copy(Path(self._reads, sha256(content).hexdigest(), path.rpartition("/")[2]), content)

    def _copy(self, file: Path, content: bytes) -> Path:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            temporary = file.with_name(f".{file.name}.{threading.get_ident()}")
            temporary.write_bytes(content)
            temporary.replace(file)
        return file

    def _below(self, directory: str) -> dict[str, str]:
        checked_path(directory)
        rows = self._rows(
            "SELECT path, content FROM states WHERE path > ? AND path < ? AND version IS NOT NULL",
            directory,
            f"{directory}\U0010ffff",
        )
        return {path[len(directory) :]: content for path, content in rows}

    def directory_hash(self, path: str, excluded: Sequence[Pattern]) -> str | None:
        members = self._below(path)
        kept = {name: each for name, each in members.items() if not any(p.covers(path + name) for p in excluded)}
        return members_hash(kept) if members else None

    def walk(self, wanted: Callable[[Sequence[str]], bool]) -> list[Folder]:
        """The files of each directory. Drafts belong to the root."""
        found: dict[str, Folder] = {}
        for path, size, changed, version in self._rows(
            "SELECT path, size, changed, version FROM states WHERE version IS NOT NULL ORDER BY path"
        ):
            folder, _, name = path.rpartition("/")
            if folder not in found:
                found[folder] = Folder(folder, [], array("Q"), [], [], [], [None, None])
            found[folder].names.append(name)
            found[folder].stamps.extend((size, changed, version, 0))
        root = found.setdefault("", Folder("", [], array("Q"), [], [], [], [None, None]))
        if os.path.isdir(self._drafts):
            root.temporary.extend(sorted(os.listdir(self._drafts)))
        return [folder for path, folder in found.items() if not path or wanted(path.split("/"))]

    def snapshot(self, wanted: Callable[[Sequence[str]], bool], folders: Sequence[Folder] | None = None) -> Snapshot:
        snapshot = Snapshot(self._find_hash)
        for folder in self.walk(wanted) if folders is None else folders:
            numbers = folder.stamps
            snapshot.tree[folder.path] = {
                name: (numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3])
                for name, at in zip(folder.names, range(0, len(numbers), 4), strict=True)
            }
        snapshot.records = self._records("SELECT path, record FROM states WHERE record IS NOT NULL")
        snapshot.failures = self.failures()
        return snapshot

    def _find_hash(self, path: str, stamp: Stamp) -> tuple[str, Stamp] | None:
        digest = self.hash_of(path)
        return None if digest is None else (digest, self.stamp(path) or stamp)

    def cached(self) -> Cache:
        return EMPTY  # what is in the database is as quickly found

    def unchanged(self, folders: Sequence[Folder]) -> bool:
        return False

    def save_cache(self, snapshot: Snapshot, verdict: dict[str, Any]) -> None:
        pass

    # Changing

    def put(self, path: str, content: bytes) -> None:
        checked_path(path)
        with self._changing() as connection:
            self._write(connection, path, content, None)

    def _write(self, connection: Any, path: str, content: bytes, record: str | None) -> None:
        digest = sha256(content).hexdigest()
        connection.execute("INSERT OR IGNORE INTO state_contents VALUES (?, ?)", (digest, content))
        connection.execute(
            "INSERT INTO states VALUES (?1, ?2, ?3, ?4, 1, ?5) ON CONFLICT (path) DO UPDATE SET content = ?2, size = ?3, "
            "changed = ?4, version = coalesce(version, 0) + 1, record = ?5",
            (path, digest, len(content), time.time_ns(), record),
        )

    def records(self, addresses: Iterable[str]) -> dict[str, Record]:
        wanted = set(addresses)
        found = self._records("SELECT path, record FROM states WHERE record IS NOT NULL")
        return {address: record for address, record in found.items() if address in wanted}

    def _records(self, statement: str) -> dict[str, Record]:
        return {address: record_from(json.loads(written)) for address, written in self._rows(statement)}

    def read_records(self, folder: str) -> dict[str, Record]:
        prefix = f"{folder}/" if folder else ""
        found = self._records("SELECT path, record FROM states WHERE record IS NOT NULL")
        return {address: record for address, record in found.items() if split_address(address)[0] == prefix}

    def draft(self, address: str, token: str) -> Draft:
        folder, key = split_address(address)
        probe = folder + (key.removesuffix("/") if "{" not in key else "x")
        checked_path(probe)
        os.makedirs(self._drafts, exist_ok=True)
        # The name comes last, because its suffix says what it is; what it is a draft of is in the settlement.
        place = os.path.join(self._drafts, f"{TEMPORARY}{token}-{os.urandom(3).hex()}-{draft_name(key)}")
        if address.endswith("/") or "{" in key:
            os.mkdir(place)
        return Draft(address, place, token)

    def draft_name(self, draft: Draft) -> str:
        return os.path.basename(draft.place)

    def drafted(self, address: str, name: str, token: str) -> Draft:
        return Draft(address, os.path.join(self._drafts, os.path.basename(name)), token)

    def discard(self, draft: Draft) -> None:
        discard(draft)

    def publish(self, publications: Sequence[Publication]) -> list[Published]:
        """One transaction: what is in it is seen, all of it or nothing."""
        answers = []
        with self._changing() as connection:
            for each in publications:
                answers.append(self._publish(connection, each))
        for each in publications:
            discard(each.draft)
        return answers

    def _publish(self, connection: Any, publication: Publication) -> Published:
        draft, record = publication.draft, publication.record
        address = draft.address
        there = self._content_at(address, record)
        if not os.path.lexists(draft.place):
            done = there == record.content_hash
            return Published(address, done, "" if done else "lost")
        if (
            there is not None
            and there != record.content_hash
            and publication.expected is None
            and not publication.replace
        ):
            return Published(address, False, "unrecorded")
        written = encode_checked(record.to_json()).decode()
        if record.members is None:
            if there is not None and there not in (publication.expected, record.content_hash):
                connection.execute("INSERT INTO state_aside VALUES (?, ?, ?)", (address, there, time.time_ns()))
            self._write(connection, address, Path(draft.place).read_bytes(), written)
            return Published(address, True)
        base = address if address.endswith("/") else split_address(address)[0]
        former = self.records([address]).get(address)
        for member in former.members if former is not None and former.members else ():
            connection.execute("DELETE FROM states WHERE path = ?", (base + member,))
        for member in record.members:
            content = Path(draft.place, *member.split("/")).read_bytes()
            self._write(connection, checked_path(base + member), content, None)
        connection.execute(
            "INSERT OR REPLACE INTO states VALUES (?, ?, 0, 0, NULL, ?)", (address, record.content_hash, written)
        )
        return Published(address, True)

    def _content_at(self, address: str, record: Record) -> str | None:
        if record.members is None:
            return self.hash_of(address)
        if address.endswith("/"):
            return members_hash(self._below(address)) if self._below(address) else None
        base = split_address(address)[0]
        found = {member: self.hash_of(base + member) for member in record.members}
        return None if None in found.values() or not found else members_hash({k: v or "" for k, v in found.items()})

    def finish(self, folders: Iterable[Folder]) -> list[str]:
        """Nothing is ever half done; drafts that nobody will publish are removed."""
        for name in os.listdir(self._drafts) if os.path.isdir(self._drafts) else ():
            place = os.path.join(self._drafts, name)
            if time.time() - os.lstat(place).st_mtime > _DRAFT_SECONDS:
                discard(Draft("", place, ""))
        return []

    def change_records(self, changes: Mapping[str, Record | None]) -> None:
        with self._changing() as connection:
            for address, record in changes.items():
                if record is None:
                    connection.execute("UPDATE states SET record = NULL WHERE path = ?", (address,))
                    connection.execute("DELETE FROM states WHERE path = ? AND version IS NULL", (address,))
                else:
                    written = encode_checked(record.to_json()).decode()
                    connection.execute(
                        "INSERT INTO states VALUES (?1, ?2, 0, 0, NULL, ?3) ON CONFLICT (path) DO UPDATE SET record = ?3",
                        (address, record.content_hash, written),
                    )

    def remove(self, addresses: Iterable[str]) -> list[str]:
        known = self.records(addresses)
        with self._changing() as connection:
            for address, record in known.items():
                base = address if address.endswith("/") else split_address(address)[0]
                for member in record.members or ():
                    connection.execute("DELETE FROM states WHERE path = ?", (base + member,))
                connection.execute("DELETE FROM states WHERE path = ?", (address,))
        return list(known)

    def failures(self) -> dict[str, Failure]:
        rows = self._rows("SELECT unit, failure FROM state_failures")
        return {unit: failure_from(json.loads(written)) for unit, written in rows}

    def change_failures(self, changes: Mapping[str, Failure | None]) -> None:
        with self._changing() as connection:
            for unit, failure in changes.items():
                if failure is None:
                    connection.execute("DELETE FROM state_failures WHERE unit = ?", (unit,))
                else:
                    written = encode_checked(failure.to_json()).decode()
                    connection.execute("INSERT OR REPLACE INTO state_failures VALUES (?, ?)", (unit, written))

    def _notes(self, kind: str) -> dict[str, str]:
        return dict(self._rows("SELECT key, value FROM state_notes WHERE kind = ?", kind))

    def _note(self, kind: str, notes: Mapping[str, str]) -> None:
        with self._changing() as connection:
            for key, value in notes.items():
                connection.execute("INSERT OR REPLACE INTO state_notes VALUES (?, ?, ?)", (kind, key, value))

    def trigger_marks(self) -> dict[str, str]:
        return self._notes("trigger")

    def mark_triggers(self, marks: Mapping[str, str]) -> None:
        self._note("trigger", marks)

    def keep_code(self, code_hash: str, parts: Mapping[str, str]) -> None:
        self._note("code", {code_hash: encode_checked(dict(parts)).decode()})

    def known_code(self, code_hash: str) -> Mapping[str, Any] | None:
        found = self._notes("code").get(code_hash)
        return None if found is None else json.loads(found)
