"""The lease of a scanner: one process at a time for each pipeline.

The holder keeps an OS lock on the file for as long as it lives, so that whoever comes after a crash goes on at once. It also
writes down now and then that it is alive: a process that was stopped keeps its lock, and loses its lease when it has said
nothing for `LEASE_SECONDS`. Whoever takes it over puts another file in its place; the former holder finds that out before
it does anything more.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ....errors import PipelineBusy
from .locking import lock_file

LEASE_SECONDS = 30.0
_LOOK_EVERY = 0.05


@contextmanager
def hold_lease(path: str, pipeline: str, patience: float) -> Iterator[Callable[[], bool]]:
    """Hold the lease, after waiting for it for up to `patience` seconds; raises PipelineBusy."""
    descriptor = _take(path, pipeline, time.monotonic() + patience)
    inode = os.fstat(descriptor).st_ino
    ended = threading.Event()

    def holds() -> bool:
        try:
            return os.stat(path).st_ino == inode
        except OSError:
            return False

    def renew() -> None:
        while not ended.wait(LEASE_SECONDS / 3):
            with suppress(OSError):
                _sign(descriptor)

    thread = threading.Thread(target=renew, name="stepwell-scanner-lease", daemon=True)
    thread.start()
    try:
        yield holds
    finally:
        ended.set()
        thread.join()
        with suppress(OSError):
            _sign(descriptor, change=1)
        os.close(descriptor)


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
        holder = _holder(descriptor)
        os.close(descriptor)
        if time.monotonic() >= until:
            raise PipelineBusy(
                f"pipeline {pipeline!r} is being scanned by {holder}; wait for it to end, or ask again later",
                pipeline=pipeline,
            )
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


def _holder(descriptor: int) -> str:
    found = _read(descriptor)
    return f"process {found.get('pid', '?')} on {found.get('host', '?')}"


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
