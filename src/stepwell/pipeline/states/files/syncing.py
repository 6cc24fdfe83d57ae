"""Making files durable: many at once where the system can, one by one elsewhere."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

ONE_BY_ONE = 24
"""Up to so many files are synced one by one. Syncing the file system costs about as much as a few of them, and waits for
what others are writing, too."""


def sync_files(paths: Sequence[str]) -> None:
    """Make the content of these files durable, before they are renamed."""
    if len(paths) > ONE_BY_ONE and sync_file_system(os.path.dirname(paths[0])):
        return
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue  # whoever renames it finds out
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_folders(folders: Iterable[str]) -> None:
    """Make renames in these directories durable."""
    if os.name == "nt":
        return
    given = list(folders)
    if len(given) > ONE_BY_ONE and sync_file_system(given[0]):
        return
    for folder in given:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_file_system(folder: str) -> bool:
    """Sync the file system of a folder; False where the system has no such call."""
    call = _syncfs()
    if call is None:
        return False
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if call(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), folder)
    finally:
        os.close(descriptor)
    return True


@cache
def _syncfs() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    try:
        return ctypes.CDLL(None, use_errno=True).syncfs
    except (AttributeError, OSError):
        return None


def write_durably(path: str, content: bytes) -> None:
    """Replace a file as a whole: a reader, also one after a crash, sees what was there before or what is there now."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".stepwell-{os.getpid()}-{os.urandom(4).hex()}-{name.lstrip('.')}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except BaseException:
        remove_if_there(temporary)
        raise
    sync_folders([folder])


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of it: one call may write only a part."""
    written = os.write(descriptor, content)
    while written < len(content):
        written += os.write(descriptor, content[written:])


def remove_if_there(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
