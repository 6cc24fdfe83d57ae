"""An OS lock per worker, so that the death of a process is noticed at once and not only when its lease runs out.

Each worker locks a small file beside the database. The system drops the lock when the process dies, however it dies;
whoever can take it knows that the worker is gone. A stopped process keeps its lock: for that there is the lease.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from ...model import Batch, Dismiss, Enlist

if sys.platform != "win32":  # leases alone decide there
    import fcntl

_SUFFIX = ".lock"


class WorkerLocks:
    def __init__(self, database: Path) -> None:
        self._folder = database.with_name(database.name + "-workers")
        self._held: dict[str, int] = {}

    def follow(self, batch: Batch) -> None:
        """After a commit: lock the files of workers that enlisted, drop those of workers that were dismissed."""
        for op in batch:
            if isinstance(op, Enlist) and op.worker not in self._held:
                self._take(op.worker)
            elif isinstance(op, Dismiss):
                self._drop(op.worker)

    def dead_workers(self) -> list[str]:
        """Workers whose lock file is there and free: their process is gone. Some may have been swept before."""
        if sys.platform == "win32":
            return []
        known = [unquote(file.name.removesuffix(_SUFFIX)) for file in self._folder.glob("*" + _SUFFIX)]
        return [worker for worker in known if worker not in self._held and self._is_free(worker)]

    def remove_locks(self, workers: Sequence[str]) -> None:
        """The leases of these dead workers are over; their files are no longer needed."""
        for worker in workers:
            with contextlib.suppress(OSError):
                self._path(worker).unlink()

    def close(self) -> None:
        """The files of workers that were not dismissed stay, and are free: that is how their end is noticed."""
        while self._held:
            os.close(self._held.popitem()[1])
        with contextlib.suppress(OSError):
            self._folder.rmdir()  # when no worker is left

    def _path(self, worker: str) -> Path:
        return self._folder / (quote(worker, safe="") + _SUFFIX)

    def _take(self, worker: str) -> None:
        if sys.platform == "win32":
            return
        # Locked under another name first: a file that can be seen and is free must mean that its worker is gone.
        path = self._path(worker)
        descriptor = self._open(path.with_suffix(".new"))
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        path.with_suffix(".new").rename(path)
        self._held[worker] = descriptor

    def _open(self, path: Path) -> int:
        while True:
            with contextlib.suppress(FileExistsError):  # exist_ok would look again, and it may be gone by then
                self._folder.mkdir()
            with contextlib.suppress(FileNotFoundError):  # another process took the empty folder away
                return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _drop(self, worker: str) -> None:
        descriptor = self._held.pop(worker, None)
        if descriptor is not None:
            with contextlib.suppress(OSError):
                self._path(worker).unlink()
            os.close(descriptor)

    def _is_free(self, worker: str) -> bool:
        """True only if the file exists and nobody locks it. No file: the worker may be enlisting."""
        try:
            descriptor = os.open(self._path(worker), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        else:
            return True
        finally:
            os.close(descriptor)
