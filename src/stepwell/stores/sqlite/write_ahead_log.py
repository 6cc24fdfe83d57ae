"""The write-ahead log as a file: extended in advance, and reused from its beginning after a checkpoint.

A commit into space that the file already has takes half as long as one that makes the file grow, because the disk has to
write only data and no metadata. SQLite ignores what follows the last commit of a log, so zeros do no harm there.

SQLite makes the checkpoints, as part of a commit, and ignores their errors: another process may be making one, or the disk is
full. The log is removed when the last connection closes. SQLite would apply a log that stayed beside a database that somebody
restored from a backup.
"""

from __future__ import annotations

import contextlib
import os
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

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._frame: int = _FRAME_HEADER + cast(int, db.pragma("page_size"))
        self.grows = True
        """Whether the file has not reached its full size yet: `extend` and `committed` are to be called."""
        self._frames = 0
        self._enough = -1
        """Up to this many pages there is room for another commit."""
        self._step = _FIRST_STEP
        db.wal_autocheckpoint(CHECKPOINT_FRAMES)
        self._fd = os.open(db.filename_wal, os.O_RDWR)

    @property
    def used(self) -> int:
        """How many bytes are in use. Not to be asked inside a transaction."""
        frames, _ = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        return _HEADER + frames * self._frame

    def extend(self) -> None:
        """Before a commit, inside its transaction, so that nobody else appends to the log."""
        if self._frames <= self._enough:
            return
        size = os.fstat(self._fd).st_size
        self._enough = self._fitting(size)
        self.grows = size <= _HEADER + CHECKPOINT_FRAMES * self._frame
        if not self.grows or self._frames <= self._enough:
            return
        try:
            os.pwrite(self._fd, bytes(self._step), size)
        except OSError:  # if the commit needs the space, it fails itself
            os.ftruncate(self._fd, size)
            return
        self._enough = self._fitting(size + self._step)
        self._step = min(2 * self._step, _LARGEST_STEP)

    def committed(self) -> None:
        """After a commit: find out how much of the log is in use. An error must not make the commit look failed."""
        with contextlib.suppress(apsw.Error):
            self._frames = (self.used - _HEADER) // self._frame

    def _fitting(self, size: int) -> int:
        return (size - _RESERVE - _HEADER) // self._frame

    def close(self) -> None:
        os.close(self._fd)
