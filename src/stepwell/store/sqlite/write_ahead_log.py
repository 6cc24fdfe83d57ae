"""The write-ahead log as a file: extended ahead of need, and used again from its beginning after a checkpoint.

A commit into space that the file already has is on the disk in half the time of one that makes the file grow, because
only data has to get there and nothing about the file. What follows the last commit of a log is not looked at, so zeros are
as good as what was there before.

The log is not kept when the last connection closes. Beside a database that somebody restored from a backup, a kept log would
be applied to it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import cast

import apsw

CHECKPOINT_FRAMES = 2_000
"""A checkpoint is made when so many pages are in the log. Larger logs are checkpointed less often, and are read more slowly."""
_HEADER, _FRAME_HEADER = 32, 24
_RESERVE = 64 * 1024
"""What a commit of a few nodes needs."""
_FIRST_STEP, _LARGEST_STEP = 128 * 1024, 1024 * 1024


class WriteAheadLog:
    """Of the connection that writes. Everything here is called by the thread that commits."""

    def __init__(self, db: apsw.Connection, database: Path) -> None:
        self._db = db
        self._frame: int = _FRAME_HEADER + cast(int, db.pragma("page_size"))
        self._frames = self._size = 0
        self._step = _FIRST_STEP
        db.set_wal_hook(self._committed)  # in place of SQLite's own checkpoints
        self._fd = os.open(f"{database}-wal", os.O_RDWR)

    @property
    def used(self) -> int:
        """How many bytes of it counted after the latest commit of this connection."""
        return _HEADER + self._frames * self._frame

    def extend(self) -> None:
        """Inside a transaction that writes, so that nobody else appends to the log."""
        if self.used + _RESERVE <= self._size:
            return
        self._size = size = os.fstat(self._fd).st_size
        if self.used + _RESERVE <= size or size > _HEADER + CHECKPOINT_FRAMES * self._frame:
            return
        try:
            os.pwrite(self._fd, bytes(self._step), size)
        except OSError:  # the commit will tell, if it needs the space
            os.ftruncate(self._fd, size)
            return
        self._size += self._step
        self._step = min(2 * self._step, _LARGEST_STEP)

    def checkpoint_if_long(self) -> None:
        """After a commit, which stands whether this can be done or not: somebody else may be at it, or the disk full."""
        if self._frames >= CHECKPOINT_FRAMES:
            with contextlib.suppress(apsw.Error):
                self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def close(self) -> None:
        os.close(self._fd)

    def _committed(self, _db: apsw.Connection, _name: str, frames: int) -> int:
        self._frames = frames
        return apsw.SQLITE_OK
