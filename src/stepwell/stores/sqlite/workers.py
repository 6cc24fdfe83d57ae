"""An OS lock for each worker, so that others notice the death of its process at once, before its lease runs out.

Each worker locks a small file beside the database. The system releases the lock when the process dies, in whatever way.
Whoever can then take it knows that the worker is gone. A stopped process keeps its lock; its lease runs out.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from ...core.model import Batch, Dismiss, Enlist

if sys.platform != "win32":  # leases alone decide there
    import fcntl

_SUFFIX = ".lock"


class WorkerLocks:
    def __init__(self, database: Path) -> None:
        self._folder = database.with_name(database.name + "-workers")
        self._held: dict[str, int] = {}

    def follow(self, batch: Batch) -> None:
        """After a commit, lock the files of workers that enlisted, and remove those of workers that were dismissed."""
        for op in batch:
            if isinstance(op, Enlist) and op.worker not in self._held:
                self._take(op.worker)
            elif isinstance(op, Dismiss):
                self._drop(op.worker)

    def dead_workers(self) -> list[str]:
        """Workers whose file exists and is not locked: their process is gone. Some may have been swept before."""
        if sys.platform == "win32":
            return []
        known = [unquote(file.name.removesuffix(_SUFFIX)) for file in self._folder.glob("*" + _SUFFIX)]
        return [worker for worker in known if worker not in self._held and self._is_free(worker)]

    def remove_locks(self, workers: Sequence[str]) -> None:
        """Remove the files of dead workers whose leases are over."""
        for worker in workers:
            with contextlib.suppress(OSError):
                self._path(worker).unlink()

    def close(self) -> None:
        """Unlock the files. Those of workers that were not dismissed stay, so that others notice their end."""
        while self._held:
            os.close(self._held.popitem()[1])
        with contextlib.suppress(OSError):
            self._folder.rmdir()  # works only if no worker is left

    def _path(self, worker: str) -> Path:
        return self._folder / (quote(worker, safe="") + _SUFFIX)

    def _take(self, worker: str) -> None:
        if sys.platform == "win32":
            return
        # Lock it under another name first: a visible file that is not locked must mean that its worker is gone.
        path = self._path(worker)
        descriptor = self._open(path.with_suffix(".new"))
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        path.with_suffix(".new").rename(path)
        self._held[worker] = descriptor

    def _open(self, path: Path) -> int:
        while True:
            with contextlib.suppress(FileExistsError):  # exist_ok checks afterwards, when it may be gone
                self._folder.mkdir(0o700)
            with contextlib.suppress(FileNotFoundError):  # another process removed the empty folder
                return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _drop(self, worker: str) -> None:
        descriptor = self._held.pop(worker, None)
        if descriptor is not None:
            with contextlib.suppress(OSError):
                self._path(worker).unlink()
            os.close(descriptor)

    def _is_free(self, worker: str) -> bool:
        """Whether the file exists and nobody locks it. Without a file the worker may be about to enlist."""
        with contextlib.suppress(OSError), open(self._path(worker), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False
