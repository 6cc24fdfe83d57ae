"""Single files: their stamps, and reading and writing them, each below an open directory or by its absolute path."""

from __future__ import annotations

import errno
import os
import time
from hashlib import sha256
from stat import S_ISREG

Stamp = tuple[int, int, int, int]
"""Size, mtime_ns, ctime_ns, inode."""
Read = tuple[bytes, Stamp, str]
"""The content of a file, the stamp it had when it was read, and the content hash."""

TICK_NS = 100_000_000
"""The coarsest clock of file systems that record fractions of a second."""
SLOW_TICK_NS = 2_000_000_000
"""File systems that record whole seconds may be off by two."""


def stamp_of(file: str, folder: int | None = None) -> Stamp | None:
    """The stamp of one file; None if there is none."""
    try:
        status = os.lstat(file, dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not S_ISREG(status.st_mode):
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def is_recent(stamp: Stamp, now_ns: int) -> bool:
    """Whether a file may change again and keep its stamp, because too little time has passed since it was changed."""
    _, changed, status_changed, _ = stamp
    since = now_ns - (TICK_NS if status_changed % 1_000_000 else SLOW_TICK_NS)
    return changed > since or status_changed > since


def open_file(file: str, flags: int = os.O_RDONLY, folder: int | None = None) -> int:
    """Open a file, without following a link, and without waiting where it is a pipe: that is ELOOP, too."""
    descriptor = os.open(file, flags | _SAFELY, 0o666, dir_fd=folder)
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), file)
    return descriptor


def read_file(file: str, folder: int | None = None) -> Read:
    """Read a file with as few system calls as possible. Does not follow links."""
    descriptor = open_file(file, os.O_RDONLY, folder)
    try:
        status = os.fstat(descriptor)
        content = os.read(descriptor, status.st_size + 1)
        if len(content) > status.st_size:  # it has grown
            parts = [content]
            while part := os.read(descriptor, 1 << 20):
                parts.append(part)
            content = b"".join(parts)
    finally:
        os.close(descriptor)
    stamp = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return content, stamp, sha256(content).hexdigest()


def hash_file(file: str, folder: int | None = None) -> str:
    """Return the content hash of a file. Does not follow links."""
    descriptor = open_file(file, os.O_RDONLY, folder)
    try:
        digest = sha256()
        while block := os.read(descriptor, _BLOCK):
            digest.update(block)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


def still_is(file: str, stamp: Stamp, digest: str, folder: int | None = None) -> bool:
    """Whether a file holds what it held: told by its stamp, unless it is so new that it could change and keep it."""
    if stamp_of(file, folder) == stamp and not is_recent(stamp, time.time_ns()):
        return True
    try:
        return hash_file(file, folder) == digest
    except OSError:
        return False


def write_file(file: str, content: bytes, folder: int | None = None) -> None:
    """Write a file that is synced later."""
    descriptor = open_file(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, folder)
    try:
        write_all(descriptor, content)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of it: one call may write only a part."""
    written = os.write(descriptor, content)
    while written < len(content):
        written += os.write(descriptor, content[written:])


_BLOCK = 1 << 18
_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
