"""What is on disk: one pass over the directories that patterns can match in, and a cache of content hashes.

A hash is looked up by size, both times and inode; a file that changed within the same tick of the clock as it was hashed
would look the same, so what was hashed that soon after its change is hashed again.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from stat import S_IFDIR, S_IFLNK, S_IFREG, S_ISDIR, S_ISREG
from typing import NamedTuple, TypeAlias

from ..patterns.paths import TEMPORARY

Stamp: TypeAlias = tuple[int, int, int, int]
"""Size, mtime_ns, ctime_ns, inode."""

MANIFEST_FILES = (".manifest.json", ".manifest.log")
TICK_NS = 100_000_000
"""The coarsest clock of file systems that record fractions of a second."""
SLOW_TICK_NS = 2_000_000_000
"""File systems that record whole seconds may be off by two."""
_NUMBERS = 4


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


def list_folder(root: str, path: str) -> Folder | None:
    """One directory; None if there is none."""
    names: list[str] = []
    stamps = array("Q")
    folders: list[str] = []
    temporary: list[str] = []
    links: list[str] = []
    manifest: list[Stamp | None] = [None, None]
    add, add_stamp = names.append, stamps.extend
    try:
        # Below an open directory the system need not follow the whole path for every file.
        opened = os.open(f"{root}/{path}" if path else root, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
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
                    found = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                kind = found.st_mode & 0o170000
                if kind == S_IFREG:
                    add(name)
                    add_stamp((found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino))
                elif kind == S_IFDIR:
                    folders.append(name)
                elif kind == S_IFLNK:
                    links.append(name)
    finally:
        os.close(opened)
    return Folder(path, names, stamps, folders, temporary, links, manifest)


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def stamp_of(file: str) -> Stamp | None:
    """The stamp of one file; None if there is none."""
    try:
        found = os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not S_ISREG(found.st_mode):
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def is_folder(file: str) -> bool:
    try:
        return S_ISDIR(os.lstat(file).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def read_file(file: str) -> tuple[bytes, Stamp]:
    """Return the content of a file and its stamp, with as few system calls as possible. Does not follow links."""
    descriptor = os.open(file, _READ)
    try:
        found = os.fstat(descriptor)
        content = os.read(descriptor, found.st_size + 1)
        if len(content) > found.st_size:  # it has grown
            parts = [content]
            while part := os.read(descriptor, 1 << 20):
                parts.append(part)
            content = b"".join(parts)
    finally:
        os.close(descriptor)
    return content, (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def hash_file(file: str) -> str:
    """Return the content hash of a file. Does not follow links."""
    descriptor = os.open(file, _READ)
    try:
        digest = sha256()
        while block := os.read(descriptor, _BLOCK):
            digest.update(block)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


_BLOCK = 1 << 18
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def walk(root: str, wanted: Callable[[Sequence[str]], bool]) -> Iterator[Folder]:
    """The directories below the root whose components are `wanted`, and the root itself."""
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        components = waiting.pop()
        folder = list_folder(root, "/".join(components))
        if folder is None:
            continue
        yield folder
        for name in folder.folders:
            below = (*components, name)
            if wanted(below):
                waiting.append(below)


def is_recent(stamp: Stamp, now_ns: int) -> bool:
    """Whether a file may change again and keep its stamp, because too little time has passed since it was changed."""
    _, changed, status_changed, _ = stamp
    since = now_ns - (TICK_NS if status_changed % 1_000_000 else SLOW_TICK_NS)
    return changed > since or status_changed > since
