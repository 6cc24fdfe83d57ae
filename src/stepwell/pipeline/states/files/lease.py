"""The lease of a scanner: one process at a time for each pipeline.

The holder keeps an OS lock on the file for as long as it lives, so that whoever comes after a crash goes on at once. It also
writes down now and then that it is alive: a process that was stopped keeps its lock, and loses its lease when it has said
nothing for `LEASE_SECONDS`. Whoever takes it over puts another file in its place; the former holder finds that out before
it does anything more.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ....errors import PipelineBusy, StoreBusy, StoreError, UnsafePath
from .root import Root

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

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
def locked(root: Root, path: str, patience: float = 60.0) -> Iterator[None]:
    """Hold the lock of a file for a moment; raises StoreBusy if somebody keeps it for too long."""
    descriptor = root.open(path, os.O_RDWR | os.O_CREAT, make=True)
    try:
        until = time.monotonic() + patience
        while not lock_file(descriptor):
            if time.monotonic() >= until:
                raise StoreBusy(
                    f"{root.place(path)} has been locked by another process for {patience:.0f} s; is it stopped?"
                )
            time.sleep(0.002)
        yield
    finally:
        os.close(descriptor)


LEASE_SECONDS = 30.0
_LOOK_EVERY = 0.05


@contextmanager
def hold_lease(root: Root, path: str, pipeline: str, patience: float) -> Iterator[Callable[[], bool]]:
    """Hold the lease, after waiting for it for up to `patience` seconds; raises PipelineBusy."""
    descriptor = _take(root, path, pipeline, time.monotonic() + patience)
    inode = os.fstat(descriptor).st_ino

    def holds() -> bool:
        try:
            return _inode(root, path) == inode
        except (OSError, UnsafePath):
            return False

    try:
        with renewing(lambda: _sign(descriptor), LEASE_SECONDS):
            yield holds
    finally:
        with suppress(OSError):
            _sign(descriptor, change=1)
        os.close(descriptor)


@contextmanager
def renewing(renew: Callable[[], None], lease_seconds: float) -> Iterator[None]:
    """Renew a lease again and again, in a thread, until this ends."""
    ended = threading.Event()

    def renew_in_time() -> None:
        while not ended.wait(lease_seconds / 3):
            with suppress(OSError, StoreError):
                renew()

    thread = threading.Thread(target=renew_in_time, name="stepwell-scanner-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def being_scanned(pipeline: str, holder: str) -> PipelineBusy:
    message = f"pipeline {pipeline!r} is being scanned by {holder}; wait for it to end, or ask again later"
    return PipelineBusy(message, pipeline=pipeline)


def _take(root: Root, path: str, pipeline: str, until: float) -> int:
    while True:
        descriptor = _open_to_write(root, path)
        if lock_file(descriptor):
            if _inode(root, path) == os.fstat(descriptor).st_ino:
                _sign(descriptor, change=1 + _number(_read(descriptor)) % 2)  # odd, also after a crash
                return descriptor
        elif _is_silent(descriptor):
            _replace(root, path, descriptor)
        holder = _read(descriptor)
        os.close(descriptor)
        if time.monotonic() >= until:
            raise being_scanned(pipeline, f"process {holder.get('pid', '?')} on {holder.get('host', '?')}")
        time.sleep(_LOOK_EVERY)


def _open_to_write(root: Root, path: str) -> int:
    descriptor = root.open(path, os.O_RDWR | os.O_CREAT, make=True)
    if os.fstat(descriptor).st_nlink > 1:
        os.close(descriptor)
        raise UnsafePath(path, "it is a hard link, so writing it would change another file; remove it")
    return descriptor


def _inode(root: Root, path: str) -> int | None:
    status = root.stat(path)
    return None if status is None else status.st_ino


def _sign(descriptor: int, *, change: int = 0) -> None:
    number = _number(_read(descriptor)) + change
    told = {"pid": os.getpid(), "host": socket.gethostname(), "renewedAt": time.time(), "number": number}
    os.pwrite(descriptor, json.dumps(told).encode().ljust(200), 0)


def _number(found: dict[str, object]) -> int:
    number = found.get("number", 0)
    return number if isinstance(number, int) else 0


def lease_number(root: Root, path: str) -> int:
    """How often the lease has been taken and given back: odd while somebody has it, or had it and died."""
    try:
        descriptor = root.open(path)
    except OSError:
        return 0
    try:
        return _number(_read(descriptor))
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> dict[str, object]:
    try:
        found = json.loads(os.pread(descriptor, 200, 0) or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_silent(descriptor: int) -> bool:
    renewed = _read(descriptor).get("renewedAt")
    if not isinstance(renewed, int | float):
        return False
    return abs(time.time() - renewed) > LEASE_SECONDS and time.time() - os.fstat(descriptor).st_mtime > LEASE_SECONDS


def _replace(root: Root, path: str, former: int) -> None:
    """Put a new file in the place of one whose holder is silent, unless somebody else just did."""
    guard = root.open(f"{path}.guard", os.O_RDWR | os.O_CREAT)
    try:
        if lock_file(guard) and _inode(root, path) == os.fstat(former).st_ino:
            with root.replacing(path) as descriptor:
                os.pwrite(descriptor, json.dumps({"number": _number(_read(former))}).encode(), 0)
    finally:
        os.close(guard)
