"""Drafts, beside the place to which they are renamed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from ...patterns.paths import TEMPORARY
from ..address import draft_name, probe_path, split_address
from ..port import Draft
from .local import LocalFiles
from .second_process import system_error
from .syncing import remove_if_there


class FileDrafts:
    """A draft is beside the final place, so that renaming it is one step, and keeps its suffix, which says what it is."""

    def __init__(self, files: LocalFiles) -> None:
        self._files = files
        self._prefix = files.safe.home + os.sep

    def open(self, address: str, token: str) -> Draft:
        if address[-1:] != "/" and "{" not in address:
            folder, _, name = address.rpartition("/")
            home = self._home_of(folder, address, len(name))
            return Draft(address, f"{home}{TEMPORARY}{token}-{name}")
        folder, key = split_address(address)
        path = probe_path(address)
        home = self._home_of(folder.removesuffix("/"), path, len(path.rpartition("/")[2]))
        place = f"{home}{TEMPORARY}{token}-{draft_name(key)}"
        os.mkdir(place)
        return Draft(address, place)

    def _home_of(self, folder: str, path: str, name_length: int) -> str:
        """Return the directory of a path, with a final separator, and make it if necessary."""
        home = self._files.join(path)[:-name_length]
        if not self._files.safe.knows(folder):
            os.makedirs(home, exist_ok=True)
            self._files.file(path)
        return home

    def write_many(self, contents: Sequence[tuple[Draft, bytes]]) -> list[OSError | None]:
        files = [(draft.place, content) for draft, content in contents]
        written = self._files.second_process.call_each("write", files)
        return [
            None if error is None else system_error(error, file)
            for error, (file, _) in zip(written, files, strict=True)
        ]

    def keep(self, draft: Draft) -> str:
        name = draft.place[len(self._prefix) :]
        return name if os.sep == "/" else name.replace(os.sep, "/")

    def named(self, address: str, name: str) -> Draft:
        return Draft(address, self._prefix + (name if os.sep == "/" else name.replace("/", os.sep)))

    def discard(self, draft: Draft) -> None:
        discard(draft)


def discard(draft: Draft) -> None:
    """Remove a draft that will not be published."""
    if os.path.isdir(draft.place):
        shutil.rmtree(draft.place, ignore_errors=True)
    else:
        remove_if_there(draft.place)
