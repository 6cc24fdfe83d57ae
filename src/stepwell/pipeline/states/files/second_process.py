"""A second process that reads inputs and writes drafts, where there are thousands of small files.

A thread would have to wait for the interpreter after each call of the system, while other threads use it. The second process
renames and records nothing: when this process dies, it finishes at most one request, and leaves drafts that belong to nobody.
"""

from __future__ import annotations

import marshal
import os
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .. import single

if TYPE_CHECKING:
    import subprocess

Call: TypeAlias = Literal["read", "stamp", "still", "write"]
MANY = 64
"""Fewer are done by this process: the other one would have to be started."""


class SecondProcess:
    """Started when there is much to do for the first time, and again if it was idle and has ended."""

    def __init__(self) -> None:
        self.paused = threading.Lock()
        """Whoever holds it renames many files: two processes that change one directory burn time waiting for each other."""
        self._end: weakref.finalize[[subprocess.Popen[bytes], int], Any] | None = None
        self._pipes = (-1, -1)
        self._owner = 0
        self._is_possible = _has_two_cores() and "py" in os.path.basename(sys.executable)

    def call_each(self, name: Call, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """As `single.call_each`."""
        # Looking at files takes less time than waiting until others have been written.
        if len(arguments) >= MANY and self._is_possible and self.paused.acquire(blocking=name != "stamp"):
            try:
                return self._ask(marshal.dumps((name, list(arguments))))
            except (OSError, EOFError):
                self._close()
            except BaseException:
                self._close()  # the next one to ask would get this answer
                raise
            finally:
                self.paused.release()
        return single.call_each(name, arguments)  # doing a part of it again changes nothing

    def _ask(self, request: bytes) -> list[Any]:
        if self._end is None or self._owner != os.getpid():
            self._is_possible = False  # until it has answered
            self._start()
        to_other, from_other = self._pipes
        single.send(to_other, request)
        answer: list[Any] = marshal.loads(single.receive(from_other))
        self._is_possible = True
        return answer

    def _start(self) -> None:
        import subprocess

        command = [sys.executable, "-I", "-S", single.__file__]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._owner = os.getpid()
        self._pipes = process.stdin.fileno(), process.stdout.fileno()
        self._end = weakref.finalize(self, _end, process, self._owner)

    def _close(self) -> None:
        if self._end is not None:
            self._end()
            self._end = None


def system_error(number: int, file: str) -> OSError:
    """The error that the system gave this number."""
    return OSError(number, os.strerror(number), file)


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() == owner:  # not after a fork
        process.kill()
        with process:
            pass


def _has_two_cores() -> bool:
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1
