"""Making files durable: many at once where the system can, one by one elsewhere."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from ..single import open_file
from .root import Root

ONE_BY_ONE = 24
"""Up to so many files are synced one by one. Syncing the file system costs about as much as a few of them, and waits for
what others are writing, too."""


def sync_files(root: Root, paths: Sequence[str]) -> None:
    """Make the content of these files durable, before they are renamed."""
    if len(paths) > ONE_BY_ONE and sync_file_system(root):
        return
    with root.folders() as folders:
        for path in paths:
            try:
                folder, name = folders(path)
                descriptor = open_file(name, os.O_RDONLY, folder)
            except FileNotFoundError:
                continue  # whoever renames it finds out
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def sync_folders(root: Root, folders: Collection[str]) -> None:
    """Make renames in these directories durable."""
    if len(folders) > ONE_BY_ONE and sync_file_system(root):
        return
    for folder in folders:
        descriptor = root.open_folder(folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_file_system(root: Root) -> bool:
    """Sync the file system of a root; False where the system has no such call."""
    call = _syncfs()
    if call is None:
        return False
    descriptor = root.open_folder("")
    try:
        if call(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), root.home)
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
