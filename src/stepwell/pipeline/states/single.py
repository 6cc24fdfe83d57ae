"""Single files: their stamps, and reading and writing them.

Needs the standard library only, and little of it: run as a program, this is the second process that does the same for
thousands of files (`files/second_process.py`), which has to start in no time.
"""

from __future__ import annotations

import gc
import marshal
import os
import socket
import time
from hashlib import sha256
from select import select
from stat import S_ISREG

TYPE_CHECKING = False
if TYPE_CHECKING:  # without loading `typing`
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

Stamp = tuple[int, int, int, int]
"""Size, mtime_ns, ctime_ns, inode."""
Read = tuple[bytes, Stamp, str]
"""The content of a file, the stamp it had when it was read, and the content hash."""

TICK_NS = 100_000_000
"""The coarsest clock of file systems that record fractions of a second."""
SLOW_TICK_NS = 2_000_000_000
"""File systems that record whole seconds may be off by two."""
IDLE_SECONDS = 10.0
"""How long a second process waits for work before it ends."""
LENGTH_BYTES = 8
"""Before each message between the two processes."""


def stamp_of(file: str) -> Stamp | None:
    """The stamp of one file; None if there is none."""
    try:
        found = os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not S_ISREG(found.st_mode):
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def is_recent(stamp: Stamp, now_ns: int) -> bool:
    """Whether a file may change again and keep its stamp, because too little time has passed since it was changed."""
    _, changed, status_changed, _ = stamp
    since = now_ns - (TICK_NS if status_changed % 1_000_000 else SLOW_TICK_NS)
    return changed > since or status_changed > since


def read_file(file: str) -> Read:
    """Read a file with as few system calls as possible. Does not follow links."""
    descriptor = os.open(file, _READ)
    try:
        found = os.fstat(descriptor)
        content = os.read(descriptor, found.st_size + 1)
        if len(content) > found.st_size:  # it has grown
            parts = [content]
            while part := os.read(descriptor, 1 << 20):
                parts.append(part)
            content = b"".join(parts)
    finally:
        os.close(descriptor)
    stamp = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    return content, stamp, sha256(content).hexdigest()


def hash_file(file: str) -> str:
    """Return the content hash of a file. Does not follow links."""
    descriptor = os.open(file, _READ)
    try:
        digest = sha256()
        while block := os.read(descriptor, _BLOCK):
            digest.update(block)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


def still_is(file: str, stamp: Stamp, digest: str) -> bool:
    """Whether a file holds what it held: told by its stamp, unless it is so new that it could change and keep it."""
    if stamp_of(file) == stamp and not is_recent(stamp, time.time_ns()):
        return True
    try:
        return hash_file(file) == digest
    except OSError:
        return False


def write_file(file: str, content: bytes) -> None:
    """Write a file that is synced later."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        written = os.write(descriptor, content)
        while written < len(content):
            written += os.write(descriptor, content[written:])
    finally:
        os.close(descriptor)


def reveal_file(draft: str, file: str, digest: str) -> Stamp | None:
    """Rename a draft of this hash. Return the stamp it has then, or None if the draft is gone and was not renamed before."""
    try:
        os.replace(draft, file)
    except FileNotFoundError:
        try:
            if hash_file(file) != digest:
                return None
        except FileNotFoundError:
            return None
    return stamp_of(file)


_BLOCK = 1 << 18
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_CALLS: dict[str, Callable[..., Any]] = {
    "read": read_file,
    "reveal": reveal_file,
    "stamp": stamp_of,
    "still": still_is,
    "write": write_file,
}


def call_each(name: str, arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Call one of these functions with each of these arguments. Where the system refused, the result is its error number."""
    call = _CALLS[name]
    results: list[Any] = []
    for each in arguments:
        try:
            results.append(call(*each))
        except OSError as error:
            results.append(error.errno or 0)
    return results


def receive(peer: socket.socket) -> tuple[bytes, list[int]]:
    """Read one message and the descriptors that came with it. EOFError if there are no more."""
    head, descriptors, _, _ = socket.recv_fds(peer, LENGTH_BYTES, 1)
    if not head:
        raise EOFError
    head += _read_all(peer, LENGTH_BYTES - len(head))
    return _read_all(peer, int.from_bytes(head, "big")), descriptors


def send(peer: socket.socket, message: bytes, descriptors: Sequence[int] = ()) -> None:
    whole = len(message).to_bytes(LENGTH_BYTES, "big") + message
    if descriptors:
        whole = whole[socket.send_fds(peer, [whole[:LENGTH_BYTES]], descriptors) :]
    peer.sendall(whole)


def _read_all(peer: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = peer.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def serve(peer: socket.socket) -> None:
    """Do what is asked until nobody asks any more."""
    try:
        while select([peer], [], [], IDLE_SECONDS)[0]:
            request, locks = receive(peer)
            answer = marshal.dumps(call_each(*marshal.loads(request)))
            for lock in locks:
                os.close(lock)
            send(peer, answer)
    except (EOFError, ConnectionError, KeyboardInterrupt):
        pass


if __name__ == "__main__":
    gc.disable()  # nothing here refers to itself
    serve(socket.socket(fileno=0))
