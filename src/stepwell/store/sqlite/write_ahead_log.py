"""The write-ahead log as a file: extended in advance, and reused from its beginning after a checkpoint.

A commit into space that the file already has takes half as long as one that makes the file grow, because the disk has to
write only data and no metadata. SQLite ignores what follows the last commit of a log, so zeros do no harm there.

The log is removed when the last connection closes. SQLite would apply a log that stayed beside a database that somebody
restored from a backup.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import cast

import apsw

CHECKPOINT_FRAMES = 2_000
"""How many pages the log holds when a checkpoint is due. A larger log needs fewer checkpoints, but is slower to read."""
_HEADER, _FRAME_HEADER = 32, 24
_RESERVE = 64 * 1024
"""Enough for a commit of a few nodes."""
_FIRST_STEP, _LARGEST_STEP = 128 * 1024, 1024 * 1024


class WriteAheadLog:
    """The log of the connection that writes. Only the thread that commits calls its methods."""

    def __init__(self, db: apsw.Connection, database: Path) -> None:
        self._db = db
        self._frame: int = _FRAME_HEADER + cast(int, db.pragma("page_size"))
        self._frames = 0
        self._enough = -1
        """Up to this many pages there is room for another commit."""
        self._step = _FIRST_STEP
        db.set_wal_hook(self._committed)  # in place of SQLite's own checkpoints
        self._fd = os.open(f"{database}-wal", os.O_RDWR)

    @property
    def used(self) -> int:
        """How many bytes were in use after the latest commit of this connection."""
        return _HEADER + self._frames * self._frame

    def extend(self) -> None:
        """Call this inside a transaction that writes, so that nobody else appends to the log."""
        if self._frames <= self._enough:
            return
        size = os.fstat(self._fd).st_size
        self._enough = self._fitting(size)
        if self.used + _RESERVE <= size or size > _HEADER + CHECKPOINT_FRAMES * self._frame:
            return
        try:
            os.pwrite(self._fd, bytes(self._step), size)
        except OSError:  # if the commit needs the space, it fails itself
            os.ftruncate(self._fd, size)
            return
        self._enough = self._fitting(size + self._step)
        self._step = min(2 * self._step, _LARGEST_STEP)

    def _fitting(self, size: int) -> int:
        return (size - _RESERVE - _HEADER) // self._frame

    def checkpoint_if_long(self) -> None:
        """After a commit. An error does not matter: another process may be making a checkpoint, or the disk is full."""
        if self._frames >= CHECKPOINT_FRAMES:
            with contextlib.suppress(apsw.Error):
                self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def close(self) -> None:
        os.close(self._fd)

    def _committed(self, _db: apsw.Connection, _name: str, frames: int) -> int:
        self._frames = frames
        return apsw.SQLITE_OK
