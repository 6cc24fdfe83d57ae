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

from ....errors import PipelineBusy, StoreError

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
def locked(path: str, patience: float = 60.0) -> Iterator[int]:
    """Hold the lock of a file for a moment, by the descriptor that is given; raises StoreBusy if somebody keeps it for too
    long.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        until = time.monotonic() + patience
        while not lock_file(descriptor):
            if time.monotonic() >= until:
                raise StoreBusy(f"{path} has been locked by another process for {patience:.0f} s; is it stopped?")
            time.sleep(0.002)
        yield descriptor
    finally:
        os.close(descriptor)


LEASE_SECONDS = 30.0
_LOOK_EVERY = 0.05


@contextmanager
def hold_lease(path: str, pipeline: str, patience: float) -> Iterator[Callable[[], bool]]:
    """Hold the lease, after waiting for it for up to `patience` seconds; raises PipelineBusy."""
    descriptor = _take(path, pipeline, time.monotonic() + patience)
    inode = os.fstat(descriptor).st_ino

    def holds() -> bool:
        try:
            return os.stat(path).st_ino == inode
        except OSError:
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


def _take(path: str, pipeline: str, until: float) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if lock_file(descriptor):
            with suppress(OSError):
                if os.stat(path).st_ino == os.fstat(descriptor).st_ino:
                    _sign(descriptor, change=1 + _number(_read(descriptor)) % 2)  # odd, also after a crash
                    return descriptor
        elif _is_silent(descriptor):
            _replace(path, descriptor)
        found = _read(descriptor)
        os.close(descriptor)
        if time.monotonic() >= until:
            raise being_scanned(pipeline, f"process {found.get('pid', '?')} on {found.get('host', '?')}")
        time.sleep(_LOOK_EVERY)


def _sign(descriptor: int, *, change: int = 0) -> None:
    number = _number(_read(descriptor)) + change
    told = {"pid": os.getpid(), "host": socket.gethostname(), "renewedAt": time.time(), "number": number}
    os.pwrite(descriptor, json.dumps(told).encode().ljust(200), 0)


def _number(found: dict[str, object]) -> int:
    number = found.get("number", 0)
    return number if isinstance(number, int) else 0


def lease_number(path: str) -> int:
    """How often the lease has been taken and given back: odd while somebody has it, or had it and died."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
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


def _replace(path: str, former: int) -> None:
    """Put a new file in the place of one whose holder is silent, unless somebody else just did."""
    guard = os.open(f"{path}.guard", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if lock_file(guard) and os.stat(path).st_ino == os.fstat(former).st_ino:
            new = f"{path}.{os.getpid()}"
            made = os.open(new, os.O_RDWR | os.O_CREAT, 0o666)
            os.pwrite(made, json.dumps({"number": _number(_read(former))}).encode(), 0)
            os.close(made)
            os.replace(new, path)
    finally:
        os.close(guard)
