"""A second process that reads, writes and renames, where there are thousands of small files.

A thread would have to wait for the interpreter after each call of the system, while other threads use it. When this process
dies, the second one finishes what it was asked, and ends. A request to rename comes with the lock of the root, which is free
only when both processes have closed it: until all is renamed, nobody else publishes, finishes or removes anything there.
"""

from __future__ import annotations

import marshal
import os
import socket
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .. import single

if TYPE_CHECKING:
    import subprocess

Call: TypeAlias = Literal["read", "reveal", "stamp", "still", "write"]
MANY = 64
"""Fewer are done by this process: the other one would have to be started."""


class SecondProcess:
    """Started when there is much to do for the first time, and again if it was idle and has ended."""

    def __init__(self) -> None:
        self._peer: Peer | None = None
        self._starting = threading.Lock()
        self._is_possible = _has_two_cores() and "py" in os.path.basename(sys.executable)

    def call_each(self, name: Call, arguments: Sequence[tuple[Any, ...]], lock: int | None = None) -> list[Any]:
        """As `single.call_each`. The second process has the `lock`, too, until it is done."""
        if len(arguments) >= MANY and self._is_possible:
            peer = None
            try:
                peer = self._started()
                answer = peer.ask(marshal.dumps((name, list(arguments))), () if lock is None else (lock,))
                self._is_possible = True
                return answer
            except (OSError, EOFError):
                if self._peer is peer:
                    self._peer = None
        return single.call_each(name, arguments)  # doing a part of it again changes nothing

    def _started(self) -> Peer:
        with self._starting:
            if self._peer is None or self._peer.owner != os.getpid():
                self._is_possible = False  # until it has answered
                self._peer = Peer()
            return self._peer


class Peer:
    """One second process. It gets the next request while the answer to the one before is being read."""

    def __init__(self) -> None:
        import subprocess

        self.owner = os.getpid()
        self._socket, other = socket.socketpair()
        with other:
            command = [sys.executable, "-I", "-S", single.__file__]
            nothing = subprocess.DEVNULL
            self.process = subprocess.Popen(command, stdin=other.fileno(), stdout=nothing, stderr=nothing)
        self.end = weakref.finalize(self, _end, self.process, self._socket, self.owner)
        self._sending = threading.Lock()
        self._turns = threading.Condition()
        self._sent = 0
        self._answered = 0

    def ask(self, request: bytes, descriptors: Sequence[int]) -> list[Any]:
        """EOFError or OSError if it has ended."""
        try:
            with self._sending:
                turn, self._sent = self._sent, self._sent + 1
                single.send(self._socket, request, descriptors)
            with self._turns:
                self._turns.wait_for(lambda: self._answered >= turn)
            answer, _ = single.receive(self._socket)
            self._next_turn()
        except BaseException:
            self.end()  # the next one to ask would get this answer
            self._next_turn(sys.maxsize)
            raise
        return marshal.loads(answer)  # type: ignore[no-any-return]

    def _next_turn(self, skipped: int = 0) -> None:
        with self._turns:
            self._answered += 1 + skipped
            self._turns.notify_all()


def system_error(number: int, file: str) -> OSError:
    """The error that the system gave this number."""
    return OSError(number, os.strerror(number), file)


def _end(process: subprocess.Popen[bytes], peer: socket.socket, owner: int) -> None:
    peer.close()
    if os.getpid() == owner:  # not after a fork
        process.kill()
        process.wait()


def _has_two_cores() -> bool:
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1
