"""`LocalFiles`: the files below a root."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from stat import S_ISDIR

from ....base.ids import time_ordered
from ....errors import UnsafePath
from ...patterns.paths import checked_path
from ...patterns.pattern import Pattern
from ..listing import MANIFEST_FILES, Folder, walk
from ..port import Wanted
from ..records import members_hash
from ..single import Read, Stamp, hash_file, read_file, stamp_of, still_is
from .root import Root

HOME = ".stepwell"
"""The folder at the root that has what is not a state."""


class LocalFiles:
    """The files below a root."""

    def __init__(self, root: Root) -> None:
        self.root = root

    def walk(self, wanted: Wanted) -> list[Folder]:
        return list(walk(self.root.open_folder, wanted))

    def exists(self, path: str) -> bool:
        return self.is_directory(path) if path.endswith("/") else self.stamp(checked_path(path)) is not None

    def is_directory(self, path: str) -> bool:
        try:
            status = self.root.stat(path)
        except UnsafePath:
            return False
        return status is not None and S_ISDIR(status.st_mode)

    def read(self, path: str) -> bytes:
        return self.read_stamped(path)[0]

    def read_stamped(self, path: str) -> Read:
        return self.root.at(checked_path(path), read_file)

    def still_is(self, path: str, stamp: Stamp, digest: str) -> bool:
        try:
            return self.root.at(path, lambda name, folder: still_is(name, stamp, digest, folder))
        except (OSError, UnsafePath):
            return False

    def stamp(self, path: str) -> Stamp | None:
        return self.stamps([path])[0]

    def stamps(self, paths: Sequence[str]) -> list[Stamp | None]:
        results: list[Stamp | None] = []
        with self.root.folders() as folders:
            for path in paths:
                try:
                    folder, name = folders(path)
                    results.append(stamp_of(name, folder))
                except (FileNotFoundError, NotADirectoryError, UnsafePath):
                    results.append(None)
        return results

    def hash_of(self, path: str) -> str | None:
        """The hash of what a file holds now."""
        try:
            with self.root.folders() as folders:
                folder, name = folders(path)
                return hash_file(name, folder)
        except (OSError, UnsafePath):
            return None

    def below(self, path: str) -> list[str] | None:
        if not self.is_directory(path):
            return None
        prefix = f"{path}/" if path else ""
        return [
            f"{prefix}{folder}{name}"
            for folder, names, _ in self.root.walk(path)
            for name in names
            if name[0] != "." or name in MANIFEST_FILES
        ]

    def members(self, directory: str) -> dict[str, str]:
        """The hash of each file of a directory and below it, relative to it. Links and pipes are none."""
        return {
            folder + name: _hash_or_nothing(name, descriptor)
            for folder, names, descriptor in self.root.walk(directory.removesuffix("/"))
            for name in names
            if name[0] != "." and stamp_of(name, descriptor) is not None
        }

    def directory_hash(self, path: str, excluded: Sequence[Pattern]) -> str | None:
        if not self.is_directory(checked_path(path)):
            return None
        return members_hash(
            {
                name: digest
                for name, digest in self.members(path).items()
                if not any(each.covers(path + name) for each in excluded)
            }
        )

    def local(self, path: str) -> Path:
        self.root.stat(checked_path(path))  # which refuses a link on the way
        return Path(self.root.place(path))

    def put(self, path: str, content: bytes) -> None:
        self.root.write_durably(checked_path(path), content)

    def change_mark(self) -> None:
        return None

    def keep_aside(self, path: str) -> str:
        """Move a file that is about to be replaced to where it is kept."""
        aside = f"{HOME}/aside/{time.strftime('%Y%m%dT%H%M%S')}-{time_ordered()[-6:]}/{path.removesuffix('/')}"
        self.root.rename(path, aside, make=True)
        return aside


def _hash_or_nothing(name: str, folder: int) -> str:
    try:
        return hash_file(name, folder)
    except OSError:
        return ""
