"""The files of an open store: whether those that SQLite writes to are still those that others find under their names."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

import apsw

from ...errors import StoreError


def create_private(path: Path) -> None:
    """Create the file so that only its user may read it, unless it exists. SQLite gives its log and index the same mode.

    A file that SQLite has open must not be opened and closed beside it: that would release its locks. `mknod` opens nothing.
    """
    real = os.path.realpath(path)
    with contextlib.suppress(OSError):  # it exists, or SQLite says what is wrong
        if sys.platform == "linux":
            os.mknod(real, 0o600)
        else:
            os.close(os.open(real, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


SETTLED = 50_000_000
"""Nanoseconds after which a change of a folder gives it another time: the clock of a file system ticks every 10 ms at least."""


class OpenedFiles:
    """The database, its write-ahead log and its index of the log, as they were when the store was opened.

    SQLite goes on writing to open files that were deleted, moved or replaced, and then no other process sees its commits.
    """

    def __init__(self, path: Path, db: apsw.Connection) -> None:
        self._path = path
        index = f"{db.filename_wal.removesuffix('-wal')}-shm"
        self._known = [(os.fspath(name), os.stat(name)) for name in (path, db.filename_wal, index)]
        self._folders = sorted({os.path.dirname(name) for name, _ in self._known})
        self._unchanged: list[tuple[int, int, int]] | None = None
        """What identifies the folders, and when a name in them last changed, if all files were there since then."""

    def check(self) -> None:
        """Raise StoreError unless each file is the one that was opened.

        Called after each commit. Looking at three files takes 8 us, a tenth of a commit. So it looks at their folder, and at
        the files only if a name in it has changed.
        """
        stamps = None
        with contextlib.suppress(OSError):  # without its folder a file is not there either
            stamps = [(found.st_mtime_ns, found.st_ino, found.st_dev) for found in map(os.stat, self._folders)]
            if stamps == self._unchanged:
                return
        now = time.time_ns()
        for path, known in self._known:
            try:
                present = os.stat(path)
            except OSError:
                raise self._gone(path) from None
            if present.st_ino != known.st_ino or present.st_dev != known.st_dev:
                raise self._gone(path)
        settled = stamps and sys.platform != "win32" and all(now - changed > SETTLED for changed, _, _ in stamps)
        self._unchanged = stamps if settled else None

    def _gone(self, path: str) -> StoreError:
        if path == os.fspath(self._path):
            return StoreError(
                f"{path} was deleted, moved or replaced while it was in use: what is committed now would be lost. "
                f"Put the file back; if that is impossible, end all programs that use it and start again"
            )
        return StoreError(
            f"{path} was deleted, moved or replaced while {self._path} was in use: what is committed now would be lost. "
            f"End all programs that use the store, without killing them, and start again: the last one writes what was "
            f"committed into the database"
        )
