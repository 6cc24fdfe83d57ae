"""`LocalFiles`: the files below a root."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from ....errors import UnsafePath
from ....ids import time_ordered
from ...patterns.paths import SafeRoot, checked_path
from ...patterns.pattern import Pattern
from ..listing import MANIFEST_FILES, Folder, is_folder, walk
from ..port import Wanted
from ..records import members_hash
from ..single import Read, Stamp, hash_file, read_file, stamp_of
from .second_process import SecondProcess, system_error
from .syncing import write_durably

HOME = ".stepwell"
"""The folder at the root that has what is not a state."""


class LocalFiles:
    """The files below a root, each of which is found by `safe_join` only."""

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self.home = os.path.join(self.root, HOME)
        self.safe = SafeRoot(self.root)
        self.join = self.safe.joiner()
        """As `file`, for many in a row."""
        self.second_process = SecondProcess()

    def file(self, path: str) -> str:
        """The file of a path, which is below the root whatever it says."""
        return self.safe.join(path)

    def walk(self, wanted: Wanted) -> list[Folder]:
        return list(walk(self.root, wanted))

    def exists(self, path: str) -> bool:
        return os.path.isdir(self.file(path)) if path.endswith("/") else stamp_of(self.file(path)) is not None

    def read(self, path: str) -> bytes:
        return read_file(self.file(path))[0]

    def read_many(self, paths: Sequence[str]) -> list[Read | Exception]:
        join = self.join
        try:
            files = [(join(path),) for path in paths]
        except UnsafePath as error:
            return [error] if len(paths) == 1 else [self.read_many([path])[0] for path in paths]
        read = self.second_process.call_each("read", files)
        return [
            each if isinstance(each, tuple) else system_error(each, file)
            for each, (file,) in zip(read, files, strict=True)
        ]

    def still_are(self, reads: Sequence[tuple[str, Stamp, str]]) -> list[bool]:
        root = self.root
        files = [(f"{root}/{path}", stamp, digest) for path, stamp, digest in reads]
        return self.second_process.call_each("still", files)

    def stamp(self, path: str) -> Stamp | None:
        return stamp_of(f"{self.root}/{path}")

    def stamps(self, paths: Sequence[str]) -> list[Stamp | None]:
        root = self.root
        return self.second_process.call_each("stamp", [(f"{root}/{path}",) for path in paths])

    def hash_of(self, path: str) -> str | None:
        """The hash of what a file holds now."""
        try:
            return hash_file(f"{self.root}/{path}")
        except OSError:
            return None

    def below(self, path: str) -> list[str] | None:
        base = f"{self.root}/{path}"
        if not is_folder(base):
            return None
        found = []
        for folder, folders, names in os.walk(base):
            folders[:] = [name for name in folders if name[0] != "."]
            relative = os.path.relpath(folder, self.root).replace(os.sep, "/")
            found += [f"{relative}/{name}" for name in names if name[0] != "." or name in MANIFEST_FILES]
        return found

    def members(self, directory: str) -> dict[str, str]:
        """The hash of each file of a directory and below it, relative to it."""
        found = {}
        base = os.path.join(self.root, directory)
        for folder, folders, names in os.walk(base):
            folders[:] = [name for name in folders if name[0] != "."]
            for name in names:
                if name[0] != ".":
                    path = os.path.relpath(os.path.join(folder, name), base).replace(os.sep, "/")
                    found[path] = self.hash_of(directory + path) or ""
        return found

    def directory_hash(self, path: str, excluded: Sequence[Pattern]) -> str | None:
        if not os.path.isdir(self.file(path)):
            return None
        return members_hash(
            {
                name: digest
                for name, digest in self.members(path).items()
                if not any(each.covers(path + name) for each in excluded)
            }
        )

    def local(self, path: str) -> Path:
        return Path(self.file(path))

    def put(self, path: str, content: bytes) -> None:
        file = self.file(checked_path(path))
        os.makedirs(os.path.dirname(file), exist_ok=True)
        self.file(path)  # again: what was made may be a link by now
        write_durably(file, content)

    def change_mark(self) -> None:
        return None

    def keep_aside(self, path: str) -> str:
        """Move a file that is about to be replaced to where it is kept."""
        aside = os.path.join(self.home, "aside", f"{time.strftime('%Y%m%dT%H%M%S')}-{time_ordered()[-6:]}")
        target = os.path.join(aside, *path.removesuffix("/").split("/"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(self.file(path), target)
        return os.path.relpath(target, self.root)
