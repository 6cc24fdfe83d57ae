"""What is on disk: one pass over the directories that patterns can match in."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from stat import S_IFDIR, S_IFLNK, S_IFREG
from typing import NamedTuple, TypeAlias

from ...errors import UnsafePath
from ..patterns.paths import TEMPORARY
from .single import Stamp

MANIFEST_FILES = (".manifest.json", ".manifest.log")
_NUMBERS = 4
OpenFolder: TypeAlias = Callable[[str], int]
"""Opens a directory by its path below the root."""


class Folder(NamedTuple):
    """One directory as it was found."""

    path: str
    """Relative to the root, without a final `/`; empty for the root itself."""
    names: list[str]
    """Of files; what begins with a dot is left out."""
    stamps: array[int]
    """Four numbers for each name."""
    folders: list[str]
    temporary: list[str]
    """Names of outputs that are being written, or were."""
    links: list[str]
    """Symbolic links: not followed."""
    manifest: list[Stamp | None]
    """Of `.manifest.json` and `.manifest.log`."""

    def stamp(self, position: int) -> Stamp:
        at = position * _NUMBERS
        size, changed, status_changed, inode = self.stamps[at : at + _NUMBERS]
        return size, changed, status_changed, inode


def list_folder(open_folder: OpenFolder, path: str) -> Folder | None:
    """One directory; None if there is none."""
    names: list[str] = []
    stamps = array("Q")
    folders: list[str] = []
    temporary: list[str] = []
    links: list[str] = []
    manifest: list[Stamp | None] = [None, None]
    add, add_stamp = names.append, stamps.extend
    try:
        opened = open_folder(path)
    except (FileNotFoundError, NotADirectoryError, UnsafePath):  # gone, or swapped for something else a moment ago
        return None
    try:
        with os.scandir(opened) as scanned:
            for entry in scanned:
                name = entry.name
                if name[0] == ".":
                    if name.startswith(TEMPORARY):
                        temporary.append(name)
                    elif name in MANIFEST_FILES:
                        manifest[MANIFEST_FILES.index(name)] = _stamp(entry.stat(follow_symlinks=False))
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                kind = status.st_mode & 0o170000
                if kind == S_IFREG:
                    add(name)
                    add_stamp((status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))
                elif kind == S_IFDIR:
                    folders.append(name)
                elif kind == S_IFLNK:
                    links.append(name)
    finally:
        os.close(opened)
    return Folder(path, names, stamps, folders, temporary, links, manifest)


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def walk(open_folder: OpenFolder, wanted: Callable[[Sequence[str]], bool]) -> Iterator[Folder]:
    """The directories below the root whose components are `wanted`, and the root itself."""
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        components = waiting.pop()
        folder = list_folder(open_folder, "/".join(components))
        if folder is None:
            continue
        yield folder
        for name in folder.folders:
            below = (*components, name)
            if wanted(below):
                waiting.append(below)
