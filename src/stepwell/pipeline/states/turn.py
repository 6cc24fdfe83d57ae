"""`TURN`: threads of this process that handle thousands of small files do so one after the other.

A call to the system for a small file takes some microseconds, and lets go of the interpreter. Where two threads make such calls
side by side, each waits for the other after every one of them, which takes longer than the work itself. What takes a while,
as syncing and bodies that wait, is done without the turn. It is a courtesy and protects nothing: who has waited for long
enough goes on without it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_SECONDS = 0.5


class Turn:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mine = threading.local()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Have the turn, unless somebody keeps it for too long."""
        self._take()
        try:
            yield
        finally:
            self.give_back()

    @contextmanager
    def given_back(self) -> Iterator[None]:
        """Let others have it meanwhile, if this thread has it."""
        if not self.give_back():
            yield
            return
        try:
            yield
        finally:
            self._take()

    def give_back(self) -> bool:
        """Give it back before its end; whether this thread had it."""
        had = getattr(self._mine, "has", False)
        if had:
            self._mine.has = False
            self._lock.release()
        return had

    def _take(self) -> None:
        self._mine.has = self._lock.acquire(timeout=PATIENCE_SECONDS)


TURN = Turn()
