"""The files in a database."""

from __future__ import annotations

import os
import threading
import time
from array import array
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from ...patterns.paths import checked_path
from ...patterns.pattern import Pattern
from ..listing import Folder
from ..port import Wanted
from ..records import members_hash
from ..single import Read, Stamp
from .port import Database
from .schema import FILES, RECORD, WRITE_CONTENT, WRITE_FILE


class DatabaseFiles:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._reads = os.path.join(database.scratch, "reads")

    def walk(self, wanted: Wanted) -> list[Folder]:
        """The files of each directory. Drafts belong to the root."""
        found: dict[str, Folder] = {}
        rows = self._database.rows
        for path, size, changed, version in rows(
            f"SELECT path, size, changed, version FROM states WHERE {FILES} ORDER BY path"
        ):
            folder, _, name = path.rpartition("/")
            names = folder.split("/")
            for above in ("/".join(names[:depth]) for depth in range(1, len(names) + 1)) if folder not in found else ():
                found.setdefault(above, Folder(above, [], array("Q"), [], [], [], [None, None]))
            found[folder].names.append(name)
            found[folder].stamps.extend((size, changed, version, 0))
        root = found.setdefault("", Folder("", [], array("Q"), [], [], [], [None, None]))
        root.temporary.extend(name for (name,) in rows("SELECT name FROM state_drafts ORDER BY name"))
        return [folder for path, folder in found.items() if not path or wanted(path.split("/"))]

    def exists(self, path: str) -> bool:
        return bool(self.members(path)) if path.endswith("/") else self.stamp(checked_path(path)) is not None

    def read(self, path: str) -> bytes:
        return self.read_stamped(path)[0]

    def read_stamped(self, path: str) -> Read:
        rows = self._database.rows(
            "SELECT body, size, changed, version, content FROM states JOIN state_contents ON hash = content "
            f"WHERE path = ? AND {FILES}",
            (checked_path(path),),
        )
        if not rows:
            raise FileNotFoundError(path)
        body, size, changed, version, digest = rows[0]
        return bytes(body), (size, changed, version, 0), str(digest)

    def still_is(self, path: str, stamp: Stamp, digest: str) -> bool:
        return self.hash_of(path) == digest

    def hash_of(self, path: str) -> str | None:
        rows = self._database.rows(f"SELECT content FROM states WHERE path = ? AND {FILES}", (path,))
        return str(rows[0][0]) if rows else None

    def find_hash(self, path: str, stamp: Stamp) -> tuple[str, Stamp] | None:
        digest = self.hash_of(path)
        return None if digest is None else (digest, self.stamp(path) or stamp)

    def stamp(self, path: str) -> Stamp | None:
        rows = self._database.rows(f"SELECT size, changed, version FROM states WHERE path = ? AND {FILES}", (path,))
        return (*rows[0], 0) if rows else None

    def stamps(self, paths: Sequence[str]) -> list[Stamp | None]:
        return [self.stamp(path) for path in paths]

    def below(self, path: str) -> list[str] | None:
        return [f"{path}/{name}" for name in self.members(f"{path}/")] or None

    def members(self, directory: str) -> dict[str, str]:
        """The hash of each file of a directory and below it, relative to it."""
        checked_path(directory)
        rows = self._database.rows(
            f"SELECT path, content FROM states WHERE path > ? AND path < ? AND {FILES}",
            (directory, f"{directory}\U0010ffff"),
        )
        return {path[len(directory) :]: content for path, content in rows}

    def directory_hash(self, path: str, excluded: Sequence[Pattern]) -> str | None:
        members = self.members(path)
        kept = {name: each for name, each in members.items() if not any(p.covers(path + name) for p in excluded)}
        return members_hash(kept) if members else None

    def local(self, path: str) -> Path:
        """A copy for a body that wants a Path: of a file, or of a whole directory."""
        if path.endswith("/"):
            members = self.members(path)
            home = Path(self._reads, members_hash(members))
            for member in members:
                _copy(home / member, self.read(path + member))
            home.mkdir(parents=True, exist_ok=True)
            return home
        content = self.read(path)
        return _copy(Path(self._reads, sha256(content).hexdigest(), path.rpartition("/")[2]), content)

    def put(self, path: str, content: bytes) -> None:
        checked_path(path)
        digest, now = sha256(content).hexdigest(), time.time_ns()
        with self._database.changing() as change:
            change.run(WRITE_CONTENT, (digest, content, now))
            change.run(WRITE_FILE, (path, digest, len(content), now, *(None,) * len(RECORD)))

    def change_mark(self) -> object:
        return self._database.change_mark()


def _copy(file: Path, content: bytes) -> Path:
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
        temporary.write_bytes(content)
        temporary.replace(file)
    return file
