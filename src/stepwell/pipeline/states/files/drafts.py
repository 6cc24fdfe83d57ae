"""Drafts, beside the place to which they are renamed."""

from __future__ import annotations

import os
from stat import S_ISREG

from ....errors import UnsafePath
from ...patterns.paths import TEMPORARY, checked_path
from ..address import draft_name, probe_path, split_address
from ..port import Draft
from ..single import stamp_of, write_file
from .root import Root


class DraftFiles:
    """Writes and reads drafts, each a file or directory below a root."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def path_of(self, draft: Draft, member: str = "") -> str:
        path = self._root.path_of(draft.place)
        return f"{path}/{checked_path(member)}" if member else path

    def write(self, draft: Draft, content: bytes, member: str = "") -> None:
        self._root.at(
            self.path_of(draft, member), lambda name, folder: write_file(name, content, folder), make=bool(member)
        )

    def read(self, draft: Draft, member: str = "") -> bytes:
        return self._root.read(self.path_of(draft, member))

    def members(self, draft: Draft) -> list[str]:
        members = []
        for folder, names, descriptor in self._root.walk(self.path_of(draft)):
            for name in names:
                if not S_ISREG(os.lstat(name, dir_fd=descriptor).st_mode):
                    raise UnsafePath(folder + name, "it is a symbolic link, or something else that is no file")
                members.append(checked_path(folder + name))
        return members

    def make(self, path: str, *, is_directory: bool) -> None:
        """Make the directory in which a draft will be, and the draft if it is one itself."""
        with self._root.folders() as folders:
            folder, name = folders(path, make=True)
            if is_directory:
                os.mkdir(name, dir_fd=folder)

    def remove(self, draft: Draft) -> None:
        self._root.remove(self.path_of(draft))


class FileDrafts(DraftFiles):
    """A draft is beside the final place, so that renaming it is one step, and keeps its suffix, which says what it is."""

    def open(self, address: str, token: str) -> Draft:
        path = checked_path(probe_path(address))
        _, key = split_address(address)
        folder, _, _ = path.removesuffix("/").rpartition("/")
        name = f"{TEMPORARY}{token}-{draft_name(key)}"
        path = f"{folder}/{name}" if folder else name
        self.make(path, is_directory=address[-1:] == "/" or "{" in address)
        return Draft(address, self._root.place(path))

    def exists(self, draft: Draft) -> bool:
        return self._root.stat(self.path_of(draft)) is not None

    def is_file(self, draft: Draft) -> bool:
        return self._root.at(self.path_of(draft), stamp_of) is not None

    def keep(self, draft: Draft) -> str:
        return self.path_of(draft)

    def named(self, address: str, name: str) -> Draft:
        return Draft(address, self._root.place(name))

    def discard(self, draft: Draft) -> None:
        """Remove a draft that will not be published."""
        self.remove(draft)
