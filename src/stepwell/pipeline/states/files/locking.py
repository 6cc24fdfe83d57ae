"""Locks between processes, which the system releases when a process dies."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

from ....errors import StoreBusy

_BUSY = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)


def lock_file(descriptor: int) -> bool:
    """Lock an open file; False if somebody else has it."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        raise
    return True


@contextmanager
def locked(path: str, patience: float = 60.0) -> Iterator[None]:
    """Hold the lock of a file for a moment; raises StoreBusy if somebody keeps it for too long."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        until = time.monotonic() + patience
        while not lock_file(descriptor):
            if time.monotonic() >= until:
                raise StoreBusy(f"{path} has been locked by another process for {patience:.0f} s; is it stopped?")
            time.sleep(0.002)
        yield
    finally:
        os.close(descriptor)
